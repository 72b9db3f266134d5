#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Resizes one sample program along plans and compares with its undisturbed run."""
import sys

import pliant_test as pt
import samples

LIMIT = 60  # seconds a short run may take


def run_bare(bench, sample, processes, iterations=None, limit=LIMIT):
    work = bench.work(f"bare-{processes}")
    sample.prepare(work)
    command = bench.bare(processes, bench.program(sample.name),
                         sample.command_arguments(iterations))
    run = pt.Job(command, work, stdin=sample.stdin).finish(limit)
    pt.check_succeeded(run)
    return run


def run_plan(bench, sample, name, start, plan, iterations=None, limit=LIMIT):
    """plan: (arrival, size) pairs in visits of the first recurring site."""
    work = bench.work(name)
    sample.prepare(work)
    most = max([start] + [size for _, size in plan])
    command = bench.with_pliant(work, start, most, bench.program(sample.name),
                                sample.command_arguments(iterations), pt.plan_text(plan))
    return pt.Job(command, work, stdin=sample.stdin).finish(limit)


def check_plan(bench, sample, reference, name, start, plan, iterations=None, limit=LIMIT):
    run = run_plan(bench, sample, name, start, plan, iterations, limit)
    pt.check_succeeded(run)
    pt.check_resizes(run, start, [size for _, size in plan])
    headings = [line for line in run.out.splitlines() if line.startswith(sample.name + ":")]
    pt.check(len(headings) == 1, f"set-up line printed {len(headings)} times")
    pt.check_same_output(reference, run, sample.digits, sample.files)


def bare(bench, sample):
    """The sample itself: the same output whatever the number of processes."""
    reference = run_bare(bench, sample, 1)
    for processes in (2, 3, 4):
        pt.check_same_output(reference, run_bare(bench, sample, processes), sample.digits,
                             sample.files)


def arrivals(sample, *parts):
    """Arrivals at the given shares of the run, in visits."""
    return [max(3, int(sample.iterations * sample.visits * part)) for part in parts]


def chains(bench, sample):
    at = arrivals(sample, 0.2, 0.45, 0.7)
    check_plan(bench, sample, run_bare(bench, sample, 2), "2-4-1-3", 2, list(zip(at, (4, 1, 3))))
    at = [a + 1 for a in arrivals(sample, 0.25, 0.6)]
    check_plan(bench, sample, run_bare(bench, sample, 3), "3-2-4", 3, list(zip(at, (2, 4))))


def guarded(bench, sample):
    """As chains, but where the machine code does not prove that a private value is dead, the resize
    may be refused for that reason. Whatever happens, the answer is right."""
    at = arrivals(sample, 0.2, 0.45, 0.7)
    reference = run_bare(bench, sample, 2)
    run = run_plan(bench, sample, "2-4-1-3", 2, list(zip(at, (4, 1, 3))))
    pt.check_succeeded(run)
    events = run.events("resize")
    pt.check(len(events) == 3, f"{len(events)} outcomes: {run.tell()}")
    for event in events:
        known = ("differs between processes", "already", "before it came to the resize point")
        pt.check(event["outcome"] == "committed" or any(k in event["reason"] for k in known),
                 f"unexpected: {event}")
    pt.check_same_output(reference, run, sample.digits, sample.files)


def moments(bench, sample):
    """Odd and even arrivals, consecutive ones, the third and the last but one iteration."""
    reference = run_bare(bench, sample, 2)
    middle = arrivals(sample, 0.4)[0] // 2 * 2
    last = (sample.iterations - 1) * sample.visits
    for name, plan in {
        "even": [(middle, 3), (middle + 4, 2)],
        "odd": [(middle + 1, 3), (middle + 6, 1)],
        "consecutive": [(middle, 3), (middle + 1, 1), (middle + 2, 2)],
        "third": [(3, 1)],
        "last": [(last, 3)],
    }.items():
        check_plan(bench, sample, reference, name, 2, plan)


def soak(bench, sample):
    """60 resizes in one run."""
    sizes = ([1, 2, 3, 1, 2, 1, 4, 2] * 8)[:60]
    every = 3 if sample.visits == 1 else sample.visits // 2 + 1
    plan = [(3 + every * i, size) for i, size in enumerate(sizes)]
    iterations = plan[-1][0] // sample.visits + 8
    reference = run_bare(bench, sample, 2, iterations)
    check_plan(bench, sample, reference, "soak", 2, plan, iterations, limit=170)


def transparent(bench, sample):
    """Preloaded, without control file and pool: as without the library."""
    reference = run_bare(bench, sample, 2)
    work = bench.work("preloaded")
    sample.prepare(work)
    command = bench.preloaded(2, bench.program(sample.name), sample.command_arguments(),
                              bench.library())
    run = pt.Job(command, work, stdin=sample.stdin).finish(LIMIT)
    pt.check_succeeded(run)
    pt.check_same_output(reference, run, None, sample.files)
    pt.check(run.err == reference.err, f"standard error differs: {run.err!r}")


CASES = {f.__name__: f for f in (bare, chains, guarded, moments, soak, transparent)}


def test(bench, options):
    CASES[options.case](bench, samples.find(options.sample))


if __name__ == "__main__":
    parser = pt.parser(__doc__)
    parser.add_argument("--sample", required=True, choices=[s.name for s in samples.RESIZABLE])
    parser.add_argument("--case", required=True, choices=CASES)
    chosen = parser.parse_args()
    sys.exit(pt.main(test, chosen, f"{chosen.case}.{chosen.sample}.{chosen.variant}"))
