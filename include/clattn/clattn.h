/* clattn: attention on any OpenCL device, and on any CPU without one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * This header is the manual. A program includes it, links libclattn and needs nothing else: OpenCL is looked for when a
 * context is made, never when the program is linked.
 *
 * 1. What is computed
 *
 *      out[b,h,i,:] = sum over live j of  softmax_j(score[b,h,i,j]) * v[b,g,j,:]          g = h / (heads_q / heads_kv)
 *
 *      raw            scale * <q[b,h,i,:], k[b,g,j,:]>
 *      after softcap  softcap * tanh(raw / softcap)                                                  where there is a softcap
 *      after bias     + bias[b,h,i,j] - slope[h] * |j - position(i)|                     where there is a bias, where there is ALiBi
 *      score          -infinity where key j is masked for query i
 *
 *    A key is live for a query when nothing masks it: the batch member's length, causality (keys past the query's position), a
 *    window around that position, the boolean mask, or a bias of -infinity. position(i) = i + offset, and the alignment names the
 *    offset (see clattn_align).
 *
 *    A masked key never reaches out, lse or weights, not even as 0 * NaN; scores raw and after softcap are of every key that k has
 *    room for. A row without a live key gives out = 0, weights = 0, lse = -infinity.
 *    A score of -infinity weighs 0, and where all live scores are that, every weight is 0 and lse = -infinity. A live NaN or
 *    +infinity score makes lse, out and all weights above 0 of its own row NaN, and of no other. A live key's value counts even
 *    where its weight is 0, or underflows to it: NaN and infinite ones make their element of out NaN, or infinite.
 *    A sink is one more logit of its head's rows, with the value 0: it adds to the softmax's denominator and to lse; a row without
 *    a live key then has out = 0 and lse = the sink. A sink of -infinity is none; one of NaN or +infinity makes lse NaN, and out
 *    and weights wherever a weight would be above 0.
 *    Zero-length dimensions are legal; without elements in head_dim every raw score is 0.
 *
 *    Elements are f32, f16, bf16 or f64; q, k, v and out are of one type. Sums are f32 whatever the storage, and f64 for f64 (on
 *    the native and the reference device).
 *
 * 2. How it is used
 *
 *      context   a device and what was learnt about it      clattn_context_create
 *      desc      what to compute: shapes and options        a struct, zero-initialised
 *      options   how, where that is the caller's to say     clattn_plan_options, or NULL
 *      plan      how: algorithm, kernels, workspace, why    clattn_plan_create_...
 *      run       many times, on new pointers                clattn_plan_run
 *
 *    or one line: clattn_attention_f32. Callers who own a cl_context and a cl_command_queue read clattn_opencl.h.
 *
 * 3. Promises
 *
 *    Same inputs, same device, same plan: bitwise the same output. A sample alone equals the same sample in a batch; a member of
 *    a ragged batch equals itself alone in a ragged batch. What `clattn tune` has measured may choose another kernel, and so another
 *    order of sums, by sizes, type and mask, never by the batch. Query heads that share a key head are computed together: one of
 *    them alone is another size.
 *    Functions return a status and write outputs only on success. Nothing is printed, nothing exits, nothing is global.
 *    A plan names what it runs and why; no fallback is silent. An option that would have no effect (scale without has_scale,
 *    align without causal, a bias without its weight, an algorithm of attention for a recurrence) is refused with ARGUMENT, not
 *    ignored.
 *
 *    Limits: a view has at most 2^61 bytes from its first element to its last and as many elements, broadcast ones counted;
 *    head_dim and value_dim are below 2^31. Beyond: OVERFLOW. Whether there is memory for a workspace, a run says: MEMORY.
 *
 * 4. Threads
 *
 *    A context may be used from many threads at once; a plan from one thread at a time. Destroy a context after its plans.
 *    Each thread has an error text of its own in a context.
 *
 *    After fork, a child may run the parent's native plans: on one thread, since OpenMP's do not survive. A context that a
 *    child makes itself needs threads = 1 where its parent has used OpenMP. OpenCL contexts stay with their process.
 *
 * 5. ABI
 *
 *    Every struct that may grow starts with `struct_size`, which the caller sets to sizeof of that struct (the _INIT macros
 *    do). Fields are only ever appended, and zero means "default" or "absent" for each of them. Of an input the library reads
 *    what the caller's size covers and takes the rest as zero; a larger struct than it knows is accepted when its unknown tail
 *    is zero and refused with CLATTN_ERROR_UNSUPPORTED otherwise. Of an output it writes what the caller's size covers, and
 *    zeros where that is more than it knows.
 *
 *    clattn_attention_options grows too, at its end, and has no struct_size: it is the last member of each descriptor that holds
 *    it, so that appending to it appends to the descriptor, whose struct_size says how much of it the caller knows. Nothing else
 *    is ever appended to such a descriptor, and no other struct holds one.
 *
 *    The other structs without struct_size (clattn_tensor, clattn_arg, clattn_cl_arg) stay as they are. No struct that grows ends
 *    in padding. Enumerators keep their values: lists here are appended to.
 */
#ifndef CLATTN_CLATTN_H
#define CLATTN_CLATTN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#  if defined(CLATTN_STATIC)
#    define CLATTN_API
#  elif defined(CLATTN_BUILDING)
#    define CLATTN_API __declspec(dllexport)
#  else
#    define CLATTN_API __declspec(dllimport)
#  endif
#else
#  define CLATTN_API __attribute__((visibility("default")))
#endif

/* What the _INIT macros stand for: struct_size set, all else zero, without a warning in C or C++. */
#ifdef __cplusplus
extern "C++" {
template <class Struct> inline Struct clattn__init() {
    Struct value = Struct();
    value.struct_size = sizeof(Struct);
    return value;
}
}
#  define CLATTN__INIT(type) clattn__init<type>()
#else
#  define CLATTN__INIT(type) { .struct_size = sizeof(type) }
#endif

#define CLATTN_VERSION_MAJOR 0
#define CLATTN_VERSION_MINOR 1
#define CLATTN_VERSION_PATCH 0

/* "0.1.0": the library that runs, which may be newer than the header that was compiled. */
CLATTN_API const char *clattn_version(void);

/* ------------------------------------------------------------------------------------------------------------------ */
/* Status                                                                                                             */

/* name, text; new ones at the end */
#define CLATTN_STATUS_LIST(X)                                                                                            \
    X(OK, "success")                                                                                                     \
    X(ERROR_ARGUMENT, "an argument is null, out of range or contradicts another")                                        \
    X(ERROR_SHAPE, "shapes do not fit together")                                                                         \
    X(ERROR_HEADS, "heads_q is not a multiple of heads_kv")                                                              \
    X(ERROR_OVERFLOW, "a size or an offset is negative or larger than an index can hold")                                \
    X(ERROR_ALIAS, "an output overlaps another tensor or itself")                                                        \
    X(ERROR_UNSUPPORTED, "no kernel of this device serves this request")                                                 \
    X(ERROR_DEVICE, "the device asked for is not there")                                                                 \
    X(ERROR_WORKSPACE, "the workspace given is too small")                                                               \
    X(ERROR_MEMORY, "out of memory")                                                                                     \
    X(ERROR_BUILD, "a kernel did not compile on this device")                                                            \
    X(ERROR_OPENCL, "an OpenCL call failed")                                                                             \
    X(ERROR_INTERNAL, "a defect of clattn")

typedef enum clattn_status {
#define CLATTN_X(name, text) CLATTN_##name,
    CLATTN_STATUS_LIST(CLATTN_X)
#undef CLATTN_X
} clattn_status;

/* The general text of a status, e.g. "out of memory"; never NULL. The particular one: clattn_context_error. */
CLATTN_API const char *clattn_status_text(clattn_status status);
/* The enumerator as written, e.g. "CLATTN_ERROR_MEMORY"; never NULL. */
CLATTN_API const char *clattn_status_name(clattn_status status);

/* ------------------------------------------------------------------------------------------------------------------ */
/* Tensors: strided 4-D views                                                                                         */

typedef enum clattn_dtype {
    CLATTN_ABSENT = 0, /* no tensor here: what a zero-initialised clattn_tensor says */
    CLATTN_F32 = 1,
    CLATTN_F16 = 2,  /* IEEE binary16 */
    CLATTN_BF16 = 3, /* the upper half of an f32 */
    CLATTN_F64 = 4,
    CLATTN_BOOL = 5, /* a byte: 0 is false, all else true */
    CLATTN_I32 = 6,
    CLATTN_I64 = 7,
} clattn_dtype;

/* "f32", "bf16", ...; "?" for a value that is none. */
CLATTN_API const char *clattn_dtype_name(clattn_dtype dtype);

/* A view (batch, heads, len, dim) of memory that a run binds later. Strides count elements and may be any layout's:
 * element (b,h,l,d) lies at b*stride[0] + h*stride[1] + l*stride[2] + d*stride[3] from the pointer. Strides are >= 0; that
 * of a dimension of size 1 is ignored; that of a broadcast dimension is 0 (inputs only). */
typedef struct clattn_tensor {
    clattn_dtype dtype;
    uint32_t reserved; /* 0 */
    int64_t size[4];
    int64_t stride[4];
} clattn_tensor;

/* Packed (batch, heads, len, dim), the layout "BHLD" ("BHSD" elsewhere). */
CLATTN_API clattn_tensor clattn_tensor_bhld(clattn_dtype dtype, int64_t batch, int64_t heads, int64_t len, int64_t dim);
/* The same view of packed (batch, len, heads, dim) memory, the layout "BLHD" ("BSHD"). */
CLATTN_API clattn_tensor clattn_tensor_blhd(clattn_dtype dtype, int64_t batch, int64_t heads, int64_t len, int64_t dim);
/* A packed matrix, the view (1, 1, rows, cols): weights, and with rows = 1 a bias. */
CLATTN_API clattn_tensor clattn_tensor_matrix(clattn_dtype dtype, int64_t rows, int64_t cols);
/* The matrix read as its transpose: sizes and strides of len and dim exchanged. */
CLATTN_API clattn_tensor clattn_tensor_transposed(clattn_tensor tensor);

/* The tensors that operators bind at run time. */
/* enumerator, name in messages; new ones at the end */
#define CLATTN_TENSOR_LIST(T)                                                                                            \
    T(WORKSPACE, "workspace")                                                                                            \
    T(Q, "q")                                                                                                            \
    T(K, "k")                                                                                                            \
    T(V, "v")                                                                                                            \
    T(OUT, "out")                                                                                                        \
    T(LSE, "lse")                                                                                                        \
    T(SCORES, "scores")                                                                                                  \
    T(WEIGHTS, "weights")                                                                                                \
    T(X, "x")                                                                                                            \
    T(X_KV, "x_kv")                                                                                                      \
    T(W_Q, "w_q")                                                                                                        \
    T(W_K, "w_k")                                                                                                        \
    T(W_V, "w_v")                                                                                                        \
    T(W_O, "w_o")                                                                                                        \
    T(B_Q, "b_q")                                                                                                        \
    T(B_K, "b_k")                                                                                                        \
    T(B_V, "b_v")                                                                                                        \
    T(B_O, "b_o")                                                                                                        \
    T(W_IN, "w_in")                                                                                                      \
    T(W_H, "w_h")                                                                                                        \
    T(BIAS, "bias")                                                                                                      \
    T(H_0, "h_0")                                                                                                        \
    T(C_0, "c_0")                                                                                                        \
    T(H_N, "h_n")                                                                                                        \
    T(C_N, "c_n")                                                                                                        \
    T(MASK, "mask")                                                                                                      \
    T(ALIBI_SLOPES, "alibi_slopes")                                                                                      \
    T(SINKS, "sinks")                                                                                                    \
    T(KV_LENGTHS, "kv_lengths")                                                                                          \
    T(Q_OFFSETS, "q_offsets")                                                                                            \
    T(KV_OFFSETS, "kv_offsets")                                                                                          \
    T(PAST_K, "past_k")                                                                                                  \
    T(PAST_V, "past_v")                                                                                                  \
    T(PAST_LENGTHS, "past_lengths")                                                                                      \
    T(PRESENT_K, "present_k")                                                                                            \
    T(PRESENT_V, "present_v")                                                                                            \
    T(ROTARY_COS, "rotary_cos")                                                                                          \
    T(ROTARY_SIN, "rotary_sin")                                                                                          \
    T(OUT_PARTS, "out_parts")                                                                                            \
    T(LSE_PARTS, "lse_parts")

typedef enum clattn_tensor_id {
#define CLATTN_X(id, name) CLATTN_TENSOR_##id,
    CLATTN_TENSOR_LIST(CLATTN_X)
#undef CLATTN_X
    CLATTN_TENSOR_COUNT /* of this version */
} clattn_tensor_id;

/* "q", "lse", ...; "?" for a value that is none. */
CLATTN_API const char *clattn_tensor_name(clattn_tensor_id id);

/* ------------------------------------------------------------------------------------------------------------------ */
/* Context                                                                                                            */

typedef struct clattn_context clattn_context;

typedef enum clattn_log_level { CLATTN_LOG_ERROR = 1, CLATTN_LOG_WARNING = 2, CLATTN_LOG_INFO = 3 } clattn_log_level;

/* Called from whatever thread runs the library; must not call it back. */
typedef void (*clattn_log_callback)(void *user, clattn_log_level level, const char *message);

typedef struct clattn_context_options {
    size_t struct_size;
    /* "auto", "gpu", "cpu", "native", "opencl", "opencl:P:D" or "reference"; NULL: $CLATTN_DEVICE, else "auto"; "": "auto".
     *   auto       the best GPU on which a kernel builds, else the fastest CPU path; never fails
     *   gpu        the best GPU
     *   cpu        the fastest CPU path: native, or an OpenCL CPU device
     *   native     the CPU kernels compiled into the library; always there
     *   opencl     any OpenCL CPU device;  opencl:P:D  device D of platform P, as clattn_device_list counts them
     *   opencl:P:all  all devices of platform P that can be used, for clattn_plan_options.split_devices; the first runs all else
     *   reference  plain loops in double precision: the oracle, slow
     * To compare: native:LEVEL is an instruction set of clattn_device_info.features, such as native:generic; opencl:P:D:FAMILY
     * the kernels of one kind, cpu, gpu or clblast (gpu with CLBlast's products), whatever the device. */
    const char *device;
    /* Native threads, at most 4096; 0: OMP_NUM_THREADS, else the processors that the calling thread may run on. An OpenMP runtime that
     * cannot start so many ends the process. One where a caller's own threads of OpenMP run plans. Results do not change with it. */
    int threads;
    /* OpenCL: at most so many work-groups in flight; 0: no limit. Results do not change, speed does. Others do not use it. */
    int work_groups;
    clattn_log_callback log;
    void *log_user;
    /* Where clattn_context_create writes a sentence when it fails (there is no context then to ask); may be NULL. */
    char *error;
    size_t error_size;
    /* OpenCL: the directory that keeps compiled kernels, and which of them computed right, for the next process; it is made when
     * there is something to keep. "": nothing is kept. NULL: $CLATTN_CACHE_DIR ("" as here), else $XDG_CACHE_HOME/clattn, else
     * $HOME/.cache/clattn. Of more than 128 MiB, what was not used for the longest time goes. A directory that cannot be written
     * is no error: clattn_context_explain says it. Others do not use it. */
    const char *cache_dir;
} clattn_context_options;

#define CLATTN_CONTEXT_OPTIONS_INIT CLATTN__INIT(clattn_context_options)

/* Make a context. options may be NULL. On failure *context is NULL.
 * Errors: ARGUMENT (unknown device text, options), DEVICE (not there; the text lists what is), MEMORY. */
CLATTN_API clattn_status clattn_context_create(const clattn_context_options *options, clattn_context **context);
/* NULL is accepted. */
CLATTN_API void clattn_context_destroy(clattn_context *context);

/* The last error of the calling thread in this context, in words: which argument, both values, the OpenCL code, the build log.
 * Copies at most size - 1 bytes and ends them with 0; returns the length of the whole text, as snprintf does. */
CLATTN_API size_t clattn_context_error(clattn_context *context, char *text, size_t size);
/* The device that was chosen and why, and what was passed over; same return as clattn_context_error. */
CLATTN_API size_t clattn_context_explain(clattn_context *context, char *text, size_t size);

/* ------------------------------------------------------------------------------------------------------------------ */
/* Devices                                                                                                            */

typedef enum clattn_device_kind {
    CLATTN_DEVICE_NATIVE = 1,
    CLATTN_DEVICE_REFERENCE = 2,
    CLATTN_DEVICE_OPENCL_CPU = 3,
    CLATTN_DEVICE_OPENCL_GPU = 4,
    CLATTN_DEVICE_OPENCL_OTHER = 5,
} clattn_device_kind;

/* Numbers that a device does not report are 0, texts "". */
typedef struct clattn_device_info {
    size_t struct_size;
    char id[32]; /* what clattn_context_options.device takes: "native", "opencl:0:0", ...; not "opencl:caller", which says
                    clattn_cl_context_create, nor an entry with a problem. A context of several devices has its first's here */
    clattn_device_kind kind;
    char name[128];
    char platform[128];
    char driver[128];
    char features[256]; /* native: the instruction sets found and used; OpenCL: version, fp16, fp64, subgroups, architecture,
                              matrix units that rows are made for */
    uint64_t compute_units; /* native: threads */
    uint64_t clock_mhz;
    uint64_t local_bytes;
    uint64_t global_bytes;
    uint64_t max_alloc_bytes;
    uint64_t max_work_group;
    uint64_t vector_width; /* native fp32 lanes */
    char problem[256];     /* why it cannot be used; "" when it can */
} clattn_device_info;

#define CLATTN_DEVICE_INFO_INIT CLATTN__INIT(clattn_device_info)

/* Write up to `capacity` entries and the number there are to *count (capacity 0 with list NULL only counts). list[0].struct_size
 * must be set and holds for all entries. Platforms that fail or have no device appear as entries with `problem` set.
 * Errors: ARGUMENT, MEMORY. */
CLATTN_API clattn_status clattn_device_list(clattn_device_info *list, size_t capacity, size_t *count);
/* The device of a context. info->struct_size must be set. */
CLATTN_API clattn_status clattn_context_device(clattn_context *context, clattn_device_info *info);

/* ------------------------------------------------------------------------------------------------------------------ */
/* Descriptors                                                                                                        */

/* The absolute position of query i is i + offset. It matters to causal, to windows and to ALiBi (and PAST to rotary embedding),
 * and is refused without any. The default is TOP_LEFT also for windows, which FlashAttention aligns bottom-right. The lengths are
 * those of the batch member where members differ. */
typedef enum clattn_align {
    CLATTN_ALIGN_TOP_LEFT = 0,     /* offset = 0                (PyTorch's is_causal) */
    CLATTN_ALIGN_BOTTOM_RIGHT = 1, /* offset = len_kv - len_q   (FlashAttention; ONNX with nonpad_kv_seqlen) */
    CLATTN_ALIGN_PAST = 2,         /* offset = the keys before the new ones: the cache's, or past_len   (ONNX with a cache) */
    CLATTN_ALIGN_OFFSET = 3,       /* offset = offset */
} clattn_align;

/* What the matrix of scores holds: see "What is computed". Its last form is the tensor weights. */
typedef enum clattn_scores_form {
    CLATTN_SCORES_RAW = 0,
    CLATTN_SCORES_SOFTCAP = 1, /* after softcap */
    CLATTN_SCORES_BIAS = 2,    /* after bias, -infinity where masked */
} clattn_scores_form;

/* Which softmax, for every operator that attends. Without a size of its own: see "ABI". Tensors here are inputs that a run binds
 * like the others, each optional:
 *   mask          BOOL, true: attend             both (batch or 1, heads_q or 1, len_q or 1, len_kv or less): keys past theirs are
 *   bias          F32, or q's (x's) type, added  masked, so a size of 1 tells of key 0 alone; a stride of 0 broadcasts over keys
 *   kv_lengths    I32 or I64 (batch, 1, 1, 1)    keys of each batch member; what k and v hold past them is not read. Not together
 *                                                with a cache or offsets, which say the lengths
 *   alibi_slopes  F32 (batch or 1, heads_q, 1, 1)
 *   sinks         F32 (batch or 1, heads_q, 1, 1)                                             (Xiao et al. 2023; one logit a head)
 * In a ragged batch, batch is the number of members for slopes and sinks. */
typedef struct clattn_attention_options {
    int has_scale; /* 0: scale = 1 / sqrt(head_dim) */
    int causal;    /* 1: keep keys <= position */
    double scale;
    clattn_align align;
    int has_window;   /* 1: keep keys from position - window_left to position + window_right, both inclusive */
    int64_t past_len; /* for CLATTN_ALIGN_PAST without a cache: 0 to 2^61 */
    int64_t offset;   /* for CLATTN_ALIGN_OFFSET: -2^61 to 2^61 */
    int64_t window_left, window_right; /* 0 to 2^61; -1: unbounded, and not both */
    double softcap;                    /* above 0; 0: none */
    /* 1: the standard slopes of heads_q heads (Press et al. 2022). Of a power of two n they are 2^(-8 (h + 1) / n), h = 0 ... n - 1.
     * Else n is the largest power of two below heads_q, and its slopes are followed by those of 2 n with h = 0, 2, 4, ... */
    int alibi;
    clattn_scores_form scores_form; /* without a softcap, SOFTCAP is RAW */
    clattn_tensor mask, bias, alibi_slopes, sinks, kv_lengths;
} clattn_attention_options;

/* Rotary position embedding (Su et al. 2021): which elements of a head make a pair. */
typedef enum clattn_rotary {
    CLATTN_ROTARY_NONE = 0,
    CLATTN_ROTARY_HALF = 1,        /* d and d + rotary_dim / 2   (GPT-NeoX, Llama) */
    CLATTN_ROTARY_INTERLEAVED = 2, /* 2 d and 2 d + 1            (GPT-J) */
} clattn_rotary;

/* Attention. Shapes:
 *   q       (batch, heads_q, len_q, head_dim)      k (batch, heads_kv, len_kv, head_dim)
 *   v       (batch, heads_kv, len_kv, value_dim)   out (batch, heads_q, len_q, value_dim)
 *   lse     (batch, heads_q, len_q, 1)             optional, F32: natural log of the row's sum of exp(score)
 *   scores  (batch, heads_q, len_q, len_kv)        optional, in options.scores_form; F32 or q's type
 *   weights (batch, heads_q, len_q, len_kv)        optional: the softmax; F32 or q's type
 *
 * A cache of keys and values. k and v are then the new ones, and attention is over all, len_kv of them:
 *   past_k, past_v        (batch, heads_kv, past, dim)    len_kv = past + new. Where they are given, present_k and present_v
 *                                                         (batch, heads_kv, past + new, dim) are outputs, optional, but both or
 *                                                         neither: past, then new
 *   past_lengths          I32 or I64 (batch, 1, 1, 1)     instead of past_k and past_v: appends in place. present_k and present_v
 *                         are then the caller's cache (batch, heads_kv, capacity, dim), with room for capacity keys, of which
 *                         member b has past_lengths[b] already; the new ones are written after those, and the keys of member b
 *                         are past_lengths[b] + new. len_kv = capacity in the shapes of mask, bias, scores and weights. k
 *                         and v may not lie in the cache themselves, nor past_lengths: advance them after the run
 *
 * Rotary embedding: rotary_cos and rotary_sin, F32 (1 or batch, 1, positions, rotary_dim / 2), rotate the first rotary_dim elements
 * of each head of q, of k, but not of past_k: query i and new key i stand at position i + the number of past keys (of the cache, else
 * past_len with CLATTN_ALIGN_PAST). So the table has max(len_q, new) + past positions or more; fewer are refused, or where only the
 * device knows the past, its last row serves. present_k holds rotated keys.
 *
 * A ragged batch: q_offsets and kv_offsets, I32 or I64 (1, 1, 1, members + 1), ascending from 0. q, out and lse are then
 * (1, heads_q, all queries, .), k and v (1, heads_kv, all keys, .), and member b has the queries q_offsets[b] to q_offsets[b + 1] - 1
 * and the keys likewise; a member may have none of either. Rows of out and lse past the last offset keep what they hold. Not
 * together with a cache, rotary, kv_lengths, mask, bias, scores or weights.
 *
 * Integers in host memory are checked when a plan runs; those in a device's memory are clamped to what the views hold.
 * Sources: Vaswani et al. 2017, eq. 1; the fused algorithm: Dao 2023 (FlashAttention-2), algorithm 1; split over keys: Dao et al.
 * 2023 (Flash-Decoding). */
typedef struct clattn_attention_desc {
    size_t struct_size;
    clattn_tensor q, k, v, out;
    clattn_tensor lse, scores, weights;
    clattn_tensor past_k, past_v, past_lengths, present_k, present_v;
    clattn_tensor rotary_cos, rotary_sin;
    clattn_tensor q_offsets, kv_offsets;
    clattn_rotary rotary;
    uint32_t reserved; /* 0 */
    clattn_attention_options options;
} clattn_attention_desc;

/* The whole of attention from partial results over disjoint sets of keys, as chunked and distributed attention make them:
 *   lse = log(sum over parts of exp(lse_part) [+ exp(sink)])        out = sum over parts of exp(lse_part - lse) * out_part
 *   out_parts (parts * batch, heads, len, value_dim)   lse_parts F32 (parts * batch, heads, len, 1): part p of member b is
 *                                                      member p * batch + b
 *   sinks     F32 (batch or 1, heads, 1, 1) optional: enters here, not in the parts
 *   out       (batch, heads, len, value_dim)           lse F32 (batch, heads, len, 1) optional
 * out_parts and out are F32, F16 or BF16, each its own (not F64: an lse is F32). A part without keys has lse -infinity, and its
 * out_part is not read; a NaN lse makes its row NaN. Without any part, or where all are without keys, out is 0, and lse -infinity
 * or the sink. Source: Dao et al. 2023 (Flash-Decoding); Liu et al. 2023 (Ring Attention). */
typedef struct clattn_merge_desc {
    size_t struct_size;
    clattn_tensor out_parts, lse_parts, sinks;
    clattn_tensor out, lse;
} clattn_merge_desc;

/* Q = X W_q + b_q, K = X' W_k + b_k, V = X' W_v + b_v, where X' is x_kv if present, else x.
 *   x (batch, 1, len_q, d_in)   x_kv (batch, 1, len_kv, d_kv) optional   w_q (1, 1, d_in, heads_q * head_dim)
 *   w_k, w_v (1, 1, d_kv or d_in, heads_kv * dim)   b_* (1, 1, 1, columns of the weight) optional
 *   q (batch, heads_q, len_q, head_dim), k, v likewise; any of q, k, v may be absent together with its weight.
 * x is needed even where only k or v is asked for, x_kv only together with k or v. Column h * head_dim + d of a product is
 * element d of head h. All are of one type, f32, f16 or bf16. Sums are f32; where no kernel of the device takes a 16-bit type, all
 * that is of it, weights too, is converted to f32 when the plan runs. */
typedef struct clattn_project_qkv_desc {
    size_t struct_size;
    clattn_tensor x, x_kv;
    clattn_tensor w_q, w_k, w_v;
    clattn_tensor b_q, b_k, b_v;
    clattn_tensor q, k, v;
} clattn_project_qkv_desc;

/* The whole layer: project, split heads, attend, merge heads, project, add the residual.
 *   out = merge(attention(split(X W_q + b_q), split(X' W_k + b_k), split(X' W_v + b_v))) W_o + b_o  [+ x]
 *   x, x_kv, w_*, b_* as above; w_o (1, 1, heads_q * value_dim, d_out) optional; b_o (1, 1, 1, d_out) optional
 *   out (batch, 1, len_q, d_out), or (batch, 1, len_q, heads_q * value_dim) without w_o
 *   weights (batch, heads_q, len_q, len_kv) optional
 * head_dim = columns of w_q / heads_q; value_dim = columns of w_v / heads_kv. All are of one type, f32, f16 or bf16, as in project_qkv;
 * weights may be F32 in any case. What is between input and output, q, k, v and heads, is of the same type where the device's
 * kernels of products take it (GPUs; bf16 on CPUs that have AMX), else f32. */
typedef struct clattn_mha_desc {
    size_t struct_size;
    clattn_tensor x, x_kv;
    clattn_tensor w_q, w_k, w_v, w_o;
    clattn_tensor b_q, b_k, b_v, b_o;
    clattn_tensor out;
    clattn_tensor weights;
    int64_t heads_q;
    int64_t heads_kv; /* 0: heads_q */
    int residual;     /* 1: add x; needs w_o */
    clattn_attention_options options;
} clattn_mha_desc;

typedef enum clattn_cell {
    CLATTN_CELL_RNN = 0,  /* h_t = tanh(W_h h_{t-1} + W_in x_t + bias)                                   (Elman 1990) */
    CLATTN_CELL_LSTM = 1, /* i,o,f = sigmoid, c~ = tanh of the four row blocks of W_in x + W_h h + bias, in ONNX's order
                             i, o, f, c; c_t = f c_{t-1} + i c~, h_t = o tanh(c_t)     (Hochreiter, Schmidhuber 1997) */
} clattn_cell;

/* A recurrence over `steps` words. G is 1 for rnn, 4 for lstm.
 *   x (batch, 1, steps, d_in)       w_in (1, 1, G * hidden, d_in)     w_h (1, 1, G * hidden, hidden)
 *   bias (1, 1, 1, G * hidden) optional       h_0, c_0 (batch, 1, 1, hidden) optional, zero when absent
 *   out (batch, 1, steps, hidden): every h_t        h_n, c_n (batch, 1, 1, hidden) optional: the last h and c
 * c_0 and c_n belong to the LSTM alone. forget_bias is added to the forget gate's sum. */
typedef struct clattn_recurrence_desc {
    size_t struct_size;
    clattn_cell cell;
    clattn_tensor x, w_in, w_h, bias, h_0, c_0;
    clattn_tensor out, h_n, c_n;
    double forget_bias;
} clattn_recurrence_desc;

#define CLATTN_ATTENTION_DESC_INIT CLATTN__INIT(clattn_attention_desc)
#define CLATTN_MERGE_DESC_INIT CLATTN__INIT(clattn_merge_desc)
#define CLATTN_PROJECT_QKV_DESC_INIT CLATTN__INIT(clattn_project_qkv_desc)
#define CLATTN_MHA_DESC_INIT CLATTN__INIT(clattn_mha_desc)
#define CLATTN_RECURRENCE_DESC_INIT CLATTN__INIT(clattn_recurrence_desc)

/* ------------------------------------------------------------------------------------------------------------------ */
/* Plans                                                                                                              */

typedef struct clattn_plan clattn_plan;

/* How attention is computed: attention and mha alone. */
typedef enum clattn_algorithm {
    CLATTN_ALGORITHM_AUTO = 0,   /* fused or split, unless scores or weights are asked for */
    CLATTN_ALGORITHM_STAGED = 1, /* scores, mask, softmax, weighted values: O(len_q * len_kv) memory, each stage to see */
    CLATTN_ALGORITHM_FUSED = 2,  /* online softmax, O(len) memory */
    CLATTN_ALGORITHM_SPLIT = 3,  /* fused over parts of the keys, then a merge: for few queries and many keys. A row all of whose
                                    scores are so low, or high, that lse + 1 == lse weighs its parts alike: auto avoids it with a bias */
} clattn_algorithm;

/* How a recurrence goes from step to step: recurrence alone. */
typedef enum clattn_recurrence_form {
    CLATTN_RECURRENCE_AUTO = 0,       /* as suits the device */
    CLATTN_RECURRENCE_PERSISTENT = 1, /* one kernel that loops inside */
    CLATTN_RECURRENCE_STEPS = 2,      /* one launch a step */
} clattn_recurrence_form;

/* What a descriptor leaves open: the same result, up to rounding, computed in another way. The reference device has one way, and
 * computes so whatever another device could do. */
typedef struct clattn_plan_options {
    size_t struct_size;
    clattn_algorithm algorithm;
    clattn_recurrence_form recurrence;
    int require_fused; /* 1: fail (UNSUPPORTED) rather than hold a matrix of scores, as staged does */
    int untuned;       /* 1: kernels by the library's own order, whatever `clattn tune` has measured */
    int split_devices; /* 1: over all devices of the context, see "Several devices" */
    uint32_t reserved; /* 0 */
} clattn_plan_options;

#define CLATTN_PLAN_OPTIONS_INIT CLATTN__INIT(clattn_plan_options)

/* Several devices. A context on "opencl:P:all", or one of clattn_cl_context_create_devices, has N devices that share its memory
 * objects. A plan with split_devices = 1 cuts its work between them; one without runs on the first.
 *   units    attention: batch * heads_kv, unit u is key head u % heads_kv of member u / heads_kv, with all its query heads.
 *            mha, project_qkv, recurrences: the batch's members; so is attention with the standard alibi, whose slopes depend on
 *            a head's number. A ragged batch has one member: it is cut between key heads alone. merge has none: ARGUMENT.
 *   weight   w[n] = compute units * clock of device n; compute units alone where one of them does not tell its clock
 *   cut      device n has the units from c[n] to c[n + 1] - 1, c[n] = floor(units * (w[0] + ... + w[n-1]) / (w[0] + ... + w[N-1]) + 1/2)
 * The units of a device are at most three blocks of whole members and heads, each of which is computed as a plan of its own.
 * What devices write they write to memory of their own, and the first device copies it to the outputs: OpenCL defines no result
 * where two devices write one memory object, and its sub-buffers begin only at multiples of some size, so that neither any layout
 * nor any number of rows could do without. The plan keeps that memory, at most the size of the outputs, beside the workspace of
 * each block; a run brings no workspace (workspace_bytes is 0), and runs of the plan are ordered after one another.
 * Inputs are read where they are. The result is bitwise that of the plan that is not split where devices choose the same kernels,
 * as equal ones do; clattn_plan_explain says the cut, and which kernels run where. With one device, or where one of them gets all
 * units, the plan is as without split_devices, and says so.
 * Errors: ARGUMENT where the device has no use for it (native, reference); UNSUPPORTED together with past_lengths: the cache that
 * is changed in place would have to be copied at each run. */

/* Validate once and decide how; options may be NULL: all defaults. A kernel that does not build on this device, or computes a
 * small case wrong, is left out from then on, and clattn_plan_explain says so; without another one the status is BUILD. (Each is
 * tried once in a context; what passed is remembered, natively until the process ends, on OpenCL devices on disk, see
 * clattn_context_options.cache_dir; $CLATTN_SELF_CHECK=0 leaves the small case out.) Which kernel serves is the library's own
 * order, unless `clattn tune` has measured this kind of problem on this device, or on one like it: its files are read once in a
 * context, from $CLATTN_CONFIG_DIR/tune, else from the user's configuration directory; $CLATTN_TUNING=0 leaves them aside.
 * (Values but 0 and 1 of either are refused with the context, ARGUMENT.) An option that the operator has no use for is refused.
 * On failure *plan is NULL and clattn_context_error says which argument and both values. Errors: ARGUMENT, SHAPE, HEADS,
 * OVERFLOW, ALIAS (an output that overlaps itself), UNSUPPORTED, BUILD, OPENCL, MEMORY. */
CLATTN_API clattn_status clattn_plan_create_attention(clattn_context *, const clattn_attention_desc *,
                                                      const clattn_plan_options *options, clattn_plan **plan);
CLATTN_API clattn_status clattn_plan_create_merge(clattn_context *, const clattn_merge_desc *, const clattn_plan_options *options,
                                                  clattn_plan **plan);
CLATTN_API clattn_status clattn_plan_create_project_qkv(clattn_context *, const clattn_project_qkv_desc *,
                                                        const clattn_plan_options *options, clattn_plan **plan);
CLATTN_API clattn_status clattn_plan_create_mha(clattn_context *, const clattn_mha_desc *, const clattn_plan_options *options,
                                                clattn_plan **plan);
CLATTN_API clattn_status clattn_plan_create_recurrence(clattn_context *, const clattn_recurrence_desc *,
                                                       const clattn_plan_options *options, clattn_plan **plan);
/* NULL is accepted. */
CLATTN_API void clattn_plan_destroy(clattn_plan *plan);

/* Whether a plan could be made, and the status it would fail with. The same validation and choice as a plan's; nothing is
 * compiled, nothing allocated on the device, and a refusal is an answer: the text tells why, the log says nothing. */
CLATTN_API clattn_status clattn_supports_attention(clattn_context *, const clattn_attention_desc *,
                                                   const clattn_plan_options *options);
CLATTN_API clattn_status clattn_supports_merge(clattn_context *, const clattn_merge_desc *, const clattn_plan_options *options);
CLATTN_API clattn_status clattn_supports_project_qkv(clattn_context *, const clattn_project_qkv_desc *,
                                                     const clattn_plan_options *options);
CLATTN_API clattn_status clattn_supports_mha(clattn_context *, const clattn_mha_desc *, const clattn_plan_options *options);
CLATTN_API clattn_status clattn_supports_recurrence(clattn_context *, const clattn_recurrence_desc *,
                                                    const clattn_plan_options *options);

typedef struct clattn_plan_info {
    size_t struct_size;
    const char *op;        /* "attention", "merge", "project_qkv", "mha", "rnn", "lstm"; the texts live as long as the plan */
    const char *algorithm; /* "fused", "split", "staged", "merge", "project", "loop", "persistent", "reference" */
    const char *row;       /* the kernel rows that run, in order, joined by "+" */
    const char *device;    /* "native", "opencl:0:0", ... */
    size_t workspace_bytes;
    int64_t launches;        /* kernel launches a run */
    int64_t dependent_steps; /* the longest chain of launches, or of steps inside one, each of which waits for the last */
    double flops;            /* multiply and add counted as two; attention counts visible pairs only */
    double bytes;            /* inputs read once and outputs written once */
} clattn_plan_info;

#define CLATTN_PLAN_INFO_INIT CLATTN__INIT(clattn_plan_info)

/* info->struct_size must be set. */
CLATTN_API clattn_status clattn_plan_get_info(const clattn_plan *plan, clattn_plan_info *info);
/* The plan in words, a line an item: what runs, tile sizes, workspace, why this and why not the others. */
CLATTN_API size_t clattn_plan_explain(const clattn_plan *plan, char *text, size_t size);
/* The view that a plan holds of a tensor; dtype CLATTN_ABSENT when it has none. */
CLATTN_API clattn_tensor clattn_plan_tensor(const clattn_plan *plan, clattn_tensor_id id);

/* A tensor and where it lies. */
typedef struct clattn_arg {
    clattn_tensor_id id;
    void *data;   /* inputs are only read */
    size_t bytes; /* how much memory is there: refused when it does not hold the view; 0: not checked */
} clattn_arg;

/* Run on host memory. args names every tensor of the plan once, in any order; CLATTN_TENSOR_WORKSPACE is optional: at least
 * workspace_bytes, its size given, aligned to 64 (without one the plan allocates its own at the first run and keeps it; an
 * OpenCL plan checks what is given and uses memory of its device). An empty tensor's data may be NULL.
 * Blocks until the outputs are written.
 * Errors: ARGUMENT (missing, repeated or unexpected tensor; null or misaligned pointer; too few bytes), WORKSPACE, ALIAS (an
 * output shares an element with another tensor), MEMORY, OPENCL. */
CLATTN_API clattn_status clattn_plan_run(clattn_plan *plan, const clattn_arg *args, size_t count);

/* ------------------------------------------------------------------------------------------------------------------ */
/* One line: plan, run, destroy on packed fp32                                                                        */

/* q, out: batch x heads_q x len_q x head_dim; k, v: batch x heads_kv x len_kv x head_dim; scale 1/sqrt(head_dim).
 * causal != 0 is top-left. context may be NULL: the default device, made and freed in the call (then the detail of an error
 * is lost). */
CLATTN_API clattn_status clattn_attention_f32(clattn_context *context, int64_t batch, int64_t heads_q, int64_t heads_kv,
                                              int64_t len_q, int64_t len_kv, int64_t head_dim, int causal, const float *q,
                                              const float *k, const float *v, float *out);

/* Plan, run and destroy for any descriptor; options may be NULL. */
CLATTN_API clattn_status clattn_attention(clattn_context *, const clattn_attention_desc *, const clattn_plan_options *options,
                                          const clattn_arg *args, size_t count);
CLATTN_API clattn_status clattn_merge(clattn_context *, const clattn_merge_desc *, const clattn_plan_options *options,
                                      const clattn_arg *args, size_t count);
CLATTN_API clattn_status clattn_project_qkv(clattn_context *, const clattn_project_qkv_desc *,
                                            const clattn_plan_options *options, const clattn_arg *args, size_t count);
CLATTN_API clattn_status clattn_mha(clattn_context *, const clattn_mha_desc *, const clattn_plan_options *options,
                                    const clattn_arg *args, size_t count);
CLATTN_API clattn_status clattn_recurrence(clattn_context *, const clattn_recurrence_desc *,
                                           const clattn_plan_options *options, const clattn_arg *args, size_t count);

#ifdef __cplusplus
}
#endif
#endif
