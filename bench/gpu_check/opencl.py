"""OpenCL on a bare machine: what a loader and a driver need that is not there, for this run alone. Nothing on the system changes.

SPDX-License-Identifier: Apache-2.0

A loader is libOpenCL.so.1; it finds drivers by files *.icd that name their libraries. Containers often have NVIDIA's driver and
neither of the two.
"""
import glob
import os
import shutil
import subprocess
import sys

LOADER = "libOpenCL.so.1"
NVIDIA_DRIVER = "libnvidia-opencl.so.1"
CUDA_DRIVER = "libcuda.so.1"
VENDOR_FOLDER = "/etc/OpenCL/vendors"
# Where drivers are put that the dynamic linker is not told of.
DRIVER_FOLDERS = ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib",
                  "/usr/lib/wsl/lib", "/run/opengl-driver/lib")
# Where CUDA brings a loader along.
LOADER_FOLDERS = ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/*/lib", "/opt/cuda/lib64")
NVIDIA_SIGNS = ("/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg")
LOAD_LIMIT_S = 20


def loads(library, environment):
    """None when a program of this environment can load a library, else why not. Tried in a process of its own: drivers that are
    half there have been seen to crash."""
    try:
        process = subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", library], env=environment,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 timeout=LOAD_LIMIT_S, universal_newlines=True, errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return "it hangs"
    if process.returncode == 0:
        return None
    lines = process.stderr.strip().splitlines()
    return lines[-1].split("OSError: ")[-1] if lines else "ended by signal %d" % -process.returncode


def has_nvidia():
    return bool(shutil.which("nvidia-smi")) or any(os.path.exists(path) for path in NVIDIA_SIGNS)


def find_library(name, folders):
    return next((path for folder in folders for path in sorted(glob.glob(os.path.join(folder, name)))), None)


def unpack(packages, root):
    """Unpack Debian packages; a line for each."""
    lines = []
    for package in sorted(glob.glob(os.path.join(packages, "*.deb"))):
        if not shutil.which("dpkg-deb"):
            return ["%s: cannot be unpacked: no dpkg-deb here" % packages]
        process = subprocess.run(["dpkg-deb", "-x", package, root], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 universal_newlines=True, check=False)
        lines.append("%s: %s" % (os.path.basename(package), process.stderr.strip() or "unpacked"))
    return lines


def library_folders(root):
    """The folders below root that hold shared libraries."""
    return sorted({folder for folder, _, names in os.walk(root) if any(".so" in name for name in names)})


class BringUp:
    """Prepares an environment, in which OpenCL works if it can be made to, and says what it found and did."""

    def __init__(self, environment, folder, packages):
        self.environment, self.folder, self.packages = dict(environment), folder, packages
        self.lines = []

    def say(self, text):
        self.lines.append(text)

    def add_folders(self, folders):
        """After what is there: the system's own libraries come first."""
        known = [folder for folder in self.environment.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]
        self.environment["LD_LIBRARY_PATH"] = os.pathsep.join(known + [folder for folder in folders if folder not in known])

    def carried_libraries(self):
        """Make what was carried along loadable. Libraries that the system has are not replaced by carried ones."""
        if not self.packages or not os.path.isdir(self.packages):
            return
        root = os.path.join(self.folder, "packages")
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(root)
        for line in unpack(self.packages, root):
            self.say(line)
        for folder in library_folders(root) + library_folders(self.packages):
            for name in sorted(os.listdir(folder)):
                if ".so." in name and loads(name, self.environment):
                    self.lend(os.path.join(folder, name))

    def lend(self, path):
        """Make one library loadable and none of its neighbours, which the system may have, too."""
        folder = os.path.join(self.folder, "lib")
        os.makedirs(folder, exist_ok=True)
        link = os.path.join(folder, os.path.basename(path))
        if os.path.lexists(link):
            os.remove(link)
        os.symlink(path, link)
        self.add_folders([folder])
        self.say("%s: from %s" % (os.path.basename(path), os.path.dirname(path)))

    def loader(self):
        why = loads(LOADER, self.environment)
        path = find_library(LOADER, LOADER_FOLDERS + DRIVER_FOLDERS) if why else None
        if path:
            self.lend(path)
            why = loads(LOADER, self.environment)
        self.say("%s: %s" % (LOADER, why or "loads"))
        return why is None

    def nvidia_driver(self):
        """The name by which NVIDIA's driver loads, or None."""
        why = loads(NVIDIA_DRIVER, self.environment)
        if why is None:
            return NVIDIA_DRIVER
        path = find_library(NVIDIA_DRIVER, DRIVER_FOLDERS)
        if path:
            self.add_folders([os.path.dirname(path)]) # what it needs lies beside it
            why = loads(path, self.environment)
        if path and why is None:
            return path
        self.say("this driver has no OpenCL: %s: %s" % (NVIDIA_DRIVER, why))
        return None

    def vendors(self):
        """Have a list of drivers that names NVIDIA's."""
        given = self.environment.get("OCL_ICD_VENDORS") or self.environment.get("OPENCL_VENDOR_PATH")
        if given:
            self.say("drivers: those of %s, as the caller has it" % given)
            return
        files = sorted(glob.glob(os.path.join(VENDOR_FOLDER, "*.icd")))
        self.say("drivers listed in %s: %s" % (VENDOR_FOLDER, ", ".join(map(os.path.basename, files)) or "none"))
        if not has_nvidia() or any("nvidia" in os.path.basename(path) for path in files):
            return
        driver = self.nvidia_driver()
        if driver:
            self.list_privately(files, driver)

    def list_privately(self, files, driver):
        folder = os.path.join(self.folder, "vendors")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for path in files:
            shutil.copy(path, folder)
        with open(os.path.join(folder, "nvidia.icd"), "w", encoding="utf-8") as file:
            file.write(driver + "\n")
        # ocl-icd reads the first; Khronos's loader the second, in which newer ones of ocl-icd see what this means, too.
        self.environment["OCL_ICD_VENDORS"] = folder + "/"
        self.environment["OPENCL_VENDOR_PATH"] = folder + "/"
        self.say("drivers of this run: %s, which adds %s" % (folder, driver))

    def run(self):
        """The environment and the lines."""
        os.makedirs(self.folder, exist_ok=True)
        self.carried_libraries()
        if self.loader():
            self.vendors()
        return self.environment, self.lines
