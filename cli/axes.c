/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/axes.h"

#include <stdio.h>
#include <string.h>

#include "cli/npy.h"

enum { MAX_FORMS = NPY_MAX_RANK + 1 };

const char *axes_list(const char *axes, bool merged) {
    const char *other = merged ? strchr(axes, ';') : NULL;
    if (other != NULL) return other + 1;
    return axes + (axes[0] == '*');
}

bool axes_single(const char *axes) {
    return axes[strcspn(axes, "|;")] != '|';
}

const char *axes_alternative(const char *axes, int form, int *rank) {
    bool only = axes_single(axes);
    *rank = 0;
    for (; !only && form > 0; form--) {
        axes += strcspn(axes, "|;");
        if (*axes != '|') return NULL;
        axes++;
    }
    *rank = (int)strcspn(axes, "|;");
    return axes;
}

int axes_form(const char *axes, int rank) {
    int alternative_rank, count = axes_single(axes) ? 1 : MAX_FORMS;
    for (int form = 0; form < count && axes_alternative(axes, form, &alternative_rank) != NULL; form++)
        if (alternative_rank == rank) return form;
    return -1;
}

int axes_index(char axis) {
    return axis == 'b' ? 0 : axis == 'h' ? 1 : axis == 'l' || axis == 'r' ? 2 : 3;
}

bool axes_merges(char axis) {
    return axis == 'q' || axis == 'g';
}

static const char *name_of(char axis) {
    static const char *const names[] = {
        ['b'] = "batch", ['h'] = "heads",   ['l'] = "len",         ['d'] = "dim",         ['k'] = "keys",
        ['r'] = "rows",  ['c'] = "columns", ['n'] = "members + 1", ['q'] = "heads * dim", ['g'] = "heads * dim",
    };
    return names[(unsigned char)axis];
}

const char *axes_text(const char *axes, int form, char *text, size_t size) {
    int rank, first = form < 0 ? 0 : form, last = form < 0 && !axes_single(axes) ? MAX_FORMS : first;
    const char *word;
    size_t used = 0;
    text[0] = '\0';
    for (int i = first; i <= last && (word = axes_alternative(axes, i, &rank)) != NULL; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s(", i > first ? " or " : "");
        for (int d = 0; d < rank && used < size; d++)
            used += (size_t)snprintf(text + used, size - used, "%s%s", d > 0 ? ", " : "", name_of(word[d]));
        if (used < size) used += (size_t)snprintf(text + used, size - used, rank == 1 ? ",)" : ")");
        if (used >= size) break;
    }
    return text;
}
