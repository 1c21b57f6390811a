/* Libraries found at run time.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * POSIX only: Windows (LoadLibrary) is not done.
 */
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void *clattn__library_open(const char *const *names, char *why, size_t why_size) {
    for (size_t i = 0; names[i]; i++) {
        /* NODELETE: drivers keep threads and exit handlers whose code must outlive the last context. */
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library) return library;
        const char *reason = dlerror();
        if (i == 0) snprintf(why, why_size, "%s", reason ? reason : names[0]); /* of the usual name, which the text holds */
    }
    return NULL;
}

void clattn__library_close(void *library) {
    if (library) dlclose(library);
}

bool clattn__library_find(void *library, const char *symbol, void *function, char *why, size_t why_size) {
    void *address = dlsym(library, symbol);
    if (!address) {
        snprintf(why, why_size, "the library found has no function %s", symbol);
        return false;
    }
    memcpy(function, &address, sizeof address); /* ISO C has no cast between the two kinds of pointers */
    return true;
}
