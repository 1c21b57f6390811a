/* SPDX-License-Identifier: Apache-2.0 */
#include "isa.h"

/* isa_levels.def is made when the build is configured: the levels of host/native/isa.def for this processor family. */
#define LEVEL(level, width, test) extern const bench_isa bench_isa_##level;
#include "isa_levels.def"
#undef LEVEL

const bench_isa *bench_isa_level(size_t n) {
#if defined(__x86_64__)
#define CLATTN__HAS(feature) __builtin_cpu_supports(feature)
#else
#define CLATTN__HAS(feature) 0
#endif
#define LEVEL(level, width, test)                                                                                              \
    if ((test) && n-- == 0) return &bench_isa_##level;
#include "isa_levels.def"
#undef LEVEL
    return NULL;
}
