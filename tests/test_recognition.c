/* Devices as their drivers describe them, none of which need be here: whose GPU it is, which architecture, whose matrix units,
 * which row then serves attention of f16, and what is said where one for matrix units does not.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the fakes answer is what vendors' drivers, PoCL and Mesa answer, by their sources and published lists of clinfo. An
 * attribute that a driver does not know is an error, as it is there.
 */
#include <stdio.h>
#include <string.h>

#include "../host/opencl/opencl.h"
#include "fake_answers.h"
#include "support.h"

enum { SUB_GROUP_SIZES = 4 };

typedef struct fake {
    const char *platform, *vendor, *name, *driver, *extensions;
    cl_uint vendor_id;
    cl_uint major, minor;               /* cl_nv_device_attribute_query; 0: not known */
    cl_uint wave;                       /* cl_amd_device_attribute_query */
    size_t sub_groups[SUB_GROUP_SIZES]; /* cl_intel_required_subgroup_size; ends at 0 */
    bool is_cpu;
    /* what is to come of it */
    clattn__devices gpu;
    const char *architecture;
    int mma;
    const char *row;     /* that serves attention of f16, heads of 64 */
    const char *says;    /* words of the device's features where it has matrix units that serve, else of why the row does not */
    const char *problem; /* words of it; NULL: none */
} fake;

#define NV_WORDS "cl_khr_global_int32_base_atomics cl_khr_fp64 cl_nv_device_attribute_query cl_nv_pragma_unroll"
#define AMD_WORDS "cl_khr_fp64 cl_khr_fp16 cl_khr_subgroups cl_amd_device_attribute_query cl_amd_media_ops"
#define XE_WORDS "cl_khr_fp16 cl_khr_subgroups cl_intel_subgroups cl_intel_required_subgroup_size"
#define XMX_WORDS XE_WORDS " cl_intel_subgroup_matrix_multiply_accumulate"
#define MESA_WORDS "cl_khr_byte_addressable_store cl_khr_fp16 cl_khr_il_program cl_khr_subgroups"
#define POCL_CUDA_WORDS "cl_khr_byte_addressable_store cl_khr_int64_base_atomics cl_nv_device_attribute_query cl_khr_fp64"

#define NVIDIA(device, version, of_major, of_minor)                                                                            \
    .platform = "NVIDIA CUDA", .vendor = "NVIDIA Corporation", .name = device, .driver = version, .extensions = NV_WORDS,      \
    .vendor_id = 0x10de, .major = of_major, .minor = of_minor, .gpu = CLATTN__NVIDIA
#define ROCM(device, of_wave)                                                                                                  \
    .platform = "AMD Accelerated Parallel Processing", .vendor = "Advanced Micro Devices, Inc.", .name = device,               \
    .driver = "3602.0 (HSA1.1,LC)", .extensions = AMD_WORDS, .vendor_id = 0x1002, .wave = of_wave, .gpu = CLATTN__AMD
#define NEO(device, words)                                                                                                     \
    .platform = "Intel(R) OpenCL Graphics", .vendor = "Intel(R) Corporation", .name = device, .driver = "24.22.29735.20",      \
    .extensions = words, .vendor_id = 0x8086, .gpu = CLATTN__INTEL
#define MESA(of_vendor, id, device, version)                                                                                   \
    .platform = "rusticl", .vendor = of_vendor, .name = device, .driver = version, .extensions = MESA_WORDS, .vendor_id = id
#define POCL_CUDA(of_vendor, id, device, of_major, of_minor)                                                                   \
    .platform = "Portable Computing Language", .vendor = of_vendor, .name = device, .driver = "5.0",                           \
    .extensions = POCL_CUDA_WORDS, .vendor_id = id, .major = of_major, .minor = of_minor

static const char *const needs_nvidia =
    "not attention_mma_64: needs NVIDIA's tensor cores, of compute capability 8.0 or newer, and "
    "NVIDIA's driver";
static const char *const needs_cdna = "not attention_mma_cdna: needs AMD's matrix cores, of CDNA 2 or 3, and AMD's driver";
static const char *const needs_rdna3 = "not attention_mma_rdna3: needs AMD's matrix instructions, of RDNA 3, and AMD's driver";
static const char *const needs_xe8 =
    "not attention_mma_xe8: needs Intel's matrix engines, in sub-groups of 8, and Intel's driver";

#define TENSOR_CORES(arch) .architecture = arch, .mma = MMA_NVIDIA, .row = "attention_mma_64", .says = arch ", tensor cores"
#define FLOATS(arch, of_row, words) .architecture = arch, .row = of_row, .says = words

static const fake fakes[] = {
    /* NVIDIA's own driver */
    {NVIDIA("Tesla V100-SXM2-16GB", "470.82.01", 7, 0), FLOATS("sm_70", "attention_64x64", needs_nvidia)},
    {NVIDIA("Tesla T4", "535.104.05", 7, 5), FLOATS("sm_75", "attention_64x64", needs_nvidia)},
    {NVIDIA("NVIDIA A100-SXM4-80GB", "550.54.15", 8, 0), TENSOR_CORES("sm_80")},
    {NVIDIA("NVIDIA GeForce RTX 3090", "551.23", 8, 6), TENSOR_CORES("sm_86")},
    {NVIDIA("NVIDIA L4", "550.54.15", 8, 9), TENSOR_CORES("sm_89")},
    {NVIDIA("NVIDIA H200", "570.86.10", 9, 0), TENSOR_CORES("sm_90")},
    {NVIDIA("NVIDIA B200", "570.86.10", 10, 0), TENSOR_CORES("sm_100")},
    {NVIDIA("NVIDIA GeForce RTX 5090", "572.16", 12, 0), TENSOR_CORES("sm_120")},
    /* the same boards by others: PoCL's CUDA driver, of before 2021 and since; Mesa; Vulkan */
    {POCL_CUDA("NVIDIA Corporation", 0x10de, "NVIDIA H100 PCIe", 9, 0), .gpu = CLATTN__NVIDIA,
     FLOATS("sm_90", "attention_64x64", needs_nvidia)},
    {POCL_CUDA("pocl", 0, "GeForce RTX 3080", 0, 0), .gpu = 0, FLOATS("", "attention_64x64", needs_nvidia)},
    {MESA("NVIDIA", 0x10de, "NV167", "25.1.0"), .gpu = CLATTN__NVIDIA, FLOATS("", "attention_64x64", needs_nvidia)},
    {.platform = "clvk",
     .vendor = "NVIDIA Corporation",
     .name = "NVIDIA GeForce RTX 4090",
     .driver = "3.0 CLVK on Vulkan v1.3.277",
     .extensions = "cl_khr_fp16",
     .vendor_id = 0x10de,
     .gpu = CLATTN__NVIDIA,
     FLOATS("", "attention_64x64", needs_nvidia)},
    {.platform = "OpenCLOn12",
     .vendor = "NVIDIA",
     .name = "NVIDIA GeForce RTX 4090",
     .driver = "1.0.0",
     .extensions = "cl_khr_fp16",
     .vendor_id = 0x10de,
     .gpu = CLATTN__NVIDIA,
     FLOATS("", "attention_64x64", needs_nvidia)},
    /* AMD's own driver: ROCm, with features behind the name, and as older releases spelled them */
    {ROCM("gfx906:sramecc+:xnack-", 64), FLOATS("gfx906", "attention_32x64_128", needs_cdna)},
    {ROCM("gfx906+sram-ecc", 64), FLOATS("gfx906", "attention_32x64_128", needs_cdna)},
    {ROCM("gfx908:sramecc+:xnack-", 64), FLOATS("gfx908", "attention_32x64_128", needs_cdna)},
    {ROCM("gfx90a:sramecc+:xnack-", 64), .architecture = "gfx90a", .mma = MMA_CDNA, .row = "attention_mma_cdna",
     .says = "gfx90a, matrix cores"},
    {ROCM("gfx942:sramecc+:xnack-", 64), .architecture = "gfx942", .mma = MMA_CDNA, .row = "attention_mma_cdna",
     .says = "gfx942, matrix cores"},
    {ROCM("gfx1030", 32), FLOATS("gfx1030", "attention_32x64_128", needs_rdna3)},
    {ROCM("gfx1100", 32), .architecture = "gfx1100", .mma = MMA_RDNA3, .row = "attention_mma_rdna3",
     .says = "gfx1100, matrix instructions"},
    {ROCM("gfx1100", 64), FLOATS("gfx1100", "attention_32x64_128", needs_rdna3)}, /* told to make waves of 64 */
    {ROCM("gfx1100", 0), FLOATS("gfx1100", "attention_32x64_128", needs_rdna3)},
    {ROCM("gfx110", 32), FLOATS("gfx110", "attention_32x64_128", needs_rdna3)}, /* beginnings of names are none */
    {ROCM("gfx1201", 32), FLOATS("gfx1201", "attention_32x64_128", needs_rdna3)},
    /* the same by Mesa, which names the product, and by PoCL's HSA driver, which names the target */
    {MESA("AMD", 0x1002, "AMD Radeon RX 7900 XTX (radeonsi, navi31, LLVM 15.0.6, DRM 3.54, 6.6.9)", "23.3.1"),
     .gpu = CLATTN__AMD, FLOATS("", "attention_32x64_128", needs_rdna3)},
    {MESA("AMD", 0x1002, "gfx1100 (radeonsi, LLVM 17.0.6)", "24.0.2"), .wave = 32, .gpu = CLATTN__AMD,
     FLOATS("gfx1100", "attention_32x64_128", needs_rdna3)},
    {.platform = "Portable Computing Language",
     .vendor = "AMD",
     .name = "gfx90a",
     .driver = "3.1",
     .extensions = "cl_khr_fp64",
     .vendor_id = 0x1002,
     .gpu = CLATTN__AMD,
     FLOATS("gfx90a", "attention_32x64_128", needs_cdna)},
    /* Intel's own driver */
    {NEO("Intel(R) UHD Graphics 770", XE_WORDS), .sub_groups = {8, 16, 32}, FLOATS("", "attention_64x64", needs_xe8)},
    {NEO("Intel(R) Arc(TM) A770 Graphics", XMX_WORDS), .sub_groups = {8, 16, 32}, .architecture = "", .mma = MMA_XE8,
     .row = "attention_mma_xe8", .says = "matrix engines in sub-groups of 8"},
    {.platform = "Intel(R) OpenCL HD Graphics",
     .vendor = "Intel(R) Corporation",
     .name = "Intel(R) Arc(TM) A380 Graphics",
     .driver = "22.43.24595.30",
     .extensions = XMX_WORDS,
     .vendor_id = 0x8086,
     .sub_groups = {8, 16, 32},
     .gpu = CLATTN__INTEL,
     .architecture = "",
     .mma = MMA_XE8,
     .row = "attention_mma_xe8",
     .says = "matrix engines in sub-groups of 8"},
    {NEO("Intel(R) Data Center GPU Max 1550", XMX_WORDS), .sub_groups = {16, 32}, .architecture = "", .mma = MMA_XE16,
     .row = "attention_mma_xe16", .says = "matrix engines in sub-groups of 16"},
    {NEO("Intel(R) Arc(TM) B580 Graphics", XMX_WORDS), .sub_groups = {16, 32}, .architecture = "", .mma = MMA_XE16,
     .row = "attention_mma_xe16", .says = "matrix engines in sub-groups of 16"},
    {NEO("a GPU with sub-groups of 32", XMX_WORDS), .sub_groups = {32}, FLOATS("", "attention_64x64", needs_xe8)},
    {NEO("a GPU that does not say its sub-groups", XMX_WORDS), FLOATS("", "attention_64x64", needs_xe8)},
    {NEO("a longer word is another", XE_WORDS " cl_intel_subgroup_matrix_multiply_accumulate_tf32"), .sub_groups = {16, 32},
     FLOATS("", "attention_64x64", needs_xe8)},
    /* the same by Mesa and by PoCL on Level Zero, and what Intel's own platform has beside GPUs */
    {MESA("Intel", 0x8086, "Mesa Intel(R) Arc(tm) A770 Graphics (DG2)", "23.1.4"), .sub_groups = {8, 16, 32},
     .gpu = CLATTN__INTEL, FLOATS("", "attention_64x64", needs_xe8)},
    {.platform = "Portable Computing Language",
     .vendor = "Intel Corporation",
     .name = "Intel(R) Arc(TM) A770 Graphics",
     .driver = "6.0",
     .extensions = XMX_WORDS,
     .vendor_id = 0x8086,
     .sub_groups = {8, 16, 32},
     .gpu = CLATTN__INTEL,
     FLOATS("", "attention_64x64", needs_xe8)},
    {.platform = "Intel(R) OpenCL",
     .vendor = "Intel(R) Corporation",
     .name = "Intel(R) Xeon(R) Platinum 8480+",
     .driver = "2024.18.6.0.02_160000",
     .extensions = XE_WORDS,
     .vendor_id = 0x8086,
     .sub_groups =
         {
             4,
             8,
             16,
             32,
         },
     .is_cpu = true,
     FLOATS("", "attention_w16", NULL)},
    /* Apple's, whose vendors have numbers of its own */
    {.platform = "Apple",
     .vendor = "AMD",
     .name = "AMD Radeon Pro 5500M Compute Engine",
     .driver = "1.2 (Sep 30 2021)",
     .extensions = "cl_khr_fp64",
     .vendor_id = 0x1021d00,
     FLOATS("", "attention_64x64", needs_nvidia)},
    {.platform = "ARM Platform",
     .vendor = "ARM",
     .name = "Mali-G78",
     .driver = "3.0",
     .extensions = "cl_khr_fp16",
     .vendor_id = 0x90010000,
     FLOATS("", "attention_64x64", needs_nvidia)},
    /* faults that are known by driver and version */
    {MESA("Mesa", 0x10005, "llvmpipe (LLVM 15.0.6, 256 bits)", "22.3.6"), .is_cpu = true, .architecture = "",
     .problem = "before Mesa 25.0"},
    {MESA("Mesa", 0x10005, "llvmpipe (LLVM 19.1.7, 256 bits)", "24.3.4"), .is_cpu = true, .architecture = "",
     .problem = "before Mesa 25.0"},
    {MESA("Mesa", 0x10005, "llvmpipe (LLVM 19.1.7, 256 bits)", "25.0.7-2"), .is_cpu = true, FLOATS("", "attention_w16", NULL)},
    {MESA("Mesa", 0x10005, "llvmpipe (LLVM 20.1.0, 256 bits)", "git"), .is_cpu = true, FLOATS("", "attention_w16", NULL)},
};

/* ---- a driver that answers so --------------------------------------------------------------------------------------- */

static const fake *given;

static cl_int answer_known(cl_uint number, size_t size, void *value, size_t *size_ret) {
    return number ? answer(&number, sizeof number, size, value, size_ret) : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t size, void *value,
                                        size_t *size_ret) {
    (void)platform;
    return what == CL_PLATFORM_NAME ? answer_text(given->platform, size, value, size_ret) : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size, void *value, size_t *size_ret) {
    const cl_device_type type = given->is_cpu ? CL_DEVICE_TYPE_CPU : CL_DEVICE_TYPE_GPU;
    const cl_platform_id platform = (cl_platform_id)&fakes;
    const size_t work_group = 1024, params = 4352, sizes[3] = {1024, 1024, 64};
    const cl_ulong local = 48 << 10, memory = 1 << 30;
    const cl_bool yes = CL_TRUE;
    const cl_uint units = 16;
    size_t count = 0;
    (void)device;
    switch (what) {
    case CL_DEVICE_TYPE:
        return answer(&type, sizeof type, size, value, size_ret);
    case CL_DEVICE_PLATFORM:
        return answer(&platform, sizeof platform, size, value, size_ret);
    case CL_DEVICE_NAME:
        return answer_text(given->name, size, value, size_ret);
    case CL_DEVICE_VENDOR:
        return answer_text(given->vendor, size, value, size_ret);
    case CL_DEVICE_VENDOR_ID:
        return answer(&given->vendor_id, sizeof given->vendor_id, size, value, size_ret);
    case CL_DRIVER_VERSION:
        return answer_text(given->driver, size, value, size_ret);
    case CL_DEVICE_VERSION:
        return answer_text("OpenCL 3.0 fake", size, value, size_ret);
    case CL_DEVICE_OPENCL_C_VERSION:
        return answer_text("OpenCL C 1.2 fake", size, value, size_ret);
    case CL_DEVICE_EXTENSIONS:
        return answer_text(given->extensions, size, value, size_ret);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE:
        return answer(&yes, sizeof yes, size, value, size_ret);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
        return answer(&units, sizeof units, size, value, size_ret);
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return answer(&local, sizeof local, size, value, size_ret);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return answer(&memory, sizeof memory, size, value, size_ret);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return answer(&work_group, sizeof work_group, size, value, size_ret);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        return answer(sizes, sizeof sizes, size, value, size_ret);
    case CL_DEVICE_MAX_PARAMETER_SIZE:
        return answer(&params, sizeof params, size, value, size_ret);
    case 0x4000:
        return answer_known(given->major, size, value, size_ret);
    case 0x4001:
        return given->major ? answer(&given->minor, sizeof given->minor, size, value, size_ret) : CL_INVALID_VALUE;
    case 0x4043:
        return answer_known(given->wave, size, value, size_ret);
    case 0x4108:
        while (count < SUB_GROUP_SIZES && given->sub_groups[count]) count++;
        return count ? answer(given->sub_groups, count * sizeof(size_t), size, value, size_ret) : CL_INVALID_VALUE;
    default:
        return CL_INVALID_VALUE;
    }
}

/* ---- what is made of it --------------------------------------------------------------------------------------------- */

static const char *chosen_row(const clattn__device *device, clattn__text *why) {
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    clattn_context *context;
    options.device = "reference";
    ck_assert_int_eq(clattn_context_create(&options, &context), CLATTN_OK);
    context->device = *device;
    const clattn__params params = {.attention = {.head_dim = 64, .value_dim = 64, .dtype = DTYPE_F16}};
    const clattn__row *row = clattn__choose_row(context, CLATTN__ROLE_ATTENTION, &params, why);
    clattn_context_destroy(context);
    return row ? row->name : "";
}

static void assert_row(const clattn__device *device) {
    clattn__text why = {0};
    ck_assert_msg(strcmp(chosen_row(device, &why), given->row) == 0, "%s, %s: %s instead of %s\n%s", given->platform,
                  given->name, chosen_row(device, NULL), given->row, why.data);
    const char *said = device->mma ? device->info.features : why.data;
    if (given->says)
        ck_assert_msg(strstr(said, given->says) != NULL, "%s, %s: no \"%s\" in\n%s", given->platform, given->name, given->says,
                      said);
    clattn__text_free(&why);
}

START_TEST(devices_are_recognised) {
    const clattn__opencl_api api = {.GetDeviceInfo = device_info, .GetPlatformInfo = platform_info};
    clattn__device device;
    given = &fakes[_i];
    clattn__opencl_describe(&api, NULL, &device);
    ck_assert_msg(device.gpu == given->gpu, "%s, %s: GPU of %d", given->platform, given->name, (int)device.gpu);
    ck_assert_str_eq(device.architecture, given->architecture);
    ck_assert_msg(device.mma == given->mma, "%s, %s: matrix units %d", given->platform, given->name, device.mma);
    if (given->problem) {
        ck_assert_msg(strstr(device.info.problem, given->problem) != NULL, "%s: \"%s\"", given->name, device.info.problem);
        ck_assert(!device.has_gpu_family && !device.has_cpu_family && device.opens_by_family);
        return;
    }
    ck_assert_str_eq(device.info.problem, "");
    ck_assert(device.has_gpu_family && device.has_cpu_family == given->is_cpu);
    assert_row(&device);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("recognition");
    TCase *tests = tcase_create("recognition");
    tcase_add_loop_test(tests, devices_are_recognised, 0, COUNT(fakes));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
