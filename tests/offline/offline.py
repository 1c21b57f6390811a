#!/usr/bin/env python3
"""offline.py TARGET LIST_BUILDS BUILD [--set SET] [--jobs N]: compile every kernel row for GPUs that are not here.

SPDX-License-Identifier: Apache-2.0

TARGET is lint, nvidia, amd or intel, or report, which joins what the others left in BUILD/results/offline-*.json into
offline.json and offline.md. LIST_BUILDS is the program of that name, BUILD the build folder, SET one of its sets.

It fails when a build does not compile, spills registers or takes more local memory than it may, on a device that its row is
meant for; when a row fills its main loop with less arithmetic than the gate asks; 77, skipped, when the target has no compiler
here. Every target that is left out is printed and counted.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import report
import targets
import tools

NVIDIA_LOCAL = 48 << 10
PORTABLE_LOCAL = 32 << 10


def failures(build, family, name, facts):
    """What is wrong with a build on a target, as texts. A row on devices that it is not meant for need only compile."""
    if "error" in facts:
        return ["does not compile: " + facts["error"]]
    wrong = []
    if not build.is_meant(family, name):
        return wrong
    if facts["spills"]:
        wrong.append("spills %d bytes" % facts["spills"])
    if family == "nvidia" and facts["local"] > NVIDIA_LOCAL:
        wrong.append("takes %d bytes of local memory, more than 48 KiB" % facts["local"])
    if build.is_portable() and facts["local"] > PORTABLE_LOCAL:
        wrong.append("takes %d bytes of local memory, more than 32 KiB in a row for any GPU" % facts["local"])
    return wrong + report.speed_failures(build.row, facts.get("speed"))


def list_builds(program, which, folder):
    process = subprocess.run([program, which, folder], stdout=subprocess.PIPE, text=True, check=True)
    return [targets.Build(line) for line in process.stdout.splitlines()]


def compile_all(target, builds, sources, folder, jobs):
    """[(build, {target name: facts})] in the order of the table."""
    state = threading.local()

    def compile_one(build):
        if not hasattr(state, "folder"): # each thread compiles in its own
            state.folder = tempfile.mkdtemp(dir=folder)
        return target.compile(build, os.path.join(sources, build.source), state.folder)

    with ThreadPoolExecutor(jobs) as pool:
        return list(zip(builds, pool.map(compile_one, builds)))


def check_target(arguments):
    folder = os.path.join(arguments.build, "offline")
    os.makedirs(folder, exist_ok=True)
    start = time.monotonic()
    try:
        target = targets.FAMILIES[arguments.target](folder)
    except tools.Missing as missing:
        print("skipped: %s: %s" % (arguments.target, missing))
        report.write(arguments.build, arguments.target, [], [(arguments.target, str(missing))])
        return 77
    for name, why in target.skipped:
        print("skipped: %s: %s" % (name, why))
    with tempfile.TemporaryDirectory(dir=folder) as work:
        builds = list_builds(arguments.list_builds, arguments.set, work)
        if arguments.target != "lint":
            builds = [build for build in builds if build.family == "gpu" and (
                arguments.target in build.devices or build.set == "plain")] # elsewhere it need only compile
        results = compile_all(target, builds, work, work, arguments.jobs)
    records, failed = [], 0
    for build, by_name in results:
        for name, facts in by_name.items():
            wrong = failures(build, arguments.target, name, facts)
            failed += bool(wrong)
            for text in wrong:
                print("FAILED %s, %s: %s" % (name, build.name, text))
            records.append(report.record(build, arguments.target, name, facts, wrong))
    if arguments.target != "lint" and not any(facts.get("spills") for _, by_name in results for facts in by_name.values()):
        # Rows of one work-item keep whole tiles in private memory: where they are said to spill nothing, nothing was read.
        print("FAILED: no spill is found where there must be some")
        failed += 1
    report.write(arguments.build, arguments.target, records, target.skipped)
    print("%s: %d builds of %d rows for %s in %.0f s, %d failed, %d targets skipped" % (
        arguments.target, len(records), len({build.row for build in builds}), ", ".join(target.names),
        time.monotonic() - start, failed, len(target.skipped)))
    return 1 if failed or not records else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("target", choices=list(targets.FAMILIES) + ["report"])
    parser.add_argument("list_builds")
    parser.add_argument("build")
    parser.add_argument("--set", choices=["pairwise", "product"], default="pairwise")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    arguments.build = os.path.abspath(arguments.build)
    if arguments.target == "report":
        return report.join(arguments.build)
    return check_target(arguments)


if __name__ == "__main__":
    sys.exit(main())
