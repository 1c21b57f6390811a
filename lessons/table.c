/* SPDX-License-Identifier: Apache-2.0 */
#include "courses.h"

/* clang-format off */
const lesson_entry lesson_table[] = {
    {"projection", "投影：戴上眼镜再比较", "Projection: compare with glasses on", 4, 0, lesson_projection},
    {"word-vectors", "词向量搬家：Q、K、V 全过程", "Words that move: Q, K and V from start to end", 6, LESSON_SEED | LESSON_TEXT, lesson_word_vectors},
    {NULL},
};
/* clang-format on */
