# SPDX-License-Identifier: MIT
"""Facts about the MPI functions, read from calls.txt and checked against the prototypes."""
from dataclasses import dataclass

CLASSES = ("coll", "create", "send", "recv", "sendrecv", "request", "persistent", "rma", "epoch",
           "local", "hand", "lead", "block", "pass")
KEYS = {"root", "same", "reads", "sends", "receives", "message", "evidence", "evidence-receive",
        "makes", "frees", "gate", "gate-handle", "opens", "closes", "synchronises", "refuse",
        "not-resizable", "kind", "partner", "file"}
HANDLES = {"MPI_Comm": "COMM", "MPI_Win": "WIN", "MPI_Datatype": "TYPE", "MPI_Op": "OP",
           "MPI_Group": "GROUP", "MPI_Errhandler": "ERRHANDLER", "MPI_Info": "INFO"}


class FactError(Exception):
    """The table is wrong; the text says where."""


@dataclass
class Fact:
    name: str
    kind: str    # one of CLASSES
    keys: dict
    reason: str


def parse_line(line, where):
    words, _, reason = line.partition("#")
    words = words.split()
    if len(words) < 2:
        raise FactError(f"{where}: expected NAME CLASS, found '{line.strip()}'")
    keys = dict((w.split("=", 1) + [""])[:2] for w in words[2:])
    fact = Fact(words[0], words[1], keys, reason.strip())
    if fact.kind not in CLASSES:
        raise FactError(f"{where}: unknown class '{fact.kind}'")
    for key in keys:
        if key not in KEYS:
            raise FactError(f"{where}: unknown key '{key}'")
    needs_reason = fact.kind in ("block", "pass") or "not-resizable" in keys
    if needs_reason and not fact.reason:
        raise FactError(f"{where}: {fact.name} needs a reason")
    if fact.kind in ("hand", "lead") and not keys.get("file"):
        raise FactError(f"{where}: {fact.name} needs file=")
    return fact


def load(path):
    facts = {}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            fact = parse_line(line, f"{path}:{number}")
            if fact.name in facts:
                raise FactError(f"{path}:{number}: {fact.name} is in the table twice")
            facts[fact.name] = fact
    return facts


def match(prototypes, facts):
    """The fact of every prototype; X_c takes the one of X unless it has its own."""
    matched, missing = {}, []
    for name in prototypes:
        base = name[:-2] if name.endswith("_c") else name
        fact = facts.get(name) or facts.get(base)
        if fact:
            matched[name] = fact
        else:
            missing.append(name)
    if missing:
        raise FactError("not in the table: " + " ".join(missing))
    return matched


def handle_parameter(prototype, value):
    """(KIND, parameter name) of makes= and frees=: the one pointer to a handle, or as stated."""
    if value:
        kind, _, name = value.partition(":")
        parameter(prototype, name)
        return kind.upper(), name
    found = [p for p in prototype.parameters
             if p.type.endswith("*") and not p.array and p.type[:-1].strip() in HANDLES]
    if len(found) != 1:
        raise FactError(f"{prototype.name}: {len(found)} parameters point to a handle, expected 1")
    return HANDLES[found[0].type[:-1].strip()], found[0].name


def parameter(prototype, name):
    """The parameter's name, if there is one of that name."""
    if not prototype.get(name):
        raise FactError(f"{prototype.name} has no parameter '{name}'")
    return name


def parameters(prototype, value):
    return [parameter(prototype, name) for name in value.split(":")]
