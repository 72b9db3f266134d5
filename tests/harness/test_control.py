#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hostile control files: the program is unharmed, the message clear, and a good request still works."""
import os
import shutil
import sys
import time

import pliant_test as pt
import samples
from test_outcomes import wait_for_text

LIMIT = 200
SAMPLE = samples.Sample("jacobi_halo", ("{iterations}", "203", "150", "500"), digits=8)


def text(content):
    return lambda path: path.write_bytes(content)


def directory(path):
    path.unlink()
    path.mkdir()


def vanished(path):
    path.unlink()


def fifo(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def symlink(path):
    other = path.with_name("elsewhere")
    other.write_text("resize 1\n")
    path.unlink()
    path.symlink_to(other)


def writable_by_all(path):
    path.write_text("resize 1\n")
    path.chmod(0o666)


def owned_by_another(path):
    """Needs root, which would be let through anywhere: the owner counts, not the access."""
    path.write_text("resize 1\n")
    os.chown(path, 65534, 65534)


# name -> (what happens to the file, words of which one must be in the reason; None: no event)
CASES = {
    "zero": (text(b"resize 0\n"), ("0", "1")),
    "negative": (text(b"resize -1\n"), ("-1",)),
    "word": (text(b"resize abc\n"), ("abc",)),
    "huge": (text(b"resize 99999999999\n"), ("99999999999",)),
    "beyond_pool": (text(b"resize 4000\n"), ("4000", "pool")),
    "unknown_word": (text(b"enlarge 4\n"), ("enlarge",)),
    "unknown_key": (text(b"resize 1 colour=red\n"), ("colour",)),
    "unknown_method": (text(b"resize 1 method=magic\n"), ("magic",)),
    "no_number": (text(b"resize\n"), ("resize",)),
    "empty": (text(b""), None),
    "comments": (text(b"# resize 1\n\n   # nothing\n"), None),
    "binary": (text(bytes(range(256)) * 4), ("binary", "text", "byte")),
    "long_line": (text(b"resize 1 id=" + b"x" * 5000 + b"\n"), ("at most 256", "long")),
    "ten_megabytes": (text(b"resize 1\n" * 1165085), ("large", "big", "size")),
    "directory": (directory, ("directory", "regular")),
    "vanished": (vanished, None),
    "fifo": (fifo, ("regular", "fifo", "pipe")),
    "symlink": (symlink, ("symbolic", "symlink", "link")),
    "writable_by_all": (writable_by_all, ("writ",)),
    "owned_by_another": (owned_by_another, ("own", "belongs")),
}

FILES = ("ten_megabytes", "directory", "vanished", "fifo", "symlink", "writable_by_all",
         "owned_by_another")


def restore(path):
    """Puts a well-formed, empty file back, atomically, as a careful user would."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    fresh = path.with_name("control.new")
    fresh.write_text("")
    fresh.chmod(0o600)
    fresh.rename(path)


def refusals(events):
    return [e for e in events if e.get("outcome") == "refused"]


def wait_for_events(job, run_of, enough, limit=20):
    deadline = time.monotonic() + limit
    while not enough(run_of().events()):
        if time.monotonic() > deadline or job.process.poll() is not None:
            return False
        time.sleep(0.05)
    return True


def good_request(job, control, noticed, size, name):
    with open(control, "a") as out:
        out.write(f"resize {size} id=good-{name}\n")
    good = lambda events: [e for e in events if e.get("id") == f"good-{name}"]
    if not wait_for_events(job, noticed, good):
        raise pt.Failure(f"{name}: the good request afterwards had no outcome\n  "
                         + noticed().tell())
    event = good(noticed().events())[0]
    pt.check(event["outcome"] == "committed", f"{name}: good request afterwards: {event}")


def disturb(job, work, name, size):
    """Applies the hostile content, waits until it was noticed, then asks for something good."""
    change, words = CASES[name]
    control = work / "control"
    noticed = lambda: job.result(None)
    before = len(refusals(noticed().events()))
    fresh = lambda events: refusals(events)[before:]
    change(control)
    if words is None:
        time.sleep(0.6)
        found = fresh(noticed().events())
        pt.check(not found, f"{name}: refused without reason to: {found}")
    else:
        if not wait_for_events(job, noticed, fresh):
            raise pt.Failure(f"{name}: no refusal was recorded\n  {noticed().tell()}")
        found = fresh(noticed().events())
        reasons = " / ".join(str(e.get("reason")) for e in found)
        pt.check(any(w in reasons for w in words),
                 f"{name}: reason {reasons!r} has none of {words}")
        pt.check(len(found) < 100, f"{name}: {len(found)} events for one file")
    restore(control)
    time.sleep(0.3)
    good_request(job, control, noticed, size, name)


def test(bench, options):
    names = [n for n in CASES if (n in FILES) == (options.group == "files")]
    if options.only:
        names = [options.only]
    program, arguments = bench.program(SAMPLE.name), SAMPLE.command_arguments(options.iterations)
    reference = pt.Job(bench.bare(2, program, arguments), bench.work("bare")).finish(LIMIT)
    pt.check_succeeded(reference)
    work = bench.work("hostile")
    job = pt.Job(bench.with_pliant(work, 2, 2, program, arguments), work)
    wait_for_text(job, work / "stdout", "iteration")
    try:
        for number, name in enumerate(names):
            if name == "owned_by_another" and os.geteuid() != 0:
                print("left out: owned_by_another (only root can give a file away)")
                continue
            disturb(job, work, name, 1 + number % 2)
    except BaseException:
        job.kill()
        raise
    run = job.finish(LIMIT)
    pt.check_succeeded(run)
    pt.check_same_output(reference, run, SAMPLE.digits)


if __name__ == "__main__":
    parser = pt.parser(__doc__)
    parser.add_argument("--group", default="lines", choices=["lines", "files"])
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--iterations", type=int, default=700000)
    chosen = parser.parse_args()
    sys.exit(pt.main(test, chosen, f"control.{chosen.only or chosen.group}"))
