#!/usr/bin/env python3
"""The node tests of ONNX's Attention operator, run through `clattn attend`.

    onnx_attention.py PROGRAM [DEVICE ...]      default devices: reference native

Every case that the onnx package has for Attention (but the expanded graphs, which are the same cases) is written to .npy
files, its attributes become options as docs/vocabularies.md says, and all its outputs are compared. Exit code 77: onnx is not
installed.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import onnx
    from onnx.backend.test.case import node as node_cases
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

INPUTS = ["q", "k", "v", "mask", "past-k", "past-v", "kv-lengths"]
OUTPUTS = ["out", "present-k", "present-v", "scores"]
MODES = ["raw", "softcap", "bias", "softmax"]
# relative, absolute: float16 and bfloat16 against a reference that rounds each intermediate to them
TOLERANCE = {"float32": (1e-5, 1e-6), "float64": (1e-5, 1e-6), "float16": (1e-3, 1.5e-3), "bfloat16": (2e-2, 1.5e-2)}


def cases():
    """(name, node, inputs, outputs) of each case that is one Attention node."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other operators' cases are made too, and some overflow on purpose
        collected = node_cases.collect_testcases("Attention")
    for case in collected:
        nodes = case.model.graph.node
        if len(nodes) == 1 and nodes[0].op_type == "Attention":
            inputs, outputs = case.data_sets[0]
            yield case.name, nodes[0], list(inputs), list(outputs)


def named(names, flags, arrays):
    """{flag: array}: absent inputs and outputs have an empty name and no array."""
    rest = iter(arrays)
    return {flag: np.asarray(next(rest)) for name, flag in zip(names, flags) if name}


def options(node, inputs):
    """The options that say what the node's attributes say."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    align = "past" if "past-k" in inputs else "bottom-right" if "kv-lengths" in inputs else "top-left"
    result = []
    if attributes.get("is_causal"):
        result += ["--causal", align]
    window = attributes.get("left_window_size", -1), attributes.get("right_window_size", -1)
    if window != (-1, -1):
        result += ["--align", align, "--window", "%d,%d" % window]
    if "scale" in attributes:
        result += ["--scale", repr(attributes["scale"])]
    if attributes.get("softcap"):
        result += ["--softcap", repr(attributes["softcap"])]
    if inputs["q"].ndim == 3:
        result += ["--q-heads", str(attributes["q_num_heads"]), "--kv-heads", str(attributes["kv_num_heads"])]
    if len(node.output) > 3:
        result += ["--scores-mode", MODES[attributes.get("qk_matmul_output_mode", 0)]]
    return result


def compare(flag, got, wanted, kind):
    if got.shape != wanted.shape:
        return f"--{flag} has shape {got.shape} and not {wanted.shape}"
    got, wanted = got.astype("f8"), wanted.astype("f8")
    relative, absolute = TOLERANCE[kind]
    same = (np.isnan(got) & np.isnan(wanted)) | (got == wanted)
    with np.errstate(invalid="ignore"):
        near = np.abs(got - wanted) <= absolute + relative * np.abs(wanted)
    bad = ~(same | near)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        return f"--{flag}{list(at)} is {got[at]} and not {wanted[at]}; {bad.sum()} of {bad.size} are off"
    return None


def run(program, device, node, inputs, outputs, folder):
    """What is wrong, or None."""
    kind = str(inputs["q"].dtype)
    command = [program, "attend", "--device", device] + options(node, inputs)
    if kind == "bfloat16":
        command.append("--bf16")
    for flag, array in inputs.items():
        if flag == "mask" and array.dtype != np.bool_:
            flag = "bias"
        if str(array.dtype) == "bfloat16":
            array = array.view(np.uint16)
        np.save(folder / (flag + ".npy"), array)
        command += ["--" + flag, str(folder / (flag + ".npy"))]
    for flag in outputs:
        command += ["--" + flag, str(folder / (flag + "-got.npy"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0 or done.stderr:
        return f"exit code {done.returncode}: {done.stderr.strip()}"
    for flag, wanted in outputs.items():
        got = np.load(folder / (flag + "-got.npy"))
        if kind == "bfloat16":
            got = got.view(wanted.dtype)
        if got.dtype != wanted.dtype:
            return f"--{flag} holds {got.dtype} and not {wanted.dtype}"
        wrong = compare(flag, got, wanted, kind)
        if wrong:
            return wrong
    return None


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) > 1 else 2
    if not shutil.which(sys.argv[1]):
        print(f"{sys.argv[1]} is no program", file=sys.stderr)
        return 2
    program, devices = sys.argv[1], sys.argv[2:] or ["reference", "native"]
    count = failures = 0
    for name, node, inputs, outputs in cases():
        count += 1
        for device in devices:
            with tempfile.TemporaryDirectory() as folder:
                wrong = run(program, device, node, named(node.input, INPUTS, inputs), named(node.output, OUTPUTS, outputs),
                            pathlib.Path(folder))
            if wrong:
                failures += 1
                print(f"FAILED {name} on {device}: {wrong}")
    print(f"onnx {onnx.__version__}: {count} cases on {', '.join(devices)}: {failures} failed")
    return 1 if failures or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
