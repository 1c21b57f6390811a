/* Version, status and tensor names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "internal.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)

const char *clattn_version(void) {
    return STRING(CLATTN_VERSION_MAJOR) "." STRING(CLATTN_VERSION_MINOR) "." STRING(CLATTN_VERSION_PATCH);
}

const char *clattn_status_text(clattn_status status) {
    switch (status) {
#define X(name, text) \
    case CLATTN_##name: return text;
        CLATTN_STATUS_LIST(X)
#undef X
    }
    return "unknown status";
}

const char *clattn_status_name(clattn_status status) {
    switch (status) {
#define X(name, text) \
    case CLATTN_##name: return "CLATTN_" #name;
        CLATTN_STATUS_LIST(X)
#undef X
    }
    return "CLATTN_?";
}

const char *clattn_tensor_name(clattn_tensor_id id) {
    static const char *const names[] = {
#define X(id, name) name,
        CLATTN_TENSOR_LIST(X)
#undef X
    };
    return (unsigned)id < CLATTN_TENSOR_COUNT ? names[id] : "?";
}
