/* What to call the processor. For people only: nothing is chosen by it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "native.h"

void clattn__native_processor(char *name, size_t size) {
#if defined(__x86_64__)
    unsigned brand[3][4] = {0};
    int known = 1;
    for (unsigned n = 0; n < 3; n++)
        known &= __get_cpuid(0x80000002u + n, &brand[n][0], &brand[n][1], &brand[n][2], &brand[n][3]);
    if (known) {
        char text[sizeof brand + 1] = {0};
        memcpy(text, brand, sizeof brand);
        const char *start = text + strspn(text, " ");
        size_t length = strlen(start);
        while (length && start[length - 1] == ' ') length--;
        snprintf(name, size, "%.*s", (int)length, start);
        return;
    }
#endif
    struct utsname system;
    snprintf(name, size, "%s", uname(&system) >= 0 ? system.machine : "processor");
}
