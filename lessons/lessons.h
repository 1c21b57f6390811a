/* clattn lesson: the course that the program teaches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_LESSONS_H
#define CLATTN_LESSONS_LESSONS_H

/* argv from "lesson" on; returns the exit code. */
int clattn_lesson_main(int argc, char **argv);

#endif
