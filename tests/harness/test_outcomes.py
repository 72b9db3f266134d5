#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that cannot be resized, or not to every size: right answer at the old size, and a reason.

After a rollback a resize to a size that the program accepts must still succeed.
"""
import dataclasses
import re
import sys
import time

import pliant_test as pt
import samples

LIMIT = 90


@dataclasses.dataclass(frozen=True)
class Case:
    sample: samples.Sample
    start: int
    steps: tuple  # (arrival, size, outcome) in order; "not" means refused or rolled_back
    reason: str  # a regular expression that the reason of every "not" must match
    variables: tuple = ()


OK = "committed"
CASES = {
    "power_of_two": Case(samples.POWER_OF_TWO, 2, ((10, 3, "not"), (20, 4, OK)), r"exit"),
    "power_of_two_finalize": Case(samples.POWER_OF_TWO_FINALIZE, 2,
                                  ((10, 3, "not"), (20, 4, OK), (30, 3, "not")), r"exit|Finalize"),
    "aborting": Case(samples.ABORTING, 2, ((10, 3, "not"), (21, 4, OK)), r"MPI_Abort"),
    "crash": Case(samples.CRASH, 2, ((10, 3, "not"), (20, 1, OK)), r"crash|signal|SIGSEGV"),
    "endless": Case(samples.ENDLESS, 2, ((10, 3, "not"), (20, 4, OK)), r"time|limit|longer",
                    (("PLIANT_SETUP_LIMIT", "3"),)),
    "weak_scaling": Case(samples.WEAK_SCALING, 2, ((10, 3, "not"), (21, 1, "not")),
                         r"global size|grow|number of processes"),
    "input_stream": Case(samples.INPUT_STREAM, 2, ((10, 4, "not"), (21, 1, "not")),
                         r"standard input"),
    "vla_live": Case(samples.VLA_LIVE, 2, ((10, 4, "not"), (21, 1, "not")), r"stack"),
}
for _where in ("collective", "receive", "split", "dup", "window", "finalize"):
    for _how in ("exit", "abort"):
        CASES[f"one_fails_{_where}_{_how}"] = Case(
            samples.one_rank_fails(_where, _how), 2, ((10, 3, "not"), (21, 1, OK)),
            r"exit|MPI_Abort|MPI_Finalize")


def check_outcomes(run, case):
    size, events = case.start, run.events("resize")
    pt.check(len(events) == len(case.steps),
             f"{len(case.steps)} requests, {len(events)} outcomes: {events}\n  {run.tell()}")
    for event, (_, target, outcome) in zip(events, case.steps):
        pt.check((event["from"], event["to"]) == (size, target),
                 f"expected {size} -> {target}: {event}")
        pt.check_event(event)
        if outcome == OK:
            pt.check(event["outcome"] == OK, f"not committed: {event}\n  {run.tell()}")
            size = target
            continue
        pt.check(event["outcome"] in ("refused", "rolled_back"), f"not refused: {event}")
        pt.check(re.search(case.reason, event["reason"]),
                 f"reason {event['reason']!r} does not say {case.reason!r}")


def outcome(bench, case):
    sample = case.sample
    work = bench.work("bare")
    sample.prepare(work)
    program, arguments = bench.program(sample.name), sample.command_arguments()
    reference = pt.Job(bench.bare(case.start, program, arguments), work,
                       stdin=sample.stdin).finish(LIMIT)
    pt.check_succeeded(reference)
    work = bench.work("resized")
    sample.prepare(work)
    plan = pt.plan_text([(arrival, size) for arrival, size, _ in case.steps])
    most = max([case.start] + [size for _, size, _ in case.steps])
    command = bench.with_pliant(work, case.start, most, program, arguments, plan)
    run = pt.Job(command, work, dict(case.variables), stdin=sample.stdin).finish(LIMIT)
    pt.check_succeeded(run)
    check_outcomes(run, case)
    pt.check_same_output(reference, run)


def no_point(bench, sample):
    """A request that finds no point within its limit is refused, and says why."""
    work = bench.work("bare")
    program, arguments = bench.program(sample.name), sample.command_arguments()
    reference = pt.Job(bench.bare(2, program, arguments), work).finish(LIMIT)
    pt.check_succeeded(reference)
    work = bench.work("asked")
    job = pt.Job(bench.with_pliant(work, 2, 4, program, arguments), work, {"PLIANT_LIMIT": "1"})
    wait_for_text(job, work / "stdout", "no_point:")
    (work / "control").write_text("resize 4 id=asked\n")
    run = job.finish(LIMIT)
    pt.check_succeeded(run)
    pt.check_same_output(reference, run)
    events = [e for e in run.events("resize") if e.get("id") == "asked"]
    pt.check(len(events) == 1 and events[0]["outcome"] == "refused", f"events: {events}")
    pt.check(re.search(r"point|collective|ended", events[0]["reason"]),
             f"reason: {events[0]['reason']!r}")


def wait_for_text(job, path, text, limit=20):
    deadline = time.monotonic() + limit
    while text not in path.read_text():
        if time.monotonic() > deadline or job.process.poll() is not None:
            job.kill()
            raise pt.Failure(f"{text!r} did not appear in {path}: {path.read_text()[-300:]!r}")
        time.sleep(0.02)


def test(bench, options):
    if options.case == "no_point_farm":
        no_point(bench, samples.NO_POINT_FARM)
    elif options.case == "no_point_halves":
        no_point(bench, samples.NO_POINT_HALVES)
    else:
        outcome(bench, CASES[options.case])


if __name__ == "__main__":
    parser = pt.parser(__doc__)
    parser.add_argument("--case", required=True,
                        choices=[*CASES, "no_point_farm", "no_point_halves"])
    chosen = parser.parse_args()
    sys.exit(pt.main(test, chosen, f"outcome.{chosen.case}.{chosen.variant}"))
