/* Maps that are too large to be read cell by cell.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_PAGE_AVERAGE_H
#define CLATTN_LESSONS_PAGE_AVERAGE_H

#include "doc.h"

enum { PAGE_MAP_MAX = 64 };

/* A copy of the document in which no matrix has more rows or columns than PAGE_MAP_MAX: cells of larger ones are means of
 * blocks, and their `averaged` says of how many rows and columns. */
doc page_average(const doc *);

#endif
