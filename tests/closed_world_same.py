#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""closed_world_same.py MPIEXEC RANKS BARE WRAPPED [VARIABLE...]: both print the same."""
import os
import subprocess
import sys

mpiexec, ranks, bare, wrapped, *variables = sys.argv[1:]
expected, found = (
    subprocess.run([mpiexec, "-n", ranks, program], env=dict(os.environ, **extra), timeout=100,
                   check=True, stdout=subprocess.PIPE, text=True).stdout
    for program, extra in ((bare, {}), (wrapped, dict.fromkeys(" ".join(variables).split(), "1"))))
if "digest" not in expected or found != expected:
    sys.exit(f"expected\n{expected}\nfound\n{found}")
