/* SPDX-License-Identifier: Apache-2.0 */
#include "numpy_random.h"

#include <math.h>

enum { WORDS = NUMPY_RANDOM_WORDS, SHIFT = 397 };

void numpy_seed(numpy_random *random, uint32_t seed) {
    random->words[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++) {
        uint32_t last = random->words[i - 1];
        random->words[i] = UINT32_C(1812433253) * (last ^ (last >> 30)) + i;
    }
    random->next = WORDS;
    random->kept = false;
}

static void refill(uint32_t *words) {
    for (int i = 0; i < WORDS; i++) {
        uint32_t mixed = (words[i] & UINT32_C(0x80000000)) | (words[(i + 1) % WORDS] & UINT32_C(0x7fffffff));
        words[i] = words[(i + SHIFT) % WORDS] ^ (mixed >> 1) ^ ((mixed & 1) != 0 ? UINT32_C(0x9908b0df) : 0);
    }
}

static uint32_t next_word(numpy_random *random) {
    if (random->next == WORDS) {
        refill(random->words);
        random->next = 0;
    }
    uint32_t word = random->words[random->next++];
    word ^= word >> 11;
    word ^= (word << 7) & UINT32_C(0x9d2c5680);
    word ^= (word << 15) & UINT32_C(0xefc60000);
    return word ^ (word >> 18);
}

double numpy_rand(numpy_random *random) {
    uint32_t high = next_word(random) >> 5, low = next_word(random) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

double numpy_randn(numpy_random *random) {
    if (random->kept) {
        random->kept = false;
        return random->normal;
    }
    double x, y, square;
    do {
        x = 2 * numpy_rand(random) - 1;
        y = 2 * numpy_rand(random) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    double factor = sqrt(-2 * log(square) / square);
    random->normal = factor * x;
    random->kept = true;
    return factor * y;
}

double numpy_round2(double x) {
    return rint(100 * x) / 100;
}
