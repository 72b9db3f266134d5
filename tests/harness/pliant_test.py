# SPDX-License-Identifier: MIT
"""Runs MPI programs for tests: own work directory, time limit, nothing left behind, outputs compared.

A test script makes a Bench, runs jobs with it and raises Failure by the check functions; main() of
this module turns that into an exit status (0 passed, 1 failed, 77 skipped), keeps the work directory
of a failed test and prints the command that repeats it.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid

PASSED, FAILED, SKIPPED = 0, 1, 77
MARK = "JOB_MARK"  # in the environment of every process of a job: tells ours from others'
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)\b")


class Failure(Exception):
    """The product did not do what it must."""


class Skip(Exception):
    """The machine lacks something that this test needs."""


@dataclasses.dataclass
class Run:
    """What a finished job left."""

    command: list
    work: pathlib.Path
    status: int
    out: str
    err: str
    seconds: float

    def events(self, kind=None):
        path = self.work / "control.events.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        events = []
        for number, line in enumerate(lines, 1):
            try:
                events.append(json.loads(line))
            except ValueError:
                raise Failure(f"{path}:{number}: not JSON: {line!r}") from None
        return [e for e in events if kind is None or e.get("event") == kind]

    def tell(self):
        tail = lambda text: "\n".join("    " + line for line in text.splitlines()[-15:])
        return f"status {self.status}\n  stdout:\n{tail(self.out)}\n  stderr:\n{tail(self.err)}"


class Job:
    """A running mpiexec with everything it started."""

    def __init__(self, command, work, environment=None, stdin=""):
        self.command, self.work = [str(c) for c in command], pathlib.Path(work)
        self.mark = uuid.uuid4().hex
        self.shm_before = set(os.listdir("/dev/shm"))
        for name in ("tmp", "run"):
            (self.work / name).mkdir(parents=True, exist_ok=True)
        (self.work / "stdin").write_text(stdin)
        env = {k: v for k, v in os.environ.items() if not k.startswith("PLIANT_")}
        env.update(TMPDIR=str(self.work / "tmp"), XDG_RUNTIME_DIR=str(self.work / "run"))
        env.update({MARK: self.mark, "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}, **(environment or {}))
        self.started = time.monotonic()
        with open(self.work / "stdin") as source, open(self.work / "stdout", "w") as out, open(
            self.work / "stderr", "w"
        ) as err:
            self.process = subprocess.Popen(
                self.command, cwd=self.work, env=env, stdin=source, stdout=out, stderr=err,
                start_new_session=True,
            )

    def members(self):
        """Process numbers of all living processes of this job, zombies left out."""
        found, wanted = [], f"{MARK}={self.mark}".encode()
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                environ = pathlib.Path("/proc", entry, "environ").read_bytes()
            except OSError:
                continue
            if wanted in environ.split(b"\0"):
                found.append(int(entry))
        return found

    def ranks(self, program):
        """The members that run the program itself."""
        ranks = []
        for pid in self.members():
            try:
                if os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(program):
                    ranks.append(pid)
            except OSError:
                pass
        return ranks

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for pid in self.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def finish(self, limit):
        """Waits for the end, at most limit seconds; checks that nothing is left."""
        try:
            status = self.process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"not finished after {limit} s, killed: {shlex.join(self.command)}\n  "
                          + self.result(None).tell()) from None
        self.check_nothing_left()
        return self.result(status)

    def result(self, status):
        if status is not None and status < 0:
            status = 128 - status
        read = lambda name: (self.work / name).read_text(errors="replace")
        return Run(self.command, self.work, status, read("stdout"), read("stderr"),
                   time.monotonic() - self.started)

    def check_nothing_left(self):
        for _ in range(20):
            processes, shm = self.members(), self.left_in_shm()
            if not processes and not shm:
                break
            time.sleep(0.1)
        if processes:
            names = [command_line(pid) for pid in processes]
            self.kill()
            raise Failure(f"processes left behind: {names}")
        if shm:
            raise Failure(f"left in /dev/shm: {sorted(shm)}")
        files = [str(p) for p in (self.work / "tmp").rglob("*") if not p.is_dir()]
        if files:
            raise Failure(f"temporary files left: {files}")

    def left_in_shm(self):
        new = set(os.listdir("/dev/shm")) - self.shm_before
        left = {name for name in new if not mapped_by_someone("/dev/shm/" + name)}
        if "mpich-wheel" in " ".join(self.command):  # MPICH 5.0.2 leaves a segment now and then
            for name in left:
                os.unlink("/dev/shm/" + name)
            return set()
        return left


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return f"process {pid}"


def mapped_by_someone(path):
    """Whether another job, running at the same time, still uses this file."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if path in pathlib.Path("/proc", entry, "maps").read_text():
                return True
            for descriptor in os.listdir(f"/proc/{entry}/fd"):
                if os.readlink(f"/proc/{entry}/fd/{descriptor}") == path:
                    return True
        except (OSError, UnicodeDecodeError):
            continue
    return False


class Bench:
    """Where things are, and the work directory of one test."""

    def __init__(self, build, name, mpiexec, variant="gcc-O2", pliant=None):
        self.build, self.mpiexec, self.variant = pathlib.Path(build), mpiexec, variant
        self.pliant = pathlib.Path(pliant) if pliant else self.build / "pliant"
        self.root = self.build / "test-work" / name
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)

    def program(self, name):
        path = self.build / "programs" / f"{name}.{self.variant}"
        if not path.exists():
            raise Failure(f"{path} has not been built")
        return path

    def library(self, name="libpliant.so"):
        path = self.build / name
        if not path.exists():
            raise Failure(f"{path} has not been built")
        return path

    def work(self, name):
        path = self.root / name
        path.mkdir()
        return path

    def bare(self, processes, program, arguments):
        return [self.mpiexec, "-n", processes, program, *arguments]

    def with_pliant(self, work, processes, most, program, arguments, plan=None, options=()):
        if not self.pliant.exists():
            raise Failure(f"{self.pliant} has not been built")
        command = [self.pliant, "run", "-n", processes, "--max", most]
        command += ["--control", work / "control", "--mpiexec", self.mpiexec, *options]
        if plan:
            command += ["--plan", plan]
        return [*command, "--", program, *arguments]

    def preloaded(self, processes, program, arguments, library, variables=None):
        """The same without the command: the ranks get the library and PLIANT_* variables."""
        command = [self.mpiexec, "-n", processes, "-genv", "LD_PRELOAD", library]
        for name, value in (variables or {}).items():
            command += ["-genv", name, value]
        return [*command, program, *arguments]


def plan_text(plan):
    return ",".join(f"{arrival}:{size}" for arrival, size in plan)


def check(condition, message):
    if not condition:
        raise Failure(message)


def check_succeeded(run):
    check(run.status == 0, f"{shlex.join(run.command)}\n  {run.tell()}")


def check_resizes(run, start, sizes):
    """Every planned resize happened, in order, and was committed."""
    wanted, size = [], start
    for target in sizes:
        wanted.append((size, target, "committed"))
        size = target
    events = run.events("resize")
    seen = [(e.get("from"), e.get("to"), e.get("outcome")) for e in events]
    if seen != wanted:
        reasons = [f"{e.get('from')}->{e.get('to')} {e.get('outcome')}: {e.get('reason')}"
                   for e in events]
        raise Failure(f"resizes asked for: {wanted}\n  recorded: {seen}\n  reasons: {reasons}\n  "
                      + run.tell())
    for event in events:
        check_event(event)


def check_event(event):
    """An event of a resize has what the interface promises."""
    keys = ["id", "from", "to", "outcome", "reason", "method", "site", "arrival", "seconds",
            "bytes_moved", "bytes_kept", "buffers"]
    missing = [k for k in keys if k not in event]
    check(not missing, f"event without {missing}: {event}")
    if event["outcome"] != "committed":
        check(event["reason"], f"no reason given: {event}")
        return
    phases = ["agree", "acquire", "capture", "setup", "redistribute", "inject", "total"]
    missing = [k for k in phases if k not in event["seconds"]]
    check(not missing, f"event without seconds of {missing}: {event}")
    for buffer in event["buffers"]:
        check({"name", "kind", "evidence", "bytes"} <= set(buffer), f"incomplete buffer: {buffer}")


def same_line(wanted, got, digits):
    """Equal text; numbers may differ beyond the given significant digits (None: not at all)."""
    if wanted == got:
        return True
    if digits is None or NUMBER.sub("#", wanted) != NUMBER.sub("#", got):
        return False
    for a, b in zip(NUMBER.findall(wanted), NUMBER.findall(got)):
        if a == b:
            continue
        if not any(c in a for c in ".eE"):
            return False  # whole numbers are exact
        x, y = float(a), float(b)
        if not abs(x - y) <= 10.0**-digits * max(abs(x), abs(y)):
            return False
    return True


def difference(wanted, got, digits):
    """The first difference of two texts in words, or None."""
    wanted, got = wanted.splitlines(), got.splitlines()
    for number, (a, b) in enumerate(zip(wanted, got), 1):
        if not same_line(a, b, digits):
            return f"line {number}: expected {a!r}, got {b!r}"
    if len(wanted) != len(got):
        return f"expected {len(wanted)} lines, got {len(got)}"
    return None


def check_same_output(reference, run, digits=None, files=()):
    """The program's own output and files are those of the undisturbed run."""
    check(reference.out.strip(), "the undisturbed run printed nothing: comparing proves nothing")
    first = difference(reference.out, run.out, digits)
    check(first is None, f"output differs from the undisturbed run's: {first}\n  {run.tell()}")
    for name in files:
        wanted, path = (reference.work / name).read_text(), run.work / name
        check(path.exists(), f"{name} was not written")
        first = difference(wanted, path.read_text(), digits)
        check(first is None, f"{name} differs from the undisturbed run's: {first}")


def parser(description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--build", required=True, help="build folder with pliant and programs/")
    p.add_argument("--mpiexec", default="mpiexec.mpich")
    p.add_argument("--variant", default="gcc-O2", help="compiler and optimisation of the sample")
    p.add_argument("--pliant", help="another pliant command, to test the harness itself")
    return p


def main(test, options, name):
    """Runs test(bench, options) and returns the exit status."""
    bench = Bench(os.path.abspath(options.build), name, options.mpiexec, options.variant,
                  options.pliant)
    try:
        test(bench, options)
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    except Failure as failure:
        print(f"FAILED: {failure}\n\nwork directory: {bench.root}\nto repeat: "
              + shlex.join([sys.executable, *sys.argv]))
        return FAILED
    shutil.rmtree(bench.root)
    print("passed")
    return PASSED
