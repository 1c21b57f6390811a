"""test_gpu_check.py SOURCE PROGRAM [FAKE_CUDA LIST_LAUNCHES]: gpu-check with fakes of everything that it meets on a machine with a GPU.

SPDX-License-Identifier: Apache-2.0

SOURCE is the repository, PROGRAM a clattn that is real; FAKE_CUDA the folder of a libcuda that is not, LIST_LAUNCHES the program of that
name.
"""
import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

SOURCE, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
FAKE_CUDA, LIST_LAUNCHES = map(os.path.abspath, sys.argv[3:5]) if len(sys.argv) > 4 else (None, None)
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(SOURCE, "bench", "gpu_check"))

import binary # noqa: E402
import card # noqa: E402
import fakes # noqa: E402
import opencl # noqa: E402
import predict # noqa: E402
import session as sessions # noqa: E402
import steps # noqa: E402
import work # noqa: E402

LIMIT_S = 60 # of a command here: far more than any takes
# The step that speaks to OpenCL itself, which knows nothing of a fake device.
ALL_BUT_BINARY = ",".join(name for name, _, _ in steps.all_steps(steps.Shapes) if name != "binary")
TOOLS = ("bash", "sh", "env", "dirname", "readlink", "cat", "cksum", "tr", "paste", "mkdir", "find", "grep", "touch", "id")


class NoCard:
    tool = None

    @staticmethod
    def read():
        return None


class Case(unittest.TestCase):
    """A folder of its own, with a folder of fakes that is on PATH."""

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="gpu_check.")
        self.addCleanup(shutil.rmtree, self.root)
        self.fakes, self.out = self.folder("fakes"), os.path.join(self.root, "out")

    def folder(self, *names):
        path = os.path.join(self.root, *names)
        os.makedirs(path)
        return path

    def run_check(self, *options, path=None, **environment):
        """gpu-check with the fakes in place of a build: (exit status, what it printed)."""
        environment = dict(os.environ, PATH=path or self.fakes + os.pathsep + os.environ["PATH"], **environment)
        process = subprocess.run([sys.executable, os.path.join(SOURCE, "bench", "gpu_check"), self.out, "--build", self.fakes, "--kit",
                                  os.path.join(self.root, "no kit"), *options],
                                 env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)
        return process.returncode, process.stdout

    def result(self, name="gpu-check"):
        with open(os.path.join(self.out, name + ".json"), encoding="utf-8") as file:
            return json.load(file)

    def outcomes(self):
        return {step["step"]: step["outcome"] for step in self.result()["steps"]}


class Steps(Case):
    def test_every_step_is_taken_and_reported(self):
        fakes.clattn(self.fakes, [fakes.record()])
        status, printed = self.run_check("--only", ALL_BUT_BINARY)
        self.assertEqual(status, 0, printed)
        outcomes = self.outcomes()
        self.assertEqual(len([name for name in outcomes if name.startswith("attention_")]), 6)
        self.assertEqual({name for name, outcome in outcomes.items() if outcome == "skipped"}, {"build", "tune", "tests", "ptx"})
        self.assertRegex(printed, "skipped in .* s: this program has no `tune`")
        self.assertEqual({record["measured_on"] for record in self.result()["records"]}, {fakes.DEVICE["name"]})
        self.assertEqual([record["step"] for record in self.result("limits")["records"]], ["limits"])

    def test_one_that_crashes_stops_no_other(self):
        fakes.clattn(self.fakes, [fakes.record()], "if 'limits' in words: os.kill(os.getpid(), signal.SIGSEGV)")
        status, printed = self.run_check("--only", ALL_BUT_BINARY)
        self.assertEqual(status, 1, printed)
        failed = {step["step"]: step["detail"] for step in self.result()["steps"] if step["outcome"] == "failed"}
        self.assertEqual(list(failed), ["limits"])
        self.assertIn("signal 11", failed["limits"])

    def test_figures_of_one_that_fails_are_kept(self):
        fakes.clattn(self.fakes, [fakes.record(above_peak=True)], "import atexit; atexit.register(os._exit, 1 if 'project' in words else 0)")
        status, printed = self.run_check("--only", "projection")
        self.assertEqual((status, self.outcomes()["projection"]), (1, "failed"), printed)
        self.assertEqual(len(self.result()["records"]), 1)
        self.assertIn("not to be trusted", printed)

    def test_one_that_hangs_is_ended_with_all_that_it_started(self):
        job = work.Work(self.root, "hang", 1, dict(os.environ), NoCard)
        started = time.monotonic()
        self.assertIsNone(job.run(["sh", "-c", "trap '' TERM; sleep 300 & echo $! >%s/pid; wait; sleep 300" % self.root]))
        self.assertTrue(job.timed_out)
        self.assertLess(time.monotonic() - started, 20)
        with open(os.path.join(self.root, "pid"), encoding="utf-8") as file:
            self.assert_ends(int(file.read()))

    def assert_ends(self, pid):
        for _ in range(100):
            try:
                with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                        return
            except FileNotFoundError:
                return
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
        self.fail("process %d was left behind" % pid)

    def test_time_that_has_run_out_is_said(self):
        fakes.clattn(self.fakes, [fakes.record()], "time.sleep(0.2)")
        status, printed = self.run_check("--minutes", "0.055")
        self.assertEqual(status, 1 if not self.result()["records"] else 0, printed)
        self.assertIn("skipped in 0.0 s: no time left", printed)

    def test_slow_steps_leave_time_for_those_after_them(self):
        """Each takes all that it may; none is left out, and the eight minutes hold."""
        limits = [limit_s for name, limit_s, _ in steps.all_steps(steps.Shapes)]
        clock = [0.0]
        with mock.patch("time.monotonic", lambda: clock[0]):
            session = sessions.Session.__new__(sessions.Session)
            session.end = 480.0
            shares = []
            for number in range(len(limits)):
                shares.append(session.share(limits[number:]))
                clock[0] += shares[-1] + sessions.BESIDES_S
        self.assertGreaterEqual(min(shares), sessions.LEAST_S)
        self.assertLessEqual(clock[0], 480)
        self.assertGreater(clock[0], 450)

    def test_steps_that_need_little_leave_theirs_to_the_others(self):
        with mock.patch("time.monotonic", lambda: 0.0):
            session = sessions.Session.__new__(sessions.Session)
            session.end = 480.0
            self.assertEqual(session.share([90, 60]), 90)

    def test_mistakes_are_named(self):
        for options, text in ((["--only", "nonsense"], "no step is called nonsense"), (["--minutes", "0"], "more than 0"),
                              (["--card", "x"], "invalid int")):
            status, printed = self.run_check(*options)
            self.assertNotEqual(status, 0)
            self.assertIn(text, printed)
            self.assertFalse(os.path.exists(self.out))

    def test_a_folder_that_cannot_be_is_named(self):
        with open(self.out, "w", encoding="utf-8"):
            pass
        status, printed = self.run_check()
        self.assertEqual(status, 1)
        self.assertIn("gpu-check: ", printed)
        self.assertNotIn("Traceback", printed)

    def test_a_program_of_another_machine(self):
        self.without_a_program("#!/bin/sh\necho 'version GLIBC_9 not found' >&2; exit 1\n", "does not run here: version GLIBC_9 not found")

    def test_without_a_compiler_and_a_program(self):
        self.without_a_program(None, "there is no program")

    def without_a_program(self, program, text):
        for tool in TOOLS:
            os.symlink(shutil.which(tool), os.path.join(self.fakes, tool))
        source = self.folder("source")
        shutil.copy(os.path.join(SOURCE, "run"), source)
        shutil.copytree(os.path.join(SOURCE, "bench"), os.path.join(source, "bench"))
        if program:
            fakes.script(self.fakes, "clattn", program)
        with mock.patch.dict(globals(), SOURCE=source):
            status, printed = self.run_check(path=self.fakes)
        self.assertEqual(status, 1, printed)
        self.assertIn("CMake 3.22 or newer is needed", printed)
        self.assertEqual(self.outcomes()["build"], "failed")
        self.assertEqual(self.outcomes()["limits"], "skipped")
        self.assertIn(text, printed)


class Cards(Case):
    def reading(self):
        with mock.patch.dict(os.environ, PATH=self.fakes + os.pathsep + os.environ["PATH"]):
            return card.Card().read()

    def test_what_nvidia_smi_says(self):
        fakes.nvidia_smi(self.fakes)
        reading = self.reading()
        self.assertEqual((reading["sm_mhz"], reading["celsius"], reading["watts"], reading["driver"]), (1200, 61, 650.12, "535.1"))
        self.assertEqual(card.marks([reading]), [])

    def test_an_older_nvidia_smi(self):
        fakes.nvidia_smi(self.fakes, "0x0000000000000020", old=True)
        self.assertEqual(self.reading()["throttled"], ["software thermal slowdown"])

    def test_what_a_tool_does_not_support_is_unknown(self):
        fakes.nvidia_smi(self.fakes, "[N/A]")
        self.assertIsNone(self.reading()["throttled"])

    def test_a_tool_that_fails_costs_nothing(self):
        calls = os.path.join(self.root, "calls")
        fakes.script(self.fakes, "nvidia-smi", "#!/bin/sh\necho >>%s; echo 'No devices were found'; exit 6\n" % calls)
        with mock.patch.dict(os.environ, PATH=self.fakes + os.pathsep + os.environ["PATH"]):
            broken = card.Card()
            self.assertEqual([broken.read() for _ in range(9)], [None] * 9)
        with open(calls, encoding="utf-8") as file: # by newer and older names of fields
            self.assertEqual(len(file.readlines()), 2 * card.MOST_MISSES)
        self.assertEqual(card.text(None), "no reading")

    def test_what_amd_smi_says(self):
        fakes.amd_smi(self.fakes)
        with mock.patch.object(card, "READERS", card.READERS[1:]):
            reading = self.reading()
        self.assertEqual((reading["sm_mhz"], reading["celsius"], reading["watts"], reading["name"]), (2100, 71, 300, "Fake AMD"))
        self.assertEqual(reading["throttled"], ["ppt_violation_status"])
        self.assertEqual(reading["processes"], ["other", "7"])

    def test_throttled_figures_are_marked_and_kept(self):
        fakes.clattn(self.fakes, [fakes.record()])
        fakes.nvidia_smi(self.fakes, "0x0000000000000044", "4711, python, 512 MiB\n")
        status, printed = self.run_check("--only", "limits")
        self.assertEqual(status, 0, printed)
        marks = ["throttled: hardware thermal slowdown, software power cap", "other processes: 4711, python, 512 MiB"]
        self.assertEqual([record["marks"] for record in self.result()["records"]], [marks])
        row = next(line for line in printed.splitlines() if line.startswith("clattn fused"))
        self.assertTrue(row.endswith("; ".join(marks)), row)
        step = self.result("limits")
        self.assertEqual((step["before"]["sm_mhz"], step["after"]["celsius"]), (1200, 61))


class Machines(Case):
    """A machine that lacks what OpenCL needs: its libraries and its list of drivers are faked."""

    def setUp(self):
        super().setUp()
        self.vendors, self.drivers = self.folder("vendors"), self.folder("drivers")
        self.missing = {opencl.LOADER: "not found", opencl.NVIDIA_DRIVER: "not found"}
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        for name, value in (("VENDOR_FOLDER", self.vendors), ("DRIVER_FOLDERS", (self.drivers,)), ("LOADER_FOLDERS", ()), ("has_nvidia", lambda: True),
                            ("loads", self.loads)):
            stack.enter_context(mock.patch.object(opencl, name, value))

    def loads(self, library, environment):
        """A library is found by its path, or by its name where LD_LIBRARY_PATH leads, or where the system is said to have it."""
        folders = environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        if any(os.path.exists(os.path.join(folder, library)) for folder in folders if folder) or library not in self.missing:
            return None
        return self.missing[library]

    def bring_up(self, packages=None, **environment):
        environment, lines = opencl.BringUp(environment, os.path.join(self.root, "own"), packages).run()
        return environment, "\n".join(lines)

    def touch(self, *names):
        with open(os.path.join(self.root, *names), "w", encoding="utf-8"):
            pass

    def test_nothing_is_done_where_all_is_there(self):
        self.missing = {}
        self.touch("vendors", "nvidia.icd")
        environment, said = self.bring_up()
        self.assertEqual(environment, {})
        self.assertIn("nvidia.icd", said)

    def test_the_loader_is_missing(self):
        environment, said = self.bring_up()
        self.assertIn("libOpenCL.so.1: not found", said)
        self.assertEqual(environment, {})

    def test_the_loader_is_carried(self):
        self.folder("packages")
        self.touch("packages", opencl.LOADER)
        environment, said = self.bring_up(os.path.join(self.root, "packages"))
        self.assertEqual(os.listdir(environment["LD_LIBRARY_PATH"]), [opencl.LOADER])
        self.assertIn("libOpenCL.so.1: loads", said)

    def test_what_the_system_has_is_not_taken_from_what_is_carried(self):
        self.missing = {}
        self.folder("packages")
        self.touch("packages", opencl.LOADER)
        self.touch("packages", "libother.so.2")
        environment, _ = self.bring_up(os.path.join(self.root, "packages"))
        self.assertNotIn("LD_LIBRARY_PATH", environment)

    def test_the_loader_lies_where_the_linker_does_not_look(self):
        self.touch("drivers", opencl.LOADER)
        self.touch("drivers", "libother.so.2")
        for _ in range(2): # the second time there is a link already
            environment, said = self.bring_up()
            self.assertEqual(os.listdir(environment["LD_LIBRARY_PATH"]), [opencl.LOADER])
            self.assertIn("libOpenCL.so.1: from " + self.drivers, said)

    @unittest.skipUnless(shutil.which("dpkg-deb"), "no dpkg-deb here")
    def test_the_loader_is_carried_in_a_package(self):
        self.folder("tree", "usr", "lib", "x")
        packages = self.folder("packages")
        self.touch("tree", "usr", "lib", "x", opencl.LOADER)
        control = os.path.join(self.folder("tree", "DEBIAN"), "control")
        with open(control, "w", encoding="utf-8") as file:
            file.write("Package: loader\nVersion: 1\nArchitecture: all\nMaintainer: none <none@example.org>\nDescription: a loader\n")
        subprocess.run(["dpkg-deb", "-b", os.path.join(self.root, "tree"), packages], check=True, stdout=subprocess.DEVNULL)
        environment, said = self.bring_up(packages)
        self.assertTrue(os.path.exists(os.path.join(environment["LD_LIBRARY_PATH"], opencl.LOADER)), said)
        self.assertIn("unpacked", said)
        with open(os.path.join(packages, "broken.deb"), "w", encoding="utf-8") as file:
            file.write("no package")
        self.assertIn("broken.deb: dpkg-deb", self.bring_up(packages)[1])

    def test_a_driver_is_listed_for_this_run_alone(self):
        del self.missing[opencl.LOADER], self.missing[opencl.NVIDIA_DRIVER]
        self.touch("vendors", "other.icd")
        environment, _ = self.bring_up()
        private = environment["OCL_ICD_VENDORS"]
        self.assertEqual(environment["OPENCL_VENDOR_PATH"], private)
        self.assertEqual(sorted(os.listdir(private)), ["nvidia.icd", "other.icd"])
        with open(os.path.join(private, "nvidia.icd"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "libnvidia-opencl.so.1\n")
        self.assertEqual(os.listdir(self.vendors), ["other.icd"])

    def test_a_driver_that_the_linker_is_not_told_of(self):
        del self.missing[opencl.LOADER]
        self.touch("drivers", opencl.NVIDIA_DRIVER)
        environment, said = self.bring_up()
        path = os.path.join(self.drivers, opencl.NVIDIA_DRIVER)
        self.assertEqual(environment["LD_LIBRARY_PATH"], self.drivers)
        self.assertIn("which adds " + path, said)

    def test_a_driver_without_opencl(self):
        del self.missing[opencl.LOADER]
        environment, said = self.bring_up()
        self.assertIn("this driver has no OpenCL: libnvidia-opencl.so.1: not found", said)
        self.assertEqual(environment, {})

    def test_a_callers_list_of_drivers_stays(self):
        self.missing = {}
        environment, said = self.bring_up(OCL_ICD_VENDORS="/somewhere")
        self.assertEqual(environment, {"OCL_ICD_VENDORS": "/somewhere"})
        self.assertIn("/somewhere", said)


class Libraries(unittest.TestCase):
    def test_what_loads(self):
        self.assertIsNone(opencl.loads("libc.so.6", dict(os.environ)))
        self.assertIn("no_such_library", opencl.loads("no_such_library.so", dict(os.environ)))


class Reports(Case):
    def test_predictions_stand_beside_outcomes(self):
        loops = [{"predicted_peak": 80.0}, {"predicted_peak": 60.0}]
        builds = [{"target": target, "row": "attention_64x64", "facts": {"speed": {"loops": loops}}} for target in ("sm_80", "sm_90")]
        found = predict.predictions([{"builds": builds[1:]}, {"builds": [{"target": "sm_90", "row": "x", "facts": {"error": "no"}}]}])
        self.assertEqual(found, {"attention_64x64": 68.6})
        self.assertEqual(predict.predictions([{"builds": builds[:1]}]), {})
        self.assertEqual(predict.of_record(found, {"row": "copy_8, attention_64x64"}), 68.6)
        self.assertIsNone(predict.of_record(found, {"row": None}))
        fakes.clattn(self.fakes, [fakes.record()])
        with open(os.path.join(self.folder("fakes", "results"), "offline.json"), "w", encoding="utf-8") as file:
            json.dump([{"builds": builds}], file)
        _, printed = self.run_check("--only", "limits")
        row = next(line for line in printed.splitlines() if line.startswith("clattn fused"))
        self.assertRegex(row, r"50\.0 +68\.6")

    def test_rivals_are_of_the_same_problem(self):
        fakes.clattn(self.fakes, [fakes.record(), fakes.record("torch flash", 1.5), fakes.record("torch math", 9.0),
                                  fakes.record("torch cudnn", 0.1, dtype="f16")])
        _, printed = self.run_check("--only", "limits")
        row = next(line for line in printed.splitlines() if line.startswith("clattn fused"))
        self.assertIn("0.75x torch flash", row)

    def test_the_last_run_of_this_card_is_compared_with(self):
        real = "if words[:2] == ['bench', 'compare']: os.execv(%r, ['clattn'] + words)" % PROGRAM
        fakes.clattn(self.fakes, [fakes.record(ms=4.0)], real)
        self.assertIn("no earlier run", self.run_check("--only", "limits")[1])
        fakes.clattn(self.fakes, [fakes.record(ms=2.0)], real)
        _, printed = self.run_check("--only", "limits")
        self.assertRegex(printed, r"\n *clattn fused .* 4 +faster 2\.00x")
        other = os.path.join(self.out, "gpu-check.json")
        with open(other, encoding="utf-8") as file:
            run = dict(json.load(file), card="Another card")
        with open(other, "w", encoding="utf-8") as file:
            json.dump(run, file)
        self.assertIn("no earlier run", self.run_check("--only", "limits")[1])

    def test_the_page_holds_what_the_table_does(self):
        fakes.clattn(self.fakes, [fakes.record()])
        self.run_check("--only", "limits")
        with open(os.path.join(self.out, "gpu-check.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("Fake &lt;b&gt;GPU&lt;/b&gt; 9", page)
        self.assertNotIn("<b>", page)
        self.assertIn("<td>clattn fused</td>", page)
        self.assertNotRegex(page, "(src|href)=")


def opencl_devices():
    listed = json.loads(subprocess.run([PROGRAM, "devices", "--json", "-"], stdout=subprocess.PIPE, check=True).stdout)
    return [each for each in listed["devices"] if each["kind"].startswith("OpenCL") and not each["problem"]]


class Rivals(Case):
    """`clattn bench attention --torch` beside a PyTorch that is a fake."""

    def setUp(self):
        super().setUp()
        self.devices = opencl_devices()
        if not self.devices:
            self.skipTest("no OpenCL device here")

    def bench(self, mode, *options, torch=True, dtype="f32"):
        """(exit status, {(path, length)}, what it printed)"""
        path = os.path.join(self.root, "records.json")
        environment = dict(os.environ, FAKE_TORCH=mode, PYTHONPATH=os.path.join(HERE, "fake_torch") if torch else "")
        process = subprocess.run([PROGRAM, "bench", "attention", "--torch", "--device", self.devices[0]["id"], "--quick", "--one-type",
                                  "--threads", str(self.devices[0]["compute_units"]), "--algorithm", "fused", "--dtype", dtype,
                                  "--head-dim", "8", "--heads", "2", "--len", "24,32", "--causal", "top-left", "--json", path, *options],
                                 env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)
        with open(path, encoding="utf-8") as file:
            records = json.load(file)
        return process.returncode, {(record["path"], record["len_q"]) for record in records}, process.stdout

    def test_each_implementation_that_takes_the_type(self):
        for dtype, names in (("f16", ("flash", "cudnn", "efficient", "math")), ("f32", ("flash", "efficient", "math"))):
            status, found, printed = self.bench("", dtype=dtype)
            wanted = {("torch " + name, length) for name in names for length in (24, 32)}
            self.assertEqual((status, {pair for pair in found if pair[0] != "clattn fused"}), (0, wanted), printed)
            self.assertEqual("torch cudnn: No available kernel." in printed, dtype == "f32", printed)

    def test_grouped_heads(self):
        status, found, printed = self.bench("", "--kv-heads", "1")
        self.assertEqual(status, 0, printed)
        self.assertIn(("torch flash", 24), found)

    def test_what_it_cannot_compute_is_not_asked_of_it(self):
        _, found, printed = self.bench("", "--kv-len", "48")
        self.assertEqual({path for path, _ in found}, {"clattn fused"}, printed)

    def test_one_that_is_wrong_is_not_timed(self):
        status, found, printed = self.bench("wrong")
        self.assertEqual(status, 1)
        self.assertNotIn("torch flash", {path for path, _ in found})
        self.assertIn("NOT TIMED, torch flash", printed)
        self.assertIn(("torch math", 32), found)

    def test_none_that_serves_is_said(self):
        for mode, torch, reason in (("no gpu", True, "torch 0.fake sees no GPU"), ("", False, "No module named 'torch'"),
                                    ("another gpu", True, "it has Fake A, Fake B"), ("crash", True, "python3 with torch has ended")):
            status, found, printed = self.bench(mode, torch=torch)
            self.assertEqual((status, found), (0, {("clattn fused", 24), ("clattn fused", 32)}), printed)
            self.assertIn(reason, printed)

    def test_what_was_measured_before_the_end_is_kept(self):
        for mode, text in (("crash later", "python3 with torch has ended"), ("end later", "asked to end")):
            status, found, printed = self.bench(mode)
            self.assertEqual((status, {length for _, length in found}), (1, {24}), printed)
            self.assertIn("GIVEN UP: " + text, printed)


@unittest.skipUnless(FAKE_CUDA, "no fake of CUDA was built")
class WithoutOpenCL(Case):
    """A driver that has CUDA and no OpenCL: kernels from PTX, on a libcuda that is a fake."""

    def setUp(self):
        super().setUp()
        self.kit = self.folder("kit", "ptx")
        subprocess.run([LIST_LAUNCHES, self.kit], check=True)
        path = os.path.join(self.kit, "launches.json")
        with open(path, encoding="utf-8") as file:
            launches = json.load(file)
        for launch in launches:
            for step in launch["steps"]:
                step["ptx"] = "fake.ptx"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(launches, file)
        with open(os.path.join(self.kit, "fake.ptx"), "w", encoding="utf-8") as file:
            file.write(".visible .entry fake()")

    def cuda(self, mode, folder=FAKE_CUDA):
        path = os.path.join(self.root, "records.json")
        process = subprocess.run([sys.executable, os.path.join(SOURCE, "bench", "gpu_check", "cuda.py"), self.kit, "--json", path],
                                 env=dict(os.environ, LD_LIBRARY_PATH=folder, FAKE_CUDA=mode), stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)
        return process.returncode, process.stdout, work.read_json(path)

    def test_what_is_right_is_timed_and_nothing_else(self):
        status, printed, records = self.cuda("")
        self.assertEqual(status, 1, printed) # the fake does not decode
        self.assertRegex(printed, "NOT TIMED, decode f16 d128: wrong: row 0 differs from the reference")
        for case in ("attention f16 d128", "attention bf16 d128", "attention f32 d64", "project f32"):
            self.assertIn(case + ": right", printed)
        self.assertEqual({(record["op"], record["dtype"]) for record in records},
                         {("attention", "f16"), ("attention", "bf16"), ("attention", "f32"), ("project_qkv", "f32")})
        self.assertEqual({record["path"] for record in records}, {"offline PTX through libcuda"})
        self.assertEqual(len(records), 11)

    def test_a_kernel_that_computes_nothing(self):
        status, printed, records = self.cuda("wrong")
        self.assertEqual((status, records), (1, []), printed)
        self.assertEqual(printed.count("NOT TIMED"), 7)

    def test_ptx_that_is_refused(self):
        status, printed, records = self.cuda("no ptx")
        self.assertEqual((status, records), (1, []), printed)
        self.assertIn("CUDA_ERROR_INVALID_PTX (218): ptxas fatal: a log", printed)

    def test_no_gpu_and_no_driver(self):
        self.assertEqual(self.cuda("no gpu")[:2], (77, "libcuda has no GPU: cuInit: CUDA_ERROR_NO_DEVICE (100)\n"))
        status, printed, _ = self.cuda("", folder=self.root)
        if status != 77:
            self.skipTest("there is a libcuda here")
        self.assertIn("no libcuda here", printed)

    def test_the_step_says_what_it_is(self):
        fakes.clattn(self.fakes, [], "if words[0] == 'devices': fake = dict(%r, problem='no OpenCL'); "
                     "json.dump({'devices': [fake]}, open(words[-1], 'w')); sys.exit(0)" % fakes.DEVICE)
        status, printed = self.run_check("--kit", os.path.dirname(self.kit), "--only", "ptx,limits", LD_LIBRARY_PATH=FAKE_CUDA)
        self.assertEqual(status, 1, printed)
        self.assertIn("no OpenCL GPU is usable: no OpenCL", printed)
        self.assertEqual({record["measured_on"] for record in self.result()["records"]}, {"Fake CUDA GPU, offline PTX through libcuda"})
        self.assertEqual(self.outcomes()["limits"], "skipped")
        self.assertRegex(printed, r"\noffline PTX through libcuda +f16 +causal")


class Kits(Case):
    def test_what_is_packed(self):
        build = self.folder("build")
        self.assertNotEqual(self.run_check("--pack")[0], 0)
        shutil.copy(PROGRAM, build)
        _, printed = self.run_check("--pack", "--build", build)
        self.assertIn("the program, 0 suites", printed)
        self.assertTrue(os.access(os.path.join(self.out, "bin", "clattn"), os.X_OK))
        self.assertIn("no PTX", printed)
        packed = os.listdir(os.path.join(self.out, "packages"))
        self.assertFalse([name for name in packed if name.startswith(("libc.so", "libm.so", "ld-"))], packed)


class Binaries(unittest.TestCase):
    """PTX as a program binary: what can be tried without NVIDIA's driver."""

    def outcome(self, name):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = binary.main(name)
        return status, printed.getvalue()

    def setUp(self):
        self.names = [each["name"] for each in opencl_devices()]
        if not self.names:
            self.skipTest("no OpenCL device here")

    def test_others_are_not_tried(self):
        self.assertEqual(self.outcome(self.names[0]), (77, "not NVIDIA: not tried\n"))

    def test_a_device_that_is_not_there(self):
        self.assertEqual(self.outcome("no such device"), (1, "no OpenCL device is called no such device\n"))

    def test_a_refusal_is_an_outcome(self):
        with mock.patch.object(binary, "is_nvidia", lambda api, device: True):
            status, printed = self.outcome(self.names[0])
        self.assertEqual(status, 0)
        self.assertRegex(printed, r"clCreateProgramWithBinary: -\d+\n")
        self.assertIn("does not load as a program binary: clCreateProgramWithBinary refused", printed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
