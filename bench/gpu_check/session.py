"""One run: where it writes, what it measures with and on, and the steps that it has taken.

SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys
import time
import traceback

import card
import steps
import work

LEAST_S = 3 # a step is not begun with less
BESIDES_S = 2 # of each step: the card is read before and after it
TORCH_LIMIT_S = 30
TORCH_PROBE = "import torch, sys; sys.exit(not torch.cuda.is_available()); "


class Session:
    def __init__(self, arguments, root):
        self.root, self.folder = root, os.path.abspath(arguments.folder)
        self.build, self.kit = os.path.abspath(arguments.build), os.path.abspath(arguments.kit)
        self.rehearse, self.wanted = arguments.rehearse, arguments.device
        self.shapes = steps.RehearsedShapes if self.rehearse else steps.Shapes
        # What the tuner finds counts in this run alone.
        self.environment = dict(os.environ, CLATTN_CONFIG_DIR=os.path.join(self.folder, "config"))
        self.card = card.Card(arguments.card)
        self.end = time.monotonic() + 60 * arguments.minutes
        self.taken, self.records = [], []
        self.device = self.device_name = self.label = self.driver = None
        self.compute_units = 0
        self.is_gpu = False
        self.torch = None
        self.program = None
        self.find_program()

    def find_program(self):
        places = (os.path.join(self.build, "clattn"), os.path.join(self.kit, "bin", "clattn"))
        self.program = next((path for path in places if os.access(path, os.X_OK)), None)

    # ---- the device --------------------------------------------------------------------------------------------------------

    def choose_device(self, devices):
        """The one asked for, else the first GPU; in rehearsals the first CPU that OpenCL has, by kernels for GPUs."""
        usable = [each for each in devices if not each["problem"]]
        kind = "OpenCL CPU" if self.rehearse else "OpenCL GPU"
        wanted = self.wanted or next((each["id"] for each in usable if each["kind"] == kind), None)
        chosen = next((each for each in usable if wanted and (wanted + ":").startswith(each["id"] + ":")), None)
        if chosen is None:
            return
        self.device = wanted + ":gpu" if self.rehearse and not self.wanted else wanted
        self.device_name, self.driver, self.compute_units = chosen["name"], chosen["driver"], chosen["compute_units"]
        platform = "PoCL" if chosen["platform"] == "Portable Computing Language" else chosen["platform"]
        self.is_gpu = chosen["kind"] == "OpenCL GPU"
        self.label = chosen["name"] if self.is_gpu else "%s on a CPU (%s)" % (platform, chosen["name"])

    def units(self):
        """Options for figures of the whole device alone."""
        return ["--threads", str(self.compute_units)]

    def look_for_torch(self):
        """Whether python3 has a torch that sees a GPU; a line that says so."""
        try:
            process = subprocess.run(["python3", "-c", TORCH_PROBE], env=self.environment, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=TORCH_LIMIT_S,
                                     universal_newlines=True, errors="replace", check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return "PyTorch: left out: %s" % error
        self.torch = process.returncode == 0
        why = (process.stderr.strip().splitlines() or ["its torch sees no GPU"])[-1]
        return "PyTorch: python3 has it, and it sees a GPU" if self.torch else "PyTorch: left out: " + why

    # ---- steps -------------------------------------------------------------------------------------------------------------

    def share(self, limits_s):
        """What the first of the steps to come may take, in whole seconds: where the time left is less than all of them may, each has the
        same part of its limit. What one does not use is the others'."""
        left = self.end - time.monotonic() - BESIDES_S * len(limits_s)
        return max(int(limits_s[0] * min(1, left / sum(limits_s))), 0)

    def take(self, name, limit_s, function):
        """Take a step, whatever becomes of it; what it found is on disk when this returns."""
        limit_s = min(limit_s, self.end - time.monotonic())
        started, before = time.monotonic(), self.card.read()
        job = work.Work(self.folder, name, max(limit_s, 0), self.environment, self.card)
        outcome, detail = self.attempt(function, job) if limit_s >= LEAST_S else ("skipped", "no time left")
        readings = [before] + job.during + [self.card.read()]
        step = {"step": name, "outcome": outcome, "detail": detail, "seconds": round(time.monotonic() - started, 1),
                "limit_s": round(limit_s, 1), "before": readings[0], "during": job.during, "after": readings[-1],
                "marks": card.marks(readings), "facts": job.facts}
        for record in job.records:
            record.update(step=name, marks=step["marks"], measured_on=record.pop("measured_on", self.label))
        self.taken.append(step)
        self.records += job.records
        work.write_json(os.path.join(self.folder, name + ".json"), dict(step, records=job.records))
        return step

    def attempt(self, function, job):
        try:
            function(self, job)
        except work.Skipped as skipped:
            return "skipped", str(skipped)
        except work.Failed as failed:
            job.failures.append(str(failed))
        except Exception: # pylint: disable=broad-except # a mistake here must not cost the steps that follow
            job.failures.append(traceback.format_exc(limit=-2).strip().replace("\n", "; "))
        if job.timed_out:
            return "timed out", "; ".join(job.failures)
        return ("failed" if job.failures else "done"), "; ".join(job.failures)

    def say(self, text):
        print(text)
        sys.stdout.flush()
