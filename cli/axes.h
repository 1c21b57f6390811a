/* Which axes of a tensor the dimensions of a file are: "ld|hld|bhld" offers one alternative for each number of dimensions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     b batch    h heads    l length    d width    r, c rows and columns of a matrix
 *
 * The number of an alternative, from 0, is its form.
 */
#ifndef CLATTN_CLI_AXES_H
#define CLATTN_CLI_AXES_H

#include <stddef.h>

/* The alternative of a form, up to the next '|', and how many dimensions it has. A list of one has the same in every form. NULL
 * past the last. */
const char *axes_alternative(const char *axes, int form, int *rank);
/* The form of so many dimensions, or -1. */
int axes_form(const char *axes, int rank);
/* Where an axis lies in a clattn_tensor: 0 to 3. */
int axes_index(char axis);
/* "(len, dim) or (heads, len, dim)": one form, or all of them when form < 0. Returns text. */
const char *axes_text(const char *axes, int form, char *text, size_t size);

#endif
