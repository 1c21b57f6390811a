"""Whether PTX for one GPU alone loads through clCreateProgramWithBinary: a lead, tried with one small kernel.

SPDX-License-Identifier: Apache-2.0

  python3 binary.py NAME   the device's name, as CL_DEVICE_NAME has it

NVIDIA's program binaries are PTX text. If the driver takes text that was made elsewhere, instructions that its own OpenCL compiler
does not offer (wgmma, bulk tensor copies of .target sm_90a) are within reach. Prints each call and what it returned, and the
outcome last; exits with 0 when there is one, 77 when the device is not NVIDIA's, 1 when there is no such device.
"""
import ctypes
import sys

NVIDIA = 0x10DE
ITEMS = 64
CL_DEVICE_NAME, CL_DEVICE_VENDOR_ID, CL_DEVICE_TYPE_ALL = 0x102B, 0x1001, 0xFFFFFFFF
CL_MEM_READ_WRITE, CL_PROGRAM_BUILD_LOG = 1, 0x1183
SKIPPED = 77
# out[i] = 3 i + 1. The fence is an instruction of sm_90a alone, and changes nothing.
PTX = b""".version 8.0
.target sm_90a
.address_size 64
.visible .entry probe(.param .u64 .ptr .global .align 4 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    wgmma.fence.sync.aligned;
    mad.lo.s32 %r2, %r1, 3, 1;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r2;
    ret;
}
"""


class Refused(Exception):
    """A call that did not return CL_SUCCESS."""


class Api:
    """The few functions, by ctypes. Every call is printed."""

    def __init__(self):
        self.library = ctypes.CDLL("libOpenCL.so.1")

    def quiet(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def call(self, name, *arguments):
        """A function that returns its code."""
        code = self.quiet(name, *arguments)
        print("%s: %d" % (name, code))
        if code:
            raise Refused(name)

    def make(self, name, *arguments):
        """A function that returns an object and its code through the last argument."""
        code = ctypes.c_int32()
        function = getattr(self.library, name)
        function.restype = ctypes.c_void_p
        made = function(*arguments, ctypes.byref(code))
        print("%s: %d" % (name, code.value))
        if not made or code.value:
            raise Refused(name)
        return ctypes.c_void_p(made)


def identifiers(function, *before):
    """What a function that fills a list finds."""
    count = ctypes.c_uint32()
    if function(*before, 0, None, ctypes.byref(count)) or not count.value:
        return []
    found = (ctypes.c_void_p * count.value)()
    return [ctypes.c_void_p(each) for each in found] if not function(*before, count, found, None) else []


def device_name(api, device):
    text = ctypes.create_string_buffer(512)
    api.quiet("clGetDeviceInfo", device, CL_DEVICE_NAME, ctypes.c_size_t(512), text, None)
    return text.value.decode(errors="replace")


def is_nvidia(api, device):
    vendor = ctypes.c_uint32()
    api.quiet("clGetDeviceInfo", device, CL_DEVICE_VENDOR_ID, ctypes.c_size_t(4), ctypes.byref(vendor), None)
    return vendor.value == NVIDIA


def find_device(api, name):
    for platform in identifiers(api.library.clGetPlatformIDs):
        for device in identifiers(api.library.clGetDeviceIDs, platform, ctypes.c_uint64(CL_DEVICE_TYPE_ALL)):
            if device_name(api, device) == name:
                return device
    return None


def build_log(api, program, device):
    text = ctypes.create_string_buffer(4096)
    api.quiet("clGetProgramBuildInfo", program, device, CL_PROGRAM_BUILD_LOG, ctypes.c_size_t(4096), text, None)
    return text.value.decode(errors="replace").strip()


def load(api, context, device):
    """The kernel of the text, built."""
    status = ctypes.c_int32()
    size, text = ctypes.c_size_t(len(PTX)), ctypes.c_char_p(PTX)
    program = api.make("clCreateProgramWithBinary", context, 1, ctypes.byref(device), ctypes.byref(size), ctypes.byref(text),
                       ctypes.byref(status))
    try:
        api.call("clBuildProgram", program, 1, ctypes.byref(device), None, None, None)
    finally:
        log = build_log(api, program, device)
        if log:
            print("build log: " + log)
    return api.make("clCreateKernel", program, b"probe")


def run(api, context, device, kernel):
    """What the kernel writes."""
    results = (ctypes.c_uint32 * ITEMS)()
    size, items = ctypes.c_size_t(ctypes.sizeof(results)), ctypes.c_size_t(ITEMS)
    queue = api.make("clCreateCommandQueue", context, device, ctypes.c_uint64(0))
    buffer = api.make("clCreateBuffer", context, ctypes.c_uint64(CL_MEM_READ_WRITE), size, None)
    api.call("clSetKernelArg", kernel, 0, ctypes.c_size_t(ctypes.sizeof(buffer)), ctypes.byref(buffer))
    api.call("clEnqueueNDRangeKernel", queue, kernel, 1, None, ctypes.byref(items), ctypes.byref(items), 0, None, None)
    api.call("clEnqueueReadBuffer", queue, buffer, 1, ctypes.c_size_t(0), size, results, 0, None, None)
    return list(results)


def main(name):
    api = Api()
    device = find_device(api, name)
    if device is None:
        print("no OpenCL device is called %s" % name)
        return 1
    if not is_nvidia(api, device):
        print("not NVIDIA: not tried")
        return SKIPPED
    try:
        context = api.make("clCreateContext", None, 1, ctypes.byref(device), None, None)
        right = run(api, context, device, load(api, context, device)) == [3 * i + 1 for i in range(ITEMS)]
    except Refused as refused:
        print("PTX for sm_90a does not load as a program binary: %s refused" % refused)
        return 0
    print("PTX for sm_90a loads as a program binary and %s" % ("computes the right thing" if right else "COMPUTES THE WRONG THING"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
