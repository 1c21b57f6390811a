#!/usr/bin/env python3
"""ptx.py LIST_LAUNCHES FOLDER: the main kernels as PTX, with all that it takes to launch them through CUDA's driver.

SPDX-License-Identifier: Apache-2.0

LIST_LAUNCHES is the program of that name. FOLDER receives what it lists, each build as N.ptx, and launches.json, in which a step names
its PTX. Where ptxas is, each is assembled for sm_90 to see that a driver would take it. 77 when there is no compiler here.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import targets
import tools


def compile_build(clang, folder, source, options, name):
    error = targets.compile_to(clang + options.split() + ["-S", os.path.join(folder, source)], os.path.join(folder, name))
    if error:
        sys.exit("ptx.py: %s does not compile: %s" % (source, error))


def assemble(ptxas, folder, names):
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            process = tools.run([ptxas, "-arch=" + targets.SPEED_ON, os.path.join(folder, name), "-o", os.path.join(work, "cubin")])
            if process.returncode:
                sys.exit("ptx.py: %s is not taken for %s: %s" % (name, targets.SPEED_ON, tools.first_line(process.stdout)))


def build_all(clang, folder, launches):
    """Name each step's PTX; the names, each build once."""
    names = {}
    for step in (step for launch in launches for step in launch["steps"]):
        key = (step["source"], step["options"])
        if key not in names:
            names[key] = "%d.ptx" % len(names)
            compile_build(clang, folder, *key, names[key])
        step["ptx"] = names[key]
    return list(names.values())


def main(program, folder):
    os.makedirs(folder, exist_ok=True)
    try:
        flags = tools.nvptx_flags()
        clang = tools.clang_command(tools.clang_for(flags, folder), flags)
    except tools.Missing as missing:
        print("skipped: %s" % missing)
        return 77
    subprocess.run([program, folder], check=True)
    path = os.path.join(folder, "launches.json")
    with open(path, encoding="utf-8") as file:
        launches = json.load(file)
    names = build_all(clang, folder, launches)
    ptxas = tools.find("ptxas", tools.CUDA_FOLDERS)
    if ptxas:
        assemble(ptxas, folder, names)
    for left in ("probe.cl", "probe.ll"):
        os.remove(os.path.join(folder, left))
    shutil.rmtree(os.path.join(folder, "gpu")) # what they were compiled from
    with open(path, "w", encoding="utf-8") as file:
        json.dump(launches, file)
    print("%s: %d launches of %d builds%s" % (folder, len(launches), len(names), "" if ptxas else ", not assembled: no ptxas"))
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:])))
