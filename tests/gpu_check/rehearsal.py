"""rehearsal.py SOURCE BUILD FOLDER: gpu-check as it is, on a CPU through OpenCL, in front of a card that is throttled, beside a
fake of PyTorch.

SPDX-License-Identifier: Apache-2.0

77 where OpenCL has no CPU. What it measures there says nothing; that every step runs and is reported is what is checked.
"""
import json
import os
import shutil
import subprocess
import sys

import fakes

MINUTES = 6 # a minute is what it takes, but machines are busy
MAY_BE_SKIPPED = {"build": "it is there", "tune": "no `tune`", "binary": "not NVIDIA", "ptx": "no ", "tests": "no suites were built"}
REASON = "software power cap"


def fail(text):
    sys.exit("rehearsal: " + text)


def has_cpu(program):
    listed = json.loads(subprocess.run([program, "devices", "--json", "-"], stdout=subprocess.PIPE, check=True).stdout)
    return any(each["kind"] == "OpenCL CPU" and not each["problem"] for each in listed["devices"])


def check_steps(result):
    for step in result["steps"]:
        reason = MAY_BE_SKIPPED.get(step["step"])
        if step["outcome"] != "done" and not (step["outcome"] == "skipped" and reason and reason in step["detail"]):
            fail("step %s: %s: %s" % (step["step"], step["outcome"], step["detail"]))
        if step["before"] is None or step["after"] is None or ("throttled: " + REASON) not in step["marks"]:
            fail("step %s says nothing of the card" % step["step"])


def check_records(result):
    found = {(record["step"], record["path"], record["dtype"], record["causal"]) for record in result["records"]}
    for dtype in ("f16", "bf16", "f32"):
        for causal, rival in (("bottom-right", "torch flash"), ("none", "torch math")):
            for path in ("clattn fused", rival):
                if ("attention_%s_d64" % dtype, path, dtype, causal) not in found:
                    fail("no figure of %s, %s, causal %s" % (path, dtype, causal))
    paths = {(step, path) for step, path, _, _ in found}
    for wanted in (("limits", "multiply-add"), ("limits", "read local"), ("limits", "read memory"), ("decode", "clattn split"),
                   ("projection", "clattn project"), ("contrast", "clattn loop")):
        if wanted not in paths:
            fail("no figure of %s in step %s" % wanted[::-1])
    for record in result["records"]:
        if " on a CPU (" not in record["measured_on"] or record["marks"] != ["throttled: " + REASON]:
            fail("a figure is not labelled: %s, %s" % (record["measured_on"], record["marks"]))


def main(source, build, folder):
    if not has_cpu(os.path.join(build, "clattn")):
        print("skipped: OpenCL has no CPU here")
        return 77
    shutil.rmtree(folder, ignore_errors=True)
    tools = os.path.join(folder, "tools")
    os.makedirs(tools)
    fakes.nvidia_smi(tools, "0x0000000000000004")
    torch = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_torch")
    environment = dict(os.environ, PATH=tools + os.pathsep + os.environ["PATH"], PYTHONPATH=torch)
    status = subprocess.run([os.path.join(source, "bench", "gpu-check"), os.path.join(folder, "out"), "--build", build, "--rehearse",
                             "--minutes", str(MINUTES)], env=environment, check=False).returncode
    with open(os.path.join(folder, "out", "gpu-check.json"), encoding="utf-8") as file:
        result = json.load(file)
    check_steps(result)
    check_records(result)
    if not result["rehearsal"] or not os.path.getsize(os.path.join(folder, "out", "gpu-check.html")):
        fail("it is not said to be a rehearsal, or there is no page")
    return status


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:])))
