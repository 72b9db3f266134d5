# SPDX-License-Identifier: MIT
"""`pliant bench overhead`: what it prints, and the goals that do not depend on the machine's load.
Usage: test_bench.py PLIANT MPIEXEC"""
import os
import re
import shutil
import subprocess
import sys
import unittest

PLIANT, MPIEXEC = sys.argv[1:3]
ROW = re.compile(r"  (\S.*?)\s{2,}([\d.]+)\s+(-?[\d.]+)(.*)$")


def bench(*arguments, path=None):
    environment = dict(os.environ, MPIR_CVAR_POLLS_BEFORE_YIELD="1")
    if path is not None:
        environment["PATH"] = path
    return subprocess.run([PLIANT, "bench", *arguments, "--mpiexec", MPIEXEC], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280)


def rows(text):
    """Title -> (first number, second number, the rest of the line)."""
    found = {}
    for line in text.splitlines():
        row = ROW.match(line)
        if row:
            found[row[1]] = float(row[2]), float(row[3]), row[4]
    return found


class Overhead(unittest.TestCase):
    @unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
    def test_instructions_are_within_the_goals(self):
        done = bench("overhead", "--only", "instructions", "--check")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        calls, _, heap = done.stdout.partition("Instructions per malloc/free")
        counted = rows(calls)
        self.assertEqual(len(counted), 9, calls)
        for title, (bare, extra, rest) in counted.items():
            with self.subTest(title):
                self.assertGreater(bare, 50, "the bare program makes the call")
                self.assertGreater(extra, 5, "libpliant is in the way of the call")
                self.assertLessEqual(extra, 100)
                if title.startswith(("Allreduce", "Bcast")):
                    at_round, every = map(float, rest.split())
                    self.assertGreater(at_round, extra, "a round costs something")
                    self.assertTrue(1 <= every <= 600, "rounds come regularly")
        pairs = rows(heap)
        self.assertEqual(len(pairs), 8, heap)
        for title, (bare, extra, rest) in pairs.items():
            with self.subTest(title):
                self.assertGreater(bare, 20)
                self.assertNotEqual(extra, 0)
                self.assertLessEqual(extra - float(rest.split()[0]), 150)

    def test_loop_compares_five_jobs(self):
        done = bench("overhead", "--only", "loop", "--launches", "1", "--rounds", "3")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        jobs = rows(done.stdout)
        self.assertEqual(len(jobs), 5, done.stdout)
        for title, (microseconds, within, rest) in jobs.items():
            with self.subTest(title):
                self.assertGreater(microseconds, 0.01)
                self.assertTrue(0.5 < within < 3, "the same processes, in turn")
                self.assertGreater(float(rest.split()[0]), 0.01)
                self.assertRegex(rest, r"\d+ KiB\s+\d+ KiB")
        self.assertEqual(float(jobs["bare"][2].split()[0]), 1, "bare to bare")
        self.assertNotIn("Instructions", done.stdout)

    def test_missing_valgrind_is_named(self):
        done = bench("overhead", "--only", "instructions", path="/nonexistent")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("valgrind is not installed", done.stderr)
        done = bench("overhead", "--only", "instructions", "--check", path="/nonexistent")
        self.assertEqual(done.returncode, 1, "what is not measured is no goal met")

    def test_nothing_is_left_behind(self):
        before = set(os.listdir("/tmp"))
        self.assertEqual(bench("overhead", "--only", "instructions",
                               path="/nonexistent").returncode, 0)
        left = {name for name in set(os.listdir("/tmp")) - before if "pliant-bench" in name}
        self.assertEqual(left, set())

    def test_wrong_usage(self):
        for arguments in ((), ("speed",), ("overhead", "more"), ("overhead", "--rounds", "0"),
                          ("overhead", "--launches", "many"), ("overhead", "--only", "half")):
            with self.subTest(arguments):
                done = bench(*arguments)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertTrue(done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
