/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct arena_block {
    struct arena_block *older;
    max_align_t memory[];
} arena_block;

void *arena_alloc(arena *arena, size_t size) {
    arena_block *block = size < SIZE_MAX - sizeof *block ? calloc(1, sizeof *block + size) : NULL;
    if (block == NULL) longjmp(*arena->escape, 1);
    block->older = arena->newest;
    arena->newest = block;
    return block->memory;
}

char *arena_copy(arena *arena, const char *text) {
    size_t size = strlen(text) + 1;
    return memcpy(arena_alloc(arena, size), text, size);
}

char *arena_vformat(arena *arena, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = format != NULL ? vsnprintf(NULL, 0, format, again) : -1;
    va_end(again);
    if (length < 0) longjmp(*arena->escape, 1);
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

char *arena_format(arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = arena_vformat(arena, format, args);
    va_end(args);
    return text;
}

void *arena_grow(arena *arena, const void *old, size_t old_size, size_t size) {
    void *memory = arena_alloc(arena, size);
    if (old_size > 0) memcpy(memory, old, old_size);
    return memory;
}

arena_mark arena_here(const arena *arena) {
    return arena->newest;
}

void arena_rewind(arena *arena, arena_mark mark) {
    while (arena->newest != mark) {
        arena_block *older = arena->newest->older;
        free(arena->newest);
        arena->newest = older;
    }
}

void arena_free(arena *arena) {
    arena_rewind(arena, NULL);
}
