"""The host program of a plan: the Python function that one call runs.

    def run(x0, x1):
        m0 = allocate(4096)
        launch0(m0.address, x0.address, x1.address)
        return Tensor(m0, m0.address, meta0)

All decisions are made when the plan is built, so a call costs no more than these lines. The memory of a temporary is freed
by `del` after its last use: the next `allocate` of the same call can reuse it. If all launches are submitted together,
temporaries share one arena.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, starmap
from keyword import iskeyword
from math import inf, nan
from types import CodeType
from typing import Any, cast

import numpy as np

from ..backends.base import Backend, Launcher, fastest_entry
from ..core.dtypes import Number
from ..core.interning import toposort
from ..ir.graph import inputs_of
from ..ir.steps import NO_BUFFER, BufferView, Step
from ..ir.vjp import Backward
from ..runtime.compile_workers import MIN_KERNELS_FOR_WORKERS, load_in_parallel
from ..runtime.memory_pool import round_to_size_class
from .graph import Graph
from .tensor_meta import TensorMeta
from .trace_result import PerCallInput, TracedGraph

RESERVED_NAMES = re.compile(  # names that the program uses itself, so no input may have such a name
    r"([xmy]|meta|draw|count|settings)\d+|launch.*|allocate|workspace|Tensor|Call|call|plan|np|inf|nan|run|float"
)

INPUT_NAME = re.compile(r"\bx(\d+)\b")  # the name of an input, in the text of a per-call input

# The memory of a plan, fitted to measurements with `tracemalloc` of single ops, loops, networks and training steps on 64-bit
# Python 3.11. Compiled kernels belong to the kernel cache, and are not counted.
PLAN_NBYTES = 3_000  # bytes of an empty plan
NODE_NBYTES = 350  # bytes of a node of its graph
STEP_NBYTES = 1_000  # bytes of a step, without its operands
OPERAND_NBYTES = 400  # bytes of an operand of a step
EXPRESSION_NBYTES = 200  # bytes of a distinct expression of its kernels


class HostProgram:
    """The text of a plan's host program, and the objects that its names refer to.

    `compile_function` binds the kernels, and compiles the text.

    Parameters
    ----------
    graph : TracedGraph
    backward : Backward or None
        The backward pass, if calls are recorded.
    compiled : Graph
        The steps, and the sizes of the buffers.
    backend : Backend
    results : sequence of BufferView
        The buffers of the plan's outputs, then those of the values that it saves.
    metas : sequence of TensorMeta
        One for each of the results.
    constants : dict of str to object
        Names that the plan defines: `plan`, the class `Tensor`, and the class `Call` of the tape node of a recorded
        call.
    title : str
        The function's name, for tracebacks.
    names : sequence of str
        The user's names of the arguments.

    Attributes
    ----------
    text : str
    slot_names : list of str
        The name of each slot: arguments, then buffers.
    """

    def __init__(
        self,
        graph: TracedGraph,
        backward: Backward | None,
        compiled: Graph,
        backend: Backend,
        results: Sequence[BufferView],
        metas: Sequence[TensorMeta],
        constants: dict[str, object],
        title: str,
        names: Sequence[str] = (),
    ) -> None:
        self.graph, self.backward, self.compiled, self.backend = graph, backward, compiled, backend
        self.steps, self.offsets = compiled.steps, compiled.offsets or {}
        self.results, self.metas, self.title = results, metas, title
        self.argument_count, self.output_count = len(graph.arguments), len(graph.outputs)
        buffer_names = [f"m{k}" for k in range(len(compiled.buffer_nbytes))]
        self.slot_names = choose_names(names, self.argument_count) + buffer_names
        self.namespace = constants | {"allocate": backend.allocate, "np": np, "inf": inf, "nan": nan}
        passed_count = self.argument_count - len(graph.hidden)
        hidden_names = self.slot_names[passed_count : self.argument_count]
        body = [*self.hidden_inputs(hidden_names), *self.run_steps()]
        body += [*self.make_results(), *self.record_call(), self.return_outputs()]
        self.text = "\n    ".join([f"def run({', '.join(self.slot_names[:passed_count])}):", *body]) + "\n"

    def compile_function(self, wrap: Callable[[int, Launcher], Launcher] | None = None) -> Callable[..., Any]:
        """Compile the text to a function, with its kernels bound. `wrap(k, launch)` may replace launch k.

        `exec` runs only text that this module has written, from names and integers. All that the text contains of the user's
        source is identifiers.
        """
        loads = [self.backend.compile(step).load for step in self.steps]
        bound = load_in_parallel(loads) if len(loads) >= MIN_KERNELS_FOR_WORKERS else [load() for load in loads]
        launches = bound if wrap is None else [wrap(k, launch) for k, launch in enumerate(bound)]
        entries = [*map(fastest_entry, launches)]
        names = self.namespace | {f"launch{k}": entry for k, entry in enumerate(entries)}
        if self.compiled.offsets is not None and (join := self.backend.join) is not None:
            counts = [len(step.address_offsets()) + len(step.numbers) for step in self.steps]
            sequence = join(bound, counts, self.compiled.waits) if launches == bound else None
            names["launches"] = sequence or make_sequence_launcher(entries, counts)
        exec(compile_text(self.text, f"<host program of {self.title}>"), names)
        return cast(Callable[..., Any], names["run"])

    def plan_nbytes(self) -> int:
        """Estimate the memory of the plan in bytes from the number of its parts: measuring it would take longer."""
        graph, steps = self.graph, self.steps
        roots = [*graph.outputs, *[x for _, x in graph.stores], *(self.backward.saved if self.backward else ())]
        nbytes = PLAN_NBYTES + len(self.text) + NODE_NBYTES * len(toposort(roots, inputs_of)) + STEP_NBYTES * len(steps)
        nbytes += OPERAND_NBYTES * sum([len(step.inputs) + len(step.outputs) for step in steps])
        return nbytes + EXPRESSION_NBYTES * len({e for step in steps for e in step.kernel.order})

    def compile_tuning_function(self) -> Callable[..., Any]:
        """Compile the text to a function whose first call searches the best schedule of each kernel that has one."""
        program, is_tuned = self.compile_function(lambda _, launch: self.backend.tuned_launch(launch)), False

        def run(*inputs: Any) -> Any:
            nonlocal program, is_tuned
            if is_tuned:
                return program(*inputs)
            result = program(*inputs)
            program, is_tuned = self.compile_function(), True
            return result

        return run

    def hidden_inputs(self, names: Sequence[str]) -> list[str]:
        """Return lines that define the inputs that the caller does not pass: tensors, and values made in each call."""
        lines = []
        for name, x in zip(names, self.graph.hidden, strict=True):
            if isinstance(x, PerCallInput):
                self.namespace |= x.names
                lines.append(f"{name} = {INPUT_NAME.sub(lambda match: self.slot_names[int(match[1])], x.text)}")
            else:
                self.namespace[name] = x
        return lines

    def address(self, slot: int, offset: int) -> str:
        """Return the expression of an address: `offset` bytes after the start of a slot."""
        if slot == NO_BUFFER:  # an Iota has no memory: the offset is its first element
            return str(offset)
        if slot in self.offsets:
            return f"workspace.address + {self.offsets[slot] + offset}"
        return f"{self.slot_names[slot]}.address{f' + {offset}' * bool(offset)}"

    def allocations(self, slots: Iterable[int]) -> list[str]:
        """Return lines that allocate buffers."""
        lines = dict[int, str]()
        for slot in slots:
            if slot >= self.argument_count:
                size = round_to_size_class(self.compiled.buffer_nbytes[slot - self.argument_count])
                lines[slot] = f"{self.slot_names[slot]} = allocate({size})"
        return [*lines.values()]

    def run_steps(self) -> list[str]:
        """Return lines that allocate buffers, launch kernels, and free the buffers again."""
        if self.compiled.offsets is not None:
            return self.submit_steps()
        lines, allocated, lifetimes = list[str](), set[int](), self.compiled.lifetimes
        for k, step in enumerate(self.steps):
            written = [slot for slot, _ in step.outputs]
            lines += self.allocations([slot for slot in written if slot not in allocated])
            allocated.update(written)
            lines.append(f"launch{k}({', '.join(self.launch_values(step))})")
            used = dict(step.buffer_views()) if lifetimes else {}
            if dead := [self.slot_names[slot] for slot in used if slot in lifetimes and lifetimes[slot].last_step == k]:
                lines.append(f"del {', '.join(dead)}")
        return lines

    def launch_values(self, step: Step) -> list[str]:
        """Return the expressions of a launch's addresses and numbers."""
        addresses = [*starmap(self.address, step.address_offsets())]
        return addresses + [x if isinstance(x, str) else self.slot_names[x] for x in step.numbers]

    def submit_steps(self) -> list[str]:
        """Return lines that allocate all buffers, then submit all launches together. Temporaries share one arena.

        The arena is freed after the submission. If it were freed earlier, another thread could allocate it before
        the launches have run.
        """
        lines = self.allocations(x for step in self.steps for x, _ in step.buffer_views() if x not in self.offsets)
        if self.offsets:
            lines.append(f"workspace = allocate({round_to_size_class(self.compiled.arena_nbytes)})")
        calls = [f"    {', '.join(self.launch_values(step))},  # launch{k}" for k, step in enumerate(self.steps)]
        return [*lines, "launches(", *calls, ")", *["del workspace"] * bool(self.offsets)]

    def make_results(self) -> list[str]:
        """Return lines that make a tensor for each output, and for each value that is saved."""
        lines = []
        for k, ((slot, layout), meta) in enumerate(zip(self.results, self.metas, strict=True)):
            is_argument = slot < self.argument_count
            owner = self.graph.owners.get(k, slot) if is_argument else slot  # the slot whose buffer the tensor shares
            buffer = self.slot_names[owner] + ".buffer" * (owner < self.argument_count)
            lines.append(f"y{k} = Tensor({buffer}, {self.address(slot, layout.offset * meta.dtype.itemsize)}, meta{k})")
            self.namespace[f"meta{k}"] = meta
        return lines

    def record_call(self) -> list[str]:
        """Return lines that record the call for backpropagation."""
        backward = self.backward
        if backward is None:
            return []
        edges = [f"{self.slot_names[k]}.grad_fn or {self.slot_names[k]}" for k in backward.arguments_with_grad]
        saved = [self.slot_names[k] for k in backward.inputs]
        saved += [f"y{k}" for k in range(self.output_count, len(self.results))]
        lines = [f"call = Call(plan, ({''.join(f'{x}, ' for x in edges)}), ({''.join(f'{x}, ' for x in saved)}))"]
        return lines + [f"y{k}.grad_fn = call, {k}" for k in range(self.output_count) if self.metas[k].requires_grad]

    def return_outputs(self) -> str:
        """Return the last line, which returns the outputs."""
        if not self.results:  # everything is stored in the targets
            return "return None"
        return f"return {', '.join([f'y{k}' for k in range(self.output_count)])}{',' * self.graph.is_tuple}"


@lru_cache(1024)
def compile_text(text: str, title: str) -> CodeType:
    """Compile a host program to bytecode. Programs for calls that differ only in sizes often have the same text."""
    return compile(text, title, "exec")


def make_sequence_launcher(launches: Sequence[Launcher], counts: Sequence[int]) -> Launcher:
    """Return a function that runs several launches. It takes the values of all launches in turn, counts[k] for launch k."""
    ends = list(accumulate(counts))

    def launch(*values: Number) -> None:
        for run, end, count in zip(launches, ends, counts, strict=True):
            run(*values[end - count : end])

    return launch


def choose_names(names: Sequence[str], count: int) -> list[str]:
    """Return the names of the arguments in the text: the user's if they are free identifiers, else x0, x1, ..."""
    chosen: list[str] = []
    for k in range(count):
        name = names[k] if k < len(names) else ""
        is_free = name.isidentifier() and not (iskeyword(name) or RESERVED_NAMES.fullmatch(name) or name in chosen)
        chosen.append(name if is_free else f"x{k}")
    return chosen
