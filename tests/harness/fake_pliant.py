#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A stand-in for the pliant command that never resizes: for the test of the harness only.

FAKE_FAULT in the environment names what it does wrong ("" for nothing): a harness that lets any of
these pass is worth nothing.
"""
import json
import os
import subprocess
import sys
import time


def option(arguments, name):
    return arguments[arguments.index(name) + 1]


def event(size, target, outcome="committed"):
    phases = ["agree", "acquire", "capture", "setup", "redistribute", "inject", "total"]
    return {"event": "resize", "id": "plan", "from": size, "to": target, "outcome": outcome,
            "reason": "" if outcome == "committed" else "a made-up reason", "method": "col",
            "site": "main+0x10", "arrival": 3, "seconds": {p: 0.001 for p in phases},
            "bytes_moved": 1, "bytes_kept": 1, "buffers": []}


def write_events(path, start, plan, fault):
    size = start
    with open(path, "a") as out:
        for number, part in enumerate(plan.split(",")):
            target = int(part.split(":")[1])
            if fault == "no event":
                return
            if fault == "one missing" and number == 0:
                size = target
                continue
            made = event(size, target, "rolled_back" if fault == "rolled back" else "committed")
            if fault == "incomplete event":
                del made["seconds"]["inject"]
            out.write(json.dumps(made) + "\n")
            size = target
        if fault == "not json":
            out.write("{broken\n")


def main():
    arguments, fault = sys.argv[1:], os.environ.get("FAKE_FAULT", "")
    split = arguments.index("--")
    start = int(option(arguments, "-n"))
    command = [option(arguments, "--mpiexec"), "-n", str(start), *arguments[split + 1:]]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    out, status = done.stdout, done.returncode
    write_events(option(arguments, "--control") + ".events.jsonl", start,
                 option(arguments, "--plan"), fault)
    if fault == "wrong digit":
        at = max(i for i, c in enumerate(out) if c.isdigit())
        out = out[:at] + str((int(out[at]) + 1) % 10) + out[at + 1:]
    if fault == "line twice":
        out = out.splitlines(True)[0] + out
    if fault == "line missing":
        out = "".join(out.splitlines(True)[:-1])
    if fault == "log cut":
        os.truncate("wave.log", os.path.getsize("wave.log") // 2)
    if fault == "process left":
        subprocess.Popen(["sleep", "50"], start_new_session=True)
    if fault == "temporary file":
        open(os.path.join(os.environ["TMPDIR"], "left"), "w").close()
    if fault == "shared memory":
        open(f"/dev/shm/pliant-fake-{os.getpid()}", "w").close()
    if fault == "status":
        status = 3
    if fault == "hang":
        time.sleep(1000)
    sys.stdout.write(out)
    return status


if __name__ == "__main__":
    sys.exit(main())
