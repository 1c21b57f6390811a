/* SPDX-License-Identifier: Apache-2.0 */
#include "isa.h"

#include <string.h>

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

const bench_isa *bench_isa_named(const char *name) {
    const bench_isa *isa;
    for (size_t n = 0; (isa = bench_isa_level(n)) != NULL; n++)
        if (strcmp(isa->name, name) == 0) return isa;
    return NULL;
}

const bench_isa *bench_isa_of_device(const char *id) {
    static const char native[] = "native:";
    const bench_isa *named = strncmp(id, native, strlen(native)) == 0 ? bench_isa_named(id + strlen(native)) : NULL;
    return named ? named : bench_isa_level(0);
}
