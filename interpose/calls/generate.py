#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the MPI wrappers: calls.def, weak.h, wrappers.c, stubs.S and exports.map."""
import argparse
import pathlib
import sys

import bodies
import facts
import prototypes

BY_HAND = ("hand", "lead", "pass")
NOTE = "Made by interpose/calls/generate.py from mpi.h and calls.txt."

STUB_HEAD = """
    .globl {name}
    .type {name}, @function
    .p2align 4
{name}:
    .cfi_startproc
    endbr64
"""
SAVED = (("rbp", 6), ("rbx", 3), ("r12", 12), ("r13", 13), ("r14", 14), ("r15", 15))
FRAME = 64  # sizeof(struct pl_frame)


def stub(name, arguments):
    """Saves the callee-saved registers as a struct pl_frame and calls the wrapper in C."""
    lines, offset = [STUB_HEAD.format(name=name).rstrip("\n")], 8
    for register, number in SAVED:
        offset += 8
        lines += [f"    pushq %{register}", f"    .cfi_def_cfa_offset {offset}",
                  f"    .cfi_offset {number}, -{offset}"]
    lines += ["    subq $8, %rsp", f"    .cfi_def_cfa_offset {FRAME}",
              "    movq pl_frame@GOTTPOFF(%rip), %rax", "    movq %rsp, %fs:(%rax)"]
    on_stack = max(0, arguments - 6)
    padding = (bodies.stack_words(arguments) - on_stack) * 8
    if padding:
        lines += ["    subq $8, %rsp", "    .cfi_adjust_cfa_offset 8"]
    # Each push moves the stack pointer down by one word and the next argument is one word lower.
    lines += [f"    pushq {FRAME + 8 * (on_stack - 1) + padding}(%rsp)",
              "    .cfi_adjust_cfa_offset 8"] * on_stack
    lines.append(f"    call pl_wrap_{name}")
    room = 8 + 8 * on_stack + padding
    lines += [f"    addq ${room}, %rsp", f"    .cfi_adjust_cfa_offset -{room}"]
    for register, number in reversed(SAVED):
        offset -= 8
        lines += [f"    popq %{register}", f"    .cfi_def_cfa_offset {offset}",
                  f"    .cfi_restore {number}"]
    return "\n".join(lines + ["    ret", "    .cfi_endproc", f"    .size {name}, .-{name}", ""])


def check_integer_class(prototype):
    """Stubs forward integer registers and words of the stack only."""
    for p in prototype.parameters:
        if p.type in ("double", "float", "MPI_Status"):
            raise facts.FactError(f"{prototype.name}: parameter {p.name} is not a word")


def stubs_s(known, matched):
    out = [f"/* {NOTE} */", "    .text", "    .hidden pl_frame"]
    for name, fact in matched.items():
        if fact.kind == "coll":
            check_integer_class(known[name])
            out += [f"    .hidden pl_wrap_{name}", stub(name, len(known[name].parameters))]
    return "\n".join(out + ['    .section .note.GNU-stack,"",@progbits', ""])


def wrappers_c(known, matched):
    out = [f"/* {NOTE} */", '#include "interpose/calls/wrappers.h"', ""]
    for name, fact in matched.items():
        if fact.kind not in BY_HAND:
            out.append(bodies.render(known[name], fact, known))
    return "\n".join(out)


def calls_def(matched):
    lines = [f"CALL({bodies.call_name(n)}, {f.kind})" for n, f in matched.items()]
    return "\n".join([f"/* {NOTE} */", *lines, ""])


def weak_h(known):
    """Our own MPI calls bind to the program's MPI, or to nothing in a program without MPI."""
    # clang warns of weak names that a file never declares, except in system headers.
    quiet = "#pragma GCC system_header"
    names = [f"#pragma weak P{name}" for name in known]
    return "\n".join([f"/* {NOTE} */", quiet, *names, ""])


def read_names(path):
    with open(path, encoding="utf-8") as lines:
        return [w for w in (line.partition("#")[0].strip() for line in lines) if w]


def exports_map(matched, libc):
    names = [n for n, f in matched.items() if f.kind != "pass"] + libc
    lines = [f"        {name};" for name in names]
    return "\n".join([f"/* {NOTE} */", "{", "    global:", *lines, "    local:", "        *;", "};",
                      ""])


def write(path, text):
    """Keeps the time stamp of a file that does not change."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="mpicc", help="command that finds mpi.h")
    parser.add_argument("--facts", required=True)
    parser.add_argument("--libc", required=True, help="other names to export")
    parser.add_argument("--output", required=True, type=pathlib.Path)
    options = parser.parse_args()
    try:
        known = prototypes.read(options.compiler)
        if not known:
            raise facts.FactError("no prototypes found in mpi.h")
        matched = facts.match(known, facts.load(options.facts))
        libc = read_names(options.libc)
        files = {"calls.def": calls_def(matched), "weak.h": weak_h(known),
                 "wrappers.c": wrappers_c(known, matched), "stubs.S": stubs_s(known, matched),
                 "exports.map": exports_map(matched, libc)}
    except (facts.FactError, ValueError, OSError) as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 1
    options.output.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write(options.output / name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
