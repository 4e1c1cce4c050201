"""The host program of a plan: what one call does, as a few lines of Python.

    def run(x0, x1):
        m0 = allocate(4096)
        launch0(m0.address, x0.address, x1.address)
        return Tensor(m0, m0.address, spec0)

Nothing is decided in it, so a call costs no more than these lines. `del` after the last use of a temporary is all the memory
planning there is: the pool sees it as free, and the next `allocate` of the same call gets it. Where launches are handed over
together, temporaries lie in one buffer.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from keyword import iskeyword
from math import inf, nan
from types import CodeType
from typing import Any

import numpy as np

from ..backends.base import fastest_entry
from ..ir.steps import NO_BUFFER, BufferView, Step
from ..runtime.memory_pool import round_to_size_class
from .buffer_assignment import Arena
from .form_kernels import KernelScheduler

RESERVED_NAMES = re.compile(  # no names for inputs
    r"([xmy]|spec|draw|count|settings)\d+|launch.*|allocate|workspace|Tensor|Call|call|plan|np|inf|nan|run|float"
)

MIN_LAUNCHES_TO_SUBMIT_TOGETHER = 3  # launches, from which on they are handed to a backend together

INPUT_NAME = re.compile(r"\bx(\d+)\b")  # in the text of what each call makes


class HostProgram:
    """The text of a plan's call, and the names that it uses. Kernels are bound when it becomes a function.

    `places` and `specs` are those of the plan's outputs, then of what it saves; `names` are the user's, of the arguments.
    """

    def __init__(
        self,
        plan: Any,
        schedule: KernelScheduler,
        places: Sequence[BufferView],
        specs: Sequence[Any],
        call: type,
        names: Sequence[str] = (),
    ) -> None:
        self.plan, self.schedule, self.places, self.specs = plan, schedule, places, specs
        self.count, self.outputs = len(plan.arguments), len(plan.outputs)
        self.memory = choose_names(names, self.count) + [f"m{k}" for k in range(len(schedule.buffer_nbytes))]
        self.is_joined = plan.backend.can_join_launches and len(schedule.steps) >= MIN_LAUNCHES_TO_SUBMIT_TOGETHER
        self.offsets: dict[int, int] = {}  # in one buffer, in bytes, of temporaries that share it
        self.names = {
            "allocate": plan.backend.allocate,
            "Tensor": plan.tensor,
            "Call": call,
            "plan": plan,
            "np": np,
            "inf": inf,
            "nan": nan,
        }
        given = self.count - len(plan.hidden)
        body = [*self.given(self.memory[given : self.count], plan.hidden), *self.steps()]
        body += [*self.results(), *self.record(), self.returned()]
        self.text = "\n    ".join([f"def run({', '.join(self.memory[:given])}):", *body]) + "\n"

    def function(self, around: Callable[[int, Any], Any] = lambda k, launch: launch) -> Callable[..., Any]:
        """The text as a function, with its kernels bound; `around` may put something in the place of launch k.

        It is our own text, of names and integers: of what a user wrote only identifiers get in.
        """
        bound = [step.bind(self.plan.backend) for step in self.schedule.steps]
        launches = [around(k, launch) for k, launch in enumerate(bound)]
        short = [fastest_entry(launch) for launch in launches]
        names = self.names | {f"launch{k}": launch for k, launch in enumerate(short)}
        if self.is_joined:
            counts = [len(step.address_offsets()) + len(step.numbers) for step in self.schedule.steps]
            joined = self.plan.backend.bind_sequence(bound, counts) if launches == bound else None
            names["launches"] = joined or run_in_sequence(short, counts)
        title = f"<host program of {getattr(self.plan.function, '__name__', self.plan.function)}>"
        exec(compile_text(self.text, title), names)
        run: Callable[..., Any] = names["run"]
        return run

    def given(self, names: Sequence[str], hidden: Sequence[Any]) -> list[str]:
        """Inputs that the caller does not pass: tensors by their names, and what each call makes."""
        lines = []
        for name, x in zip(names, hidden, strict=True):
            if hasattr(x, "text"):
                self.names |= x.names
                lines.append(f"{name} = {INPUT_NAME.sub(lambda of: self.memory[int(of[1])], x.text)}")
            else:
                self.names[name] = x
        return lines

    def address(self, slot: int, offset: int) -> str:
        """The address of a place in the memory of the call; of positions the first one."""
        if slot == NO_BUFFER:
            return str(offset)
        if slot in self.offsets:
            return f"workspace.address + {self.offsets[slot] + offset}"
        return f"{self.memory[slot]}.address{f' + {offset}' * bool(offset)}"

    def steps(self) -> list[str]:
        """Allocate, launch, let go."""
        if self.is_joined:
            return self.joined()
        steps, lines, allocated = self.schedule.steps, [], {NO_BUFFER, *range(self.count)}
        kept = {slot for slot, _ in self.places} | allocated
        last_use = {slot: k for k, step in enumerate(steps) for slot, _ in step.buffer_views()}
        for k, step in enumerate(steps):
            for slot in [slot for slot, _ in step.outputs if slot not in allocated]:
                lines.append(
                    f"{self.memory[slot]} = allocate({round_to_size_class(self.schedule.buffer_nbytes[slot - self.count])})"
                )
                allocated.add(slot)
            lines.append(f"launch{k}({', '.join(self.values(step))})")
            done = [self.memory[slot] for slot in dict(step.buffer_views()) if last_use[slot] == k and slot not in kept]
            lines += [f"del {', '.join(done)}"] * bool(done)
        return lines

    def values(self, step: Step) -> list[str]:
        """Addresses and numbers of a launch."""
        values = [self.address(slot, offset) for slot, offset in step.address_offsets()]
        return values + [x if isinstance(x, str) else self.memory[x] for x in step.numbers]

    def joined(self) -> list[str]:
        """Allocate everything, then launch everything at once. Temporaries lie in one buffer, some where others lay before.

        To let them go before the launches have happened would lend them to another thread.
        """
        steps, lines, calls, workspace = self.schedule.steps, list[str](), list[str](), Arena()
        allocated = {NO_BUFFER, *range(self.count)}
        kept = {slot for slot, _ in self.places} | allocated
        last_use = {slot: k for k, step in enumerate(steps) for slot, _ in step.buffer_views()}
        for k, step in enumerate(steps):
            for slot in [slot for slot, _ in step.outputs if slot not in allocated]:
                nbytes = self.schedule.buffer_nbytes[slot - self.count]
                if slot in kept:
                    lines.append(f"{self.memory[slot]} = allocate({round_to_size_class(nbytes)})")
                else:
                    self.offsets[slot] = workspace.alloc(nbytes)
                allocated.add(slot)
            calls.append(f"    {', '.join(self.values(step))},  # launch{k}")
            for slot in dict(step.buffer_views()):
                if last_use[slot] == k and slot not in kept:
                    workspace.free(self.offsets[slot], self.schedule.buffer_nbytes[slot - self.count])
        if workspace.size:
            lines.append(f"workspace = allocate({round_to_size_class(workspace.size)})")
        return [*lines, "launches(", *calls, ")", *["del workspace"] * bool(workspace.size)]

    def results(self) -> list[str]:
        """A tensor around each output, and around what is saved."""
        lines = []
        for k, ((slot, layout), spec) in enumerate(zip(self.places, self.specs, strict=True)):
            owner = self.plan.graph.owners.get(k, slot) if slot < self.count else slot  # the argument that it is a view of
            buffer = self.memory[owner] + ".buffer" * (owner < self.count)
            lines.append(f"y{k} = Tensor({buffer}, {self.address(slot, layout.offset * spec.dtype.itemsize)}, spec{k})")
            self.names[f"spec{k}"] = spec
        return lines

    def record(self) -> list[str]:
        """The call, for backpropagation."""
        backward = self.plan.backward
        if backward is None:
            return []
        edges = [f"{self.memory[k]}.grad_fn or {self.memory[k]}" for k in backward.arguments_with_grad]
        kept = [self.memory[k] for k in backward.inputs] + [f"y{k}" for k in range(self.outputs, len(self.places))]
        lines = [f"call = Call(plan, ({''.join(f'{e}, ' for e in edges)}), ({''.join(f'{x}, ' for x in kept)}))"]
        return lines + [f"y{k}.grad_fn = call, {k}" for k in range(self.outputs) if self.specs[k].requires_grad]

    def returned(self) -> str:
        """What the function gives."""
        if not self.places:  # all is stored in the targets
            return "return None"
        return f"return {', '.join(f'y{k}' for k in range(self.outputs))}{',' * self.plan.is_tuple}"


@lru_cache(1024)
def compile_text(text: str, title: str) -> CodeType:
    """A host program, compiled by Python: programs of calls that differ in sizes alone are often one text."""
    return compile(text, title, "exec")


def run_in_sequence(launches: Sequence[Any], counts: Sequence[int]) -> Callable[..., None]:
    """Several launches as one, which takes the values of all."""
    ends = list(accumulate(counts))

    def launch(*values: Any) -> None:
        for run, end, count in zip(launches, ends, counts, strict=True):
            run(*values[end - count : end])

    return launch


def choose_names(names: Sequence[str], count: int) -> list[str]:
    """What the text calls the arguments: the user's names, where Python takes them and they are free; else x0, x1, ..."""
    found: list[str] = []
    for k in range(count):
        name = names[k] if k < len(names) else ""
        is_free = name.isidentifier() and not (iskeyword(name) or RESERVED_NAMES.fullmatch(name) or name in found)
        found.append(name if is_free else f"x{k}")
    return found
