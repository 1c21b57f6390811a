/* One window of the address space for each buffer of each slot, protected but for the buffer in its middle.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A kernel that strays from a buffer by up to half a window meets a protected page, whose address names the buffer.
 */
#include "guard.h"

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <ucontext.h>
#include <unistd.h>

enum { WINDOWS = LAB_SLOTS * LAB_MAX_BUFFERS };
static const uint64_t WINDOW_BYTES = (uint64_t)1 << 30;

/* Of the process, since a signal handler has no other way to know. */
static struct {
    char *base;
    int memory, replies;
    struct {
        char *data;
        lab_buffer buffer;
    } windows[WINDOWS];
} guard;

/* ---- faults -------------------------------------------------------------------------------------------------------- */

static bool fault_writes(const void *context) {
#if defined(__x86_64__)
    return (((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
    return true;
#endif
}

/* Only what a handler may call. The action is back to its default: on return the fault comes again, and kills. */
static void on_fault(int number, siginfo_t *info, void *context) {
    lab_reply reply = {.op = LAB_OP_CRASH, .failed = 1, .offset = INT64_MIN};
    const uint64_t distance = (uint64_t)((uintptr_t)info->si_addr - (uintptr_t)guard.base);
    (void)number;
    if (distance < WINDOWS * WINDOW_BYTES && guard.windows[distance / WINDOW_BYTES].data != NULL) {
        reply.argument = (uint32_t)(distance / WINDOW_BYTES % LAB_MAX_BUFFERS);
        reply.offset = (int64_t)((uintptr_t)info->si_addr - (uintptr_t)guard.windows[distance / WINDOW_BYTES].data);
        reply.is_write = fault_writes(context);
    }
    (void)!write(guard.replies, &reply, sizeof reply);
}

void lab_guard_watch(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

/* ---- windows ------------------------------------------------------------------------------------------------------- */

bool lab_guard_open(int memory, int replies) {
    guard.memory = memory;
    guard.replies = replies;
    guard.base = mmap(NULL, WINDOWS * WINDOW_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return guard.base != MAP_FAILED;
}

void *lab_guard_map(uint32_t slot, uint32_t argument, const lab_buffer *buffer) {
    const uint32_t window = slot * LAB_MAX_BUFFERS + argument;
    uint32_t page = 0;
    (void)!getrandom(&page, sizeof page, 0);
    char *at = guard.base + window * WINDOW_BYTES + WINDOW_BYTES / 2 + page % 4096 * LAB_PAGE;
    if (mmap(at, buffer->pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, guard.memory, (off_t)buffer->offset) ==
        MAP_FAILED)
        return NULL;
    guard.windows[window].data = at + (buffer->pages - buffer->padded);
    guard.windows[window].buffer = *buffer;
    return guard.windows[window].data;
}

void lab_guard_unmap(uint32_t slot, uint32_t argument) {
    const uint32_t window = slot * LAB_MAX_BUFFERS + argument;
    const lab_buffer *buffer = &guard.windows[window].buffer;
    char *data = guard.windows[window].data;
    if (data == NULL) return;
    guard.windows[window].data = NULL;
    mmap(data - (buffer->pages - buffer->padded), buffer->pages, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
