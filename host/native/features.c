/* What the processor and its system have beyond instruction-set levels: features.def.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "native.h"

#include <pthread.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* asm/prctl.h since Linux 5.16; bits of XCR0 (Intel SDM, vol. 1, chapter 13). */
enum { GET_SUPPORTED_STATE = 0x1021, REQUEST_STATE_PERMISSION = 0x1023, TILE_CONFIG = 17, TILE_DATA = 18 };

typedef struct registers {
    unsigned eax, ebx, ecx, edx;
} registers;

static registers identify(unsigned leaf, unsigned subleaf) {
    registers r = {0};
    if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return (registers){0};
    return r;
}

bool clattn__has_avx512_bf16(void) { return __builtin_cpu_supports("avx512f") && identify(7, 1).eax >> 5 & 1; }

/* The system has it saved with a thread's registers, and gives it to programs that ask. */
static bool system_keeps_tiles(void) {
    unsigned low, high;
    if (!(identify(1, 0).ecx >> 27 & 1)) return false; /* XGETBV */
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    const unsigned both = 1u << TILE_CONFIG | 1u << TILE_DATA;
    uint64_t supported = 0;
    if ((low & both) != both) return false;
    return syscall(SYS_arch_prctl, GET_SUPPORTED_STATE, &supported) == 0 && (supported & both) == both;
}

/* Palette 1 as tiles.h configures it: eight tiles of 16 rows of 64 bytes. */
static bool has_whole_tiles(void) {
    const registers palettes = identify(0x1d, 0), palette = identify(0x1d, 1);
    return palettes.eax >= 1 && (palette.ebx & 0xffff) >= 64 && palette.ebx >> 16 >= 8 && (palette.ecx & 0xffff) >= 16;
}

bool clattn__has_amx_bf16(void) {
    const unsigned edx = identify(7, 0).edx;
    return edx >> 22 & 1 && edx >> 24 & 1 && system_keeps_tiles() && has_whole_tiles();
}

static const char *permit_tiles(void) {
    if (syscall(SYS_arch_prctl, REQUEST_STATE_PERMISSION, TILE_DATA) == 0) return NULL;
    return errno == ENOSPC ? "a signal stack of this process is too small for AMX tiles" : "the system does not permit AMX tiles";
}
#else
bool clattn__has_avx512_bf16(void) { return false; }
bool clattn__has_amx_bf16(void) { return false; }
static const char *permit_tiles(void) { return "AMX tiles are known on Linux on x86-64 alone"; }
#endif

/* Of the processor, and each question to it may leave a virtual machine: asked once in a process. */
static unsigned found;

static void look(void) {
#define FEATURE(name, number, flags, processors, test, missing) found |= (test) ? 1u << number : 0;
#include "features.def"
#undef FEATURE
}

unsigned clattn__features_here(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look);
    return found;
}

const char *clattn__feature_permit(int number) { return number == CLATTN__FEATURE_amx_bf16 ? permit_tiles() : NULL; }
