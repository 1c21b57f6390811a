/* Which keys a query may look at: one definition for every kernel and for the host. Keys of query i lie in [0, live_keys(p, i)).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_KERNELS_MASK_H
#define CLATTN_KERNELS_MASK_H

#include "params.h"

static inline i64 live_keys(const attention_params *p, i64 i) {
    if (!p->causal) return p->len_kv;
    i64 last = i + p->offset + 1;
    return last < 0 ? 0 : last < p->len_kv ? last : p->len_kv;
}

#endif
