"""The host program of a plan: what one call does, as a few lines of Python.

    def run(x0, x1):
        m0 = allocate(4096)
        launch0(m0.address, x0.address, x1.address)
        return Tensor(m0, m0.address, spec0)

Nothing is decided in it, so a call costs no more than these lines. `del` after the last use of a temporary is all the memory
planning there is: the pool sees it as free, and the next `allocate` of the same call gets it.
"""

from collections.abc import Callable, Sequence
from math import inf, nan
from typing import Any

from ..storage import binned
from .schedule import Schedule
from .steps import Place


class HostProgram:
    """The text of a plan's call, and the names that it uses.

    `places` and `specs` are those of the plan's outputs, then of what it saves; `targets` are the arguments that the first
    outputs are stored in.
    """

    def __init__(self, plan: Any, schedule: Schedule, places: Sequence[Place], specs: Sequence[Any], call: type) -> None:
        self.plan, self.schedule, self.places, self.specs = plan, schedule, places, specs
        self.count, self.outputs = len(plan.arguments), len(plan.outputs)
        self.memory = [f"x{k}" for k in range(self.count)] + [f"m{k}" for k in range(len(schedule.sizes))]
        self.names = {
            "allocate": plan.backend.allocate,
            "Tensor": plan.tensor,
            "Call": call,
            "plan": plan,
            "inf": inf,
            "nan": nan,
        }
        given = self.count - len(plan.hidden)
        self.names |= dict(zip(self.memory[given:], plan.hidden))  # noqa: B905  # the buffers come after
        body = [*self.steps(), *self.results(), *self.record(), self.returned()]
        self.text = "\n    ".join([f"def run({', '.join(self.memory[:given])}):", *body]) + "\n"

    def function(self) -> Callable[..., Any]:
        """The text as a function. It is our own text, of names and integers: nothing that a user wrote gets in."""
        exec(
            compile(self.text, f"<host program of {getattr(self.plan.function, '__name__', self.plan.function)}>", "exec"),
            self.names,
        )
        run: Callable[..., Any] = self.names["run"]
        return run

    def address(self, slot: int, offset: int) -> str:
        """The address of a place in the memory of the call."""
        return f"{self.memory[slot]}.address{f' + {offset}' * bool(offset)}"

    def steps(self) -> list[str]:
        """Allocate, launch, let go."""
        steps, lines, allocated = self.schedule.steps, [], set(range(self.count))
        kept = {slot for slot, _ in self.places} | allocated
        last_use = {slot: k for k, step in enumerate(steps) for slot, _ in step.outputs + step.inputs}
        for k, step in enumerate(steps):
            for slot in [slot for slot, _ in step.outputs if slot not in allocated]:
                lines.append(f"{self.memory[slot]} = allocate({binned(self.schedule.sizes[slot - self.count])})")
                allocated.add(slot)
            self.names[f"launch{k}"] = step.bind(self.plan.backend)
            values = [self.address(slot, offset) for slot, offset in step.operands()]
            values += [x if isinstance(x, str) else self.memory[x] for x in step.numbers]
            lines.append(f"launch{k}({', '.join(values)})")
            done = [
                self.memory[slot] for slot in dict(step.outputs + step.inputs) if last_use[slot] == k and slot not in kept
            ]
            lines += [f"del {', '.join(done)}"] * bool(done)
        return lines

    def results(self) -> list[str]:
        """A tensor around each output, and around what is saved."""
        lines = []
        for k, ((slot, layout), spec) in enumerate(zip(self.places, self.specs, strict=True)):
            buffer = self.memory[slot] + ".buffer" * (slot < self.count)
            lines.append(f"y{k} = Tensor({buffer}, {self.address(slot, layout.offset * spec.dtype.itemsize)}, spec{k})")
            self.names[f"spec{k}"] = spec
        return lines

    def record(self) -> list[str]:
        """The call, for backpropagation."""
        backward = self.plan.backward
        if backward is None:
            return []
        edges = [f"{self.memory[k]}.history or {self.memory[k]}" for k in backward.receivers]
        kept = [self.memory[k] for k in backward.inputs] + [f"y{k}" for k in range(self.outputs, len(self.places))]
        lines = [f"call = Call(plan, ({''.join(f'{e}, ' for e in edges)}), ({''.join(f'{x}, ' for x in kept)}))"]
        return lines + [f"y{k}.history = call, {k}" for k in range(self.outputs) if self.specs[k].requires_grad]

    def returned(self) -> str:
        """What the function gives."""
        if not self.places:  # all is stored in the targets
            return "return None"
        return f"return {', '.join(f'y{k}' for k in range(self.outputs))}{',' * self.plan.is_tuple}"
