"""The compilers of GPUs that this machine has, or can have: found on it, else unpacked into a folder of the build.

SPDX-License-Identifier: Apache-2.0

Nothing is installed system-wide and nothing of a vendor's is kept elsewhere. What cannot be had raises Missing, whose text is
what the report prints.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

CLANGS = ("clang-16", "clang-15", "clang-17", "clang-18", "clang-19", "clang")
CUDA_FOLDERS = ("/usr/local/cuda/bin", "/opt/cuda/bin")
AMD_LIBRARIES = ("/usr/lib/*/amdgcn/bitcode", "/usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode", "/usr/lib/clang/*/amdgcn/bitcode",
                 "/usr/lib/clang/*/lib/amdgcn/bitcode", "/opt/rocm/amdgcn/bitcode")
INTEL_PACKAGES = ("intel-ocloc", "intel-opencl-icd")
# What a target's compiler and its library of built-in functions must agree on.
PROBE = "kernel void probe(global float *x) { x[get_global_id(0)] = exp2(x[0]) + vload_half(0, (global half *)x); }\n"


class Missing(Exception):
    pass


def run(command, **options):
    """The process, finished, its output as text."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)


def find(name, folders=()):
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(folders))


def first_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0].strip() if lines else "no message"


# ---- clang -------------------------------------------------------------------------------------------------------------

def nvptx_flags():
    library = find_one("/usr/lib/clc/nvptx64--nvidiacl.bc", "libclc")
    # The triple is the library's own, so that the linker does not complain.
    return ["-target", "nvptx64-unknown-nvidiacl", "-Xclang", "-target-cpu", "-Xclang", "sm_80", "-Xclang", "-target-feature",
            "-Xclang", "+ptx75", "-Xclang", "-mlink-builtin-bitcode", "-Xclang", library]


def amdgcn_flags(processor, folder):
    library = library_for(processor, find_one(AMD_LIBRARIES, "rocm-device-libs"), folder)
    return ["-target", "amdgcn-amd-amdhsa", "-mcpu=" + processor, "-mcode-object-version=4", "--rocm-device-lib-path=" + library]


def library_for(processor, library, folder):
    """The device library, or a folder of links to it and the number of a processor that is younger than it: all that it holds of
    one is that constant."""
    name = "oclc_isa_version_%s.bc" % processor[3:]
    if os.path.exists(os.path.join(library, name)):
        return library
    own = os.path.join(folder, "amd-" + processor)
    os.makedirs(own, exist_ok=True)
    for path in glob.glob(os.path.join(library, "*.bc")):
        link = os.path.join(own, os.path.basename(path))
        if not os.path.lexists(link):
            os.symlink(path, link)
    major, minor = divmod(int(processor[3:], 16), 256)
    version = 1000 * int("%x" % major) + 100 * (minor // 16) + minor % 16
    source = os.path.join(folder, processor + ".cl")
    with open(source, "w", encoding="utf-8") as file:
        file.write("const __constant int __oclc_ISA_version = %d;\n" % version)
    for clang in filter(None, map(shutil.which, CLANGS)):
        process = run([clang, "-x", "cl", "-cl-std=CL1.2", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-emit-llvm", "-c", source,
                       "-o", os.path.join(own, name)])
        if process.returncode == 0:
            return own
    raise Missing("needs a clang for amdgcn")


def find_one(patterns, package):
    for pattern in (patterns,) if isinstance(patterns, str) else patterns:
        for path in sorted(glob.glob(pattern)):
            return path
    raise Missing("needs " + package)


def clang_for(flags, folder):
    """The first clang that compiles OpenCL C with these flags."""
    source = os.path.join(folder, "probe.cl")
    with open(source, "w", encoding="utf-8") as file:
        file.write(PROBE)
    why = None # the first one's
    for clang in filter(None, map(shutil.which, CLANGS)):
        process = run(clang_command(clang, flags) + ["-cl-std=CL1.2", "-emit-llvm", "-S", source, "-o", os.path.join(folder, "probe.ll")])
        if process.returncode == 0:
            return clang
        why = why or os.path.basename(clang) + ": " + first_line(process.stdout)
    raise Missing(why or "needs clang")


def clang_command(clang, flags):
    return [clang, "-x", "cl", "-O3", "-Xclang", "-finclude-default-header"] + flags


# ---- NVIDIA ------------------------------------------------------------------------------------------------------------

def wheel_tools(folder, packages):
    """The folder of programs of NVIDIA's packages for Python."""
    environment = os.path.join(folder, "nvidia")
    programs = os.path.join(environment, "lib", "python*", "site-packages", "nvidia", "*", "bin")
    done = os.path.join(environment, ".".join(packages))
    if not os.path.exists(done):
        pip = [os.path.join(environment, "bin", "pip"), "-q", "install", "--retries", "1", "--timeout", "15"]
        for command in [sys.executable, "-m", "venv", environment], pip + list(packages):
            process = run(command)
            if process.returncode:
                raise Missing("cannot fetch " + " ".join(packages) + ": " + first_line(process.stdout))
        with open(done, "w", encoding="utf-8"):
            pass
    return glob.glob(programs)


def nvidia_ptxas(folder):
    tool = find("ptxas", CUDA_FOLDERS) or find("ptxas", wheel_tools(folder, ["nvidia-cuda-nvcc"]))
    if not tool:
        raise Missing("needs ptxas")
    return tool


def nvidia_disassembler(folder):
    """One that is no older than ptxas: that of CUDA beside it, else today's."""
    tool = find("nvdisasm", CUDA_FOLDERS) or find("nvdisasm", wheel_tools(folder, ["nvidia-cuda-nvdisasm"]))
    if not tool:
        raise Missing("needs nvdisasm")
    return tool


# ---- Intel -------------------------------------------------------------------------------------------------------------

def intel_ocloc(folder):
    """ocloc and the environment that it runs in. Unpacked, not installed: a driver for GPUs that are not here would change
    what every other test sees."""
    installed = shutil.which("ocloc")
    if installed:
        return installed, dict(os.environ)
    root = os.path.join(folder, "intel")
    if not glob.glob(os.path.join(root, "usr", "bin", "ocloc*")):
        unpack_packages(INTEL_PACKAGES, root)
    programs = sorted(glob.glob(os.path.join(root, "usr", "bin", "ocloc*")))
    if not programs:
        raise Missing("needs ocloc")
    libraries = glob.glob(os.path.join(root, "usr", "lib", "*-linux-gnu"))
    return programs[0], dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join(libraries))


def unpack_packages(names, root):
    """Unpack the first of these packages that there is, and what it needs that is not installed."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Missing("needs ocloc (of intel-opencl-icd)")
    why = "no such package"
    os.makedirs(root, exist_ok=True)
    for name in names:
        plan = run(["apt-get", "-s", "install", "--no-install-recommends", name])
        packages = re.findall(r"^Inst (\S+)", plan.stdout, re.MULTILINE)
        if plan.returncode or not packages:
            why = first_line(plan.stdout)
            continue
        process = run(["apt-get", "-q", "download"] + packages, cwd=root)
        if process.returncode:
            raise Missing("cannot fetch " + name + ": " + first_line(process.stdout))
        for archive in glob.glob(os.path.join(root, "*.deb")):
            run(["dpkg-deb", "-x", archive, root])
            os.remove(archive)
        return
    raise Missing("needs ocloc: " + why)
