/* SPDX-License-Identifier: Apache-2.0 */
#include "tiles.h"

#include <stddef.h>

/* tiles_features.def is made when the build is configured: the features that this compiler serves. */
#define FEATURE(name) extern const bench_tiles bench_tiles_##name;
#include "tiles_features.def"
#undef FEATURE

const bench_tiles *bench_tiles_of(int feature) {
#define FEATURE(name)                                                                                                    \
    if (bench_tiles_##name.feature == feature) return &bench_tiles_##name;
#include "tiles_features.def"
#undef FEATURE
    return NULL;
}
