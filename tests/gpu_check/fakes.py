"""Programs that stand in for a vendor's tools, for torch and for clattn itself, as files for a folder on PATH.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import sys

DEVICE = {"id": "opencl:0:0", "kind": "OpenCL GPU", "name": "Fake <b>GPU</b> 9", "platform": "Fake", "driver": "1.2", "features": "",
          "compute_units": 4, "problem": ""}


def record(path="clattn fused", ms=2.0, **more):
    """As `clattn bench --json` writes one."""
    values = {"schema": "clattn-bench-1", "contrast": "peers", "op": "attention", "path": path, "row": "attention_64x64", "dtype": "f32",
              "device": "opencl:0:0", "batch": 1, "heads_q": 8, "heads_kv": 8, "len_q": 1024, "len_kv": 1024, "head_dim": 64,
              "value_dim": 64, "d_in": None, "hidden": None, "causal": "none", "window": "none", "threads": 4, "cache_state": "warm",
              "ms_median": ms, "ms_min": ms, "ms_p90": ms, "iqr": 0.01, "noise": 0.005, "gflops": 2000.0, "gbytes_per_s": 10.0,
              "percent_of_peak": 50.0, "commit": "c0ffee"}
    values.update(more)
    return values


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


def clattn(folder, records=(), behaviour=""):
    """A clattn that lists one GPU and writes these records, whatever is asked. `behaviour` is Python that runs first, with `words`."""
    return script(folder, "clattn", """#!%s
import json, os, signal, sys, time
words = sys.argv[1:]
%s
if "--json" in words:
    value = {"devices": [%r]} if words[0] == "devices" else %r
    with open(words[words.index("--json") + 1], "w") as file:
        json.dump(value, file)
elif "--help" in words:
    sys.exit(words[0] == "tune")
""" % (sys.executable, behaviour, DEVICE, list(records)))


def nvidia_smi(folder, reasons="0x0000000000000000", processes="", old=False):
    """An nvidia-smi with one card; `old`: one that does not know the newer names of fields."""
    return script(folder, "nvidia-smi", """#!/bin/sh
case "$*" in
    *%s*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2 ;;
    *--query-gpu*) echo 'Fake GPU, GPU-1, 535.1, 1200, 2600, 1980, 61, 650.12, 700.00, 1024, %s' ;;
    *--query-compute-apps*) printf '%%s' '%s' ;;
    *) exit 3 ;; # nothing else may be asked of the card
esac
""" % ("clocks_event_reasons" if old else "no_such_field", reasons, processes))


def amd_smi(folder):
    answers = {
        "metric": [{"gpu": 0, "clock": {"gfx_0": {"clk": {"value": 2100, "unit": "MHz"}, "max_clk": {"value": 2100}}},
                    "temperature": {"hotspot": {"value": 71, "unit": "C"}}, "power": {"socket_power": {"value": 300, "unit": "W"}},
                    "throttle": {"accumulation_counter": 12, "prochot_violation_status": "NOT ACTIVE", "ppt_violation_status": "ACTIVE"}}],
        "static": [{"gpu": 0, "asic": {"market_name": "Fake AMD"}, "driver": {"version": "6.1"}}],
        "process": [{"gpu": 0, "process_list": [{"process_info": {"name": "other", "pid": 7}}]}],
    }
    lines = ["    %s) cat <<'END'\n%s\nEND\n;;" % (word, json.dumps(answer)) for word, answer in answers.items()]
    return script(folder, "amd-smi", "#!/bin/sh\ncase $1 in\n%s\n    *) exit 3 ;;\nesac\n" % "\n".join(lines))
