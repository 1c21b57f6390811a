/* The lessons, which table.c puts in order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_COURSES_H
#define CLATTN_LESSONS_COURSES_H

#include "lesson.h"

void lesson_projection(lesson *);
void lesson_word_vectors(lesson *);

#endif
