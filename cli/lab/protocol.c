/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol.h"

#include <errno.h>
#include <unistd.h>

static uint64_t up_to(uint64_t bytes, uint64_t multiple) {
    return (bytes + multiple - 1) / multiple * multiple;
}

bool lab_layout(const lab_step *step, const lab_shape *shape, uint32_t slot, lab_buffers layout,
                lab_buffer buffers[LAB_MAX_BUFFERS]) {
    uint64_t at = lab_slot_offset(slot);
    size_t count = 0;
    for (size_t i = 0; i < lab_argument_count(step); i++) {
        const lab_argument *argument = &step->arguments[i];
        if (argument->kind > LAB_OUTPUT) continue;
        lab_buffer *buffer = &buffers[count++];
        buffer->offset = at;
        buffer->bytes = lab_buffer_bytes(argument, shape);
        buffer->padded = layout == LAB_EXACT ? buffer->bytes : up_to(buffer->bytes, LAB_ALIGNMENT);
        if (layout == LAB_COPIED) buffer->padded += LAB_DEVICE_TAIL;
        buffer->pages = up_to(buffer->padded, LAB_PAGE);
        at += buffer->pages;
    }
    return at <= lab_slot_offset(slot + 1);
}

bool lab_write_all(int fd, const void *data, size_t bytes) {
    for (const char *from = data; bytes > 0;) {
        const ssize_t written = write(fd, from, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        from += written;
        bytes -= (size_t)written;
    }
    return true;
}

bool lab_read_all(int fd, void *data, size_t bytes) {
    for (char *to = data; bytes > 0;) {
        const ssize_t got = read(fd, to, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        to += got;
        bytes -= (size_t)got;
    }
    return true;
}
