/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/axes.h"

#include <stdio.h>
#include <string.h>

#include "cli/npy.h"

const char *axes_alternative(const char *axes, int form, int *rank) {
    bool only = strchr(axes, '|') == NULL;
    *rank = 0;
    for (; !only && form > 0; form--) {
        axes = strchr(axes, '|');
        if (axes == NULL) return NULL;
        axes++;
    }
    *rank = (int)strcspn(axes, "|");
    return axes;
}

int axes_form(const char *axes, int rank) {
    int alternative_rank, count = strchr(axes, '|') != NULL ? NPY_MAX_RANK : 1;
    for (int form = 0; form < count && axes_alternative(axes, form, &alternative_rank) != NULL; form++)
        if (alternative_rank == rank) return form;
    return -1;
}

int axes_index(char axis) {
    return axis == 'b' ? 0 : axis == 'h' ? 1 : axis == 'l' || axis == 'r' ? 2 : 3;
}

static const char *name_of(char axis) {
    static const char *const names[] = {
        ['b'] = "batch", ['h'] = "heads", ['l'] = "len", ['d'] = "dim", ['r'] = "rows", ['c'] = "columns"};
    return names[(unsigned char)axis];
}

const char *axes_text(const char *axes, int form, char *text, size_t size) {
    int rank, first = form < 0 ? 0 : form, last = form < 0 && strchr(axes, '|') != NULL ? NPY_MAX_RANK : first;
    const char *word;
    size_t used = 0;
    text[0] = '\0';
    for (int i = first; i <= last && (word = axes_alternative(axes, i, &rank)) != NULL; i++) {
        if (i > first) used += (size_t)snprintf(text + used, size - used, " or ");
        for (int d = 0; d < rank && used < size; d++)
            used += (size_t)snprintf(text + used, size - used, "%s%s", d > 0 ? ", " : "(", name_of(word[d]));
        if (used < size) used += (size_t)snprintf(text + used, size - used, rank == 1 ? ",)" : ")");
        if (used >= size) break;
    }
    return text;
}
