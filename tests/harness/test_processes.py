#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Parked processes cost nothing and wake at once; a job's exit status is its program's."""
import dataclasses
import os
import pathlib
import re
import sys
import time

import pliant_test as pt
import samples
from test_outcomes import wait_for_text

LIMIT = 60
PARKED_SHARE = 0.002  # of a core, each
WAKE = 0.010  # seconds
ENDINGS = {"return": 3, "after": 3, "before": 3, "abort": 3, "one": 3, "quiet": 0, "kill": 9}


def cpu_seconds(pid):
    """Time all threads of a process have spent on a core."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        total += int(pathlib.Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
    return total * 1e-9


def parked_cpu(bench):
    """Three of four processes are parked while the first one computes."""
    work, program = bench.work("parked"), bench.program("jacobi_halo")
    command = bench.with_pliant(work, 1, 4, program, ["100000", "203", "400", "10"])
    job = pt.Job(command, work)
    try:
        wait_for_text(job, work / "stdout", "iteration")
        ranks = job.ranks(program)
        pt.check(len(ranks) == 4, f"{len(ranks)} processes run the program, not 4")
        before, start = {pid: cpu_seconds(pid) for pid in ranks}, time.monotonic()
        time.sleep(4)
        seconds = time.monotonic() - start
        shares = sorted((cpu_seconds(pid) - before[pid]) / seconds for pid in ranks)
    finally:
        job.kill()
    print("shares of a core:", " ".join(f"{s:.5f}" for s in shares))
    pt.check(shares[3] > 0.3, "the active process did not compute: nothing was measured")
    pt.check(shares[2] <= PARKED_SHARE, f"a parked process used {shares[2]:.4f} of a core")


def parked_wake(bench):
    """Growing takes the parked processes within 10 ms; of several resizes the median counts."""
    work, sample = bench.work("wake"), samples.find("random_mc")
    plan = [(5 + 4 * i, 1 + (i + 1) % 2) for i in range(14)]
    command = bench.with_pliant(work, 1, 2, bench.program(sample.name),
                                sample.command_arguments(80), pt.plan_text(plan))
    run = pt.Job(command, work).finish(LIMIT)
    pt.check_succeeded(run)
    pt.check_resizes(run, 1, [size for _, size in plan])
    times = sorted(e["seconds"]["acquire"] for e in run.events("resize") if e["to"] == 2)
    print("seconds to acquire:", " ".join(f"{t:.6f}" for t in times))
    pt.check(times[len(times) // 2] <= WAKE, f"acquiring takes {times[len(times) // 2]:.4f} s")


def run_to_end(bench, command_in, name):
    """command_in(work) is run; once more if mpiexec itself lost the status.

    When ranks exit without MPI_Finalize, mpiexec of a bare program says 1 instead of their status
    about once in fifty times (it loses the race between a rank's end and its proxy's message).
    """
    for attempt in range(3):
        work = bench.work(f"{name}-{attempt}")
        run = pt.Job(command_in(work), work).finish(LIMIT)
        if run.status != 1:
            break
    return run


def without_banner(run):
    """mpiexec prints a banner to standard output when ranks end badly, in some runs and not others."""
    return dataclasses.replace(run, out=run.out.split("\n======")[0].rstrip() + "\n")


def exit_status(bench):
    """The job's status and output are the bare program's: same size, pool, pool after a resize."""
    program, problems = bench.program("exit_status"), []
    for how, expected in ENDINGS.items():
        bare = bench.bare(2, program, [how])
        reference = run_to_end(bench, lambda work: bare, f"{how}-bare")
        pt.check(reference.status == expected, f"bare {how}: status {reference.status}")
        for name, most, plan in (("same", 2, None), ("pool", 4, None), ("shrunk", 2, "5:1"),
                                 ("grown", 4, "5:3")):
            with_pliant = lambda work: bench.with_pliant(work, 2, most, program, [how], plan)
            try:
                run = run_to_end(bench, with_pliant, f"{how}-{name}")
                if plan:
                    pt.check_resizes(run, 2, [int(plan.split(":")[1])])
                pt.check_same_output(without_banner(reference), without_banner(run))
                pt.check(run.status == expected, f"status {run.status} instead of {expected}")
            except pt.Failure as failure:
                problems.append(f"{how}, {name}: {failure}")
    pt.check(not problems, "\n".join(problems))


def plain(text, work):
    """Output of the program surroundings without what differs between any two runs."""
    lines = []
    for line in text.splitlines():
        if re.match(r"env (PMI|HYD|MPI_LOCALRANKID|MPI_LOCALNRANKS|LD_PRELOAD|PWD|OLDPWD|_=)", line):
            continue
        for variable in (pt.MARK,):
            line = re.sub(rf"env {variable}=.*", f"env {variable}", line)
        lines.append(line.replace(str(work), "WORK"))
    return "\n".join(lines)


def surroundings(bench):
    """Arguments, environment, standard input and the world are the bare program's."""
    program, arguments = bench.program("surroundings"), ["-n", "7", "two words", "", "--", "*"]
    outputs = {}
    for name in ("bare", "preloaded"):
        work = bench.work(name)
        command = bench.bare(2, program, arguments) if name == "bare" else bench.preloaded(
            2, program, arguments, bench.library())
        run = pt.Job(command, work, stdin="first line\nsecond line\n").finish(LIMIT)
        pt.check_succeeded(run)
        pt.check("input second line" in run.out, "standard input did not arrive")
        outputs[name] = (plain(run.out, work), run.err)
    first = pt.difference(outputs["bare"][0], outputs["preloaded"][0], None)
    pt.check(first is None, f"surroundings differ: {first}")
    pt.check(outputs["bare"][1] == outputs["preloaded"][1], f"stderr: {outputs['preloaded'][1]}")


CASES = {f.__name__: f for f in (parked_cpu, parked_wake, exit_status, surroundings)}


def test(bench, options):
    CASES[options.case](bench)


if __name__ == "__main__":
    parser = pt.parser(__doc__)
    parser.add_argument("--case", required=True, choices=CASES)
    chosen = parser.parse_args()
    sys.exit(pt.main(test, chosen, f"processes.{chosen.case}.{chosen.variant}"))
