"""What NVIDIA's machine code says of a kernel's speed: the loops that multiply, and what else they are made of.

SPDX-License-Identifier: Apache-2.0

The model, of one warp scheduler (there are four in a multiprocessor, and they share its local memory):
  - it issues an instruction a cycle, and at peak each is a multiply-add of 32 lanes;
  - a load of 4, 8 or 16 bytes a lane from local memory takes the unit that all four share 1, 1 or 2 cycles. A tile's loads are
    as wide as that because half of them are broadcasts; conflicts of banks are not modelled;
  - a product of fragments on the tensor cores (HMMA, m16n8k16) takes them as long as 4 instructions (sm_90: 512 multiply-adds of
    f16 a cycle and scheduler), which other instructions of that time do not lengthen;
  - waiting is hidden by other warps.
So the share of a loop's issue slots that are multiply-adds is the most of the peak that it can reach. It is a bound to compare
kernels by, and to hold beside what a GPU measures one day; it is not a measurement.
"""
import re

MULTIPLIES = ("FFMA", "HMMA")
LOAD_CYCLES = {"LDS": 1, "LDS.64": 1, "LDS.128": 2}
SCHEDULERS = 4
HMMA_CYCLES = 4
# A loop is one that multiplies when it has this many multiply-adds, and they are this much of it.
LEAST_MULTIPLIES = 32
LEAST_SHARE = 0.4


class Loop:
    """Instructions first..last, of which the last jumps back to the first."""

    def __init__(self, first, last, names):
        self.first, self.last = first, last
        self.body = names[first:last + 1]
        self.size = len(self.body)

    def contains(self, other):
        return self is not other and self.first <= other.first and other.last <= self.last

    def count(self, name):
        return sum(1 for each in self.body if each == name or each.startswith(name + "."))

    def multiplies(self):
        return max(self.count(name) for name in MULTIPLIES)

    def share(self):
        return self.multiplies() / self.size

    def loads(self):
        return self.count("LDS") + self.count("LDSM")

    def load_cycles(self):
        return sum(LOAD_CYCLES.get(re.sub(r"\.U\b", "", name), 2) for name in self.body if name.startswith("LDS"))


def instruction_names(text):
    """The names of a kernel's instructions in order, and of each jump back which instruction it goes to: (names, jumps)."""
    names, labels, jumps = [], {}, []
    for line in text.splitlines():
        label = re.match(r"\s*\.(L\w+):", line)
        instruction = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(\S+)(.*?);", line)
        if label:
            labels[label.group(1)] = len(names)
        elif instruction:
            target = re.search(r"`\(\.(L\w+)\)", instruction.group(2))
            if instruction.group(1).startswith("BRA") and target:
                jumps.append((len(names), target.group(1)))
            names.append(instruction.group(1))
    return names, [(labels[label], at) for at, label in jumps if labels.get(label, at + 1) <= at]


def main_loops(text):
    """The loops that multiply, each with the one around it (None): of the several inside one loop the purest, since the others
    are for tiles that a mask cuts. In program order."""
    names, jumps = instruction_names(text)
    loops = [Loop(first, last, names) for first, last in jumps]
    inner = [loop for loop in loops if not any(loop.contains(other) for other in loops)]
    best = {}
    for loop in inner:
        if loop.multiplies() < LEAST_MULTIPLIES or loop.share() < LEAST_SHARE:
            continue
        around = min((other for other in loops if other.contains(loop)), key=lambda other: other.size, default=None)
        if around not in best or best[around].share() < loop.share():
            best[around] = loop
    return sorted(((loop, around) for around, loop in best.items()), key=lambda pair: pair[0].first)


def tile_loops(macros):
    """What each main loop of a kernel of tiles multiplies: (name, multiply-adds of a work-item at one depth, depth of a tile)."""
    if "TILE_Q" not in macros:
        each = macros["TILE_M"] * macros["TILE_N"] // macros["WORK_GROUP"]
        return [("product", each, macros["TILE_K"])]
    rows = macros["TILE_Q"]
    return [("scores", rows * macros["TILE_KV"] // macros["WORK_GROUP"], macros["TILE_K"]),
            ("values", rows * macros["VALUE_DIM_MAX"] // macros["WORK_GROUP"], macros["TILE_J"])]


def judge_fragments(text):
    """Of a kernel of fragments, whose products are unrolled: its loop over tiles of keys. What masked tiles need besides stands in
    that loop, too, so that its share is less than that of an ordinary tile."""
    names, jumps = instruction_names(text)
    loops = [Loop(first, last, names) for first, last in jumps]
    loop = min((each for each in loops if each.count("HMMA")), key=lambda each: each.size, default=None)
    if loop is None:
        raise ValueError("no loop has HMMA")
    products = loop.count("HMMA")
    share = round(100 * products / loop.size, 1)
    return [{
        "loop": "tile",
        "instructions": loop.size,
        "multiply_adds": products,
        "share": share,
        "loads_per_multiply_add": round(loop.loads() / products, 3),
        "share_with_moves": share,
        "predicted_peak": round(100 * min(1, HMMA_CYCLES * products / loop.size), 1),
    }]


def judge(text, macros):
    """Of each main loop what the report says; ValueError where the machine code is not as the kernel's source suggests."""
    if "MMA" in macros:
        return judge_fragments(text)
    wanted, found = tile_loops(macros), main_loops(text)
    if len(wanted) != len(found):
        raise ValueError("%d loops multiply where the source has %d" % (len(found), len(wanted)))
    verdicts = []
    for (name, each, depth), (loop, around) in zip(wanted, found):
        steps, odd = divmod(loop.multiplies(), each)
        if odd or depth % max(steps, 1):
            raise ValueError("the loop of %s has %d multiply-adds, not a multiple of %d" % (name, loop.multiplies(), each))
        turns = depth // steps
        moves = around.size - loop.size if around and turns > 1 else 0
        instructions = turns * loop.size + moves
        cycles = max(instructions, turns * SCHEDULERS * loop.load_cycles())
        verdicts.append({
            "loop": name,
            "instructions": loop.size,
            "multiply_adds": loop.multiplies(),
            "share": round(100 * loop.share(), 1),
            "loads_per_multiply_add": round(loop.loads() / loop.multiplies(), 3),
            "share_with_moves": round(100 * turns * loop.multiplies() / instructions, 1),
            "predicted_peak": round(100 * turns * loop.multiplies() / cycles, 1),
        })
    return verdicts
