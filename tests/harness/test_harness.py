#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the harness itself with a fake pliant: what is right passes, every known fault is found."""
import glob
import os
import sys

import pliant_test as pt
import samples
import test_resize

FAULTS = {  # fault of the fake -> words of the failure
    "no event": "recorded: []",
    "one missing": "resizes asked for",
    "rolled back": "rolled_back",
    "incomplete event": "without seconds of ['inject']",
    "not json": "not JSON",
    "wrong digit": "output differs",
    "line twice": "printed 2 times",
    "line missing": "lines, got",
    "log cut": "wave.log differs",
    "process left": "processes left behind",
    "temporary file": "temporary files left",
    "shared memory": "left in /dev/shm",
    "status": "status 3",
    "hang": "not finished after",
}


def try_fault(bench, sample, reference, fault):
    """Returns the failure's text, or None if the run passed."""
    os.environ["FAKE_FAULT"] = fault
    try:
        test_resize.check_plan(bench, sample, reference, "fault " + fault, 2, [(5, 4), (9, 1)],
                               limit=3 if fault == "hang" else 30)
    except pt.Failure as failure:
        return str(failure)
    finally:
        for path in glob.glob("/dev/shm/pliant-fake-*"):
            os.unlink(path)
    return None


def check_comparison():
    same = pt.same_line
    pt.check(same("x 1.00000001e+00", "x 1.00000002e+00", 7), "digits beyond the seventh matter")
    pt.check(not same("x 1.00000001e+00", "x 1.00000002e+00", 9), "ninth digit ignored")
    pt.check(not same("x 1.0", "x 1.1", None), "exact comparison is not exact")
    pt.check(not same("n 10000000", "n 10000001", 3), "whole numbers compared loosely")
    pt.check(not same("x 1.0", "y 1.0", 3), "words ignored")
    pt.check(not same("x 1.0", "x nan", 3), "nan passes")
    pt.check(not same("x 1.5", "x -1.5", 3), "sign ignored")
    pt.check(pt.difference("a\nb\n", "a\n", None), "missing line not seen")
    pt.check(pt.difference("a\nb\n", "a\nb\n", None) is None, "equal texts differ")


def test(bench, _):
    check_comparison()
    sample = samples.find("wave_log")
    reference = test_resize.run_bare(bench, sample, 2)
    found = try_fault(bench, sample, reference, "")
    pt.check(found is None, f"a faultless run fails: {found}")
    for fault, words in FAULTS.items():
        found = try_fault(bench, sample, reference, fault)
        pt.check(found is not None, f"not noticed: {fault}")
        pt.check(words in found, f"{fault}: expected {words!r} in {found!r}")


if __name__ == "__main__":
    options = pt.parser(__doc__).parse_args()
    options.pliant = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_pliant.py")
    sys.exit(pt.main(test, options, "harness"))
