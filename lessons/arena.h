/* Memory that lives as long as a lesson.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing in it is freed by itself, but by arena_rewind or with all of it. When there is no more, control jumps to `escape`, so
 * that what a lesson allocates is never NULL and its text reads like the lesson, not like its error handling.
 */
#ifndef CLATTN_LESSONS_ARENA_H
#define CLATTN_LESSONS_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

typedef struct arena {
    struct arena_block *newest;
    jmp_buf *escape; /* reached by longjmp(..., 1) */
} arena;

/* `size` bytes, zeroed. */
void *arena_alloc(arena *, size_t size);
/* `count` elements. */
#define ARENA_NEW(arena_, type, count) ((type *)arena_alloc(arena_, (size_t)(count) * sizeof(type)))
char *arena_copy(arena *, const char *text);
char *arena_format(arena *, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vformat(arena *, const char *format, va_list) __attribute__((format(printf, 2, 0)));
/* A larger copy of `old`, which held `old_size` bytes. */
void *arena_grow(arena *, const void *old, size_t old_size, size_t size);
/* Frees what was allocated since: what a long measurement needs for a moment. */
typedef struct arena_block *arena_mark;
arena_mark arena_here(const arena *);
void arena_rewind(arena *, arena_mark);
void arena_free(arena *);

#endif
