"""What a machine with a GPU and little else is to be given along with the sources: the folder for --kit.

SPDX-License-Identifier: Apache-2.0

    bin/clattn, tests/test_*    as built here
    packages/*.so*              the libraries that they load, but for those of the C library
    ptx/                        the main kernels as PTX (tests/offline/ptx.py), for a driver without OpenCL
    offline.json                what the offline stage predicts

Nothing of a vendor's is in it. It serves machines of this kind of processor whose C library is no older than the one here.
"""
import os
import re
import shutil
import subprocess
import sys

import steps

LOADER = "libOpenCL.so.1" # loaded at run time, so that no program names it
SYSTEM = re.compile(r"(linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|resolv)\.so)")


def libraries(program):
    """{name: path} of what a program loads at its start."""
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True, check=False)
    return {name: path for name, path in re.findall(r"(\S+) => (/\S+)", listed.stdout) if not SYSTEM.match(name)}


def loader():
    listed = subprocess.run(["ldconfig", "-p"], stdout=subprocess.PIPE, universal_newlines=True, check=False).stdout
    return dict(re.findall(r"(%s) .*=> (\S+)" % re.escape(LOADER), listed))


def copy(source, folder):
    os.makedirs(folder, exist_ok=True)
    shutil.copy(source, folder)


def pack(root, build, folder):
    """Fill the folder; a line for each part."""
    program = os.path.join(build, "clattn")
    if not os.access(program, os.X_OK):
        sys.exit("gpu-check: nothing to pack: no %s; ./run builds it" % program)
    suites = [path for path in (os.path.join(build, "tests", "test_" + name) for name in steps.SUITES) if os.path.exists(path)]
    copy(program, os.path.join(folder, "bin"))
    for path in suites:
        copy(path, os.path.join(folder, "tests"))
    found = loader()
    for path in [program] + suites:
        found.update(libraries(path))
    for path in found.values():
        copy(path, os.path.join(folder, "packages"))
    yield "the program, %d suites, %s" % (len(suites), ", ".join(sorted(found)))
    predictions = os.path.join(build, "results", "offline.json")
    if os.path.exists(predictions):
        copy(predictions, folder)
    yield "predictions of the offline stage" if os.path.exists(predictions) else "no predictions: ./run test --all makes them"
    yield from pack_ptx(root, build, os.path.join(folder, "ptx"))


def pack_ptx(root, build, folder):
    lister = os.path.join(build, "tests", "offline", "list_launches")
    if not os.path.exists(lister):
        yield "no PTX: no %s" % lister
        return
    process = subprocess.run([sys.executable, os.path.join(root, "tests", "offline", "ptx.py"), lister, folder], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, universal_newlines=True, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"), check=False)
    yield "PTX: " + (process.stdout.strip().splitlines() or ["exit status %d" % process.returncode])[-1]
