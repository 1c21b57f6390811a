/* SPDX-License-Identifier: Apache-2.0 */
#include "tuned.h"

#include <stddef.h>

const clattn__tuned_file clattn__tuned_files[] = {
    {"built in: pocl-avx512.json", clattn__tuned_file_pocl_avx512_json},
    {NULL, NULL},
};
