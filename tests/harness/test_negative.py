#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Negative controls: with one mechanism switched off a resize must go wrong, or no test needs it.

The switch (PLIANT_TEST_OFF) exists in libpliant-test.so only. The same run with nothing switched
off must be right, otherwise the control proves nothing.
"""
import sys

import pliant_test as pt
import samples

LIMIT = 60
UP_DOWN = [(13, 4), (22, 1)]

# switch -> (sample, processes at start, plan)
SWITCHES = {
    "arrays": ("jacobi_halo", 2, UP_DOWN),
    "pointers": ("jacobi_halo", 2, UP_DOWN),
    "offsets": ("heat_one_side", 2, UP_DOWN),
    "end": ("heat_one_side", 2, UP_DOWN),
    "stack": ("cg_allgatherv", 2, UP_DOWN),
    "registers": ("jacobi_halo", 2, UP_DOWN),
    "data": ("nbody", 2, UP_DOWN),
    "identity": ("wave_log", 2, UP_DOWN),
    "zerofill": ("wave_log", 2, UP_DOWN),
    "scratch": ("wave_log", 2, UP_DOWN),
    "drain": ("one_rank_fails", 2, [(10, 3), (21, 1)]),
}


def find(name):
    return samples.one_rank_fails("receive", "exit") if name == "one_rank_fails" else samples.find(
        name)


def run_with(bench, name, sample, start, plan, variables):
    work = bench.work(name)
    sample.prepare(work)
    (work / "control").touch(mode=0o600)
    most = max([start] + [size for _, size in plan])
    command = bench.preloaded(
        most, bench.program(sample.name), sample.command_arguments(),
        bench.library("libpliant-test.so"),
        {"PLIANT_PROCESSES": start, "PLIANT_CONTROL": work / "control",
         "PLIANT_PLAN": pt.plan_text(plan), **variables})
    return pt.Job(command, work, stdin=sample.stdin).finish(LIMIT)


def outcomes(run):
    return [(e["from"], e["to"], e["outcome"]) for e in run.events("resize")]


def test(bench, options):
    name, start, plan = SWITCHES[options.switch]
    sample = find(name)
    work = bench.work("bare")
    sample.prepare(work)
    reference = pt.Job(bench.bare(start, bench.program(name), sample.command_arguments()), work,
                       stdin=sample.stdin).finish(LIMIT)
    pt.check_succeeded(reference)
    right = run_with(bench, "on", sample, start, plan, {})
    pt.check_succeeded(right)
    pt.check(len(outcomes(right)) == len(plan) and outcomes(right)[-1][2] == "committed",
             f"outcomes with everything on: {outcomes(right)}\n  {right.tell()}")
    pt.check_same_output(reference, right, sample.digits, sample.files)
    try:
        wrong = run_with(bench, "off", sample, start, plan, {"PLIANT_TEST_OFF": options.switch})
        pt.check_succeeded(wrong)
        pt.check(outcomes(wrong) == outcomes(right), f"other outcomes: {outcomes(wrong)}")
        pt.check_same_output(reference, wrong, sample.digits, sample.files)
    except pt.Failure as failure:
        print(f"without {options.switch}: {str(failure).splitlines()[0]}")
        return
    raise pt.Failure(f"{name} is right without {options.switch}: nothing tests this mechanism")


if __name__ == "__main__":
    parser = pt.parser(__doc__)
    parser.add_argument("--switch", required=True, choices=SWITCHES)
    chosen = parser.parse_args()
    sys.exit(pt.main(test, chosen, f"negative.{chosen.switch}"))
