/* The lessons, which table.c puts in order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_COURSES_H
#define CLATTN_LESSONS_COURSES_H

#include "lesson.h"

void lesson_rnn_step(lesson *);
void lesson_rnn_bottleneck(lesson *);
void lesson_lstm_memory(lesson *);
void lesson_serial_steps(lesson *);
void lesson_alignment(lesson *);
void lesson_projection(lesson *);
void lesson_matmul(lesson *);
void lesson_qkv(lesson *);
void lesson_word_vectors(lesson *);
void lesson_heads(lesson *);
void lesson_mask(lesson *);
void lesson_softmax(lesson *);
void lesson_scaling(lesson *);
void lesson_memory(lesson *);
void lesson_positions(lesson *);
void lesson_parameters_count(lesson *);
void lesson_initialisation(lesson *);
void lesson_head_dim(lesson *);

#endif
