"""What fusion makes of a function, in facts: `f.explain(...)`.

Everything is read off what would run: the graph of the capture, the steps of the plan, the allocations in its host program,
and for comparison the plans of the calls that the function would have made by itself. Nothing is run; of the comparison
nothing is compiled either. Bytes are those of distinct elements: what must be moved at least, however caches help.

Not counted: tensors that a function fills with a number or draws, and transfers between host and device.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..compiler import pretty_print
from ..compiler.fusion_log import Refusal, recorded
from ..compiler.memory_traffic import Operand, traffic
from ..compiler.pipeline import rewritten
from ..compiler.plan import Made, Plan, Spec, name_of
from ..compiler.trace_result import BACKWARD, Found
from ..core.autograd import intercepted, recording
from ..core.interning import topological
from ..core.layout import row_major
from ..ir.array_methods import Array
from ..ir.graph import Argument, Literal, Node, base, inputs_of
from ..ir.steps import NOWHERE
from ..tensors.tensor import Tensor
from .explain_text import page
from .fusion_log_text import StepFacts, steps_of

ALLOCATED = re.compile(r"(\w+) = allocate\((\d+)\)")
LAUNCHED = re.compile(r"launch(\d+)\(")
DEPTH = 3  # operations inside each other, in the words for a node that has no number


@dataclass(frozen=True)
class OperandFacts:
    """What a kernel reads or writes."""

    name: str
    shape: tuple[int, ...]
    """As the kernel sees it."""
    strides: tuple[int, ...]
    """In elements."""
    dtype: str
    nbytes: int
    """Of the distinct elements."""


@dataclass(frozen=True)
class KernelFacts:
    """One step of a plan."""

    formula: str
    form: str
    """What kind of kernel it is, and over which space."""
    reads: tuple[OperandFacts, ...]
    writes: tuple[OperandFacts, ...]
    nbytes: int
    """Distinct bytes read, and those written; what its launches hand on to each other is in it twice."""
    scratch: int
    """Bytes that its launches hand on to each other."""
    launches: int
    """Kernels that the backend starts."""
    flops: int
    """Of a product; else 0."""


@dataclass(frozen=True)
class PassFacts:
    """Some kernels, one after the other."""

    kernels: tuple[KernelFacts, ...]
    nbytes: int
    launches: int
    peak: int
    """The most bytes of temporaries and results that live at once, in sizes as they are allocated."""


@dataclass(frozen=True)
class NodeFacts:
    """A value of the graph."""

    number: int
    operation: str
    name: str
    """Of an input, what the user calls it."""
    shape: tuple[int, ...]
    dtype: str
    line: str
    """The user's code, file:line, where it is known."""


@dataclass(frozen=True)
class RefusalFacts:
    """A merge that did not happen."""

    producer: str
    consumer: str
    reason: str
    line: str


@dataclass(frozen=True)
class BackwardFacts:
    """The backward pass. In its formulas d0 is the gradient of result 0, and %5 is node 5 of the graph."""

    run: PassFacts
    unfused: PassFacts
    """Of the calls that the function would have made; sums of gradients that meet are not counted."""
    kept: tuple[str, ...]
    """Inputs and results that live on until then."""
    saved: tuple[tuple[str, int], ...]
    """What is stored for it besides: the value, its bytes."""
    again: tuple[str, ...]
    """Values of the forward pass that it computes a second time."""


@dataclass(frozen=True)
class Explanation:
    """What fusion makes of a function. `print` shows it; `as_dict` gives what JSON can hold.

    All sizes are in bytes.
    """

    function: str
    backend: str
    nodes: tuple[NodeFacts, ...]
    forward: PassFacts
    unfused: PassFacts
    """The calls that the function would have made by itself. A value is taken to be let go after its last use, and Python's
    variables may hold it longer: the peak is a lower bound."""
    backward: BackwardFacts | None
    refusals: tuple[RefusalFacts, ...]
    steps: tuple[StepFacts, ...]
    """How the schedule came to these kernels: its decisions, in order."""

    @property
    def ratio(self) -> float:
        """How many times fewer bytes are moved, forward."""
        return self.unfused.nbytes / max(self.forward.nbytes, 1)

    def as_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, texts and numbers."""
        return {**asdict(self), "ratio": self.ratio}

    def __str__(self) -> str:
        return "\n".join(page(self))


def explained(entry: Any, flat: Sequence[Any]) -> Explanation:
    """The facts of a captured function, called with these inputs."""
    plan, found = entry.plan, entry.found
    with intercepted(None):
        graph = Graph(plan, found)
        unfused = Unfused(found, plan)
        return Explanation(
            name_of(plan.function),
            str(plan.backend),
            graph.facts(),
            pass_of(plan, same=same_among(flat)),
            unfused.forward(),
            backward_of(plan, [*flat, *plan.hidden], unfused, graph),
            graph.refusals(),
            graph.steps(flat),
        )


def same_among(inputs: Sequence[Any]) -> dict[int, int]:
    """Inputs that are the very memory of others."""
    first: dict[Any, int] = {}
    places = [(x.address, x.dtype) if isinstance(x, Tensor) else k for k, x in enumerate(inputs)]
    return {k: first.setdefault(place, k) for k, place in enumerate(places)}


def pass_of(plan: Plan, names: Sequence[str] = (), same: Mapping[int, int] | None = None) -> PassFacts:
    """The kernels of a plan; `same` has inputs that are the very memory of others, and which."""
    names = names or plan.host.memory
    kernels = tuple(kernel_of(step, names, plan, same) for step in plan.steps)
    peak = peak_of(plan.text, [kernel.scratch for kernel in kernels])
    return PassFacts(kernels, sum(x.nbytes for x in kernels), sum(x.launches for x in kernels), peak)


def kernel_of(step: Any, names: Sequence[str], plan: Plan, same: Mapping[int, int] | None = None) -> KernelFacts:
    """One kernel."""
    moved = traffic(step, plan.backend, same)

    def facts(operands: Sequence[Operand], known: Sequence[str]) -> tuple[OperandFacts, ...]:
        found = []
        for k, (slot, of, dtype, nbytes) in enumerate(operands):
            name = known[k] if k < len(known) else names[slot]
            found.append(OperandFacts(name, of.shape, of.strides, dtype.name, nbytes))
        return tuple(found)

    formula, form = pretty_print.formula(step, names), pretty_print.form(step)
    written, read = pretty_print.operand_names(step, names)
    read = [name for name, (slot, _) in zip(read, step.inputs, strict=True) if slot != NOWHERE]
    reads, writes = facts(moved.reads, read), facts(moved.writes, written)
    return KernelFacts(formula, form, reads, writes, moved.nbytes, moved.scratch, moved.launches, moved.flops)


def peak_of(text: str, scratch: Sequence[int]) -> int:
    """The most bytes that a host program holds at once, with what its launches hand on to each other."""
    peak = 0
    for line, live in states(text):
        launched = LAUNCHED.match(line)
        own = scratch[int(launched[1])] if launched else sum(scratch) if line.startswith("launches(") else 0
        peak = max(peak, sum(live.values()) + own)
    return peak


def live_after(text: str) -> dict[str, int]:
    """What a host program leaves allocated, in bytes."""
    *_, (_, live) = states(text)
    return live


def states(text: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Each line of a host program, and what is allocated after it, in bytes."""
    live: dict[str, int] = {}
    for line in map(str.strip, text.splitlines()):
        if allocated := ALLOCATED.fullmatch(line):
            live[allocated[1]] = int(allocated[2])
        elif line.startswith("del "):
            for name in line.removeprefix("del ").split(", "):
                live.pop(name, None)
        yield line, live


class Graph:
    """The nodes of a call, numbered, inputs first."""

    def __init__(self, plan: Plan, found: Found) -> None:
        self.plan = plan
        written = [value for _, value in plan.program.stores]
        before = topological([*plan.outputs, *written], inputs_of)
        after = dict(zip(before, rewritten(before, plan.backend), strict=True))
        self.lines = {new: found.lines.get(base(old), "") for old, new in after.items()}
        values = [after[node] for node in dict.fromkeys([*plan.outputs, *written]) if not after[node].is_number]
        inputs = [x for x in topological(values, inputs_of) if isinstance(x.function, Argument)]
        self.order = list(dict.fromkeys([*sorted(inputs, key=lambda x: x.function.index), *topological(values, inputs_of)]))
        self.order = [x for x in self.order if not isinstance(x.function, Literal)]
        self.numbers = {node: k for k, node in enumerate(self.order)}
        for node in reversed(self.order):  # what an operation is made of comes from its line
            for x in node.inputs:
                self.lines[x] = self.lines.get(x) or self.lines.get(node, "")

    def name(self, node: Node, depth: int = DEPTH) -> str:
        """How the operation of another node refers to it: its number, or what one does that the schedule made."""
        if node in self.numbers:
            return f"%{self.numbers[node]}"
        return pretty_print.operation(node, lambda x: self.name(x, depth - 1)) if depth else "..."

    def say(self, node: Node) -> str:
        """A node, with what it does; an input by its name."""
        if isinstance(node.function, Argument):
            return self.plan.host.memory[node.function.index]
        return f"{self.name(node)} = {pretty_print.operation(node, self.name)}" if node in self.numbers else self.name(node)

    def line(self, node: Node) -> str:
        """The line of the user's code that a node comes from."""
        return self.lines.get(node, "")

    def refused(self) -> list[Refusal]:
        """Each merge that did not happen, with the first reason."""
        found: dict[tuple[Node, Node], Refusal] = {}
        for refusal in self.plan.refusals:
            if refusal.producer is not base(refusal.consumer):
                found.setdefault((refusal.producer, base(refusal.consumer)), refusal)
        return [*found.values()]

    def refusals(self) -> tuple[RefusalFacts, ...]:
        """The same in words."""
        return tuple(
            RefusalFacts(self.say(producer), self.say(consumer), reason, self.line(producer))
            for producer, consumer, reason in self.refused()
        )

    def steps(self, inputs: Sequence[Any]) -> tuple[StepFacts, ...]:
        """The decisions of the schedule, in words: the call is planned once more, as nobody listened the first time."""
        plan = self.plan
        with recorded() as record:
            Plan(plan.function, inputs, (), (), plan.program, plan.recompute, plan.backend, plan.names)
        return tuple(steps_of(record, {*self.refused()}, self.say, self.numbers))

    def facts(self) -> tuple[NodeFacts, ...]:
        """All of them."""
        found = []
        for k, node in enumerate(self.order):
            is_input = isinstance(node.function, Argument)
            name = self.plan.host.memory[node.function.index] if is_input else ""
            text = ("number" if node.is_number else "input") if is_input else pretty_print.operation(node, self.name)
            dtype = str(getattr(node.dtype, "__name__", node.dtype))  # of a number it is Python's own
            found.append(NodeFacts(k, text, name, node.shape, dtype, "" if is_input else self.line(node)))
        return tuple(found)


def stand_in(x: Any, backend: Any) -> Any:
    """A tensor of a spec that has no memory; other inputs as they are."""
    if isinstance(x, Spec):
        return Tensor(None, 0, x)  # type: ignore[arg-type]
    return Tensor.from_numpy(x, backend) if hasattr(x, "ndim") and x.ndim and not isinstance(x, Array) else x


def spec_of(node: Any, backend: Any) -> Spec:
    """The spec of a value like a node."""
    return Spec(row_major(node.shape), node.dtype, backend, False)


def backward_plan(plan: Plan, given: Sequence[Any]) -> Plan | None:
    """The plan of the backward pass of a plan, whose inputs were given."""
    backward = plan.backward
    if backward is None:
        return None
    inputs = [given[k].value if isinstance(given[k], Made) else given[k] for k in backward.inputs]
    arrived = [spec_of(y, plan.backend) for y in plan.outputs]
    kept = [stand_in(getattr(x, "spec", x), plan.backend) for x in (*inputs, *arrived, *plan.specs[plan.count :])]
    with recording(False):
        return Plan(backward.function, kept)


def backward_of(plan: Plan, given: Sequence[Any], unfused: "Unfused", graph: Graph) -> BackwardFacts | None:
    """The backward pass: what it runs, and what it finds again."""
    found, backward = backward_plan(plan, given), plan.backward
    if found is None or backward is None:
        return None
    saved = list(zip(backward.saved, plan.specs[plan.count :], strict=True))
    given_names = [plan.host.memory[k] for k in backward.inputs] + [f"d{k}" for k in range(plan.count)]
    names = given_names + [graph.name(x) for x, _ in saved]
    memory = [*names, *found.host.memory[len(names) :]]
    outputs = {base(y) for y in plan.outputs}
    forward = {x for x in topological(plan.outputs, inputs_of) if x.inputs and x.is_elementwise}
    kept = {*backward.saved}
    needed = topological(backward.function.outputs, lambda x: () if x in kept else x.inputs)
    return BackwardFacts(
        pass_of(found, memory),
        unfused.backward(),
        tuple([plan.host.memory[k] for k in backward.inputs] + [graph.say(x) for x, _ in saved if base(x) in outputs]),
        tuple((graph.say(x), spec.layout.size * spec.dtype.itemsize) for x, spec in saved if base(x) not in outputs),
        tuple(graph.say(x) for x in needed if x in forward and x not in kept),
    )


class Unfused:
    """The calls that a function would have made by itself, each planned."""

    def __init__(self, found: Found, plan: Plan) -> None:
        self.found, self.plans = found, list[Plan | None]()
        self.steps: list[tuple[int, PassFacts]] = []  # (which call, its kernels), backward passes inside the function too
        for k, noted in enumerate(found.calls):
            inputs = [stand_in(x, plan.backend) for x in noted.inputs]
            if noted.function is BACKWARD:
                self.plans.append(None)
                self.steps += [(j, facts) for j in self.reached(noted.reads) if (facts := self.gradient(j))]
            else:
                eager = Plan(noted.function, inputs, tuple(range(noted.targets)))
                self.plans.append(eager)
                self.steps.append((k, pass_of(eager, same=dict(enumerate(noted.same)))))

    def reached(self, calls: Sequence[int]) -> list[int]:
        """The calls that some calls come from, the last first."""
        found, front = set[int](), [k for k in calls if k >= 0]
        while front:
            k = front.pop()
            if k not in found:
                found.add(k)
                front += [j for j in self.found.calls[k].reads if j >= 0]
        return sorted(found, reverse=True)

    def gradient(self, k: int) -> PassFacts | None:
        """The kernels of the backward pass of a call."""
        plan = self.plans[k]
        found = backward_plan(plan, [*self.found.calls[k].inputs, *plan.hidden]) if plan else None
        return pass_of(found) if found else None

    def forward(self) -> PassFacts:
        """All that the function does."""
        return total([facts for _, facts in self.steps], self.peak())

    def backward(self) -> PassFacts:
        """The backward passes of all calls whose results the function gives."""
        found = [facts for k in self.reached(sorted(self.found.gives)) if (facts := self.gradient(k))]
        return total(found, max((facts.peak for facts in found), default=0))

    def peak(self) -> int:
        """The most bytes that live at once, each result until its last use."""
        calls = self.found.calls
        last = {j: k for k, (n, _) in enumerate(self.steps) for j in (n, *calls[n].reads) if j >= 0}
        kept = {*self.found.gives}
        done = {k for noted in calls if noted.function is BACKWARD for k in self.reached(noted.reads)}
        for k, plan in enumerate(self.plans):  # a recorded call holds what its gradient needs
            if plan is not None and plan.backward is not None and k not in done:
                kept |= {k} if plan.backward.saved else set()
                kept |= {calls[k].reads[n] for n in plan.backward.inputs if n < len(calls[k].reads)}
        live: dict[int, int] = {}
        peak = 0
        for k, (n, facts) in enumerate(self.steps):
            peak = max(peak, sum(live.values()) + facts.peak)
            plan = self.plans[n]
            if n not in live and plan is not None and plan.outputs and last[n] > k:
                live[n] = sum(live_after(plan.text).values())
            live = {j: nbytes for j, nbytes in live.items() if last.get(j, -1) > k or j in kept}
        return peak


def total(passes: Sequence[PassFacts], peak: int) -> PassFacts:
    """Several passes as one."""
    kernels = tuple(kernel for facts in passes for kernel in facts.kernels)
    return PassFacts(kernels, sum(x.nbytes for x in passes), sum(x.launches for x in passes), peak)
