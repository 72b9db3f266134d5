# SPDX-License-Identifier: MIT
"""Prototypes of the MPI functions, read from the preprocessed mpi.h."""
import re
import shlex
import subprocess
from dataclasses import dataclass


@dataclass
class Parameter:
    type: str   # with the stars, without the name: "const void *"
    name: str
    array: str  # "[]", "[][3]" or ""

    @property
    def text(self):
        space = "" if self.type.endswith("*") else " "
        return f"{self.type}{space}{self.name}{self.array}"


@dataclass
class Prototype:
    result: str
    name: str
    parameters: list
    variadic: bool

    @property
    def signature(self):
        return ", ".join(p.text for p in self.parameters) or "void"

    def of_type(self, *types):
        return [p for p in self.parameters if p.type in types and not p.array]

    def get(self, name):
        return next((p for p in self.parameters if p.name == name), None)


PROTOTYPE = re.compile(
    r"(?:^|[;}])\s*(?:extern\s+)?((?:const\s+)?\w+(?:\s*\*+)?)\s+(MPIX?_\w+)\s*\(([^;{}]*)\)\s*;")
PARAMETER = re.compile(r"^(.*?)(\w+)((?:\[\d*\])*)$", re.S)


def strip_attributes(text):
    """Removes __attribute__((...)), which may nest parentheses."""
    out, at = [], 0
    for match in re.finditer(r"__attribute__\s*\(", text):
        if match.start() < at:
            continue
        out.append(text[at:match.start()])
        depth, at = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
    return "".join(out) + text[at:]


def parse_parameter(text):
    text = " ".join(text.split())
    match = PARAMETER.match(text)
    if not match or not match.group(1).strip():
        raise ValueError(f"cannot read the parameter '{text}'")
    return Parameter(match.group(1).strip(), match.group(2), match.group(3))


def parse(text):
    """All MPI_* and MPIX_* functions, by name, in the order of the header."""
    text = re.sub(r"^#.*$", "", strip_attributes(text), flags=re.M)
    prototypes, at = {}, 0
    while match := PROTOTYPE.search(text, at):
        at = match.end() - 1  # the semicolon may start the next one
        result, name, arguments = match.groups()
        if result.split()[0] in ("typedef", "return"):
            continue
        parts = [a.strip() for a in arguments.split(",")]
        variadic = "..." in parts
        parts = [a for a in parts if a not in ("...", "void", "")]
        prototypes[name] = Prototype(result, name, [parse_parameter(a) for a in parts], variadic)
    return prototypes


def read(compiler, include="#include <mpi.h>\n"):
    """Preprocesses mpi.h with the given compiler command and parses it."""
    command = shlex.split(compiler) + ["-E", "-P", "-x", "c", "-"]
    done = subprocess.run(command, input=include, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{compiler} -E failed: {done.stderr.strip()}")
    return parse(done.stdout)
