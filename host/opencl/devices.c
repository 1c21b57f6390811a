/* OpenCL platforms and devices, described for the device list and the kernel table.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Drivers misbehave in every way: whatever fails here becomes an entry with a problem in words, and the rest is listed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

#define PLATFORM_NOT_FOUND (-1001) /* CL_PLATFORM_NOT_FOUND_KHR: the loader knows no driver */

/* ---- enumeration --------------------------------------------------------------------------------------------------- */

cl_int clattn__opencl_platforms(const clattn__opencl_api *api, cl_platform_id **platforms, cl_uint *count) {
    *platforms = NULL;
    *count = 0;
    cl_int code = api->GetPlatformIDs(0, NULL, count);
    if (code == CL_SUCCESS && *count == 0) code = PLATFORM_NOT_FOUND;
    if (code != CL_SUCCESS) return code;
    *platforms = calloc(*count, sizeof **platforms);
    if (!*platforms) return CL_OUT_OF_HOST_MEMORY;
    code = api->GetPlatformIDs(*count, *platforms, NULL);
    if (code == CL_SUCCESS) return code;
    free(*platforms);
    *platforms = NULL;
    return code;
}

cl_int clattn__opencl_devices(const clattn__opencl_api *api, cl_platform_id platform, cl_device_id **devices, cl_uint *count) {
    *devices = NULL;
    *count = 0;
    cl_int code = api->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, count);
    if (code == CL_SUCCESS && *count == 0) code = CL_DEVICE_NOT_FOUND;
    if (code != CL_SUCCESS) return code;
    *devices = calloc(*count, sizeof **devices);
    if (!*devices) return CL_OUT_OF_HOST_MEMORY;
    code = api->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, *count, *devices, NULL);
    if (code == CL_SUCCESS) return code;
    free(*devices);
    *devices = NULL;
    return code;
}

/* ---- questions to a device: what it does not answer is 0 or "" ------------------------------------------------------- */

/* The whole text, for the caller to free; NULL when there is none. */
static char *device_text(const clattn__opencl_api *api, cl_device_id device, cl_device_info what) {
    size_t size = 0;
    if (api->GetDeviceInfo(device, what, 0, NULL, &size) != CL_SUCCESS || size == 0) return NULL;
    char *text = calloc(size + 1, 1);
    if (text && api->GetDeviceInfo(device, what, size, text, NULL) == CL_SUCCESS) return text;
    free(text);
    return NULL;
}

static void copy_device_text(const clattn__opencl_api *api, cl_device_id device, cl_device_info what, char *out, size_t size) {
    char *text = device_text(api, device, what);
    clattn__text_copy(text ? text + strspn(text, " ") : NULL, out, size);
    free(text);
}

static void copy_platform_name(const clattn__opencl_api *api, cl_platform_id platform, char *out, size_t size) {
    char text[256];
    size_t length = 0;
    const cl_int code = api->GetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof text, text, &length);
    clattn__text_copy(code == CL_SUCCESS && length > 0 ? text : NULL, out, size);
}

static cl_uint device_uint(const clattn__opencl_api *api, cl_device_id device, cl_device_info what) {
    cl_uint value = 0;
    return api->GetDeviceInfo(device, what, sizeof value, &value, NULL) == CL_SUCCESS ? value : 0;
}

/* Work-items in a group, which some devices limit further in the first dimension, the one that we use. */
static size_t device_work_group(const clattn__opencl_api *api, cl_device_id device) {
    size_t largest = 0, sizes[16] = {0};
    if (api->GetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof largest, &largest, NULL) != CL_SUCCESS) return 0;
    if (api->GetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, NULL) != CL_SUCCESS) return largest;
    return sizes[0] < largest ? sizes[0] : largest;
}

static cl_ulong device_ulong(const clattn__opencl_api *api, cl_device_id device, cl_device_info what) {
    cl_ulong value = 0;
    return api->GetDeviceInfo(device, what, sizeof value, &value, NULL) == CL_SUCCESS ? value : 0;
}

static size_t device_size(const clattn__opencl_api *api, cl_device_id device, cl_device_info what) {
    size_t value = 0;
    return api->GetDeviceInfo(device, what, sizeof value, &value, NULL) == CL_SUCCESS ? value : 0;
}

/* ---- description --------------------------------------------------------------------------------------------------- */

static bool has_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; at && (at = strstr(at, word)); at += length) {
        const bool starts = at == words || at[-1] == ' ', ends = at[length] == 0 || at[length] == ' ';
        if (starts && ends) return true;
    }
    return false;
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool device_version(const clattn__opencl_api *api, cl_device_id device, cl_device_info what, const char *format,
                           int *major, int *minor) {
    char *text = device_text(api, device, what);
    const bool found = text && sscanf(text, format, major, minor) == 2;
    free(text);
    return found;
}

/* Rows exist for 4, 8 and 16 floats; the compiler splits what is wider than the hardware. */
static int row_width(cl_uint native_width) {
    return native_width >= 16 ? 16 : native_width >= 8 ? 8 : 4;
}

static clattn_device_kind device_kind(cl_device_type type) {
    if (type & CL_DEVICE_TYPE_GPU) return CLATTN_DEVICE_OPENCL_GPU;
    return type & CL_DEVICE_TYPE_CPU ? CLATTN_DEVICE_OPENCL_CPU : CLATTN_DEVICE_OPENCL_OTHER;
}

/* Whose GPU, by the vendor's number on the PCI bus. */
static clattn__devices device_gpu(cl_uint vendor) {
    static const struct {
        cl_uint vendor;
        clattn__devices gpu;
    } vendors[] = {{0x10de, CLATTN__NVIDIA}, {0x1002, CLATTN__AMD}, {0x8086, CLATTN__INTEL}};
    for (size_t n = 0; n < sizeof vendors / sizeof *vendors; n++)
        if (vendors[n].vendor == vendor) return vendors[n].gpu;
    return 0;
}

/* cl_nv_device_attribute_query, cl_amd_device_attribute_query; 0 where the device knows no such thing. */
enum { COMPUTE_CAPABILITY_MAJOR_NV = 0x4000, COMPUTE_CAPABILITY_MINOR_NV = 0x4001, WAVEFRONT_WIDTH_AMD = 0x4043 };

/* What GPUs of one design have in common: NVIDIA's compute capability, and AMD's name for the target without its features, which its
 * driver gives as the device's. "" where the driver does not say: Mesa names the product. */
static void describe_architecture(const clattn__opencl_api *api, cl_device_id device, clattn__device *out) {
    const cl_uint major = out->gpu == CLATTN__NVIDIA ? device_uint(api, device, COMPUTE_CAPABILITY_MAJOR_NV) : 0;
    if (major)
        snprintf(out->architecture, sizeof out->architecture, "sm_%u%u", major,
                 device_uint(api, device, COMPUTE_CAPABILITY_MINOR_NV));
    else if (out->gpu == CLATTN__AMD && begins(out->info.name, "gfx"))
        snprintf(out->architecture, sizeof out->architecture, "%.*s", (int)strcspn(out->info.name, ":+ "), out->info.name);
}

/* Whether the platform is the vendor's own. Rows for matrix units have inline PTX in them, functions of AMD's compiler, or Intel's
 * extension, and were compiled by those alone. Other platforms may name the device alike: PoCL's CUDA driver answers as NVIDIA's
 * does, and its older releases end the process where PTX does not assemble. */
static bool has_own_driver(const clattn__device *device) {
    static const struct {
        clattn__devices gpu;
        const char *platform; /* how its name begins */
    } own[] = {{CLATTN__NVIDIA, "NVIDIA CUDA"},
               {CLATTN__AMD, "AMD Accelerated Parallel Processing"},
               {CLATTN__INTEL, "Intel(R) OpenCL"}};
    for (size_t n = 0; n < sizeof own / sizeof *own; n++)
        if (own[n].gpu == device->gpu) return begins(device->info.platform, own[n].platform);
    return false;
}

/* AMD's architectures with matrix instructions that rows are made for, in waves of the width that their fragments have. */
static int amd_mma(const clattn__opencl_api *api, cl_device_id device, const char *architecture) {
    static const struct {
        const char *architecture;
        int mma;
        cl_uint wave;
    } known[] = {
        {"gfx90a", MMA_CDNA, 64},    {"gfx940", MMA_CDNA, 64},    {"gfx941", MMA_CDNA, 64},    {"gfx942", MMA_CDNA, 64},
        {"gfx1100", MMA_RDNA3, 32}, {"gfx1101", MMA_RDNA3, 32}, {"gfx1102", MMA_RDNA3, 32}, {"gfx1103", MMA_RDNA3, 32},
    };
    const cl_uint wave = device_uint(api, device, WAVEFRONT_WIDTH_AMD);
    for (size_t n = 0; n < sizeof known / sizeof *known; n++)
        if (strcmp(known[n].architecture, architecture) == 0) return known[n].wave == wave ? known[n].mma : 0;
    return 0;
}

/* cl_intel_required_subgroup_size: the sizes that kernels may ask for. */
enum { SUB_GROUP_SIZES_INTEL = 0x4108, MOST_SUB_GROUP_SIZES = 16 };

/* The extension's products are of the smallest sub-groups that the device has. */
static int intel_mma(const clattn__opencl_api *api, cl_device_id device) {
    char *extensions = device_text(api, device, CL_DEVICE_EXTENSIONS);
    const bool multiplies = has_word(extensions, "cl_intel_subgroup_matrix_multiply_accumulate");
    size_t sizes[MOST_SUB_GROUP_SIZES], bytes = 0, least = SIZE_MAX;
    free(extensions);
    if (!multiplies || api->GetDeviceInfo(device, SUB_GROUP_SIZES_INTEL, sizeof sizes, sizes, &bytes) != CL_SUCCESS) return 0;
    for (size_t n = 0; n < bytes / sizeof *sizes; n++) least = sizes[n] < least ? sizes[n] : least;
    return least == 8 ? MMA_XE8 : least == 16 ? MMA_XE16 : 0;
}

/* Whose matrix units a GPU has; 0 where it is none, or not known, or its driver another one. */
static int device_mma(const clattn__opencl_api *api, cl_device_id device, const clattn__device *described) {
    if (!has_own_driver(described)) return 0;
    switch (described->gpu) {
    case CLATTN__NVIDIA: return device_uint(api, device, COMPUTE_CAPABILITY_MAJOR_NV) >= 8 ? MMA_NVIDIA : 0;
    case CLATTN__AMD: return amd_mma(api, device, described->architecture);
    case CLATTN__INTEL: return intel_mma(api, device);
    default: return 0;
    }
}

static const char *const mma_words[] = {
    [MMA_NVIDIA] = "tensor cores",
    [MMA_CDNA] = "matrix cores",
    [MMA_RDNA3] = "matrix instructions",
    [MMA_XE8] = "matrix engines in sub-groups of 8",
    [MMA_XE16] = "matrix engines in sub-groups of 16",
};

/* The architecture and matrix units are those that rows are chosen by. */
static void describe_features(const clattn__opencl_api *api, cl_device_id device, clattn__device *described) {
    static const struct {
        const char *extension, *word;
    } features[] = {
        {"cl_khr_fp16", "fp16"},
        {"cl_khr_fp64", "fp64"},
        {"cl_khr_subgroups", "subgroups"},
        {"cl_intel_subgroups", "subgroups (Intel)"},
    };
    char *extensions = device_text(api, device, CL_DEVICE_EXTENSIONS);
    clattn__text text = {0};
    int major, minor;
    if (device_version(api, device, CL_DEVICE_VERSION, "OpenCL %d.%d", &major, &minor))
        clattn__text_add(&text, "OpenCL %d.%d", major, minor);
    if (device_version(api, device, CL_DEVICE_OPENCL_C_VERSION, "OpenCL C %d.%d", &major, &minor))
        clattn__text_add(&text, ", OpenCL C %d.%d", major, minor);
    for (size_t n = 0; n < sizeof features / sizeof *features; n++)
        if (has_word(extensions, features[n].extension)) clattn__text_add(&text, ", %s", features[n].word);
    if (described->architecture[0]) clattn__text_add(&text, ", %s", described->architecture);
    if (described->mma) clattn__text_add(&text, ", %s", mma_words[described->mma]);
    clattn__text_copy(text.data, described->info.features, sizeof described->info.features);
    clattn__text_free(&text);
    free(extensions);
}

/* Why the device cannot run our kernels, or "". */
static void describe_problem(const clattn__opencl_api *api, cl_device_id device, const clattn__device *described, char *out,
                             size_t size) {
    const size_t params = sizeof(clattn__params);
    int major = 0, minor = 0;
    if (!device_version(api, device, CL_DEVICE_VERSION, "OpenCL %d.%d", &major, &minor))
        snprintf(out, size, "it does not say which OpenCL it speaks");
    else if (major < 1 || (major == 1 && minor < 2))
        snprintf(out, size, "it speaks OpenCL %d.%d; the kernels need 1.2", major, minor);
    else if (!device_uint(api, device, CL_DEVICE_AVAILABLE))
        snprintf(out, size, "its driver reports it as not available");
    else if (!device_uint(api, device, CL_DEVICE_COMPILER_AVAILABLE))
        snprintf(out, size, "its driver has no compiler");
    else if (!device_uint(api, device, CL_DEVICE_ENDIAN_LITTLE))
        snprintf(out, size, "it is big-endian");
    else if (described->max_params_bytes < params)
        snprintf(out, size, "it takes %zu bytes of kernel arguments; the kernels need %zu", described->max_params_bytes,
                 params);
    else
        out[0] = 0;
}

/* What drivers say of themselves, or make of kernels, that is not as it should be. The self-check judges each kernel nevertheless:
 * a row here spares its time, lets it judge at all, or knows of what no small case shows. */
static const struct quirk {
    const char *platform, *name;  /* beginnings: the platform's, the device's */
    int major, minor, patch;      /* of the driver, the first that has it no longer */
    bool understates_work_groups; /* a kernel's largest work-group is said to be smaller than those that it runs */
    bool counts_local_twice;      /* a kernel's local memory is said to be twice what it declares, so that half of the device's serves */
    const char *problem;          /* NULL, or why the device is used only where a family of rows is asked for by name */
} quirks[] = {
    /* Mesa's rusticl, seen with 22.3.6 on llvmpipe: the largest work-group is said to be the SIMD width, 32, and those of 512 run.
     * Of kernels that take more than half of the local memory there, it crashes on some. */
    {"rusticl", "", 23, 0, 0, .understates_work_groups = true, .counts_local_twice = true},
    /* gallivm counted the rounds of all loops of a kernel together and left them at the 65536th, as if they had ended. */
    {"rusticl", "llvmpipe", 25, 0, 0, .problem = "before Mesa 25.0 this renderer ends a kernel's loops after 65535 rounds in all, and "
                                                 "results of large problems are wrong"},
};

/* Whether a driver's version, the first three numbers in it, is below; one that cannot be read is not. */
static bool is_before(const char *driver, const struct quirk *q) {
    const int limit[] = {q->major, q->minor, q->patch};
    int version[3] = {0};
    if (sscanf(driver, "%d.%d.%d", &version[0], &version[1], &version[2]) < 2) return false;
    for (int n = 0; n < 3; n++)
        if (version[n] != limit[n]) return version[n] < limit[n];
    return false;
}

static void apply_quirks(clattn__device *device) {
    clattn_device_info *info = &device->info;
    for (const struct quirk *q = quirks; q < quirks + sizeof quirks / sizeof *quirks; q++) {
        if (!begins(info->platform, q->platform) || !begins(info->name, q->name) || !is_before(info->driver, q)) continue;
        device->understates_work_groups |= q->understates_work_groups;
        if (q->counts_local_twice) device->local_bytes /= 2;
        if (!q->problem || info->problem[0]) continue;
        clattn__text_copy(q->problem, info->problem, sizeof info->problem);
        device->opens_by_family = true;
    }
}

void clattn__opencl_describe(const clattn__opencl_api *api, cl_device_id device, clattn__device *out) {
    cl_platform_id platform = NULL;
    cl_device_type type = 0;
    memset(out, 0, sizeof *out);
    clattn_device_info *info = &out->info;
    info->struct_size = sizeof *info;
    if (api->GetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL) != CL_SUCCESS) type = 0;
    info->kind = device_kind(type);
    copy_device_text(api, device, CL_DEVICE_NAME, info->name, sizeof info->name);
    copy_device_text(api, device, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
    if (api->GetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) == CL_SUCCESS)
        copy_platform_name(api, platform, info->platform, sizeof info->platform);
    info->compute_units = device_uint(api, device, CL_DEVICE_MAX_COMPUTE_UNITS);
    info->clock_mhz = device_uint(api, device, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    info->local_bytes = device_ulong(api, device, CL_DEVICE_LOCAL_MEM_SIZE);
    info->global_bytes = device_ulong(api, device, CL_DEVICE_GLOBAL_MEM_SIZE);
    info->max_alloc_bytes = device_ulong(api, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info->max_work_group = device_work_group(api, device);
    info->vector_width = device_uint(api, device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);

    if (info->kind == CLATTN_DEVICE_OPENCL_GPU) out->gpu = device_gpu(device_uint(api, device, CL_DEVICE_VENDOR_ID));
    copy_device_text(api, device, CL_DEVICE_VENDOR, out->vendor, sizeof out->vendor);
    describe_architecture(api, device, out);
    out->mma = device_mma(api, device, out);
    describe_features(api, device, out);
    out->vector_width = row_width((cl_uint)info->vector_width);
    out->max_work_group = info->max_work_group;
    out->local_bytes = info->local_bytes;
    out->max_alloc_bytes = info->max_alloc_bytes;
    out->max_params_bytes = device_size(api, device, CL_DEVICE_MAX_PARAMETER_SIZE);
    describe_problem(api, device, out, info->problem, sizeof info->problem);
    apply_quirks(out);
    out->has_gpu_family = !info->problem[0];
    out->has_cpu_family = !info->problem[0] && info->kind == CLATTN_DEVICE_OPENCL_CPU;
}

/* A name, a version: what is of no other use to us. */
static void add_platform_text(const clattn__opencl_api *api, cl_device_id device, cl_platform_info what, clattn__text *text) {
    cl_platform_id platform;
    char value[256];
    if (api->GetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) == CL_SUCCESS &&
        api->GetPlatformInfo(platform, what, sizeof value, value, NULL) == CL_SUCCESS)
        clattn__text_add(text, " | %s", value);
}

static void add_device_text(const clattn__opencl_api *api, cl_device_id device, cl_device_info what, clattn__text *text) {
    char *value = device_text(api, device, what);
    clattn__text_add(text, " | %s", value ? value : "");
    free(value);
}

char *clattn__opencl_identity(const clattn__opencl_api *api, cl_device_id device, const clattn_device_info *info) {
    clattn__text text = {0};
    clattn__text_add(&text, "clattn %s", clattn_version());
    add_platform_text(api, device, CL_PLATFORM_NAME, &text);
    add_platform_text(api, device, CL_PLATFORM_VERSION, &text);
    add_device_text(api, device, CL_DEVICE_NAME, &text);
    add_device_text(api, device, CL_DEVICE_VENDOR, &text);
    add_device_text(api, device, CL_DEVICE_VERSION, &text);
    add_device_text(api, device, CL_DRIVER_VERSION, &text);
    clattn__text_add(&text, " | %s | %u units | kernels %s", info->features, (unsigned)info->compute_units,
                     clattn__kernels_hash);
    if (text.failed) clattn__text_free(&text);
    for (char *at = text.data; at && *at; at++)
        if ((unsigned char)*at < ' ') *at = ' '; /* one line */
    return text.data;
}

/* ---- the list ------------------------------------------------------------------------------------------------------ */

typedef struct device_list {
    clattn__device *data;
    size_t count;
} device_list;

static clattn__device *list_add(device_list *list) {
    clattn__device *data = realloc(list->data, (list->count + 1) * sizeof *data);
    if (!data) return NULL;
    list->data = data;
    clattn__device *added = &data[list->count++];
    memset(added, 0, sizeof *added);
    added->info.struct_size = sizeof added->info;
    added->info.kind = CLATTN_DEVICE_OPENCL_OTHER;
    return added;
}

static clattn_status list_platform(const clattn__opencl_api *api, cl_platform_id platform, cl_uint index, device_list *list) {
    cl_device_id *devices = NULL;
    cl_uint count = 0;
    const cl_int code = clattn__opencl_devices(api, platform, &devices, &count);
    if (code != CL_SUCCESS) {
        clattn__device *entry = list_add(list);
        if (!entry) return CLATTN_ERROR_MEMORY;
        snprintf(entry->info.id, sizeof entry->info.id, "opencl:%u", index);
        copy_platform_name(api, platform, entry->info.platform, sizeof entry->info.platform);
        if (code == CL_DEVICE_NOT_FOUND)
            snprintf(entry->info.problem, sizeof entry->info.problem, "the platform has no device");
        else
            snprintf(entry->info.problem, sizeof entry->info.problem, "the platform does not list its devices: %s (%d)",
                     clattn__opencl_code(code), code);
        return CLATTN_OK;
    }
    clattn_status status = CLATTN_OK;
    for (cl_uint d = 0; d < count && status == CLATTN_OK; d++) {
        clattn__device *entry = list_add(list);
        if (entry) {
            clattn__opencl_describe(api, devices[d], entry);
            snprintf(entry->info.id, sizeof entry->info.id, "opencl:%u:%u", index, d);
        } else {
            status = CLATTN_ERROR_MEMORY;
        }
    }
    free(devices);
    return status;
}

static clattn_status list_platforms(const clattn__opencl_api *api, device_list *list) {
    cl_platform_id *platforms = NULL;
    cl_uint count = 0;
    const cl_int code = clattn__opencl_platforms(api, &platforms, &count);
    if (code != CL_SUCCESS) {
        clattn__device *entry = list_add(list);
        if (!entry) return CLATTN_ERROR_MEMORY;
        snprintf(entry->info.id, sizeof entry->info.id, "opencl");
        if (code == PLATFORM_NOT_FOUND)
            snprintf(entry->info.problem, sizeof entry->info.problem,
                     "the OpenCL loader is here, but no driver (ICD) that loads");
        else
            snprintf(entry->info.problem, sizeof entry->info.problem, "OpenCL does not list its platforms: %s (%d)",
                     clattn__opencl_code(code), code);
        return CLATTN_OK;
    }
    clattn_status status = CLATTN_OK;
    for (cl_uint p = 0; p < count && status == CLATTN_OK; p++) status = list_platform(api, platforms[p], p, list);
    free(platforms);
    return status;
}

clattn_status clattn__opencl_list(clattn__device **devices, size_t *count) {
    clattn__opencl_api api;
    device_list list = {0};
    char why[200];
    clattn_status status = CLATTN_OK;
    if (clattn__opencl_load(&api, why, sizeof why)) {
        clattn__opencl_discovery_begin();
        status = list_platforms(&api, &list);
        clattn__opencl_discovery_end();
        clattn__opencl_unload(&api);
    } else {
        clattn__device *entry = list_add(&list);
        if (entry) {
            snprintf(entry->info.id, sizeof entry->info.id, "opencl");
            snprintf(entry->info.problem, sizeof entry->info.problem, "no OpenCL on this machine: %s", why);
        } else {
            status = CLATTN_ERROR_MEMORY;
        }
    }
    if (status != CLATTN_OK) {
        free(list.data);
        return status;
    }
    *devices = list.data;
    *count = list.count;
    return CLATTN_OK;
}
