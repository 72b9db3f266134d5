#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the command `pliant` with a false mpiexec and a false libpliant.

Usage: test_pliant.py PLIANT [unittest arguments]
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PLIANT = ""
LIMIT = 20  # seconds any command may take

FAKE_MPIEXEC = """#!/bin/sh
if [ "$1" = --version ]; then echo "{version}"; exit 0; fi
: > "{folder}/arguments.new"
for argument; do printf '%s\\0' "$argument" >> "{folder}/arguments.new"; done
env -0 > "{folder}/environment"
echo $$ > "{folder}/pid"
mv "{folder}/arguments.new" "{folder}/arguments"
{then}
"""


class ToolTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pliant-tool-")
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        self.runtime = os.path.join(self.folder, "runtime")
        os.mkdir(self.runtime, 0o700)
        self.library = os.path.join(self.folder, "libpliant.so")
        open(self.library, "w").close()
        self.environment = {
            "PATH": self.bin + ":/usr/bin:/bin",
            "XDG_RUNTIME_DIR": self.runtime,
            "LC_ALL": "C",
        }
        if "ASAN_OPTIONS" in os.environ:
            self.environment["ASAN_OPTIONS"] = os.environ["ASAN_OPTIONS"]
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        shutil.rmtree(self.folder)

    def fake_mpiexec(self, name="mpiexec.mpich", version="HYDRA build details:", then="exit 0"):
        path = os.path.join(self.bin, name)
        with open(path, "w") as script:
            script.write(FAKE_MPIEXEC.format(version=version, folder=self.folder, then=then))
        os.chmod(path, 0o755)
        return path

    def pliant(self, *arguments, status=0, **environment):
        result = subprocess.run(
            [PLIANT, *arguments], env={**self.environment, **environment}, timeout=LIMIT,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result

    def run_pliant(self, *arguments, **others):
        return self.pliant("run", "--library", self.library, *arguments, **others)

    def start_job(self, *arguments):
        """A job that runs until the test ends; returns its process and control file."""
        self.fake_mpiexec(then="exec sleep 60")
        process = subprocess.Popen(
            [PLIANT, "run", "--library", self.library, "-n", "2", *arguments, "--", "./app"],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.started.append(process)
        line = process.stderr.readline()
        match = re.fullmatch(r"pliant: control file (.*)\n", line)
        self.assertTrue(match, line)
        return process, match.group(1)

    def recorded(self, what="arguments"):
        with open(os.path.join(self.folder, what), "rb") as file:
            return file.read().decode().split("\0")[:-1]

    def genv(self):
        """The variables set by -genv and what follows them: the program."""
        arguments = self.recorded()
        self.assertEqual(arguments[0], "-n")
        rest, variables = arguments[2:], {}
        while rest[0] == "-genv":
            self.assertNotIn(rest[1], variables)
            variables[rest[1]] = rest[2]
            rest = rest[3:]
        return arguments[1], variables, rest

    # ---- the dispatcher

    def test_usage(self):
        self.assertIn("Usage: pliant COMMAND", self.pliant(status=2).stderr)
        self.assertIn("unknown command 'grow'", self.pliant("grow", status=2).stderr)
        help_text = self.pliant("--help").stdout
        for command in ("run", "resize", "status", "options"):
            self.assertIn(f"  {command} ", help_text)
            self.assertIn(f"Usage: pliant {command}", self.pliant(command, "--help").stdout)
            self.pliant(command, "--no-such-option", status=2)
        self.assertRegex(self.pliant("--version").stdout, r"^pliant \d+\.\d+\.\d+\n$")

    # ---- run

    def test_run_hands_the_ranks_and_not_mpiexec_the_library(self):
        self.fake_mpiexec()
        result = self.run_pliant("-n", "2", "--max", "4", "--", "./app", "-n", "7", "--", "a b", "")
        processes, variables, program = self.genv()
        self.assertEqual(processes, "4")
        self.assertEqual(program, ["./app", "-n", "7", "--", "a b", ""])
        self.assertEqual(variables["LD_PRELOAD"], self.library)
        self.assertEqual(variables["PLIANT_PROCESSES"], "2")
        self.assertEqual(set(variables), {"LD_PRELOAD", "PLIANT_PROCESSES", "PLIANT_CONTROL"})
        self.assertFalse([v for v in self.recorded("environment") if v.startswith("LD_PRELOAD=")])
        control = variables["PLIANT_CONTROL"]
        self.assertEqual(result.stderr, f"pliant: control file {control}\n")
        self.assertEqual(result.stdout, "")
        self.assertEqual(os.path.dirname(control), self.runtime + "/pliant")
        self.assertEqual(os.stat(control).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(self.runtime + "/pliant").st_mode & 0o777, 0o700)

    def test_run_passes_options_on(self):
        self.fake_mpiexec()
        self.run_pliant("-n", "3", "--plan", "50:4,120:1", "--method=col", "--limit", "2.50",
                        "--setup-limit=9", "--baseline=3", "--log=debug", "--control", "c", "./app",
                        PLIANT_LIMIT="7")
        processes, variables, program = self.genv()
        self.assertEqual(processes, "3")
        self.assertEqual(program, ["./app"])
        del variables["LD_PRELOAD"]
        self.assertEqual(variables, {
            "PLIANT_PROCESSES": "3", "PLIANT_PLAN": "50:4,120:1", "PLIANT_METHOD": "col",
            "PLIANT_LIMIT": "2.5", "PLIANT_SETUP_LIMIT": "9", "PLIANT_BASELINE": "3",
            "PLIANT_LOG": "debug", "PLIANT_CONTROL": os.path.realpath(self.folder) + "/c"})

    def test_run_keeps_an_existing_preload(self):
        self.fake_mpiexec()
        before = "/nowhere/other.so"  # the loader says that it ignores it
        self.run_pliant("-n", "1", "--", "./app", LD_PRELOAD=before,
                        ASAN_OPTIONS="verify_asan_link_order=0")
        self.assertEqual(self.genv()[1]["LD_PRELOAD"], before + ":" + self.library)

    def test_run_ends_with_the_status_of_the_program(self):
        self.fake_mpiexec(then="exit 7")
        self.run_pliant("-n", "1", "--", "./app", status=7)

    def test_run_becomes_mpiexec(self):
        process, _ = self.start_job()
        deadline = time.time() + LIMIT
        while not os.path.exists(self.folder + "/arguments") and time.time() < deadline:
            time.sleep(0.01)
        with open(self.folder + "/pid") as file:
            self.assertEqual(int(file.read()), process.pid)

    def test_run_refuses_wrong_usage(self):
        self.fake_mpiexec()
        for arguments, message in (
                (["-n", "2"], "the program is missing"),
                (["--", "./app"], "-n NS is missing"),
                (["-n", "0", "--", "./app"], "-n NS is missing"),
                (["-n", "two", "--", "./app"], "valid is a whole number"),
                (["-n", "2", "--max", "1", "--", "./app"], "--max 1 is less than -n 2"),
                (["-n", "2", "--max", "x", "--", "./app"], "--max: 'x' is not valid"),
                (["-n", "2", "--plan", "50:4,40:1", "--", "./app"], "position 6: arrivals must"),
                (["-n", "2", "--method", "warp", "--", "./app"], "valid is one of col"),
                (["-n", "2", "--log", "loud", "--", "./app"], "error, warn, info, debug"),
                (["-n", "2", "--", "./app", ":", "./other"], "second program")):
            result = self.run_pliant(*arguments, status=2)
            self.assertIn(message, result.stderr)
            self.assertFalse(os.path.exists(self.folder + "/arguments"), arguments)

    def test_run_warns_of_unknown_variables(self):
        self.fake_mpiexec()
        result = self.run_pliant("-n", "1", "--", "./app", PLIANT_METHODS="x", PLIANT_LOG="loud")
        self.assertIn("PLIANT_METHODS: unknown variable", result.stderr)
        self.assertIn("PLIANT_LOG: 'loud' is not valid", result.stderr)

    def test_run_finds_mpiexec(self):
        self.environment["PATH"] = self.bin
        os.symlink("/bin/sh", self.bin + "/sh")
        for tool in ("env", "mv"):
            os.symlink(shutil.which(tool), self.bin + "/" + tool)
        self.assertIn("no mpiexec in PATH", self.run_pliant("-n1", "./app", status=2).stderr)
        self.fake_mpiexec("mpiexec", version="mpiexec (OpenRTE) 4.1.4")
        self.assertIn("Open MPI", self.run_pliant("-n1", "./app", status=2).stderr)
        self.fake_mpiexec("mpiexec.hydra", then="exit 5")
        self.run_pliant("-n1", "./app", status=5)
        self.fake_mpiexec("mpiexec.mpich", then="exit 6")
        self.run_pliant("-n1", "./app", status=6)
        wanted = self.fake_mpiexec("other", then="exit 8")
        self.run_pliant("-n1", "--mpiexec", wanted, "./app", status=8)
        wanted = self.fake_mpiexec("foreign", version="prterun (PRRTE) 3.0")
        self.assertIn("Open MPI", self.run_pliant("-n1", "--mpiexec", wanted, "./app",
                                                  status=2).stderr)
        self.assertIn("no such program", self.run_pliant("-n1", "--mpiexec", "/none", "./app",
                                                         status=2).stderr)

    def test_run_finds_the_library(self):
        self.fake_mpiexec()
        moved = shutil.copy(PLIANT, self.bin + "/pliant")

        def run(status):
            result = subprocess.run([moved, "run", "-n", "1", "--", "./app"], timeout=LIMIT,
                                    env=self.environment, capture_output=True, text=True)
            self.assertEqual(result.returncode, status, result.stderr)
            return result

        self.assertIn("give its path with --library", run(2).stderr)
        os.mkdir(self.folder + "/lib")
        open(self.folder + "/lib/libpliant.so", "w").close()
        run(0)
        self.assertEqual(self.genv()[1]["LD_PRELOAD"], self.folder + "/lib/libpliant.so")
        open(self.bin + "/libpliant.so", "w").close()
        run(0)
        self.assertEqual(self.genv()[1]["LD_PRELOAD"], self.bin + "/libpliant.so")
        os.mkdir(self.folder + "/a b")
        open(self.folder + "/a b/libpliant.so", "w").close()
        result = self.pliant("run", "--library", "a b/libpliant.so", "-n1", "./app", status=2)
        self.assertIn("LD_PRELOAD cannot hold", result.stderr)

    def test_run_refuses_a_control_file_the_library_would_refuse(self):
        self.fake_mpiexec()
        path = self.folder + "/control"
        with open(path, "w") as file:
            file.write("# kept\n")
        os.chmod(path, 0o644)
        self.run_pliant("-n1", "--control", path, "./app")
        with open(path) as file:
            self.assertEqual(file.read(), "# kept\n")
        os.chmod(path, 0o666)
        self.assertIn("nobody else can write", self.run_pliant("-n1", "--control", path, "./app",
                                                               status=2).stderr)
        os.remove(path)
        os.symlink(self.library, path)
        self.run_pliant("-n1", "--control", path, "./app", status=2)
        self.run_pliant("-n1", "--control", self.folder, "./app", status=2)
        self.run_pliant("-n1", "--control", "/nowhere/c", "./app", status=2)

    def test_run_refuses_a_folder_others_can_write(self):
        self.fake_mpiexec()
        os.mkdir(self.runtime + "/pliant")
        os.chmod(self.runtime + "/pliant", 0o777)
        self.assertIn("not a folder of this user alone",
                      self.run_pliant("-n1", "./app", status=2).stderr)

    def test_run_forgets_jobs_that_ended(self):
        self.fake_mpiexec()
        self.run_pliant("-n1", "./app")
        first = set(os.listdir(self.runtime + "/pliant"))
        self.assertEqual(len(first), 2)
        control = self.genv()[1]["PLIANT_CONTROL"]
        for suffix in (".status.json", ".events.jsonl"):
            open(control + suffix, "w").close()
        kept = self.folder + "/mine"
        self.run_pliant("-n1", "--control", kept, "./app")
        self.run_pliant("-n1", "./app")
        second = set(os.listdir(self.runtime + "/pliant"))
        self.assertEqual(len(second), 2)
        self.assertFalse(first & second)
        self.assertTrue(os.path.exists(kept))

    # ---- resize

    def false_library(self, control, answer):
        """Answers the last request as libpliant would, in a thread; joined at the end."""
        with open(control) as file:
            before = file.read()

        def serve():
            deadline = time.time() + LIMIT
            while time.time() < deadline:
                with open(control) as file:
                    text = file.read()
                if text != before and text.endswith("\n"):
                    word = text.splitlines()[-1]
                    match = re.fullmatch(r"resize (\d+)(?: method=\w+)? id=([\w.:-]{1,63})", word)
                    self.requests.append(word)
                    with open(control + ".events.jsonl", "a") as file:
                        file.write('{"event":"resize","id":"another","outcome":"refused"}\n')
                        file.write(json.dumps({
                            "event": "resize", "id": match.group(2), "from": 2,
                            "to": int(match.group(1)), "seconds": {"total": 0.0125},
                            **answer}) + "\n")
                    return
                time.sleep(0.01)

        self.requests = []
        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)

    def test_resize_waits_for_the_outcome(self):
        _, control = self.start_job()
        self.false_library(control, {"outcome": "committed", "reason": ""})
        result = self.pliant("resize", "4", "--wait")
        self.assertEqual(result.stdout, "committed: 2 -> 4 processes in 0.013 s\n")
        self.assertRegex(self.requests[0], r"^resize 4 id=")
        self.false_library(control, {"outcome": "refused", "reason": "already 4 processes"})
        result = self.pliant("resize", "4", "--wait", "10", "--method", "col", status=1)
        self.assertEqual(result.stdout, "refused: already 4 processes\n")
        self.assertRegex(self.requests[0], r"^resize 4 method=col id=")
        self.false_library(control, {"outcome": "rolled_back", "reason": "set-up called exit(1)"})
        result = self.pliant("resize", "--wait", "10", "3", status=1)
        self.assertEqual(result.stdout, "rolled back: set-up called exit(1)\n")

    def test_resize_does_not_wait_unless_asked(self):
        _, control = self.start_job()
        self.assertRegex(self.pliant("resize", "4").stdout, r"^requested: 4 processes, id ")
        self.pliant("resize", "3", "--control", control)
        with open(control) as file:
            lines = file.read().splitlines()
        self.assertRegex(lines[-2], r"^resize 4 id=")  # what waits is not lost
        self.assertRegex(lines[-1], r"^resize 3 id=")
        self.assertNotEqual(lines[-1].split("id=")[1], lines[-2].split("id=")[1])

    def test_resize_times_out(self):
        self.start_job()
        began = time.time()
        for arguments in (["4", "--wait", "0.3"], ["4", "--wait=0.3"], ["--wait", "0.3", "4"]):
            result = self.pliant("resize", *arguments, status=3)
            self.assertIn("no answer within 0.3 s", result.stderr)
        self.assertLess(time.time() - began, 8)

    def test_resize_sees_that_the_program_ended(self):
        process, _ = self.start_job()
        threading.Timer(0.3, lambda: process.send_signal(signal.SIGKILL)).start()
        result = self.pliant("resize", "4", "--wait", status=1)
        self.assertIn("the program has ended without answering", result.stderr)

    def test_resize_completes_an_unfinished_line(self):
        path = self.folder + "/control"
        with open(path, "w") as file:
            file.write("# no newline")
        self.pliant("resize", "4", "--control", path)
        with open(path) as file:
            self.assertRegex(file.read(), r"^# no newline\nresize 4 id=.*\n$")

    def test_resize_begins_a_large_file_anew(self):
        path = self.folder + "/control"
        with open(path, "w") as file:
            file.write("#\n" * 20000)
        self.pliant("resize", "4", "--control", path)
        with open(path) as file:
            self.assertRegex(file.read(), r"^resize 4 id=.*\n$")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        os.remove(path)
        self.pliant("resize", "4", PLIANT_CONTROL=path)
        self.assertTrue(os.path.exists(path))
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith("control.")], [])

    def test_resize_chooses_the_job(self):
        self.assertIn("no program started by", self.pliant("resize", "4", status=2).stderr)
        first, one = self.start_job()
        _, two = self.start_job()
        result = self.pliant("resize", "4", status=2)
        self.assertIn("2 programs are running", result.stderr)
        self.assertIn(f"--control {one}\n", result.stderr)
        self.assertIn(f"--control {two}\n", result.stderr)
        first.kill()
        first.wait()
        self.pliant("resize", "4")
        with open(two) as file:
            self.assertIn("resize 4", file.read())

    def test_resize_refuses_wrong_usage(self):
        for arguments in ([], ["0"], ["-1"], ["abc"], ["99999999999"], ["4", "5"],
                          ["4", "--wait=soon"], ["4", "--method", "warp"]):
            result = self.pliant("resize", *arguments, status=2)
            self.assertIn("pliant resize", result.stderr)
        result = self.pliant("resize", "4", "--control", self.folder, status=1)
        self.assertIn("cannot write to", result.stderr)

    # ---- status and options

    def test_status(self):
        _, control = self.start_job()
        self.assertIn("no status", self.pliant("status", status=1).stderr)
        status = {"state": "running", "size": 2, "pool": 4, "pid": 1, "resizes_committed": 3,
                  "resizes_refused": 1, "resizes_rolled_back": 0, "last_outcome": "refused",
                  "last_reason": "already 2 processes", "growth_capped": "no spawn"}
        with open(control + ".status.json", "w") as file:
            json.dump(status, file)
        text = self.pliant("status").stdout
        for part in (control, "app", "running", "2, at most 4", "no spawn",
                     "3 committed, 1 refused, 0 rolled back", "refused: already 2 processes"):
            self.assertIn(part, text)
        self.assertEqual(json.loads(self.pliant("status", "--json").stdout), status)
        self.assertEqual(self.pliant("status", "--control", control).stdout, text)
        with open(control + ".status.json", "w") as file:
            file.write("{")
        self.pliant("status", status=1)
        self.pliant("status", "x", status=2)

    def test_options(self):
        result = self.pliant("options", PLIANT_LIMIT="5", PLIANT_LIMITS="5")
        self.assertIn("PLIANT_LIMIT=5    (set)\n", result.stdout)
        self.assertIn("PLIANT_METHOD=col\n", result.stdout)
        self.assertIn("PLIANT_LIMITS: unknown variable", result.stderr)

    def test_manual_names_every_option(self):
        page = os.path.join(os.path.dirname(PLIANT), "pliant.1")
        if not os.path.exists(page):
            self.skipTest("no manual page beside pliant")
        with open(page) as file:
            text = file.read().replace("\\-", "-")
        names = re.findall(r"^(PLIANT_\w+)=", self.pliant("options").stdout, re.MULTILINE)
        self.assertGreaterEqual(len(names), 8)
        for command in ("run", "resize", "status"):
            usage = self.pliant(command, "--help").stdout
            for option in re.findall(r"(--[a-z-]+)[=\[\n ]", usage):
                variable = "PLIANT_" + option[2:].upper().replace("-", "_")
                if option not in ("--help", "--usage", "--version") and variable not in names:
                    self.assertIn(option, text)
        for name in names:
            self.assertIn(name, text)
        self.assertNotIn("@", text)


if __name__ == "__main__":
    PLIANT = os.path.realpath(sys.argv.pop(1))
    unittest.main(verbosity=2)
