"""What the offline stage predicted of each kernel row, to stand beside what was measured.

SPDX-License-Identifier: Apache-2.0

The stage bounds each main loop by the share of its issue slots that multiply (tests/offline/sass.py). A kernel that spends equal
work in each of its loops reaches the harmonic mean of their bounds.
"""
import re

TARGET = "sm_90"


def row_bound(loops):
    peaks = [loop["predicted_peak"] for loop in loops]
    return len(peaks) / sum(1 / peak for peak in peaks) if peaks and min(peaks) > 0 else None


def predictions(families):
    """{row: percent of the peak of its instructions} of the stage's offline.json; {} where there is none."""
    found = {}
    for build in (build for family in families or () for build in family["builds"]):
        speed = build["facts"].get("speed") or {}
        bound = row_bound(speed.get("loops", [])) if build["target"] == TARGET else None
        if bound:
            found[build["row"]] = round(bound, 1)
    return found


def of_record(found, record):
    """The bound of the first of a record's rows that has one."""
    rows = re.findall(r"\w+", record.get("row") or "")
    return next((found[row] for row in rows if row in found), None)
