"""A step's work: commands within a limit of time, and what came of them.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import signal
import subprocess
import time

READ_EVERY_S = 5 # of the card, while a command runs
REMARKS = ("left out, ", "NOT TIMED, ", "NOT TO BE TRUSTED: ", "GIVEN UP: ", "no peak ") # how lines of clattn's begin that are shown as they are


class Skipped(Exception):
    """There is nothing to do, and why."""


class Failed(Exception):
    """A step cannot go on, and why."""


def lines_of(path):
    """What commands wrote to a log, without the commands."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file.read().replace("\r", "\n").splitlines()]
    return [line for line in lines if line and not line.startswith("$ ")]


def last_lines(path, count=3):
    """The end of a log, as one line."""
    return "; ".join(lines_of(path)[-count:])


def read_json(path):
    """Parsed, or None where there is no such file or no JSON in it."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def write_json(path, value):
    """A file that is there as a whole or not at all."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


def end_group(process):
    """End a command and all that it started. clattn takes the first signal as a wish, and writes what it has."""
    for which, wait_s in ((signal.SIGTERM, 3), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, which)
        except ProcessLookupError:
            pass
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            continue # one that hangs inside a driver may outlive even the second: then it is left behind
        if which == signal.SIGKILL:
            return


class Work:
    """What a step is given: commands are run through it, records and failures gather in it."""

    def __init__(self, folder, name, limit_s, environment, card):
        self.folder, self.name, self.environment, self.card = folder, name, environment, card
        self.end = time.monotonic() + limit_s
        self.log = os.path.join(folder, name + ".log")
        self.failures, self.records, self.facts, self.during = [], [], {}, []
        self.timed_out = False
        self.commands = 0
        with open(self.log, "w", encoding="utf-8"):
            pass

    def seconds_left(self):
        return self.end - time.monotonic()

    def run(self, command, environment=None):
        """Run a command to its end or that of the step; its exit status, None when it had to be ended or did not start."""
        with open(self.log, "a", encoding="utf-8") as log:
            log.write("$ %s\n" % " ".join(command))
            log.flush()
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                           env=dict(self.environment, **(environment or {})), start_new_session=True)
            except OSError as error:
                self.failures.append("%s: %s" % (command[0], error.strerror))
                return None
        return self.wait(process)

    def wait(self, process):
        while True:
            try:
                return process.wait(max(0.01, min(READ_EVERY_S, self.seconds_left())))
            except subprocess.TimeoutExpired:
                if self.seconds_left() <= 0:
                    end_group(process)
                    self.timed_out = True
                    return None
            self.during.append(self.card.read())

    def expect(self, command, environment=None):
        """Run a command that should succeed; whether it did. What it said last is a failure."""
        status = self.run(command, environment)
        if status and status > 0:
            self.failures.append("exit status %d: %s" % (status, last_lines(self.log)))
        elif status:
            self.failures.append("ended by signal %d: %s" % (-status, last_lines(self.log)))
        return status == 0

    def json_of(self, command):
        """What a command writes to the file after --json, whatever its exit status says; None when nothing."""
        self.commands += 1
        path = os.path.join(self.folder, "%s.%d.json" % (self.name, self.commands))
        self.expect(command + ["--json", path])
        value = read_json(path)
        if os.path.exists(path):
            os.remove(path) # what it held is in the step's own file
        return value

    def bench(self, program, arguments):
        """Records of `clattn bench`, and what it says it left out. It is to end by itself: the last length may take longer than
        expected."""
        limit = max(1, int(0.8 * self.seconds_left()))
        self.records += self.json_of([program, "bench"] + arguments + ["--limit", str(limit)]) or []
        with open(self.log, encoding="utf-8", errors="replace") as log:
            self.facts["found"] = [line.strip() for line in log if line.startswith(REMARKS) or "PyTorch " in line]
