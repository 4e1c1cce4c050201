"""Measure what fusion changes in a function: the data of `f.explain(...)`.

All data come from the compiled plan: the traced graph, the steps, and the allocations in its host program. The calls
that the function would make without fusion are planned for comparison. Nothing runs, and plans for comparison are not
compiled. Bytes count distinct elements: the least memory traffic that is possible, whatever the caches do.

Not counted: tensors that a function fills with a number or draws at random, and transfers between host and device.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from ..backends.base import Backend
from ..compiler import pretty_print
from ..compiler.format_node import format_node
from ..compiler.fusion_log import PLACED, REFUSED, record_fusion
from ..compiler.graph import Graph, Refusal
from ..compiler.memory_traffic import OperandTraffic, step_traffic
from ..compiler.pipeline import REWRITES, initial_graph, run_passes
from ..compiler.plan import Plan, function_name
from ..compiler.rules import lower_gather
from ..compiler.tensor_meta import TensorMeta
from ..compiler.trace_result import BACKWARD, PerCallInput, PlanInput, TraceResult
from ..core.dispatch import grad_recording, use_dispatch_hook
from ..core.interning import toposort
from ..core.layout import row_major
from ..ir.array_methods import Array
from ..ir.graph import Argument, Literal, Node, inputs_of, strip_views
from ..ir.steps import NO_BUFFER, Step
from ..tensors.tensor import Tensor
from .explanation import (
    BackwardFacts,
    CompilerPassFacts,
    Explanation,
    GraphNodeFacts,
    KernelFacts,
    NodeFacts,
    OperandFacts,
    PassFacts,
    RefusalFacts,
)
from .fusion_log_text import DecisionText, describe_decisions
from .pass_graph import describe_graph

ALLOCATE_PATTERN = re.compile(r"(\w+) = allocate\((\d+)\)")
LAUNCH_PATTERN = re.compile(r"launch(\d+)\(")
MAX_FORMULA_DEPTH = 3  # nested operations that the description of a node without a number shows


class TracedFunction(Protocol):
    """A function that was traced for inputs of one kind."""

    plan: Plan
    trace: TraceResult


def explain_call(entry: TracedFunction, flat: Sequence[PlanInput], shows_passes: bool = False) -> Explanation:
    """Explain a traced function, called with these inputs. `print` shows the passes of the compiler if requested."""
    plan, trace = entry.plan, entry.trace
    with use_dispatch_hook(None):
        graph = NumberedGraph(plan, trace)
        unfused = UnfusedCalls(trace, plan)
        return Explanation(
            function_name(plan.function),
            str(plan.backend),
            graph.facts(),
            pass_facts(plan, alias_of=find_aliases(flat)),
            unfused.forward(),
            backward_facts(plan, [*flat, *plan.hidden], unfused, graph),
            graph.refusals(),
            graph.steps(flat),
            *compiler_passes(plan),
            shows_passes,
        )


def compiler_passes(plan: Plan) -> tuple[tuple[CompilerPassFacts, ...], tuple[GraphNodeFacts, ...]]:
    """Run the passes of the compiler again. Describe what each of them changes, and the graph that the first one gets."""
    names = plan.host.slot_names[: len(plan.arguments)]
    graph, facts, captured = initial_graph(plan.graph, plan.backward, plan.layouts), list[CompilerPassFacts](), None
    for report in run_passes(graph, plan.backend, names):
        if captured is None:
            captured = describe_graph(graph, report.names)
        changes = tuple(report.changes())
        nodes = describe_graph(report.after, report.names) if changes else ()
        growth = tuple(tuple(report.names[x] for x in d.nodes) for d in report.decisions if d.kind == PLACED)
        facts.append(CompilerPassFacts(report.name, report.summary, changes, nodes, growth))
    return tuple(facts), captured or ()


def find_aliases(inputs: Sequence[PlanInput]) -> dict[int, int]:
    """Map each input to the first input with the same address and dtype."""
    first: dict[object, int] = {}
    keys = [(x.address, x.dtype) if isinstance(x, Tensor) else k for k, x in enumerate(inputs)]
    return {k: first.setdefault(key, k) for k, key in enumerate(keys)}


def pass_facts(plan: Plan, names: Sequence[str] = (), alias_of: Mapping[int, int] | None = None) -> PassFacts:
    """Describe the kernels of a plan; `alias_of` maps an input to the first input in the same memory."""
    names = names or plan.host.slot_names
    kernels = tuple(kernel_facts(step, names, plan, alias_of) for step in plan.steps)
    peak = peak_bytes(plan.text, [kernel.scratch for kernel in kernels])
    return PassFacts(kernels, sum(x.nbytes for x in kernels), sum(x.launches for x in kernels), peak)


def kernel_facts(step: Step, names: Sequence[str], plan: Plan, alias_of: Mapping[int, int] | None = None) -> KernelFacts:
    """Describe one step of a plan."""
    traffic = step_traffic(step, plan.backend, alias_of)

    def facts(operands: Sequence[OperandTraffic], known_names: Sequence[str]) -> tuple[OperandFacts, ...]:
        operand_facts = []
        for k, (slot, layout, dtype, nbytes) in enumerate(operands):
            name = known_names[k] if k < len(known_names) else names[slot]
            operand_facts.append(OperandFacts(name, layout.shape, layout.strides, dtype.name, nbytes))
        return tuple(operand_facts)

    formula, form = pretty_print.format_step(step, names), pretty_print.describe_kernel(step)
    output_names, input_names = pretty_print.operand_names(step, names)
    input_names = [name for name, (slot, _) in zip(input_names, step.inputs, strict=True) if slot != NO_BUFFER]
    reads, writes = facts(traffic.reads, input_names), facts(traffic.writes, output_names)
    compiled = plan.backend.compile(step)
    sizes = traffic.nbytes, traffic.scratch, traffic.launches, traffic.flops
    return KernelFacts(formula, form, reads, writes, *sizes, compiled.schedule, compiled.source)


def peak_bytes(text: str, scratch_nbytes: Sequence[int]) -> int:
    """Return the most bytes that a host program has allocated at once, including the scratch memory of each launch."""
    peak = 0
    for line, live in iter_allocations(text):
        launched = LAUNCH_PATTERN.match(line)
        used = scratch_nbytes[int(launched[1])] if launched else sum(scratch_nbytes) if line.startswith("launches(") else 0
        peak = max(peak, sum(live.values()) + used)
    return peak


def live_buffers(text: str) -> dict[str, int]:
    """Return the buffers that a host program leaves allocated, with their bytes."""
    *_, (_, live) = iter_allocations(text)
    return live


def iter_allocations(text: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each line of a host program, and the bytes of each buffer that is allocated after it."""
    live: dict[str, int] = {}
    for line in map(str.strip, text.splitlines()):
        if allocated := ALLOCATE_PATTERN.fullmatch(line):
            live[allocated[1]] = int(allocated[2])
        elif line.startswith("del "):
            for name in line.removeprefix("del ").split(", "):
                live.pop(name, None)
        yield line, live


class NumberedGraph:
    """The nodes of a call, numbered, inputs first."""

    def __init__(self, plan: Plan, trace: TraceResult) -> None:
        self.plan = plan
        stored = [value for _, value in plan.graph.stores]
        original = toposort([*plan.outputs, *stored], inputs_of)
        graph = Graph(tuple(original))
        for rewrite in REWRITES:
            graph = graph if rewrite is lower_gather else rewrite(graph, plan.backend)
        lowered = lower_gather(Graph(graph.nodes), plan.backend)
        self.origins = dict(zip(lowered.outputs, graph.nodes, strict=True))  # nodes of the compiler -> numbered nodes
        self.added = {*lowered.nodes} - self.origins.keys()  # by lowering: they compute parts of numbered nodes
        self.rewritten = rewritten = dict(zip(original, graph.outputs, strict=True))
        self.lines = {new: trace.lines.get(strip_views(old), "") for old, new in rewritten.items()}
        values = [rewritten[node] for node in dict.fromkeys([*plan.outputs, *stored]) if not rewritten[node].is_number]
        inputs = [x for x in toposort(values, inputs_of) if isinstance(x.function, Argument)]
        self.order = list(dict.fromkeys([*sorted(inputs, key=lambda x: x.function.index), *toposort(values, inputs_of)]))
        self.order = [x for x in self.order if not isinstance(x.function, Literal)]
        self.numbers = {node: k for k, node in enumerate(self.order)}
        for node in reversed(self.order):  # an operand without a line gets the line of an operation that uses it
            for x in node.inputs:
                self.lines[x] = self.lines.get(x) or self.lines.get(node, "")

    def name(self, node: Node, depth: int = MAX_FORMULA_DEPTH) -> str:
        """Return the number of a node; for a node that the compiler created, return its operation."""
        node = self.rewritten.get(node, node)
        if node in self.numbers:
            return f"%{self.numbers[node]}"
        return format_node(node, lambda x: self.name(x, depth - 1)) if depth else "..."

    def describe(self, node: Node) -> str:
        """Format a node with its operation; an input by its name."""
        node = self.rewritten.get(node, node)
        if isinstance(node.function, Argument):
            return self.plan.host.slot_names[node.function.index]
        return f"{self.name(node)} = {format_node(node, self.name)}" if node in self.numbers else self.name(node)

    def line(self, node: Node) -> str:
        """Return the line of the user's code that a node comes from."""
        return self.lines.get(node, "")

    def unique_refusals(self) -> list[Refusal]:
        """Return each pair of nodes that was not fused, with the first reason."""
        first_refusals: dict[tuple[Node, Node], Refusal] = {}
        for *pair, reason in self.plan.refusals:
            producer, consumer = (self.origins.get(x, x) for x in pair)
            if producer is not strip_views(consumer):
                first_refusals.setdefault((producer, strip_views(consumer)), Refusal(producer, consumer, reason))
        return [*first_refusals.values()]

    def refusals(self) -> tuple[RefusalFacts, ...]:
        """Describe each pair of nodes that was not fused."""
        return tuple(
            RefusalFacts(self.describe(producer), self.describe(consumer), reason, self.line(producer))
            for producer, consumer, reason in self.unique_refusals()
        )

    def steps(self, inputs: Sequence[PlanInput]) -> tuple[DecisionText, ...]:
        """Describe the decisions of the compiler. The call is compiled again, because no log was active the first time."""
        plan = self.plan
        with record_fusion() as record:
            logged = Plan(plan.function, inputs, (), (), plan.graph, plan.recompute, plan.backend, plan.names)
        decisions = []
        for decision in record.decisions:
            nodes = (self.origins.get(x, x) for x in decision.nodes if x not in self.added or decision.kind == REFUSED)
            decisions.append(decision._replace(nodes=tuple(dict.fromkeys(nodes))))
        launches = {number: k for k, step in enumerate(logged.steps) for number in step.kernel_numbers}
        return tuple(describe_decisions(decisions, launches, {*self.unique_refusals()}, self.describe, self.numbers))

    def facts(self) -> tuple[NodeFacts, ...]:
        """Describe every node."""
        node_facts = []
        for k, node in enumerate(self.order):
            is_input = isinstance(node.function, Argument)
            name = self.plan.host.slot_names[node.function.index] if is_input else ""
            text = ("number" if node.is_number else "input") if is_input else format_node(node, self.name)
            dtype = str(getattr(node.dtype, "__name__", node.dtype))  # a number has one of Python's types
            node_facts.append(NodeFacts(k, text, name, node.shape, dtype, "" if is_input else self.line(node)))
        return tuple(node_facts)


def empty_tensor_like(x: Any, backend: Backend) -> PlanInput:
    """Return a tensor without memory for metadata, a tensor for an array, and any other input unchanged."""
    if isinstance(x, TensorMeta):
        return Tensor(None, 0, x)  # type: ignore[arg-type]  # nothing runs, so nothing reads its memory
    return Tensor.from_numpy(x, backend) if hasattr(x, "ndim") and x.ndim and not isinstance(x, Array) else x


def dense_meta(node: Node, backend: Backend) -> TensorMeta:
    """Return the metadata of a row-major tensor with the shape and dtype of a node."""
    return TensorMeta(row_major(node.shape), node.dtype, backend, False)


def plan_backward(plan: Plan, inputs_of_plan: Sequence[PlanInput | PerCallInput | TensorMeta]) -> Plan | None:
    """Plan the backward pass of a plan for these inputs; return None if it has none."""
    backward = plan.backward
    if backward is None:
        return None
    needed = [inputs_of_plan[k] for k in backward.inputs]
    inputs = [x.value if isinstance(x, PerCallInput) else x for x in needed]
    output_grads = [dense_meta(y, plan.backend) for y in plan.outputs]
    saved = plan.output_metas[plan.count :]
    backward_inputs = [empty_tensor_like(getattr(x, "meta", x), plan.backend) for x in (*inputs, *output_grads, *saved)]
    with grad_recording(False):
        return Plan(backward.function, backward_inputs)


def backward_facts(
    plan: Plan,
    inputs_of_plan: Sequence[PlanInput | PerCallInput | TensorMeta],
    unfused: "UnfusedCalls",
    graph: NumberedGraph,
) -> BackwardFacts | None:
    """Describe the backward pass: its kernels, and the values that it reads from memory or recomputes."""
    backward_plan, backward = plan_backward(plan, inputs_of_plan), plan.backward
    if backward_plan is None or backward is None:
        return None
    saved = list(zip(backward.saved, plan.output_metas[plan.count :], strict=True))
    input_names = [plan.host.slot_names[k] for k in backward.inputs] + [f"d{k}" for k in range(plan.count)]
    names = input_names + [graph.name(x) for x, _ in saved]
    memory = [*names, *backward_plan.host.slot_names[len(names) :]]
    outputs = {strip_views(y) for y in plan.outputs}
    forward = {x for x in toposort(plan.outputs, inputs_of) if x.inputs and x.is_elementwise}
    saved_nodes = {*backward.saved}
    needed = toposort(backward.function.outputs, lambda x: () if x in saved_nodes else x.inputs)
    return BackwardFacts(
        pass_facts(backward_plan, memory),
        unfused.backward(),
        tuple(
            [plan.host.slot_names[k] for k in backward.inputs]
            + [graph.describe(x) for x, _ in saved if strip_views(x) in outputs]
        ),
        tuple(
            (graph.describe(x), meta.layout.size * meta.dtype.itemsize) for x, meta in saved if strip_views(x) not in outputs
        ),
        tuple(graph.describe(x) for x in needed if x in forward and x not in saved_nodes),
    )


class UnfusedCalls:
    """The calls that a function would make without fusion, each with a plan."""

    def __init__(self, trace: TraceResult, plan: Plan) -> None:
        self.trace, self.plans = trace, list[Plan | None]()
        self.steps: list[tuple[int, PassFacts]] = []  # (call, its kernels), also of backward passes inside the function
        for k, call in enumerate(trace.calls):
            inputs = [empty_tensor_like(x, plan.backend) for x in call.inputs]
            if isinstance(call.function, str):  # BACKWARD
                self.plans.append(None)
                self.steps += [(j, facts) for j in self.reachable_calls(call.reads) if (facts := self.gradient(j))]
            else:
                eager = Plan(call.function, inputs, tuple(range(call.target_count)))
                self.plans.append(eager)
                self.steps.append((k, pass_facts(eager, alias_of=dict(enumerate(call.alias_of)))))

    def reachable_calls(self, calls: Sequence[int]) -> list[int]:
        """Return these calls and all calls that their inputs come from, the last first."""
        reached, pending = set[int](), [k for k in calls if k >= 0]
        while pending:
            k = pending.pop()
            if k not in reached:
                reached.add(k)
                pending += [j for j in self.trace.calls[k].reads if j >= 0]
        return sorted(reached, reverse=True)

    def gradient(self, k: int) -> PassFacts | None:
        """Describe the backward pass of one call; return None if it has none."""
        plan = self.plans[k]
        backward_plan = plan_backward(plan, [*self.trace.calls[k].inputs, *plan.hidden]) if plan else None
        return pass_facts(backward_plan) if backward_plan else None

    def forward(self) -> PassFacts:
        """Sum up all calls of the function."""
        return sum_passes([facts for _, facts in self.steps], self.peak())

    def backward(self) -> PassFacts:
        """Sum up the backward passes of all calls whose results the function returns."""
        passes = [facts for k in self.reachable_calls(sorted(self.trace.returned_calls)) if (facts := self.gradient(k))]
        return sum_passes(passes, max((facts.peak for facts in passes), default=0))

    def peak(self) -> int:
        """Return the most bytes that exist at once, if each result is freed after its last use."""
        calls = self.trace.calls
        last_use = {j: k for k, (n, _) in enumerate(self.steps) for j in (n, *calls[n].reads) if j >= 0}
        kept = {*self.trace.returned_calls}
        differentiated = {k for call in calls if call.function is BACKWARD for k in self.reachable_calls(call.reads)}
        for k, plan in enumerate(self.plans):  # a recorded call keeps the values that its gradient needs
            if plan is not None and plan.backward is not None and k not in differentiated:
                kept |= {k} if plan.backward.saved else set()
                kept |= {calls[k].reads[n] for n in plan.backward.inputs if n < len(calls[k].reads)}
        live: dict[int, int] = {}
        peak = 0
        for k, (n, facts) in enumerate(self.steps):
            peak = max(peak, sum(live.values()) + facts.peak)
            plan = self.plans[n]
            if n not in live and plan is not None and plan.outputs and last_use[n] > k:
                live[n] = sum(live_buffers(plan.text).values())
            live = {j: nbytes for j, nbytes in live.items() if last_use.get(j, -1) > k or j in kept}
        return peak


def sum_passes(passes: Sequence[PassFacts], peak: int) -> PassFacts:
    """Combine several passes into one."""
    kernels = tuple(kernel for facts in passes for kernel in facts.kernels)
    return PassFacts(kernels, sum(x.nbytes for x in passes), sum(x.launches for x in passes), peak)
