/* What a student's kernel has to do: a step, its arguments, how it is launched, and the shapes that it is tried on.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A shape is three numbers: the output has m rows and n columns, and k is what a sum runs over. docs/lab.md says the same in
 * words, for students.
 */
#ifndef CLATTN_CLI_LAB_CONTRACT_H
#define CLATTN_CLI_LAB_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAB_MAX_ARGUMENTS = 8, LAB_MAX_BUFFERS = 4, LAB_MAX_SHAPES = 12, LAB_TINY_SHAPES = 3, LAB_HEAD_DIM_MAX = 128 };

/* What the inputs hold. */
typedef enum lab_data {
    LAB_PLAIN,  /* normal numbers */
    LAB_LARGE,  /* scores whose exponentials overflow */
    LAB_MASKED, /* some scores are -infinity */
} lab_data;

typedef struct lab_shape {
    int m, n, k;
    lab_data data;
} lab_shape;

typedef enum lab_kind { LAB_INPUT, LAB_OUTPUT, LAB_INT, LAB_SCALE } lab_kind;

typedef struct lab_argument {
    const char *name;
    lab_kind kind;
    const char *size; /* letters of the shape: "MK" is a buffer of m rows and k columns ('1': one), "M" an int */
    const char *meaning;
} lab_argument;

typedef struct lab_step {
    const char *name;   /* as the command takes it */
    const char *kernel; /* the name of the function */
    const char *formula;
    lab_argument arguments[LAB_MAX_ARGUMENTS]; /* ends at a NULL name */
    int dimensions;                            /* 1: work-groups share the rows; 2: columns and rows */
    int local[2], tile[2];                     /* where the kernel says nothing else; [0] is the first dimension */
    double tolerance;                          /* of an element, relative to the largest of its row */
    double flops_mnk, flops_mn, flops_mk;      /* the least that the result takes, each times the product of those letters */
    lab_shape tiny[LAB_TINY_SHAPES];           /* odd, for a simulator */
    lab_shape shapes[LAB_MAX_SHAPES];          /* ends at m = 0 */
    lab_shape timed;
} lab_step;

/* How a kernel is launched: its work-group, and the part of the output that a work-group computes. */
typedef struct lab_grid {
    int local[2], tile[2];
} lab_grid;

extern const lab_step lab_steps[];
extern const size_t lab_step_count;

/* The step of that name, or NULL. */
const lab_step *lab_step_find(const char *name);
size_t lab_argument_count(const lab_step *);
/* "float*", "int", "float": an argument's type, as OpenCL names it. */
const char *lab_argument_type(const lab_argument *);
/* The number that a letter stands for. */
int64_t lab_letter(const lab_shape *, char letter);
/* Floats in a buffer. */
size_t lab_elements(const lab_argument *, const lab_shape *);
size_t lab_buffer_bytes(const lab_argument *, const lab_shape *);
/* What the argument called scale holds. */
float lab_scale(const lab_step *, const lab_shape *);
/* Global sizes; 1 in a dimension that the step does not have. */
void lab_global(const lab_step *, const lab_shape *, const lab_grid *, size_t global[2]);
/* A shape that one work-group computes. */
lab_shape lab_one_group(const lab_step *, const lab_grid *);

double lab_flops(const lab_step *, const lab_shape *);
double lab_bytes(const lab_step *, const lab_shape *);

/* "rows 3, cols 8", with the names of the step's own arguments, and what its data are. */
void lab_shape_text(const lab_step *, const lab_shape *, char *text, size_t size);
/* The kernel's first line, as the contract has it. */
void lab_signature(const lab_step *, char *text, size_t size);

#endif
