#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a small symmetric positive definite matrix: make_mtx.py FILE [ROWS]"""
import sys


def write(path, rows):
    entries = []
    for i in range(1, rows + 1):
        entries.append((i, i, 5.0 + i % 7 * 0.25))
        for distance in (1, 17, 40 + i % 3):
            if i > distance and (distance == 1 or i % 2 == 0):
                entries.append((i, i - distance, -1.0 + 0.125 * ((i * distance) % 5)))
    with open(path, "w") as out:
        out.write("%%MatrixMarket matrix coordinate real symmetric\n% made by make_mtx.py\n")
        out.write(f"{rows} {rows} {len(entries)}\n")
        for row, column, value in entries:
            out.write(f"{row} {column} {value:.6g}\n")


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2003)
