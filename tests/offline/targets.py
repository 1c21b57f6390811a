"""The targets: how each compiles a build of the kernel table, and what it says of the result.

SPDX-License-Identifier: Apache-2.0

A target is a name, the row's `devices` that it stands for, and a function build -> facts. Facts are a dict with `error` (the
compiler's text) or
    registers    of one work-item (None: not said)
    spills       bytes of registers kept in memory, of one work-item; arrays that did not fit into registers count alike
    local        bytes of local memory of a work-group
    occupancy    how many of the most warps a multiprocessor holds, in percent; an estimate
    speed        see sass.py
"""
import os
import re
import struct

import sass
import tools

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "kernels")
# sm: registers, registers given at a time to a warp, warps, groups, bytes of shared memory, each per multiprocessor.
# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
NVIDIA = {
    "sm_80": (65536, 256, 64, 32, 164 << 10),
    "sm_90": (65536, 256, 64, 32, 228 << 10),
    "sm_120": (65536, 256, 48, 24, 100 << 10),
}
NVIDIA_RESERVED = 1024 # bytes of shared memory that the system takes of each group's
SPEED_ON = "sm_90"
AMD = ("gfx90a", "gfx1030", "gfx1100")
AMD_WAVES = {"gfx90a": 8, "gfx1030": 16, "gfx1100": 16} # that a SIMD holds
INTEL = ("dg2-g10", "pvc")
# Targets with matrix instructions: which layout of kernels/mma_layouts.h is theirs.
MATRIX_UNITS = {"sm_80": 1, "sm_90": 1, "sm_120": 1, "gfx90a": 2, "gfx1100": 3, "dg2-g10": 4, "pvc": 5}
# Targets that are there for their matrix units: only what uses these is compiled for them.
FOR_MATRICES = ("gfx1100", "pvc")
# Targets whose compiler is another's here: the pairs of variants are left to that one, the product is compiled for all.
ALIKE = ("sm_80", "sm_120")
SPEED_ROLES = ("attention", "project", "scores", "weighted_values")


class Build:
    """A line of list_builds."""

    def __init__(self, line):
        self.row, self.family, devices, self.entry, self.source, work_group, self.set, self.options = line.split("\t")
        self.devices = devices.split(",")
        self.work_group = int(work_group)
        self.macros = {name: int(value) for name, value in re.findall(r"-D (\w+)=(\d+)", self.options)}
        self.name = self.row + "".join(" %s=%d" % (name, self.macros[name])
                                       for name in ("DTYPE", "MODIFIED", "HEAD_DIM_MAX", "VALUE_DIM_MAX") if name in self.macros)

    def options_on(self, target):
        """The build options of the host on a target: where it has not the row's matrix instructions they are emulated."""
        has = MATRIX_UNITS.get(target) == self.macros.get("MMA")
        return [option for option in self.options.replace("-D ", "-D").split() if has or option != "-DMMA_NATIVE=1"]

    def is_wanted(self, target):
        if self.set == "pairwise" and target in ALIKE:
            return False
        return target not in FOR_MATRICES or self.macros.get("MMA") == MATRIX_UNITS[target]

    def is_meant(self, family, target):
        """Whether the row is meant for a target of a family of devices: of those with matrix instructions, for those alone."""
        return family in self.devices and self.macros.get("MMA") in (None, MATRIX_UNITS.get(target))

    def is_portable(self):
        return {"nvidia", "amd", "intel"} <= set(self.devices)

    def is_timed(self):
        """Whether the speed gate looks at it: the f32 rows that do most of the work."""
        return self.entry in SPEED_ROLES and self.set == "plain" and "nvidia" in self.devices


def compile_to(command, path):
    """Run a compiler; its error, or None."""
    process = tools.run(command + ["-o", path])
    if process.returncode == 0:
        return None
    errors = [line for line in process.stdout.splitlines() if "error" in line.lower()]
    return errors[0] if errors else tools.first_line(process.stdout)


# ---- lint --------------------------------------------------------------------------------------------------------------

class Lint:
    """OpenCL C 1.2 with no optional extension, every warning an error."""
    family = "lint"

    def __init__(self, folder):
        flags = ["-target", "spir64", "-Xclang", "-cl-ext=-all"]
        self.command = tools.clang_command(tools.clang_for(flags, folder), flags)
        self.command += ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", KERNELS]
        self.names, self.skipped = ["OpenCL C 1.2"], []

    def compile(self, build, _source, _folder):
        # The files as they are written: in one whose #includes are resolved, a header's unused functions would be the file's.
        process = tools.run(self.command + build.options_on("OpenCL C 1.2") + [os.path.join(KERNELS, build.source)])
        facts = {"registers": None, "spills": 0, "local": 0, "occupancy": None}
        if process.returncode or process.stdout.strip():
            facts = {"error": tools.first_line(process.stdout)}
        return {"OpenCL C 1.2": facts}


# ---- NVIDIA ------------------------------------------------------------------------------------------------------------

class Nvidia:
    family = "nvidia"

    def __init__(self, folder):
        flags = tools.nvptx_flags()
        self.clang = tools.clang_command(tools.clang_for(flags, folder), flags)
        self.ptxas = tools.nvidia_ptxas(folder)
        known = tools.run([self.ptxas, "--help"]).stdout
        self.names = [name for name in NVIDIA if name in known]
        self.skipped = [(name, "this ptxas does not know it") for name in NVIDIA if name not in known]
        try:
            self.disassembler = tools.nvidia_disassembler(folder)
        except tools.Missing as missing:
            self.disassembler = None
            self.skipped.append(("speed gate", str(missing)))

    def compile(self, build, source, folder):
        ptx = os.path.join(folder, "kernel.ptx")
        error = compile_to(self.clang + build.options_on(SPEED_ON) + ["-S", source], ptx)
        return {name: {"error": error} if error else self.assemble(build, name, ptx, folder)
                for name in self.names if build.is_wanted(name)}

    def assemble(self, build, name, ptx, folder):
        cubin = os.path.join(folder, name + ".cubin")
        process = tools.run([self.ptxas, "-v", "-arch=" + name, ptx, "-o", cubin])
        numbers = {key: re.search(pattern, process.stdout) for key, pattern in (
            ("registers", r"Used (\d+) registers"), ("stack", r"(\d+) bytes stack frame"), ("local", r"(\d+) bytes smem"))}
        if process.returncode or not numbers["registers"]:
            return {"error": tools.first_line(process.stdout)}
        facts = {key: int(found.group(1)) if found else 0 for key, found in numbers.items()}
        facts["spills"] = facts.pop("stack")
        facts["occupancy"] = nvidia_occupancy(name, build.work_group, facts["registers"], facts["local"])
        if name == SPEED_ON and self.disassembler and build.is_timed():
            facts["speed"] = self.judge(build, cubin)
        return facts

    def judge(self, build, cubin):
        process = tools.run([self.disassembler, "-c", cubin])
        if process.returncode:
            return {"error": tools.first_line(process.stdout)}
        try:
            return {"loops": sass.judge(process.stdout, build.macros)}
        except ValueError as error:
            return {"error": str(error)}


def nvidia_occupancy(name, work_group, registers, local):
    total, unit, warps, groups, memory = NVIDIA[name]
    group_warps = (work_group + 31) // 32
    warp_registers = max(1, (registers * 32 + unit - 1) // unit * unit)
    fit = min(groups, warps // group_warps, total // warp_registers // group_warps, memory // (local + NVIDIA_RESERVED))
    return round(100 * fit * group_warps / warps)


# ---- AMD ---------------------------------------------------------------------------------------------------------------

class Amd:
    family = "amd"

    def __init__(self, folder):
        self.names, self.skipped, self.commands = [], [], {}
        for name in AMD:
            try:
                flags = tools.amdgcn_flags(name, folder)
                self.commands[name] = tools.clang_command(tools.clang_for(flags, folder), flags)
                self.names.append(name)
            except tools.Missing as missing:
                self.skipped.append((name, str(missing)))
        if not self.names:
            raise tools.Missing("; ".join(name + ": " + why for name, why in self.skipped))

    def compile(self, build, source, folder):
        return {name: self.assemble(build, name, source, folder) for name in self.names if build.is_wanted(name)}

    def assemble(self, build, name, source, folder):
        path = os.path.join(folder, name + ".s")
        error = compile_to(self.commands[name] + build.options_on(name) + ["-S", source], path)
        if error:
            return {"error": error}
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        numbers = {key: re.search(pattern, text) for key, pattern in (
            ("registers", r"\.vgpr_count:\s+(\d+)"), ("spills", r"\.private_segment_fixed_size:\s+(\d+)"),
            ("local", r"\.group_segment_fixed_size:\s+(\d+)"), ("waves", r"; Occupancy: (\d+)"))}
        if not all(numbers.values()):
            return {"error": "the assembly does not say what the kernel takes"}
        facts = {key: int(found.group(1)) for key, found in numbers.items()}
        facts["occupancy"] = round(100 * facts.pop("waves") / AMD_WAVES[name])
        return facts


# ---- Intel -------------------------------------------------------------------------------------------------------------

LOCAL_SURFACE, SCRATCH, PRIVATE_SURFACE, ENVIRONMENT, SCRATCH_SLOT_1 = 15, 18, 38, 23, 55 # tokens of a kernel's patch list


class Intel:
    family = "intel"

    def __init__(self, folder):
        self.ocloc, self.environment = tools.intel_ocloc(folder)
        self.names, self.skipped = list(INTEL), []

    def compile(self, build, source, folder):
        return {name: self.assemble(build, name, source, folder) for name in self.names if build.is_wanted(name)}

    def assemble(self, build, name, source, folder):
        process = tools.run([self.ocloc, "compile", "-file", source, "-device", name, "-out_dir", folder, "-output", "kernel",
                             "-output_no_suffix", "-options", " ".join(build.options_on(name))], env=self.environment)
        path = os.path.join(folder, "kernel")
        if process.returncode or not os.path.exists(path):
            errors = [line for line in process.stdout.splitlines() if "error" in line.lower()]
            return {"error": errors[0] if errors else tools.first_line(process.stdout)}
        with open(path, "rb") as file:
            binary = file.read()
        os.remove(path)
        tokens = patch_tokens(binary)
        if ENVIRONMENT not in tokens:
            return {"error": "the binary does not say what the kernel takes"}
        spills = sum(tokens[token][1] for token in (SCRATCH, SCRATCH_SLOT_1) if token in tokens)
        if PRIVATE_SURFACE in tokens:
            spills += tokens[PRIVATE_SURFACE][3]
        return {"registers": None, "simd": tokens[ENVIRONMENT][3], "spills": spills, "local": tokens[LOCAL_SURFACE][1] if LOCAL_SURFACE in tokens else 0,
                "occupancy": None}


def patch_tokens(binary):
    """The first kernel's patch list: token -> its 32-bit words. The program's header is 7 words from the magic number on, the
    kernel's 10; then come name, heaps and the list."""
    start = binary.find(struct.pack("<I", 0x494E5443))
    if start < 0:
        return {}
    at = start + 28 + struct.unpack_from("<I", binary, start + 24)[0]
    name, patches, kernel, general, dynamic, surface = struct.unpack_from("<6I", binary, at + 12)
    at += 40 + name + kernel + general + dynamic + surface
    tokens, end = {}, at + patches
    while at < end:
        token, size = struct.unpack_from("<2I", binary, at)
        if size < 8:
            return {}
        tokens[token] = struct.unpack_from("<%dI" % ((size - 8) // 4), binary, at + 8)
        at += size
    return tokens


FAMILIES = {target.family: target for target in (Lint, Nvidia, Amd, Intel)}
