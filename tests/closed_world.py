#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every MPI function of the library in use is wrapped or named with a reason; libpliant.so exports
nothing else and is bound to no MPI library; and with it preloaded a program prints the same."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import unittest

OPTIONS = None


def run(*command, **keywords):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120,
                          **keywords).stdout


def symbols(library, *flags):
    """{name: type letter} of the dynamic symbols, without versions."""
    lines = run("nm", "-D", *flags, library).splitlines()
    fields = [line.split()[-2:] for line in lines if len(line.split()) >= 2]
    return {name.split("@")[0]: kind for kind, name in fields}


def mpi_library(program):
    """The shared object that defines MPI_Init for this program."""
    for path in re.findall(r"=> (/\S+)", run("ldd", program)):
        if symbols(path, "--defined-only").get("MPI_Init") in ("T", "W"):
            return path
    raise RuntimeError(f"{program} is not linked to an MPI library")


class ClosedWorld(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, str(OPTIONS.calls))
        sys.dont_write_bytecode = True
        import facts
        import generate
        import prototypes
        known = prototypes.read(OPTIONS.mpicc)
        cls.table = facts.match(known, facts.load(OPTIONS.calls / "calls.txt"))
        cls.libc = set(generate.read_names(OPTIONS.calls / "libc_exports.txt"))
        cls.exported = symbols(OPTIONS.library, "--defined-only")
        cls.mpi = symbols(mpi_library(OPTIONS.program), "--defined-only")

    def test_every_function_of_the_library_is_accounted_for(self):
        functions = [n for n, kind in self.mpi.items()
                     if re.match(r"MPIX?_", n) and kind in ("T", "W")]
        self.assertGreater(len(functions), 400)
        unknown = [n for n in functions
                   if n not in self.exported and
                   (n not in self.table or self.table[n].kind != "pass")]
        self.assertEqual(unknown, [], "neither wrapped nor passed for a reason")

    def test_every_function_of_the_header_has_its_reason(self):
        for name, fact in self.table.items():
            if fact.kind in ("pass", "block"):
                self.assertTrue(fact.reason, name)

    def test_exports_are_the_wrapped_names_and_the_list(self):
        wrapped = {n for n, fact in self.table.items() if fact.kind != "pass"}
        self.assertEqual(sorted(set(self.exported) - wrapped - self.libc), [], "exported unasked")
        self.assertEqual(sorted((wrapped | self.libc) - set(self.exported)), [], "not exported")

    def test_bound_to_no_mpi_library(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", OPTIONS.library))
        self.assertEqual([n for n in needed if re.search("mpi", n, re.I)], [])
        undefined = symbols(OPTIONS.library, "--undefined-only")
        mpi = {n: kind for n, kind in undefined.items() if re.match(r"P?MPI", n)}
        self.assertIn("PMPI_Send", mpi)
        self.assertEqual([n for n, kind in mpi.items() if kind not in ("w", "v")], [],
                         "not weak: the library does not load into a program without MPI")

    def test_loads_into_a_program_without_mpi(self):
        environment = dict(os.environ, LD_PRELOAD=str(OPTIONS.library), LD_BIND_NOW="1")
        done = subprocess.run(["/bin/echo", "here"], env=environment, capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "here\n", ""))

    def test_a_preloaded_program_prints_the_same(self):
        environment = dict(os.environ, MPIR_CVAR_POLLS_BEFORE_YIELD="1")
        for ranks in ("1", "3"):
            command = [OPTIONS.mpiexec, "-n", ranks]
            bare = run(*command, OPTIONS.program, env=environment)
            preloaded = run(*command, "env", f"LD_PRELOAD={OPTIONS.library}", OPTIONS.program,
                            env=environment)
            self.assertIn("digest", bare)
            self.assertEqual(preloaded, bare)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--program", required=True, help="closed_world_program")
    parser.add_argument("--calls", required=True, type=pathlib.Path, help="interpose/calls")
    parser.add_argument("--mpicc", default="mpicc")
    parser.add_argument("--mpiexec", default="mpiexec")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
