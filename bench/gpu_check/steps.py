"""The steps: what is measured, in which order, and how long each may take.

SPDX-License-Identifier: Apache-2.0

A step is a function of a session and the step's work. It raises Skipped or Failed, or leaves records, facts and failures in the
work. One that fails does not stop those after it.
"""
import os
import subprocess
import sys

import opencl
import work

HERE = os.path.dirname(os.path.abspath(__file__))
PROBE_LIMIT_S = 20
SKIPPED = 77 # exit status

# The suites that run kernels on the device, those that tell most first.
SUITES = ("table", "self_check", "attention", "options", "merge", "project", "mha", "recurrence", "opencl")
REHEARSED_SUITES = ("merge",)


class Shapes:
    """What is measured on a GPU."""
    dtypes = ("f16", "bf16", "f32")
    head_dims = (64, 128)
    lengths = "1024,2048,4096,8192,16384,32768"
    heads = 8
    # query heads, key heads, keys: one token of a model with grouped heads
    decode = ((32, 8, 4096), (32, 8, 32768))
    # rows, heads of 128: the width is heads times that
    projections = (("1024,8192", 32),)
    contrast = []
    tune = []
    suites = SUITES
    most_s = 480 # of any step


class RehearsedShapes(Shapes):
    """The same, so small that a CPU has them done in a minute."""
    head_dims = (64,)
    lengths = "32,64"
    heads = 2
    decode = ((4, 2, 256),)
    projections = (("64", 1),)
    contrast = ["--len", "16,32", "--heads", "2"]
    tune = ["--op", "project"]
    suites = REHEARSED_SUITES
    most_s = 30


def program_of(session):
    if not session.program:
        raise work.Skipped("there is no program")
    return session.program


def device_of(session):
    program_of(session)
    if not session.device:
        raise work.Skipped("there is no device to measure on")
    return session.device


def has_command(session, *words):
    """Whether this program knows a command: it may be older or newer than this script."""
    try:
        return subprocess.run([program_of(session), *words, "--help"], env=session.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PROBE_LIMIT_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


# ---- before anything is measured -----------------------------------------------------------------------------------------

def bring_up(session, job):
    carried = os.path.join(session.kit, "packages")
    session.environment, lines = opencl.BringUp(session.environment, os.path.join(session.folder, "opencl"), carried).run()
    job.facts["found"] = lines


def build(session, job):
    """By ./run, where there is no program, or one that was built for another machine."""
    if session.program and job.run([session.program, "--version"]) == 0:
        raise work.Skipped("it is there: %s" % session.program)
    if session.program:
        job.facts["found"] = ["%s does not run here: %s" % (session.program, work.last_lines(job.log, 1))]
    session.program = None
    script = os.path.join(session.root, "run")
    if not os.path.exists(script):
        raise work.Failed("no program and no %s to build it with" % script)
    job.expect([script, "help"])
    session.find_program()
    if not session.program:
        raise work.Failed("./run built no program: %s" % work.last_lines(job.log))


def devices(session, job):
    found = job.json_of([program_of(session), "devices"])
    if found is None:
        raise work.Failed("the program lists no devices")
    job.facts["devices"] = found["devices"]
    session.choose_device(found["devices"])
    job.facts["found"] = ["measured on: %s" % session.label if session.device else "no OpenCL GPU is usable: %s" % (
        "; ".join(each["problem"] for each in found["devices"] if each["problem"]) or "none is listed"), session.look_for_torch()]


def tests(session, job):
    device = device_of(session)
    folder = next((path for path in (os.path.join(session.build, "tests"), os.path.join(session.kit, "tests"))
                   if os.path.isdir(path)), session.build)
    suites = [name for name in session.shapes.suites if os.access(os.path.join(folder, "test_" + name), os.X_OK)]
    if not suites:
        raise work.Skipped("no suites were built in %s" % folder)
    # Suites call a device by its name and a kernel family behind it.
    environment = {"CLATTN_TEST_DEVICES": device + "*", "CK_FORK": "no", "OMP_WAIT_POLICY": "passive", "CLATTN_PROPERTY_SECONDS": "5"}
    outcomes = {}
    for name in suites:
        if job.seconds_left() <= 0:
            outcomes[name] = "not run: no time left"
            continue
        passed = job.expect([os.path.join(folder, "test_" + name)], environment)
        outcomes[name] = "passed" if passed else "ended at the step's limit" if job.timed_out else "FAILED"
    job.facts["suites"] = outcomes
    job.facts["found"] = ["%d of %d suites passed" % (sum(text == "passed" for text in outcomes.values()), len(outcomes))] + [
        "%s: %s" % pair for pair in outcomes.items() if pair[1] != "passed"]


# ---- measurements ----------------------------------------------------------------------------------------------------------

def bench(session, job, words, arguments=()):
    return job.bench(program_of(session), list(words) + [
        "--device", device_of(session), "--quick"] + session.units() + list(arguments))


def limits(session, job):
    bench(session, job, ["limits"])


def tune(session, job):
    device = device_of(session)
    if not has_command(session, "tune"):
        raise work.Skipped("this program has no `tune`")
    job.facts["tune"] = job.json_of([session.program, "tune", "--quick", "--device", device] + session.shapes.tune)


def peers(session):
    """Options of `clattn bench attention` for rivals on the same device."""
    return ["--torch"] if session.torch else []


def attention(dtype, head_dim):
    """Full and causal in turns, with every implementation of PyTorch that takes them."""
    def measure(session, job):
        bench(session, job, ["attention"], ["--one-type", "--algorithm", "fused", "--dtype", dtype, "--head-dim", str(head_dim),
                                            "--heads", str(session.shapes.heads), "--len", session.shapes.lengths] + peers(session))
    return measure


def decode(session, job):
    for heads, kv_heads, keys in session.shapes.decode:
        bench(session, job, ["attention"], ["--one-type", "--algorithm", "split", "--dtype", "f16", "--len", "1",
                                            "--head-dim", str(max(session.shapes.head_dims)),
                                            "--heads", str(heads), "--kv-heads", str(kv_heads), "--kv-len", str(keys)] + peers(session))


def projection(session, job):
    for rows, heads in session.shapes.projections:
        bench(session, job, ["project"], ["--len", rows, "--heads", str(heads), "--head-dim", "128"])


def contrast(session, job):
    """Attention beside the recurrences, layer beside layer, and both on more and more units: the program's main job."""
    bench(session, job, [], session.shapes.contrast)


def binary(session, job):
    if not device_of(session):
        return
    status = job.run([sys.executable, os.path.join(HERE, "binary.py"), session.device_name])
    job.facts["found"] = [work.last_lines(job.log, 1)]
    if status == SKIPPED:
        raise work.Skipped(job.facts["found"][0])
    if status != 0 and not job.timed_out:
        raise work.Failed("exit status %s: %s" % (status, job.facts["found"][0]))


def ptx(session, job):
    """What is left to a machine whose driver has no OpenCL."""
    if session.is_gpu:
        raise work.Skipped("this machine has OpenCL")
    folder = os.path.join(session.kit, "ptx")
    if not os.path.exists(os.path.join(folder, "launches.json")):
        raise work.Skipped("no PTX in %s: --pack makes it" % folder)
    path = os.path.join(session.folder, "ptx.records.json")
    status = job.run([sys.executable, os.path.join(HERE, "cuda.py"), folder, "--json", path])
    if status == SKIPPED:
        raise work.Skipped(work.last_lines(job.log, 1))
    job.records = work.read_json(path) or []
    for record in job.records:
        record["measured_on"] = "%s, offline PTX through libcuda" % record["device_name"]
    if job.records and not session.label:
        session.label, session.driver = job.records[0]["measured_on"], job.records[0]["driver"]
    job.facts["found"] = work.lines_of(job.log)
    if status != 0 and not job.timed_out:
        raise work.Failed("exit status %s" % status)


# ---- the table -------------------------------------------------------------------------------------------------------------

def attention_steps(shapes):
    return [("attention_%s_d%d" % (dtype, head_dim), 36, attention(dtype, head_dim))
            for head_dim in reversed(shapes.head_dims) for dtype in shapes.dtypes]


def all_steps(shapes):
    """(name, limit in seconds, function): what tells most comes first, in case time runs out."""
    every = [
        ("opencl", 60, bring_up),
        ("build", 240, build),
        ("devices", 20, devices),
        ("limits", 20, limits),
        ("tune", 90, tune),
    ] + attention_steps(shapes) + [
        ("decode", 25, decode),
        ("projection", 20, projection),
        ("contrast", 40, contrast),
        ("binary", 20, binary),
        ("ptx", 60, ptx),
        ("tests", 90, tests),
    ]
    return [(name, min(limit_s, shapes.most_s), function) for name, limit_s, function in every]
