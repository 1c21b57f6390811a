/* Which axes of a tensor the dimensions of a file are: "ld|hld|bhld" offers one alternative for each number of dimensions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     b batch    h heads    l length    d width    k keys    r, c rows and columns of a matrix    n members of a batch and one
 *     q, g heads * width in one dimension: of the queries' heads, of the keys' and values' heads
 *
 * The number of an alternative, from 0, is its form. What follows a ';' is the alternative for files where heads and width are
 * one dimension; a '*' at the start says that the file's own number of dimensions picks, not the leader's.
 */
#ifndef CLATTN_CLI_AXES_H
#define CLATTN_CLI_AXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The list that holds for a file: the part behind the ';' when heads are merged and there is one, without a '*'. */
const char *axes_list(const char *axes, bool merged);
/* Whether there is but one alternative in a list. */
bool axes_single(const char *axes);
/* The alternative of a form, up to the next '|', and how many dimensions it has. A list of one has the same in every form. NULL
 * past the last. */
const char *axes_alternative(const char *axes, int form, int *rank);
/* The form of so many dimensions, or -1. */
int axes_form(const char *axes, int rank);
/* Where an axis lies in a clattn_tensor: 0 to 3. Of 'q' and 'g', the width. */
int axes_index(char axis);
/* Whether an axis is heads * width. */
bool axes_merges(char axis);
/* "(len, dim) or (heads, len, dim)": one form, or all of them when form < 0. Returns text. */
const char *axes_text(const char *axes, int form, char *text, size_t size);

#endif
