/* What the parts of the library share. Not installed.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The flow, and who owns which step:
 *
 *   ops/ *.c        an operator validates its descriptor into a plan's tensors, then emits steps (and only that)
 *   kernel_table.c  answers which kernel row serves a role on a device, and with which macros
 *   backend         runs steps on memory: native/, opencl/; reference/ runs the operator itself in double precision
 *   plan.c          create, explain, bind arguments, check aliasing, run
 *
 * Adding a kernel is a line in kernels/rows.def; a device is a clattn__backend; an operator is a file in ops/.
 */
#ifndef CLATTN_INTERNAL_H
#define CLATTN_INTERNAL_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../kernels/mask.h"
#include "../kernels/mma_layouts.h"
#include "../kernels/params.h"
#include "cache.h"
#include "clattn/clattn.h"

/* ---- growing text ------------------------------------------------------------------------------------------------- */

typedef struct clattn__text {
    char *data; /* NULL until something is added; the owner frees */
    size_t length, capacity;
    bool failed; /* out of memory: data holds what fitted */
} clattn__text;

void clattn__text_add(clattn__text *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void clattn__text_add_list(clattn__text *, const char *format, va_list) __attribute__((format(printf, 2, 0)));
void clattn__text_free(clattn__text *);
/* Copy as snprintf does: at most size - 1 bytes and a 0; the length of the whole. */
size_t clattn__text_copy(const char *text, char *out, size_t size);
/* Add the directory of ours that XDG's rules name: $VARIABLE/clattn, else $HOME/BELOW/clattn. False where neither is absolute. */
bool clattn__text_add_xdg(clattn__text *, const char *variable, const char *below);
/* FNV-1a of more bytes; two texts of one length that differ in one byte never have the same. */
#define CLATTN__HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t clattn__hash(uint64_t before, const char *bytes, size_t size);

/* ---- kernel table ------------------------------------------------------------------------------------------------ */

typedef enum clattn__role {
#define ROLE(id, entry, params, buffers) CLATTN__ROLE_##id,
#include "../kernels/roles.def"
#undef ROLE
    CLATTN__ROLE_COUNT
} clattn__role;

enum { CLATTN__MAX_BUFFERS = PARAMS_BUFFERS, CLATTN__MAX_MACROS = 12, CLATTN__MAX_VALUES = 8 };

typedef struct clattn__role_info {
    const char *entry; /* the kernel function */
    size_t params_size;
    int buffers;
    const char *buffer_names[CLATTN__MAX_BUFFERS];
} clattn__role_info;

typedef union clattn__params {
    struct {
        i64 groups, step;
        i64 base[PARAMS_BUFFERS];
    }; /* first in each */
    attention_params attention;
    merge_params merge;
    copy_params copy;
    project_params project;
    recurrence_params recurrence;
} clattn__params;

typedef enum clattn__family {
    CLATTN__FAMILY_CPU,
    CLATTN__FAMILY_NATIVE,
    CLATTN__FAMILY_GPU,
    CLATTN__FAMILY_CLBLAST
} clattn__family;

/* What a row is meant for, a set; see rows.def. */
typedef enum clattn__devices {
    CLATTN__UNFIT = 0,
    CLATTN__CPUS = 1 << 0,
    CLATTN__NVIDIA = 1 << 1,
    CLATTN__AMD = 1 << 2,
    CLATTN__INTEL = 1 << 3,
    CLATTN__NVIDIA_AMD = CLATTN__NVIDIA | CLATTN__AMD,
    CLATTN__GPUS = CLATTN__NVIDIA_AMD | CLATTN__INTEL,
    CLATTN__SMALL = 1 << 4,
} clattn__devices;

typedef struct clattn__macro {
    const char *name;
    int value;
} clattn__macro;

typedef struct clattn__row {
    const char *name;
    clattn__role role;
    clattn__family family;
    const char *source; /* key of clattn__kernel_source */
    clattn__devices devices;
    clattn__macro macros[CLATTN__MAX_MACROS]; /* ends at a NULL name */
} clattn__row;

/* A line of variants.def. */
typedef struct clattn__variant_info {
    clattn__role role;
    const char *macro;
    bool exact; /* EXACTLY or AT_LEAST */
    int count, values[CLATTN__MAX_VALUES];
} clattn__variant_info;

/* The macros that a plan adds to a row's; ends at a NULL name. */
typedef struct clattn__variant {
    clattn__macro macros[CLATTN__MAX_MACROS];
} clattn__variant;

extern const clattn__role_info clattn__roles[CLATTN__ROLE_COUNT];
extern const clattn__variant_info clattn__variants[];
extern const size_t clattn__variant_count;
extern const clattn__row clattn__rows[];
extern const size_t clattn__row_count;

/* What rows of the family NATIVE may need: the numbers of native/features.def, and what is said where one is missing. */
enum {
#define FEATURE(name, number, flags, processors, test, missing) CLATTN__FEATURE_##name = number,
#include "native/features.def"
#undef FEATURE
};
extern const char *const clattn__features_missing[];

/* NULL: there is none of that name. */
const clattn__row *clattn__row_named(const char *name);
/* The value of a row's macro; `missing` where the row has none of that name. */
int clattn__row_macro(const clattn__row *row, const char *name, int missing);
/* Floats of a row's register block, side by side. */
int clattn__row_lanes(const clattn__row *row);
/* What an OpenCL compiler is told of a row, a variant and the matrix units of a device. -cl-mad-enable is all the freedom that it gets: -cl-fast-relaxed-math
 * would break infinities and the exponential's rounding trick. */
void clattn__row_options(const clattn__row *row, const clattn__variant *variant, int mma, clattn__text *options);
/* The variant that serves these parameters; false when one is past its last value. */
bool clattn__role_variant(clattn__role role, const clattn__params *params, clattn__variant *variant);
/* How many groups a row needs for these parameters: the grid of each role, from the row's TILE_* macros. */
i64 clattn__row_groups(const clattn__row *row, const clattn__params *params);
/* The text of a kernel file with its #includes resolved (embedded at build time), or NULL. */
const char *clattn__kernel_source(const char *path);
/* A digest of all that rows are made of, NATIVE ones included: cmake/kernels_digest.cmake. */
extern const char clattn__kernels_hash[];

/* ---- devices and backends ---------------------------------------------------------------------------------------- */

/* What a device can do, as far as kernel rows and operators ask. Tests fake these. */
typedef struct clattn__device {
    clattn_device_info info;
    bool has_cpu_family, has_gpu_family, has_clblast; /* which rows may serve, in the table's order */
    clattn__devices gpu;                 /* whose GPU it is; 0 where it is none or not known */
    char vendor[64], architecture[32];   /* OpenCL: as the driver names them; the latter "" where we do not know how to ask */
    int mma;                             /* whose matrix units it has, MMA_*, or minus that where tests have them emulated; 0: none */
    bool has_f64;                        /* whether they compute in f64 */
    unsigned features;                   /* NATIVE rows: a bit for each number of native/features.def */
    int vector_width;                    /* of CPU rows; the native ISA level's or the device's native width */
    size_t max_work_group;               /* GPU rows */
    bool understates_work_groups;        /* what its driver says of a kernel's largest work-group is too little */
    bool opens_by_family;                /* whatever info.problem says, where a family of rows is asked for by name */
    size_t local_bytes;                  /* GPU rows */
    size_t max_params_bytes;
    size_t max_alloc_bytes;              /* of one buffer; 0: as much as there is memory */
} clattn__device;

/* NULL when a row can serve these parameters on a device, else why not. */
const char *clattn__row_obstacle(const clattn__row *row, const clattn__device *device, const clattn__variant *variant,
                                 const clattn__params *params);

/* Whether the row is meant for a device's GPU; of other devices nothing is known that would tell. */
bool clattn__row_is_meant(const clattn__row *row, const clattn__device *device);

typedef struct clattn__step clattn__step;

/* Where a step's buffer lies. */
typedef struct clattn__place {
    enum { CLATTN__NOWHERE, CLATTN__IN_TENSOR, CLATTN__IN_WORKSPACE, CLATTN__IN_PIECE } where;
    clattn_tensor_id tensor; /* IN_TENSOR, IN_PIECE */
    size_t offset;           /* bytes; 0 but in workspace, and where a piece's part of a tensor begins */
    size_t element;          /* bytes of one */
    int piece;               /* IN_PIECE: which of a split plan (split.h) has the memory */
} clattn__place;

/* One kernel launch, or `repeat` of them, each of which waits for the one before and sees its number in params.step. */
struct clattn__step {
    const clattn__row *row;
    clattn__variant variant;
    clattn__place buffers[CLATTN__MAX_BUFFERS];
    clattn__params params;
    i64 repeat;        /* 1, or the number of steps of a *_STEP role */
    void *prepared;    /* the backend's: a cl_kernel, a native function */
};

typedef struct clattn__backend {
    const char *name;
    bool splits; /* its contexts may have peers, and its run does what plan->split says */
    /* The backend runs operators whole (plan->op->reference): no steps are built for it, prepare and release are NULL. */
    bool runs_operators;
    /* Make the step ready to run (find or build its kernel). Called when a plan is made. May fail with BUILD: the
     * variant of the row is then banned in this context and the plan built again without it. */
    clattn_status (*prepare)(clattn_plan *, clattn__step *);
    void (*release)(clattn_context *, clattn__step *);
    /* Run the plan on host memory; tensors[id] and the workspace are valid pointers for all that the steps name. */
    clattn_status (*run)(clattn_plan *, void *const tensors[CLATTN_TENSOR_COUNT]);
    /* Bring what was compiled since the last call to the context's cache; NULL: nothing is kept. */
    void (*keep)(clattn_context *);
    void (*plan_destroy)(clattn_plan *);       /* may be NULL */
    void (*context_destroy)(clattn_context *); /* may be NULL */
} clattn__backend;

struct clattn_context {
    const clattn__backend *backend;
    clattn__device device;
    int threads;     /* native: the number it runs with; set by its open function */
    pid_t process;   /* native: where those threads are */
    int work_groups; /* OpenCL: 0 or the limit */
    clattn__file_cache cache; /* files that outlive the process */
    clattn_log_callback log;
    void *log_user;
    pthread_mutex_t lock;         /* the lists below */
    struct clattn__error *errors; /* each thread's last */
    struct clattn__ban *bans;     /* rows that do not serve here */
    struct clattn__self_checks *self_checks; /* rows that are known to compute right: self_check.h; NULL: none are checked */
    struct clattn__tuning *tuning; /* rows that were measured: tuning.h; NULL: not asked yet */
    unsigned long builds; /* OpenCL: programs that were compiled from source */
    clattn_context **peers; /* OpenCL: one for each further device that shares memory objects with this one */
    size_t peer_count;
    clattn__text why; /* the choice of the device, in words */
    void *state; /* the backend's */
};

/* Each backend makes a new context one of its device: fills device, backend, state. DEVICE when it is not there. device.c asks
 * them. (clattn__reference_open: reference/reference.h) */
clattn_status clattn__native_open(clattn_context *, const char *isa /* NULL: the best here */);
/* `family` narrows the kernel rows: "cpu" or "gpu", or "clblast" for GPU rows with CLBlast's projections; NULL: by the device.
 * CLATTN__ALL_DEVICES: of those of the platform that can be used the first; the others become its peers. */
enum { CLATTN__ALL_DEVICES = -1 };
clattn_status clattn__opencl_open(clattn_context *, int platform, int device, const char *family);
/* OpenCL's devices, and as entries with a `problem` the platforms that have none. The caller frees. */
clattn_status clattn__opencl_list(clattn__device **devices, size_t *count);

/* What the environment turns off, by 0; 1 and "" leave it on. */
typedef enum clattn__switch { CLATTN__SELF_CHECK, CLATTN__KERNEL_CACHE, CLATTN__TUNING, CLATTN__SWITCHES } clattn__switch;
bool clattn__is_on(clattn__switch);

clattn_context *clattn__context_new(const clattn_context_options *);
/* Add to context->why which devices it has beside the first, and where the backend's files are kept, or why they are not. */
void clattn__context_explain(clattn_context *);
/* Undo what an open function did; the context can be opened again. */
void clattn__context_close(clattn_context *);
/* Read the caller's options, or the defaults for NULL, and the environment's switches. */
clattn_status clattn__context_options(const clattn_context_options *given, clattn_context_options *options);
/* Destroy a context that could not be made (NULL: there is none) and leave the text, or its last error where that is NULL, where
 * the options say; returns the status. */
clattn_status clattn__context_give_up(clattn_context *, const clattn_context_options *, clattn_status, const char *text);

/* Set the context's error text and return the status: `return clattn__fail(ctx, CLATTN_ERROR_SHAPE, "k has ...", ...)`. */
clattn_status clattn__fail(clattn_context *, clattn_status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The calling thread's last error in this context, its own until it fails again; never NULL. */
const char *clattn__last_error(clattn_context *);
void clattn__errors_free(clattn_context *);
/* Whether errors of the calling thread are kept without a word in the log. */
void clattn__errors_unlogged(clattn_context *, bool unlogged);
void clattn__log(clattn_context *, clattn_log_level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- tensors ------------------------------------------------------------------------------------------------------ */

/* "batch", "heads", "len", "dim": the dimensions of every view, as messages name them. */
extern const char *const clattn__dim_names[4];

/* Sizes and strides are legal, and the last element's offset in bytes fits; ERROR_ARGUMENT, ERROR_OVERFLOW. */
clattn_status clattn__tensor_check(clattn_context *, const char *name, const clattn_tensor *);
/* Outputs only: no two elements share an address (ERROR_ALIAS). */
clattn_status clattn__tensor_check_injective(clattn_context *, const char *name, const clattn_tensor *);
/* Whether two views at two addresses have an element in common. */
bool clattn__tensors_share(const clattn_tensor *a, const void *a_data, const clattn_tensor *b, const void *b_data);
/* Bytes from the pointer to one past the last element; 0 when empty. */
size_t clattn__tensor_span(const clattn_tensor *);
i64 clattn__tensor_elements(const clattn_tensor *);
size_t clattn__dtype_size(clattn_dtype); /* bytes; 0 for what is no type */
/* Element `index` of an array, rounded to nearest when stored. Integers are exact up to 2^53. */
double clattn__load(clattn_dtype, const void *data, i64 index);
void clattn__store(clattn_dtype, void *data, i64 index, double value);
double clattn__round(clattn_dtype, double value); /* as it would be stored */
strides clattn__strides(const clattn_tensor *); /* 0 where there is no second element: what stands there is unchecked */

/* ---- plans -------------------------------------------------------------------------------------------------------- */

/* Every operator: a file in ops/ that defines clattn__operator_<name>, a clattn_<name>_desc in clattn.h. */
#define CLATTN__OPERATORS(X) X(attention) X(merge) X(project_qkv) X(mha) X(recurrence)

/* What several devices share: batch members by groups of query heads, each with its key head. Unit u is group u % groups of member
 * u / groups. */
typedef struct clattn__grid {
    i64 batch, groups;
} clattn__grid;

typedef struct clattn__operator {
    const char *name; /* as clattn_plan_info.op */
    size_t desc_size;
    bool has_algorithm, has_recurrence; /* which of clattn_plan_options it has a use for */
    /* Check plan->desc, resolve its defaults, declare the tensors, count flops and bytes. */
    clattn_status (*validate)(clattn_plan *);
    /* What a run in host memory can check of the integers that it is given; may be NULL. */
    clattn_status (*check)(const clattn_plan *, void *const tensors[CLATTN_TENSOR_COUNT]);
    /* The operator itself in double precision on the plan's tensors: the oracle. */
    clattn_status (*reference)(const clattn_plan *, void *const tensors[CLATTN_TENSOR_COUNT]);
    /* What the backends run: fill plan->steps, workspace_bytes, ... from the validated descriptor. */
    clattn_status (*build)(clattn_plan *);
    /* Into what the plan can be cut for several devices; NULL: it cannot. */
    clattn__grid (*grid)(const clattn_plan *);
} clattn__operator;

/* What a run does with a tensor. To update is to read and write in place; such a tensor keeps to the rules of an output. */
typedef enum clattn__access { CLATTN__READ, CLATTN__WRITE, CLATTN__UPDATE } clattn__access;

typedef union clattn__desc {
#define X(op) clattn_##op##_desc op;
    CLATTN__OPERATORS(X)
#undef X
} clattn__desc;

struct clattn_plan {
    clattn_context *context;
    const clattn__operator *op;
    const char *name; /* op->name, but "rnn" or "lstm" */
    bool probing;     /* clattn_supports_*: choose rows, prepare nothing */
    const clattn__row *only_row; /* serves its role whatever the table prefers; NULL: as it prefers */
    const clattn__row *failed_row; /* that did not build or computed wrong, */
    clattn__variant failed_variant; /* in this variant */
    clattn__desc desc; /* validated, defaults resolved */
    size_t fields[CLATTN_TENSOR_COUNT]; /* where in it the tensors of the plan stand */
    clattn_plan_options options; /* validated */
    clattn_tensor tensors[CLATTN_TENSOR_COUNT]; /* ABSENT where the plan has none, and for the workspace */
    clattn__access access[CLATTN_TENSOR_COUNT];
    clattn__step *steps;
    size_t step_count, step_capacity;
    size_t workspace_bytes;
    void *workspace; /* the plan's own, from the first run that brought none */
    const char *algorithm;
    char *rows;
    clattn__text why;     /* the choices, a line each */
    clattn__text dropped; /* rows that failed while this plan was made */
    i64 launches, dependent_steps;
    struct clattn__split *split; /* over several devices: split.h; NULL: it is not */
    double flops, bytes;
    void *state; /* the backend's */
};

#define X(op) extern const clattn__operator clattn__operator_##op;
CLATTN__OPERATORS(X)
#undef X

/* A plan for any operator: what clattn_plan_create_... (probing: clattn_supports_...) does. */
clattn_status clattn__plan_create(clattn_context *, const clattn__operator *, const void *desc, const clattn_plan_options *, bool probing,
                                  clattn_plan **plan);

/* Read a caller's versioned struct into one of `known` bytes, and write one of `known` bytes to the caller's; see "ABI" in
 * clattn.h. The context may be NULL: then there is no error text. */
clattn_status clattn__read_struct(clattn_context *, const char *name, void *to, size_t known, const void *from);
clattn_status clattn__write_struct(clattn_context *, const char *name, void *to, const void *from, size_t known);
/* The names in a list of arguments: each tensor of the plan once. ids points at the first id, the others id_stride bytes on. */
clattn_status clattn__plan_check_names(const clattn_plan *, const clattn_tensor_id *ids, size_t count, size_t id_stride);
/* The view of a tensor; of the workspace as a tensor like the others. */
clattn_tensor clattn__plan_view(const clattn_plan *, clattn_tensor_id);

/* Where a tensor lies in the memory that `object` stands for: NULL is the host's; in others an address is an offset. */
typedef struct clattn__binding {
    clattn_tensor_id id;
    const void *object, *address;
} clattn__binding;

/* No output, and not the workspace, shares an element with another tensor (ERROR_ALIAS). */
clattn_status clattn__plan_check_alias(const clattn_plan *, const clattn__binding *, size_t count);
/* Give *workspace the plan's own host memory if it is NULL and some is needed. */
clattn_status clattn__plan_own_workspace(clattn_plan *, void **workspace);

/* Declare a tensor of the plan after checking it. */
clattn_status clattn__plan_declare(clattn_plan *, clattn_tensor_id, const clattn_tensor *, clattn__access);
/* A view and where it lies; place.where is CLATTN__NOWHERE for an absent operand. */
typedef struct clattn__operand {
    clattn_tensor view;
    clattn__place place;
} clattn__operand;

static inline bool clattn__same_place(const clattn__operand *a, const clattn__operand *b) {
    return a->place.where == b->place.where && a->place.tensor == b->place.tensor && a->place.offset == b->place.offset;
}

/* The operand of a tensor of the plan, absent if the plan has none. */
clattn__operand clattn__plan_operand(const clattn_plan *, clattn_tensor_id);
/* A packed operand in newly reserved workspace. */
clattn_status clattn__plan_scratch(clattn_plan *, clattn_tensor packed, clattn__operand *);
/* The row that serves a role on the context's device: the first in the table that fits the device, is meant for it and is not
 * banned, else the first that fits, or NULL. *why, if given, says of each row before it why not. */
const clattn__row *clattn__choose_row(clattn_context *, clattn__role, const clattn__params *, clattn__text *why);
/* Why a row may not serve in this context, or NULL. */
const char *clattn__row_refusal(clattn_context *, const clattn__row *, const clattn__params *);
/* Leave a row out in this context: in one variant, or in all (NULL). False when there is no memory. */
bool clattn__row_ban(clattn_context *, const clattn__row *, const clattn__variant *);
void clattn__row_bans_lift(clattn_context *);
/* Append a launch of a row. params.groups is set from the row. Buffers stand in the order of roles.def; an absent one is bound to
 * the first (the parameters' flags say that it is not there). A step without groups is left out. When the row does not build on
 * this device, its variant is banned in the context and the whole plan is built again without it. */
clattn_status clattn__plan_step_of(clattn_plan *, const clattn__row *, const clattn__place *buffers, const clattn__params *,
                                   i64 repeat);
/* The row of a role: the one that was measured to be the fastest (tuning.h) where it may serve, else the table's choice. NULL, with
 * the reasons in `why`, where there is none. The plan's own words say what was measured. */
const clattn__row *clattn__plan_find(clattn_plan *, clattn__role, const clattn__params *, clattn__text *why);
/* The same, or say why there is none (UNSUPPORTED). An operator whose steps depend on the row chooses it once:
 * another thread may ban it between two choices. */
clattn_status clattn__plan_choose(clattn_plan *, clattn__role, const clattn__params *, const clattn__row **row);
/* Both. */
clattn_status clattn__plan_step(clattn_plan *, clattn__role, const clattn__place *buffers, const clattn__params *, i64 repeat);

#endif
