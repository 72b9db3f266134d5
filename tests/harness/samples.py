# SPDX-License-Identifier: MIT
"""The sample programs: how each is called, how far its numbers are determined, what it writes."""
import dataclasses

import make_mtx


@dataclasses.dataclass(frozen=True)
class Sample:
    name: str
    arguments: tuple  # "{iterations}" is replaced
    iterations: int = 48  # of the short runs
    digits: int = None  # significant digits that any order of summation gives; None: all printed
    files: tuple = ()  # written by the program, compared after the run
    stdin: str = ""
    visits: int = 1  # visits of the first recurring site in an iteration, at least

    def command_arguments(self, iterations=None):
        count = iterations or self.iterations
        return [a.format(iterations=count) for a in self.arguments]

    def prepare(self, work):
        """Puts the program's input files into the work directory."""
        if self.name == "cg_matrix_market":
            make_mtx.write(work / "matrix.mtx", 2003)
        if self.name == "input_stream":
            (work / "forcing.txt").write_text("".join(f"{i * 37 % 101}\n" for i in range(2000)))


RESIZABLE = [
    Sample("cg_allgatherv", ("{iterations}", "2003", "4"), digits=8),
    Sample("cg_matrix_market", ("{iterations}", "matrix.mtx"), digits=5),
    Sample("jacobi_halo", ("{iterations}", "101", "60", "1"), digits=8),
    Sample("jacobi_rows", ("{iterations}", "67", "50"), digits=9),
    Sample("heat_one_side", ("{iterations}", "3001"), digits=9),
    Sample("kmeans", ("{iterations}", "1009")),
    Sample("nbody", ("{iterations}", "61"), digits=9),
    Sample("wave_log", ("{iterations}", "3001"), digits=8, files=("wave.log", "wave.trace")),
    Sample("wrapper_sites", ("{iterations}", "2003"), digits=7),
    Sample("vla_stack", ("{iterations}", "1009"), digits=9),
    Sample("nested", ("{iterations}", "1501"), iterations=6, digits=7, visits=13),
    Sample("padded", ("{iterations}", "1009"), digits=7),
    Sample("prefix_block", ("{iterations}", "behind"), digits=7),
    Sample("random_mc", ("{iterations}", "4001")),
    Sample("derived_comms", ("{iterations}", "2003")),
]

# What set-up read from a pipe cannot be read again.
INPUT_STREAM = Sample("input_stream", ("{iterations}", "forcing.txt"),
                      files=("input_stream.out",), stdin="numbers 2003\nfactor 31\n")
# The array that the loop fills is on the stack of the function that calls the collectives.
VLA_LIVE = Sample("vla_live", ("{iterations}", "1009"), digits=9)
# Resizable between some sizes only.
POWER_OF_TWO = Sample("power_of_two", ("{iterations}", "2003"))
POWER_OF_TWO_FINALIZE = Sample("power_of_two", ("{iterations}", "2003", "finalize"))
ABORTING = Sample("aborting", ("{iterations}", "2000"))
CRASH = Sample("crash_setup", ("{iterations}", "2003"))
ENDLESS = Sample("endless_setup", ("{iterations}", "2003"))
WEAK_SCALING = Sample("weak_scaling", ("{iterations}", "503"))
NO_POINT_FARM = Sample("no_point", ("{iterations}", "farm", "40000"), iterations=4000)
NO_POINT_HALVES = Sample("no_point", ("{iterations}", "halves", "40000"), iterations=600)


def one_rank_fails(where, how):
    return Sample("one_rank_fails", ("{iterations}", where, how))


def find(name):
    for sample in RESIZABLE:
        if sample.name == name:
            return sample
    raise KeyError(name)
