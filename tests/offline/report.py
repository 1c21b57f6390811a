"""The reports of the offline compiles, and the floors of the speed gate.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os

# Percent of the instructions of an f32 row's main loop that must be multiply-adds.
GATE = 75.0
# Of rows of fragments, shares of HMMA, each of which is worth many multiply-adds: a little under what they have today, so that they do
# not get worse unseen.
FLOORS = {
    # In a loop that holds the code for masked tiles, too.
    ("attention_mma_64", "tile"): 2.5,
    ("attention_mma", "tile"): 4.5,
    ("attention_mma_modified", "tile"): 4.5,
    ("attention_mma_256", "tile"): 5.0,
    ("project_mma_64", "tile"): 7.5,
    ("project_mma_128", "tile"): 14.0,
    ("scores_mma_64", "tile"): 7.0,
    ("scores_mma_128", "tile"): 11.5,
    # Beside the products: weights, which come as f32 and are split, and the loops for values that are not finite.
    ("weighted_mma_64", "tile"): 4.5,
    ("weighted_mma_128", "tile"): 7.0,
}

TITLES = ("target", "row", "build", "registers", "spills", "local bytes", "occupancy %", "verdict")
SPEED_TITLES = ("row", "loop", "instructions", "multiply-adds %", "floor %", "with moves of tiles %", "loads per multiply-add",
                "predicted % of peak")


def floor_of(row, loop):
    return FLOORS.get((row, loop), GATE)


def speed_failures(row, speed):
    if speed is None:
        return []
    if "error" in speed:
        return ["speed gate: " + speed["error"]]
    return ["the loop of %s has %.1f %% multiply-adds, less than %.1f" % (loop["loop"], loop["share"], floor_of(row, loop["loop"]))
            for loop in speed["loops"] if loop["share"] < floor_of(row, loop["loop"])]


def record(build, family, target, facts, wrong):
    return {"family": family, "target": target, "row": build.row, "devices": build.devices, "meant": build.is_meant(family, target),
            "set": build.set, "build": build.name[len(build.row) + 1:], "options": build.options, "facts": facts, "wrong": wrong}


def results_path(build_folder, name):
    folder = os.path.join(build_folder, "results")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, name)


def write(build_folder, family, records, skipped):
    with open(results_path(build_folder, "offline-%s.json" % family), "w", encoding="utf-8") as file:
        json.dump({"family": family, "builds": records, "skipped": skipped}, file, indent=1)


# ---- the joint report ----------------------------------------------------------------------------------------------------

def table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return lines + ["| " + " | ".join("-" if cell is None else str(cell) for cell in row) + " |" for row in rows]


def verdict(each):
    if each["wrong"]:
        return "FAILED: " + "; ".join(each["wrong"])
    return "ok" if each["meant"] else "not meant for it"


def build_rows(builds):
    for each in builds:
        facts = each["facts"]
        yield (each["target"], each["row"], each["build"], facts.get("registers"), facts.get("spills"), facts.get("local"),
               facts.get("occupancy"), verdict(each))


def speed_rows(builds):
    for each in builds:
        for loop in (each["facts"].get("speed") or {}).get("loops", []):
            yield (each["row"], loop["loop"], loop["instructions"], loop["share"], floor_of(each["row"], loop["loop"]),
                   loop["share_with_moves"], loop["loads_per_multiply_add"], loop["predicted_peak"])


def markdown(families):
    builds = [each for family in families for each in family["builds"]]
    skipped = [pair for family in families for pair in family["skipped"]]
    lines = ["# Kernels compiled for GPUs that were not there", "",
             "%d builds, %d failed, %d targets skipped. Nothing here was measured on a GPU." % (
                 len(builds), sum(bool(each["wrong"]) for each in builds), len(skipped)), ""]
    lines += ["- skipped: %s: %s" % (name, why) for name, why in skipped]
    lines += ["", "## Main loops, NVIDIA", "",
              "Shares of instructions in the machine code; the prediction is the bound of tests/offline/sass.py.", ""]
    lines += table(SPEED_TITLES, speed_rows(builds))
    lines += ["", "## Builds", "", "Spills are bytes of a work-item kept in memory; occupancy is an estimate.", ""]
    return "\n".join(lines + table(TITLES, build_rows(builds))) + "\n"


def join(build_folder):
    """offline.json and offline.md of what the targets left; 1 when there is nothing."""
    families = []
    for family in ("nvidia", "amd", "intel"):
        path = results_path(build_folder, "offline-%s.json" % family)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                families.append(json.load(file))
    with open(results_path(build_folder, "offline.json"), "w", encoding="utf-8") as file:
        json.dump(families, file, indent=1)
    with open(results_path(build_folder, "offline.md"), "w", encoding="utf-8") as file:
        file.write(markdown(families))
    print(results_path(build_folder, "offline.md"))
    return 0 if families else 1
