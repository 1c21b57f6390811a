"""gpu-check FOLDER: one command for the day on which a GPU is there. See docs/gpu-check.md.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import sys
import time

sys.dont_write_bytecode = True # the sources may be read-only, and stay as they are

import card # noqa: E402
import pack # noqa: E402
import report # noqa: E402
import session as sessions # noqa: E402
import steps # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def positive(text):
    value = float(text)
    if not 0 < value <= 60:
        raise argparse.ArgumentTypeError("more than 0 and at most 60")
    return value


def read_arguments():
    parser = argparse.ArgumentParser(
        prog="gpu-check", description="Check and measure clattn on this machine's GPU, in at most eight minutes. Changes nothing on "
        "the system or the card; prints as it goes, ends with one table, writes JSON and a page into FOLDER.")
    parser.add_argument("folder", metavar="FOLDER", help="where the results go; what an earlier run left there is compared with")
    parser.add_argument("--device", help="what to measure on, as `clattn devices` names it (the first OpenCL GPU)")
    parser.add_argument("--card", type=int, default=0, metavar="N", help="its number for nvidia-smi or amd-smi (0)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="FOLDER", help="where ./run has built (build)")
    parser.add_argument("--kit", default=os.path.join(ROOT, "build", "gpu-kit"), metavar="FOLDER",
                        help="what was carried along: a folder made by --pack, packages/*.deb (build/gpu-kit)")
    parser.add_argument("--pack", action="store_true", help="measure nothing: make FOLDER a kit for a machine that has a GPU and little else")
    parser.add_argument("--minutes", type=positive, default=8, metavar="M", help="of all steps together (8)")
    parser.add_argument("--only", metavar="STEP,...", help="these steps alone, after those that find the device")
    parser.add_argument("--rehearse", action="store_true", help="on a CPU through OpenCL, with small shapes: what works, not how fast")
    return parser.parse_args()


ALWAYS = ("opencl", "build", "devices")


def choose_steps(every, only):
    """The steps asked for; exits with a sentence on a name that is none."""
    if only is None:
        return every
    wanted, names = only.split(","), [name for name, _, _ in every]
    for name in wanted:
        if name not in names:
            sys.exit("gpu-check: no step is called %s; they are %s" % (name, ", ".join(names)))
    return [step for step in every if step[0] in wanted or step[0] in ALWAYS]


def tell(session, step):
    """A step that has ended, in a few lines."""
    session.say("   %s in %.1f s%s" % (step["outcome"], step["seconds"], ": " + step["detail"] if step["detail"] else ""))
    for line in step["facts"].get("found", []) + step["marks"]:
        session.say("   " + line)
    if session.card.tool:
        session.say("   before: %s; after: %s" % (card.text(step["before"]), card.text(step["after"])))


def run(arguments):
    session = sessions.Session(arguments, ROOT)
    chosen = choose_steps(steps.all_steps(session.shapes), arguments.only)
    os.makedirs(session.folder, exist_ok=True)
    report.keep_last_run(session.folder)
    session.say("gpu-check, at most %g minutes; %s" % (
        arguments.minutes, "the card is read by " + session.card.tool if session.card.tool else "neither nvidia-smi nor amd-smi is here"))
    for number, (name, _, function) in enumerate(chosen):
        limit_s = session.share([limit_s for _, limit_s, _ in chosen[number:]])
        session.say("== %s, at most %d s" % (name, limit_s))
        tell(session, session.take(name, limit_s, function))
    return session


def conclude(session):
    with open(os.path.join(ROOT, "bench", "report.css"), encoding="utf-8") as file:
        style = file.read()
    result = report.Report(session, time.strftime("%Y-%m-%d %H:%M:%S %z"))
    path = result.write(style)
    for line in ["", "Steps"] + list(result.step_lines()) + [""] + list(result.notes()) + [""] + result.table():
        session.say(line)
    session.say("\n%s, %s" % (os.path.join(session.folder, "gpu-check.json"), path))
    return 0 if session.records and not any(step["outcome"] in ("failed", "timed out") for step in session.taken) else 1


def make_kit(arguments):
    for line in pack.pack(ROOT, os.path.abspath(arguments.build), os.path.abspath(arguments.folder)):
        print(line)
    return 0


def main():
    arguments = read_arguments()
    try:
        return make_kit(arguments) if arguments.pack else conclude(run(arguments))
    except OSError as error:
        sys.exit("gpu-check: %s" % error)


if __name__ == "__main__":
    sys.exit(main())
