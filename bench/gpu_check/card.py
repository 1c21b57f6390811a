"""What the vendor's tool says of the card: clocks, temperature, power, throttling, and whose processes are on it. Only read.

SPDX-License-Identifier: Apache-2.0

A reading is a dict; a value that the tool does not give is None. `throttled` lists reasons, `processes` lists texts.
"""
import json
import re
import shutil
import subprocess

TOOL_LIMIT_S = 5
MOST_MISSES = 2 # one after the other: a tool that hangs costs seconds each time

# What is asked of nvidia-smi. Drivers before 535 say "throttle" where newer ones say "event".
NVIDIA_FIELDS = (
    ("name", "name"), ("uuid", "uuid"), ("driver", "driver_version"), ("sm_mhz", "clocks.sm"), ("memory_mhz", "clocks.mem"),
    ("most_sm_mhz", "clocks.max.sm"), ("celsius", "temperature.gpu"), ("watts", "power.draw"), ("watts_limit", "power.limit"),
    ("used_mib", "memory.used"), ("reasons", "clocks_event_reasons.active"))
NVIDIA_OLD = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}
NVIDIA_TEXTS = ("name", "uuid", "driver", "reasons")
# Bits of the reasons that mean less than the card could do: NVML's nvmlClocksEventReasons. Idleness is none.
NVIDIA_REASONS = ((0x2, "application clocks"), (0x4, "software power cap"), (0x8, "hardware slowdown"), (0x10, "sync boost"),
                  (0x20, "software thermal slowdown"), (0x40, "hardware thermal slowdown"), (0x80, "hardware power brake"),
                  (0x100, "display clocks"))

# What is looked for in the JSON of amd-smi, whose shape changes between releases: names of members, from the outermost in.
AMD_FIELDS = (("sm_mhz", r"clock/gfx_0/clk(/value)?$"), ("memory_mhz", r"clock/mem_0/clk(/value)?$"),
              ("most_sm_mhz", r"clock/gfx_0/max_clk(/value)?$"), ("celsius", r"temperature/(hotspot|edge)(/value)?$"),
              ("watts", r"power/socket_power(/value)?$"))
AMD_THROTTLE = r"throttle.*/(\w*(status|violation)\w*)(/value)?$"


def ask(command):
    """The standard output of a tool, or None."""
    try:
        process = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 timeout=TOOL_LIMIT_S, universal_newlines=True, errors="replace", check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout if process.returncode == 0 else None


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


# ---- NVIDIA ------------------------------------------------------------------------------------------------------------

def nvidia_fields(index):
    for names in ({}, NVIDIA_OLD):
        query = ",".join(names.get(field, field) for _, field in NVIDIA_FIELDS)
        answer = ask(["nvidia-smi", "-i", str(index), "--query-gpu=" + query, "--format=csv,noheader,nounits"])
        values = [value.strip() for value in answer.strip().split(",")] if answer else []
        if len(values) == len(NVIDIA_FIELDS):
            return {key: value if key in NVIDIA_TEXTS else number(value) for (key, _), value in zip(NVIDIA_FIELDS, values)}
    return None


def nvidia_reasons(text):
    try:
        bits = int(text, 0)
    except (TypeError, ValueError):
        return None
    return [name for bit, name in NVIDIA_REASONS if bits & bit]


def nvidia_reading(index):
    reading = nvidia_fields(index)
    if reading is None:
        return None
    reading["throttled"] = nvidia_reasons(reading.pop("reasons"))
    processes = ask(["nvidia-smi", "-i", str(index), "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader"])
    reading["processes"] = None if processes is None else [line.strip() for line in processes.splitlines() if line.strip()]
    return reading


# ---- AMD ---------------------------------------------------------------------------------------------------------------

def leaves(value, path=""):
    """(path, leaf) of everything in parsed JSON."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from leaves(member, path + "/" + key)
    elif isinstance(value, list):
        for member in value:
            yield from leaves(member, path)
    else:
        yield path, value


def parsed(text):
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def amd_reading(index):
    metric = parsed(ask(["amd-smi", "metric", "-g", str(index), "--json"]))
    if metric is None:
        return None
    pairs = list(leaves(metric))
    reading = {key: next((number(value) for path, value in pairs if re.search(pattern, path)), None)
               for key, pattern in AMD_FIELDS}
    states = [(re.search(AMD_THROTTLE, path), value) for path, value in pairs]
    reading["throttled"] = [found.group(1) for found, value in states
                            if found and str(value).upper() not in ("NOT THROTTLED", "NOT ACTIVE", "UNTHROTTLED", "N/A", "0", "FALSE", "NONE")]
    static = list(leaves(parsed(ask(["amd-smi", "static", "-g", str(index), "--json"]))))
    for key, pattern in (("name", r"asic/market_name$"), ("driver", r"driver/version$")):
        reading[key] = next((value for path, value in static if re.search(pattern, path)), None)
    processes = parsed(ask(["amd-smi", "process", "-g", str(index), "--json"]))
    reading["processes"] = None if processes is None else [
        str(value) for path, value in leaves(processes) if re.search(r"process_info/(name|pid)$", path)]
    return reading


READERS = (("nvidia-smi", nvidia_reading), ("amd-smi", amd_reading))


class Card:
    """The card by the first tool that there is. `tool` is None where there is none."""

    def __init__(self, index=0):
        self.index = index
        self.tool, self.reader = next(((name, reader) for name, reader in READERS if shutil.which(name)), (None, None))
        self.misses = 0

    def read(self):
        if not self.reader or self.misses == MOST_MISSES:
            return None
        reading = self.reader(self.index)
        self.misses = 0 if reading else self.misses + 1
        return reading


def marks(readings):
    """What is to be held against a step's figures, as texts."""
    known = [reading for reading in readings if reading]
    reasons = sorted({reason for reading in known for reason in reading["throttled"] or ()})
    # A step's own processes are on the card while it runs: only the first and the last reading tell of others.
    others = sorted({process for reading in known[:1] + known[-1:] for process in reading["processes"] or ()})
    found = ["throttled: " + ", ".join(reasons)] if reasons else []
    return found + (["other processes: " + "; ".join(others)] if others else [])


def text(reading):
    """One line."""
    if reading is None:
        return "no reading"
    parts = ["%.0f %s" % (reading[key], unit) for key, unit in (
        ("sm_mhz", "MHz"), ("memory_mhz", "MHz memory"), ("celsius", "C"), ("watts", "W")) if reading.get(key) is not None]
    return ", ".join(parts + marks([reading])) or "the tool says nothing"
