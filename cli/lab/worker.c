/* A worker: answers requests until the other side is gone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "device.h"
#include "guard.h"
#include "ours.h"
#include "sandbox.h"

/* ---- a student's kernel -------------------------------------------------------------------------------------------- */

typedef bool operation(lab_device *, const lab_request *, lab_reply *);

static bool open_device(lab_device *device, const lab_request *request, lab_reply *reply) {
    return lab_device_open(device, request->device, reply);
}

static operation *const operations[] = {
    [LAB_OP_OPEN] = open_device,         [LAB_OP_BUILD] = lab_device_build,     [LAB_OP_PREPARE] = lab_device_prepare,
    [LAB_OP_LAUNCH] = lab_device_launch, [LAB_OP_COLLECT] = lab_device_collect,
};

/* The sandbox is entered before the first driver is loaded; what it is worth stands in the text. */
static bool enter_sandbox(char *text) {
    const char *scratch = getenv("TMPDIR");
    char why[256];
    const bool full = scratch != NULL && lab_sandbox_enter(scratch, why, sizeof why);
    snprintf(text, LAB_TEXT_BYTES, "%s", full ? "" : scratch != NULL ? why : "no scratch folder");
    return lab_guard_open(LAB_MEMORY, LAB_REPLIES);
}

static int serve_student(void) {
    static lab_device device; /* zeroed; what it holds lives as long as the process */
    lab_request request;
    device.text = mmap(NULL, LAB_TEXT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, LAB_MEMORY, 0);
    if (device.text == MAP_FAILED || !enter_sandbox(device.text)) return EXIT_FAILURE;
    while (lab_read_all(LAB_REQUESTS, &request, sizeof request)) {
        lab_reply reply = {.op = request.op};
        if (request.op >= sizeof operations / sizeof *operations || request.slot >= LAB_SLOTS) return EXIT_FAILURE;
        operations[request.op](&device, &request, &reply);
        if (!lab_write_all(LAB_REPLIES, &reply, sizeof reply)) return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

/* ---- the library's ------------------------------------------------------------------------------------------------- */

static bool answer_ours(lab_ours **ours, const lab_request *request, lab_reply *reply) {
    switch (request->op) {
    case LAB_OP_OPEN:
        *ours = lab_ours_open(request, reply);
        return *ours != NULL;
    case LAB_OP_LIMITS:
        return lab_ours_limits(*ours, reply);
    case LAB_OP_OURS:
        return lab_ours_prepare(*ours, request, reply);
    default:
        return lab_ours_launch(*ours, reply);
    }
}

static int serve_ours(void) {
    lab_ours *ours = NULL;
    lab_request request;
    while (lab_read_all(LAB_REQUESTS, &request, sizeof request)) {
        lab_reply reply = {.op = request.op};
        answer_ours(&ours, &request, &reply);
        if (!lab_write_all(LAB_REPLIES, &reply, sizeof reply)) break;
    }
    lab_ours_close(ours);
    return EXIT_SUCCESS;
}

int lab_worker_main(const char *kind) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return strcmp(kind, "ours") == 0 ? serve_ours() : serve_student();
}
