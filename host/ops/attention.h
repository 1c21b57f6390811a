/* What the files of the operator attention share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_OPS_ATTENTION_H
#define CLATTN_OPS_ATTENTION_H

#include "ops.h"

/* Of a descriptor whose tensors were checked one by one. */
clattn__attention_sizes clattn__attention_sizes_of(const clattn_attention_desc *);
/* Steps that bring queries, keys and values to where attention reads them: rotated, and after those of the cache. Fills in q, k, v
 * and, where the cache is updated in place, kv_lengths. */
clattn_status clattn__cache_emit(clattn_plan *, const clattn_attention_desc *, const clattn__attention_sizes *,
                                 clattn__attention_operands *);

#endif
