# SPDX-License-Identifier: MIT
"""The C text of one wrapper. Templates here, decisions in calls.txt, logic in wrappers.h."""
from facts import FactError, handle_parameter, parameter, parameters

TRIAL = "PL_UNLIKELY(pl_trial_active)"


def indent(lines):
    """Indents by braces, and the statement under an if without one."""
    out, depth, extra = [], 1, 0
    for line in "\n".join(lines).split("\n"):
        depth -= line.startswith("}")
        out.append("    " * (depth + extra) + line)
        depth += line.endswith("{")
        extra = int(line.startswith("if (") and not line.endswith(("{", ";")))
    return "\n".join(out)


def call_name(name):
    return name[4:] if name.startswith("MPI_") else name


class Body:
    """Pieces of the wrapper of one function; each method gives the C lines of one piece."""

    def __init__(self, prototype, fact, prototypes):
        self.p, self.fact, self.keys = prototype, fact, fact.keys
        self.prototypes = prototypes
        self.call = call_name(prototype.name)
        self.comms = [q.name for q in prototype.of_type("MPI_Comm")]
        self.comm = f"real_{self.comms[0]}" if self.comms else None

    def translate(self):
        return [f"MPI_Comm real_{c} = pl_comm({c});" for c in self.comms]

    def arguments(self, *more):
        names = [f"real_{q.name}" if q.name in self.comms else q.name for q in self.p.parameters]
        return ", ".join(names + list(more))

    def plain(self):
        return f"P{self.p.name}({self.arguments()})"

    def reads(self):
        if "reads" not in self.keys:
            return []
        spec, _, at_root = self.keys["reads"].partition("@")
        how, names = spec.split(":", 1)
        buffer, *rest = parameters(self.p, names)
        if how == "vector":
            how += "_c" if self.p.name.endswith("_c") else ""
        if "receives" in self.keys or "sends" in self.keys:
            return [f"pl_trial_reads({', '.join([buffer] + rest)});"]
        root = parameter(self.p, "root") if at_root else "-1"
        return [f"pl_trial_reads_{how}({self.comm}, {root}, {', '.join([buffer] + rest)});"]

    def signature(self):
        root = parameter(self.p, self.keys["root"]) if "root" in self.keys else "-1"
        size = "0"
        if "same" in self.keys:
            size = f"pl_trial_bytes({', '.join(parameters(self.p, self.keys['same']))})"
        return f"pl_trial_signature(PL_CALL_{self.call}, {self.comm}, {root}, {size})"

    def gate(self):
        """Meeting the other ranks. Only the collectives with a stub have a frame."""
        lines = self.gate_call()
        return ["pl_frame = NULL;", *lines] if lines and self.fact.kind != "coll" else lines

    def gate_call(self):
        if "gate-handle" in self.keys:
            _, name = handle_parameter(self.p, "")
            return [f"pl_trial_gate(pl_comm(*{name}), PL_CALL_{self.call} + 1);"]
        if self.fact.kind in ("coll", "create") or "gate" in self.keys:
            return [f"pl_trial_gate({self.comm}, {self.signature()});"]
        if self.fact.kind == "persistent" and self.keys.get("kind") == "other":
            return [f"pl_trial_gate({self.comm}, {self.signature()});"]
        return []

    def before_in_trial(self):
        lines = self.reads() + self.gate()
        if "refuse" in self.keys:
            lines.append(f'pl_trial_refuse("{self.p.name}");')
        return [f"if ({TRIAL}) {{", *lines, "}"] if lines else []

    def messages(self):
        """Messages are counted when they are started, before anything can give up."""
        lines = []
        if "sends" in self.keys:
            dest = parameter(self.p, self.keys["sends"])
            lines.append(f"pl_quiet.sent += {dest} != MPI_PROC_NULL;")
        if "receives" in self.keys:
            source = parameter(self.p, self.keys["receives"])
            lines.append(f"pl_quiet.received += {source} != MPI_PROC_NULL;")
        if "message" in self.keys:
            lines.append("pl_quiet.received += pl_counted;")
        return lines

    def before(self):
        lines = []
        if "message" in self.keys:
            message = parameter(self.p, self.keys["message"])
            lines.append(f"long pl_counted = pl_message_counts(*{message});")
        if self.fact.kind == "block" or "not-resizable" in self.keys:
            lines.append(f'pl_not_resizable("{self.fact.reason}");')
        if "frees" in self.keys:
            _, name = handle_parameter(self.p, self.keys["frees"])
            lines.append(f"int pl_freed = *{name};")
        return lines

    def evidence(self):
        lines = []
        if "evidence-receive" in self.keys:
            names = parameters(self.p, self.keys["evidence-receive"])
            lines.append(f"pl_evidence_receive_buffer({', '.join(names)});")
        if "evidence" in self.keys:
            part, count, kind, whole, counts, displs, whole_kind = parameters(
                self.p, self.keys["evidence"])
            root = parameter(self.p, self.keys["root"]) if "root" in self.keys else "-1"
            large = "true" if self.p.name.endswith("_c") else "false"
            lines.append("pl_evidence_collective(&(struct pl_evidence){"
                         f"PL_CALL_{self.call}, {self.comm}, {root}, {part}, {count}, {kind}, "
                         f"{whole}, {counts}, {displs}, {whole_kind}, {large}}});")
        wanted = "if (PL_UNLIKELY(pl_evidence_on) && rc == MPI_SUCCESS) {"
        return [wanted, *lines, "}"] if lines else []

    def handles(self):
        lines = []
        if "makes" in self.keys:
            kind, name = handle_parameter(self.p, self.keys["makes"])
            if kind in ("COMM", "WIN") and self.comm:
                lines.append(f"pl_made_{kind.lower()}({self.comm}, *{name}, RETURN_ADDRESS);")
            else:
                lines.append(f"pl_made(PL_HANDLE_{kind}, *{name}, RETURN_ADDRESS);")
        if "frees" in self.keys:
            kind, _ = handle_parameter(self.p, self.keys["frees"])
            lines.append(f"pl_freed_handle(PL_HANDLE_{kind}, pl_freed, RETURN_ADDRESS);")
        return lines

    def requests(self):
        if self.fact.kind == "persistent":
            kind = self.keys.get("kind", "")
            if kind not in ("send", "receive", "other"):
                raise FactError(f"{self.p.name}: kind= must be send, receive or other")
            partner = parameter(self.p, self.keys["partner"]) if "partner" in self.keys else "0"
            return [f"pl_persistent_made(*request, PL_PERSISTENT_{kind.upper()}, {partner});"]
        request = self.p.of_type("MPI_Request *")
        if self.fact.kind in ("request", "rma") and request:
            return [f"pl_request_started(*{request[0].name});"]
        return []

    def windows(self):
        lines = []
        if self.fact.kind == "rma":
            lines.append(f"pl_rma_operation({parameter(self.p, 'win')});")
        if "opens" in self.keys:
            lines.append("pl_quiet.locks++;")
        if "closes" in self.keys:
            lines.append("pl_quiet.locks--;")
        if "closes" in self.keys or "synchronises" in self.keys:
            lines.append(f"pl_rma_synchronised({parameter(self.p, 'win')});")
        return lines

    def after(self):
        lines = self.handles() + self.requests() + self.windows()
        if self.fact.kind != "recv" and self.fact.kind != "send":
            lines = self.messages() + lines
        return ["if (rc == MPI_SUCCESS) {", *lines, "}"] if lines else []


def non_blocking(body):
    """Name of the non-blocking variant, which must take the same arguments and a request."""
    name = body.p.name
    variant = f"MPI_I{name[4].lower()}{name[5:]}"
    other = body.prototypes.get(variant)
    if not other:
        raise FactError(f"{name} is in class {body.fact.kind} but there is no {variant}")
    return f"P{variant}"


def render_plain(body):
    result = body.p.result
    lines = body.translate() + body.before() + body.before_in_trial()
    if result != "int":
        return lines + [f"return {body.plain()};"]
    lines.append(f"int rc = {body.plain()};")
    lines.append(f"if ({TRIAL})\nrc = pl_trial_result(rc);")
    return lines + body.after() + body.evidence() + ["return rc;"]


def render_message(body):
    """Send and Recv: a trial polls the non-blocking variant."""
    status = "status" if body.p.get("status") else None
    call = body.p.parameters[:-1] if status else body.p.parameters
    names = [f"real_{q.name}" if q.name in body.comms else q.name for q in call]
    start = f"{non_blocking(body)}({', '.join(names + ['&pl_request'])})"
    status = status or "MPI_STATUS_IGNORE"
    return (body.translate() + body.before() + ["int rc;", *body.messages(), f"if ({TRIAL}) {{",
            "MPI_Request pl_request = MPI_REQUEST_NULL;", *body.reads(), f"rc = {start};",
            f"rc = pl_trial_complete(rc, &pl_request, {status});", "} else {",
            f"rc = {body.plain()};", "}"] + body.evidence() + ["return rc;"])


def render_sendrecv(body):
    """Sendrecv and Sendrecv_replace: a trial hands over to a function with the logic."""
    large = body.p.name.removesuffix("_c").removeprefix("MPI_").lower()
    return (body.translate() + ["int rc;", f"if ({TRIAL}) {{", *body.reads(), *body.messages(),
            f"rc = pl_trial_{large}({body.arguments()});", "} else {", f"rc = {body.plain()};",
            *body.messages(), "}"] + body.evidence() + ["return rc;"])


def stack_words(arguments):
    """What a stub pushes below its struct pl_frame, in words: the seventh argument and so on, and
    one word more where the stack pointer would not be a multiple of 16 at the call."""
    on_stack = max(0, arguments - 6)
    return on_stack + on_stack % 2


def trial_function(body):
    """A collective in a trial; a function of its own, so that the usual path saves no registers."""
    start = f"{non_blocking(body)}({body.arguments('&pl_request')})"
    lines = body.translate() + ["MPI_Request pl_request = MPI_REQUEST_NULL;", *body.reads(),
                                *body.gate(), f"int rc = {start};",
                                "return pl_trial_complete(rc, &pl_request, MPI_STATUS_IGNORE);"]
    head = f"static COLD int pl_try_{body.p.name}({body.p.signature})"
    return f"{head}\n{{\n{indent(lines)}\n}}\n\n"


def render_collective(body):
    again = ", ".join(q.name for q in body.p.parameters)
    words = stack_words(len(body.p.parameters))
    return (body.translate() +
            [f"int rc = {TRIAL} ? pl_try_{body.p.name}({again})", f"    : {body.plain()};"] +
            body.evidence() +
            [f"pl_frame = STUB_FRAME({words});",
             f"return pl_arrive(PL_CALL_{body.call}, {body.comms[0]}, rc);"])


RENDER = {"coll": render_collective, "send": render_message, "recv": render_message,
          "sendrecv": render_sendrecv}


def render(prototype, fact, prototypes):
    """The whole wrapper. A collective is called by its stub under another name."""
    body = Body(prototype, fact, prototypes)
    lines = indent(RENDER.get(fact.kind, render_plain)(body))
    if fact.kind == "coll":
        name = f"pl_wrap_{prototype.name}"
        head = (trial_function(body) +
                f"HIDDEN int {name}({prototype.signature});\nint {name}({prototype.signature})")
    else:
        head = f"PL_EXPORT {prototype.result} {prototype.name}({prototype.signature})"
    return f"{head}\n{{\n{lines}\n}}\n"
