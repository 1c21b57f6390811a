/* Versioned structs across the ABI: read the caller's, write the caller's; see "ABI" in clattn.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "internal.h"

/* No struct of ours will be larger: what says so was not initialised, and its tail is not looked at. */
enum { LARGEST_STRUCT = 1 << 16 };

static clattn_status check_size(clattn_context *context, const char *name, const void *caller, size_t known, size_t *size) {
    if (!caller) return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s is NULL", name);
    memcpy(size, caller, sizeof *size);
    if (*size < sizeof *size || *size > LARGEST_STRUCT)
        return clattn__fail(context, CLATTN_ERROR_ARGUMENT, "%s: struct_size is %zu; set it to sizeof of the struct (%zu here)",
                            name, *size, known);
    return CLATTN_OK;
}

clattn_status clattn__read_struct(clattn_context *context, const char *name, void *to, size_t known, const void *from) {
    size_t size = 0;
    clattn_status status = check_size(context, name, from, known, &size);
    if (status != CLATTN_OK) return status;
    for (size_t n = known; n < size; n++)
        if (((const unsigned char *)from)[n])
            return clattn__fail(context, CLATTN_ERROR_UNSUPPORTED,
                                "%s: struct_size is %zu, this library (%s) knows %zu bytes, and a field past them is set", name,
                                size, clattn_version(), known);
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    memcpy(to, &known, sizeof known);
    return CLATTN_OK;
}

clattn_status clattn__write_struct(clattn_context *context, const char *name, void *to, const void *from, size_t known) {
    size_t size = 0;
    clattn_status status = check_size(context, name, to, known, &size);
    if (status != CLATTN_OK) return status;
    if (size > known) memset((char *)to + known, 0, size - known);
    memcpy(to, from, size < known ? size : known);
    memcpy(to, &size, sizeof size);
    return CLATTN_OK;
}
