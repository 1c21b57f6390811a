"""The main kernels through CUDA's driver, from PTX that was built elsewhere: for machines whose driver has no OpenCL.

SPDX-License-Identifier: Apache-2.0

  python3 cuda.py FOLDER --json FILE   FOLDER is what tests/offline/ptx.py made

Of each case the small problem is computed first and compared with what the reference made of it; only then the large ones are timed.
FILE receives records as `clattn bench --json` writes them, whose path says that it was not OpenCL. 77 where there is no libcuda, or
no GPU behind it.
"""
import ctypes
import json
import os
import statistics
import struct
import sys

LIBRARY = "libcuda.so.1"
SKIPPED = 77
WARM_UP, RUNS = 3, 20
POISON = 0xFF # bytes of it are NaN in every type
JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES = 5, 6 # CU_JIT_ERROR_LOG_BUFFER and its size
MULTIPROCESSORS = 16 # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
LETTERS = {"f32": ("f", 4), "f16": ("e", 2)}


class Refused(Exception):
    """A call that did not return CUDA_SUCCESS."""


class Driver:
    """The few functions of the driver, on its first GPU."""

    def __init__(self):
        self.library = ctypes.CDLL(LIBRARY)
        self.functions = {}
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name, version, units = ctypes.create_string_buffer(256), ctypes.c_int(), ctypes.c_int()
        self.call("cuDeviceGetName", name, 256, device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.call("cuDeviceGetAttribute", ctypes.byref(units), MULTIPROCESSORS, device)
        self.name, self.units = name.value.decode(errors="replace"), units.value
        self.version = "CUDA %d.%d" % (version.value // 1000, version.value % 1000 // 10)

    def call(self, name, *arguments, detail=None):
        code = getattr(self.library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise Refused("%s: %s (%d)%s" % (name, (text.value or b"an unknown code").decode(), code, detail() if detail else ""))

    def allocate(self, size):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        return pointer

    def free(self, pointer):
        self.call("cuMemFree_v2", pointer)

    def write(self, pointer, offset, data):
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer.value + offset), data, ctypes.c_size_t(len(data)))

    def poison(self, pointer, size):
        self.call("cuMemsetD8_v2", pointer, ctypes.c_ubyte(POISON), ctypes.c_size_t(size))

    def read(self, pointer, size):
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, pointer, ctypes.c_size_t(size))
        return data.raw

    def function(self, path, entry):
        """A kernel of a PTX file, compiled by the driver, once."""
        if (path, entry) not in self.functions:
            self.functions[path, entry] = self.compile(path, entry)
        return self.functions[path, entry]

    def compile(self, path, entry):
        with open(path, "rb") as file:
            text = file.read() + b"\0"
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 2)(JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
        self.call("cuModuleLoadDataEx", ctypes.byref(module), text, 2, options, values,
                  detail=lambda: ": " + log.value.decode(errors="replace").strip())
        self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        return function

    def launch(self, function, groups, work_group, arguments):
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.cast(ctypes.pointer(each), ctypes.c_void_p) for each in arguments])
        self.call("cuLaunchKernel", function, groups, 1, 1, work_group, 1, 1, 0, None, pointers, None)

    def event(self):
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def timed(self, run):
        """Milliseconds of a run by the GPU's clock."""
        first, last, elapsed = self.event(), self.event(), ctypes.c_float()
        self.call("cuEventRecord", first, None)
        run()
        self.call("cuEventRecord", last, None)
        self.call("cuEventSynchronize", last)
        self.call("cuEventElapsedTime", ctypes.byref(elapsed), first, last)
        for event in (first, last):
            self.call("cuEventDestroy_v2", event)
        return elapsed.value


# ---- a launch ----------------------------------------------------------------------------------------------------------------

class Launch:
    """An entry of launches.json on the GPU: memory, kernels and their arguments."""

    def __init__(self, driver, folder, entry, inputs):
        self.driver, self.entry = driver, entry
        self.memory = {"workspace": driver.allocate(entry["workspace"])}
        self.output = next(tensor for tensor in entry["tensors"] if tensor["output"])
        for tensor in entry["tensors"]:
            pointer = self.memory[tensor["id"]] = driver.allocate(tensor["bytes"])
            if tensor["output"]:
                driver.poison(pointer, tensor["bytes"])
            else:
                self.fill(pointer, tensor["bytes"], inputs[tensor["id"]])
        self.steps = [(driver.function(os.path.join(folder, step["ptx"]), step["entry"]), step["groups"], step["work_group"],
                       self.arguments(step)) for step in entry["steps"]]

    def fill(self, pointer, size, data):
        """With the small problem's numbers, over and over."""
        data = data * (min(size, 1 << 24) // len(data) + 1)
        for offset in range(0, size, len(data)):
            self.driver.write(pointer, offset, data[:size - offset])

    def arguments(self, step):
        params = bytes.fromhex(step["params"])
        return [self.memory[buffer] for buffer in step["buffers"]] + [(ctypes.c_char * len(params)).from_buffer_copy(params)]

    def run(self):
        for step in self.steps:
            self.driver.launch(*step)

    def result(self):
        self.run()
        self.driver.call("cuCtxSynchronize")
        return self.driver.read(self.memory[self.output["id"]], self.output["bytes"])

    def times(self):
        for _ in range(WARM_UP):
            self.driver.timed(self.run)
        return sorted(self.driver.timed(self.run) for _ in range(RUNS))

    def release(self):
        for pointer in self.memory.values():
            self.driver.free(pointer)


def numbers(data, dtype):
    if dtype == "bf16":
        return list(struct.unpack("<%df" % (len(data) // 2), b"".join(b"\0\0" + data[n:n + 2] for n in range(0, len(data), 2))))
    letter, size = LETTERS[dtype]
    return list(struct.unpack("<%d%s" % (len(data) // size, letter), data))


def first_wrong(found, expected, entry):
    """The first row that differs by more than the tolerance of its largest element, None when all agree. NaN does not agree."""
    dim = entry["dim"]
    found, expected = numbers(found, entry["dtype"]), numbers(expected, entry["dtype"])
    for start in range(0, len(expected), dim):
        row = expected[start:start + dim]
        tolerance = entry["tolerance"] * max(map(abs, row))
        if not all(abs(x - y) <= tolerance for x, y in zip(found[start:start + dim], row)):
            return start // dim
    return None


# ---- cases -------------------------------------------------------------------------------------------------------------------

def read_data(folder, entry):
    data = {}
    for tensor in entry["tensors"]:
        with open(os.path.join(folder, tensor["file"]), "rb") as file:
            data[tensor["id"]] = file.read()
    return data


def record(driver, entry, times):
    median = statistics.median(times)
    quarter = len(times) // 4
    spread = times[-1 - quarter] - times[quarter]
    rows = ", ".join(step["row"] for step in entry["steps"])
    return dict({
        "schema": "clattn-bench-1", "contrast": "peers", "path": "offline PTX through libcuda", "row": rows, "device": "cuda:0",
        "device_name": driver.name, "driver": driver.version, "platform": "CUDA", "dtype": entry["dtype"], "threads": driver.units,
        "cache_state": "warm", "ms_median": median, "ms_min": times[0], "ms_p90": times[int(0.9 * (len(times) - 1))], "iqr": spread,
        "samples": len(times), "noise": spread / median if median else None, "clock_source": "device events", "flops": entry["flops"],
        "gflops": entry["flops"] / median * 1e-6 if median else None, "verified": "the same kernel on a small problem, against reference",
    }, **entry["shape"])


def measure_case(driver, folder, entries):
    """Records of the entries that are no checks. Raises Refused where the check fails."""
    check = next(entry for entry in entries if entry["check"])
    data = read_data(folder, check)
    small = Launch(driver, folder, check, data)
    wrong = first_wrong(small.result(), data[small.output["id"]], check)
    small.release()
    if wrong is not None:
        raise Refused("wrong: row %d differs from the reference" % wrong)
    records = []
    for entry in entries:
        if not entry["check"]:
            large = Launch(driver, folder, entry, data)
            records.append(record(driver, entry, large.times()))
            large.release()
    return records


def main(folder, path):
    try:
        driver = Driver()
    except OSError as error:
        print("no libcuda here: %s" % error)
        return SKIPPED
    except Refused as refused:
        print("libcuda has no GPU: %s" % refused)
        return SKIPPED
    print("offline PTX through libcuda, not OpenCL, on %s, %s" % (driver.name, driver.version))
    with open(os.path.join(folder, "launches.json"), encoding="utf-8") as file:
        launches = json.load(file)
    records, failed = [], 0
    for case in dict.fromkeys(entry["case"] for entry in launches):
        try:
            records += measure_case(driver, folder, [entry for entry in launches if entry["case"] == case])
            print("%s: right" % case)
        except Refused as refused:
            print("NOT TIMED, %s: %s" % (case, refused))
            failed += 1
        with open(path, "w", encoding="utf-8") as file: # what there is, should the next one hang
            json.dump(records, file)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[3]))
