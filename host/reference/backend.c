/* The reference as a device: it has no kernels, and runs the operators themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "reference.h"

static clattn_status run(clattn_plan *plan, void *const tensors[CLATTN_TENSOR_COUNT]) {
    clattn_status status = plan->op->reference(plan, tensors);
    if (status == CLATTN_ERROR_MEMORY) return clattn__fail(plan->context, status, "the reference's work arrays: out of memory");
    return status;
}

const clattn__backend clattn__backend_reference = {
    .name = "reference",
    .runs_operators = true,
    .run = run,
};

clattn_status clattn__reference_open(clattn_context *context) {
    clattn_device_info info = {.struct_size = sizeof info,
                               .id = "reference",
                               .kind = CLATTN_DEVICE_REFERENCE,
                               .name = "plain loops in double precision",
                               .platform = "clattn",
                               .compute_units = 1,
                               .vector_width = 1};
    context->backend = &clattn__backend_reference;
    context->device = (clattn__device){.info = info, .vector_width = 1};
    return CLATTN_OK;
}
