/* Lists that grow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LIST_H
#define CLATTN_LIST_H

#include <stddef.h>
#include <stdlib.h>

/* A list of `count` elements of so many bytes, with room for one more; NULL without memory, and then the list is as it was. */
static inline void *clattn__list_room(void *list, size_t count, size_t *capacity, size_t element) {
    if (count < *capacity) return list;
    const size_t more = *capacity ? 2 * *capacity : 16;
    void *grown = realloc(list, more * element);
    if (grown) *capacity = more;
    return grown;
}

#endif
