/* What the lab and its workers say to each other: a request and a reply through two pipes, data through shared memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A worker runs code that nobody has read: it may write anything to its pipe and to the memory, or nothing. So a reply is only
 * ever a sign that a launch may have ended, and words to show; what is right, the parent finds out from the memory itself.
 *
 * The shared memory begins with a text of LAB_TEXT_BYTES: the kernel's source on its way there, long words on their way back.
 * Then follow LAB_SLOTS slots, each with the buffers of one launch. A buffer has whole pages; its data end where the last one
 * does, but for what a multiple of LAB_ALIGNMENT and `tail` need. All that is not data is a canary.
 */
#ifndef CLATTN_CLI_LAB_PROTOCOL_H
#define CLATTN_CLI_LAB_PROTOCOL_H

#include "contract.h"

enum {
    LAB_TEXT_BYTES = 128 << 10,
    LAB_SLOTS = 14,
    LAB_SLOT_BYTES = 24 << 20,
    LAB_PAGE = 4096,
    LAB_ALIGNMENT = 128,
    LAB_DEVICE_TAIL = 512, /* of a buffer in a device's memory, where no page can be protected */
    LAB_REQUESTS = 3,      /* file descriptors of a worker */
    LAB_REPLIES = 4,
    LAB_MEMORY = 5,
};

#define LAB_MEMORY_BYTES ((size_t)LAB_TEXT_BYTES + (size_t)LAB_SLOTS * LAB_SLOT_BYTES)

/* Where a kernel finds its buffers. */
typedef enum lab_buffers {
    LAB_GUARDED, /* in the shared memory itself, which protected pages surround: CPU devices */
    LAB_COPIED,  /* in the device's memory, with a tail of canaries */
    LAB_EXACT,   /* in the device's memory, without room behind: simulators see every step past the end */
} lab_buffers;

typedef enum lab_op {
    LAB_OP_OPEN,    /* find the device: `device` */
    LAB_OP_BUILD,   /* the source in the text */
    LAB_OP_PREPARE, /* the buffers of a slot */
    LAB_OP_LAUNCH,
    LAB_OP_COLLECT, /* outputs to the shared memory; the slot's buffers are gone then */
    LAB_OP_LIMITS,  /* what the device can do at most */
    LAB_OP_OURS,    /* make the library's own kernel of the step ready for the shape */
    LAB_OP_OURS_LAUNCH,
    LAB_OP_CRASH, /* replies only */
} lab_op;

typedef struct lab_buffer {
    uint64_t offset; /* of its pages in the shared memory */
    uint64_t pages;  /* bytes */
    uint64_t bytes;  /* of data */
    uint64_t padded; /* from the first datum to the end of the pages */
} lab_buffer;

typedef struct lab_request {
    uint32_t op, slot, step;
    uint32_t layout; /* lab_buffers */
    lab_shape shape;
    lab_grid grid;
    lab_buffer buffers[LAB_MAX_BUFFERS];
    char device[64];
} lab_request;

typedef struct lab_reply {
    uint32_t op, failed;
    uint32_t argument, is_write; /* LAB_OP_CRASH: near which buffer, and what it did there; LAB_OP_OPEN: 1 for a CPU */
    int64_t offset;              /* LAB_OP_CRASH: bytes from the first datum; INT64_MIN: near none */
    double values[3];            /* LAB_OP_LIMITS: GFLOP/s, GB/s from memory and from cache; LAB_OP_OPEN: platform, device */
    char text[512];
} lab_reply;

static inline uint64_t lab_slot_offset(uint32_t slot) {
    return (uint64_t)LAB_TEXT_BYTES + (uint64_t)slot * LAB_SLOT_BYTES;
}
static inline uint64_t lab_data_offset(const lab_buffer *buffer) {
    return buffer->offset + buffer->pages - buffer->padded;
}

/* Lay the step's buffers out in a slot; false when they do not fit. */
bool lab_layout(const lab_step *, const lab_shape *, uint32_t slot, lab_buffers layout, lab_buffer buffers[LAB_MAX_BUFFERS]);

/* All of it, or false: the other side is gone. */
bool lab_write_all(int fd, const void *data, size_t bytes);
bool lab_read_all(int fd, void *data, size_t bytes);

/* The worker's main function: `clattn lab --worker KIND`, where KIND is "student" (sandboxed) or "ours". */
int lab_worker_main(const char *kind);

#endif
