/* One plan over several devices of a context: see "Several devices" in clattn.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     units of the operator's grid ──cut──▶ shares of devices ──▶ pieces: blocks of whole members and groups, a plan each
 *     run: [steps before]  ──▶ pieces, on their devices' queues  ──▶ steps that copy what they wrote to the outputs
 *
 * A piece is a plan of the same operator whose tensors are parts of the whole's: those that it reads where they are, those that
 * it writes in memory of its own.
 */
#ifndef CLATTN_SPLIT_H
#define CLATTN_SPLIT_H

#include "internal.h"

/* Members member to member + members - 1, and of each the groups group to group + groups - 1. */
typedef struct clattn__block {
    i64 member, members, group, groups;
} clattn__block;

typedef struct clattn__piece {
    size_t device; /* 0: the context's own; n: that of peers[n - 1] */
    clattn__block block;
    clattn_plan *plan;
    size_t offset[CLATTN_TENSOR_COUNT]; /* bytes into the whole's tensor where the part of one that is read begins */
} clattn__piece;

typedef struct clattn__split {
    clattn__grid grid;
    size_t before; /* so many of the plan's steps run before the pieces */
    size_t count;
    clattn__piece *pieces; /* those of a device stand together */
} clattn__split;

/* Where each of `count` devices begins: units[n] = floor(total * (w[0] + ... + w[n-1]) / (w[0] + ... + w[count-1]) + 1/2), up
 * to units[count] = total. */
void clattn__split_cut(i64 total, const double *weights, size_t count, i64 *units);
/* The blocks of units first to end - 1, at most three; returns how many. */
int clattn__split_blocks(const clattn__grid *, i64 first, i64 end, clattn__block blocks[3]);

/* Make the pieces of a validated plan, whose descriptor was `given`; without any where one device has all. `why_not` then says
 * it. */
clattn_status clattn__split_make(clattn_plan *, const clattn__desc *given, const char **why_not);
/* The steps around the pieces, and the plan's words and numbers: in place of the operator's build. */
clattn_status clattn__split_emit(clattn_plan *);
/* NULL is accepted. */
void clattn__split_destroy(struct clattn__split *);

#endif
