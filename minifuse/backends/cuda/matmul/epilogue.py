"""What a matrix product does besides multiplying: prologue and epilogue as device functions, printed as Python.

The kernels of products are written by hand and call four functions at their edges; of a plain product these do nothing.

    finish(total, row, col, at)             what becomes of a sum, the epilogue: gives the first output, stores the others
    finish_four(totals, row, col, at)       the same of four sums side by side, with loads and stores of 16 bytes
    change_a(x, row, k, at)                 what becomes of an element of a on its way in, the prologue
    change_b(x, col, k, at)                 the same of b

`at` says which matrix of the batch it is, and holds `extra`: the pointers, numbers and strides that the functions read.
These travel behind the kernel's own arguments, so the text knows no size, and of strides only whether they are 0, 1 or more.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ....ir.kernel_ir import Accumulator, Expression, IndexValue, Kernel, Load, MatmulKernel, Parameter, ReadOutput
from ...codegen.loop_emitter import operand_name
from ..codegen.base import CudaSource, storage_of
from ..compiler import functions_from_text
from ..intrinsics.base import device

AXES = ("outer", "inner", "row", "col", "k")  # two of the batch, and those of the product
COL = AXES.index("col")


@device
def identity_epilogue(total: Any, row: Any, col: Any, at: Any) -> Any:
    """The sum itself."""
    return total


@device
def identity_epilogue4(totals: Any, row: Any, col: Any, at: Any) -> Any:
    """The sums themselves."""
    return totals


@device
def identity_prologue(x: Any, i: Any, k: Any, at: Any) -> Any:
    """The element itself."""
    return x


class GemmHooks(NamedTuple):
    """The functions at the edges of a product, their text, and what they need of the launch."""

    finish: Callable[..., Any] = identity_epilogue
    finish_four: Callable[..., Any] = identity_epilogue4
    change_a: Callable[..., Any] = identity_prologue
    change_b: Callable[..., Any] = identity_prologue
    text: str = ""
    stored: str = ""  # the type of the first output in memory; empty if it is that of the sums
    extra: tuple[str, ...] = ()  # names of what follows the kernel's own arguments
    types: tuple[str, ...] = ()  # of these


NO_HOOKS = GemmHooks()


class HookExpressions(NamedTuple):
    """What one kernel does of a product kernel: the prologue of its a and of its b, and the epilogue.

    A prologue is an expression, and the index of the load that the kernel itself does: the main one.
    """

    a: tuple[Expression, int] | None
    b: tuple[Expression, int] | None
    elements: tuple[Expression, ...]


def hook_expressions(
    kernel: MatmulKernel, mains: tuple[int, int], is_swapped: bool, is_first: bool = True, is_last: bool = True
) -> HookExpressions:
    """What is left to do by a kernel that multiplies (`is_first`), or stores the outputs (`is_last`).

    `mains` are the main loads of a and b. A product that `is_swapped` is computed as out.T = b.T @ a.T: what is called a in
    its kernels is b.
    """
    a, b = (
        None if isinstance(e, Load) or not is_first else (e, main)
        for e, main in zip((kernel.a, kernel.b), mains, strict=True)
    )
    is_kept = kernel.pointwise_outputs == (Accumulator(kernel.a.dtype),) or not is_last
    return HookExpressions(b if is_swapped else a, a if is_swapped else b, () if is_kept else kernel.pointwise_outputs)


@lru_cache(1024)
def build_hooks(sides: HookExpressions, classes: tuple[tuple[str, str], ...]) -> GemmHooks:
    """The functions for what a kernel does.

    Parameters
    ----------
    sides : Sides
        What they compute.
    classes : tuple of (str, str)
        Of each operand that they read or store, such as in2 or out1, the classes of its strides along AXES.

    Notes
    -----
    The text says all that the functions do, so it tells kernels apart in the cache.

    Examples
    --------
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.core.operators import relu
    >>> a, b, bias = (Load(k, float32) for k in range(3))
    >>> kernel = ProductKernel(a, b, (relu(Dot(float32) + bias),))
    >>> print(hooks_of(sides_of(kernel, (0, 1), False), (("in2", "00010"),)).text)
    def point(total, x2):
        return maximum((total + x2), f32(0.0))
    <BLANKLINE>
    <BLANKLINE>
    def finish(total, row, col, at):
        outer, inner, extra = at
        in2 = extra[0]
        return point(total, in2[col])
    <BLANKLINE>
    <BLANKLINE>
    def finish_four(totals, row, col, at):
        outer, inner, extra = at
        in2 = extra[0]
        x2 = load4(in2, col)
        return (
            point(totals[0], x2[0]),
            point(totals[1], x2[1]),
            point(totals[2], x2[2]),
            point(totals[3], x2[3]),
        )
    <BLANKLINE>
    """
    if sides == (None, None, ()):
        return NO_HOOKS
    source = HookEmitter(sides, dict(classes))
    functions = {**source.changes(), **source.finishes()}
    text = "\n\n".join(functions.values())
    found = functions_from_text(text)
    made = {name: device(found[name]) for name in functions if name in GemmHooks._fields}
    stored = storage_of(sides.elements[0].dtype) if sides.elements else ""
    return GemmHooks(**made, text=text, stored=stored, extra=tuple(source.extra), types=tuple(source.extra.values()))


class HookEmitter(CudaSource):
    """The text of the functions, and what they take out of `extra`: names and types."""

    def __init__(self, sides: HookExpressions, classes: dict[str, str]) -> None:
        self.a, self.b, self.elements = sides
        self.along = classes
        prologues = [side for side in (self.a, self.b) if side]
        kernel = Kernel((*[e for e, _ in prologues], *self.elements), ())
        super().__init__(kernel, 1, ["00"] * (len(kernel.outputs) + len(kernel.find_all(Load))))  # loops are not its own
        mains, is_read = {main for _, main in prologues}, any(e.index == 0 for e in kernel.find_all(ReadOutput))
        outputs = {f"out{k}": f"*{storage_of(e.dtype)}" for k, e in enumerate(self.elements) if k or is_read}
        loads = [e for e in kernel.find_all(Load) if e.index not in mains]
        operands = outputs | {
            operand_name(e): "i64" if isinstance(e, IndexValue) else f"*{storage_of(e.dtype)}" for e in loads
        }
        self.extra = operands | {f"p{p.index}": storage_of(p.dtype) for p in kernel.find_all(Parameter)}
        for name in operands:
            self.extra |= {f"{name}_{axis}": "i64" for axis, c in zip(AXES, classes[name], strict=True) if c == "s"}

    # Operands.

    def index(self, name: str, shift: int = 0) -> str:
        """Where an operand's element lies, `shift` columns further on."""
        terms = []
        for axis, c in zip(AXES, self.along[name], strict=True):
            i = f"(col + {shift})" if shift and axis == "col" else axis
            terms += [i if c == "1" else f"{i} * {name}_{axis}"] if c != "0" else []
        return " + ".join(terms) or "0"

    def element(self, e: Load | ReadOutput, shift: int = 0) -> str:
        """An operand's element; of a Position, where it lies."""
        name = f"out{e.index}" if isinstance(e, ReadOutput) else operand_name(e)
        if isinstance(e, IndexValue):
            return f"{name} + {self.index(name, shift)}"
        return self.dialect.load(f"{name}[{self.index(name, shift)}]", e.dtype)

    def neighbours(self, e: Load | ReadOutput, short: str) -> list[str]:
        """Four elements in a row: in one load where they lie side by side, or are the same."""
        name = f"out{e.index}" if isinstance(e, ReadOutput) else operand_name(e)
        if self.along[name][COL] == "0":
            self.line(f"{short} = {self.element(e)}")
            return [short] * 4
        if self.along[name][COL] == "s" or isinstance(e, IndexValue):
            return [self.element(e, shift) for shift in range(4)]
        self.line(f"{short} = load4({name}, {self.index(name)})")
        return [self.dialect.load(f"{short}[{k}]", e.dtype) for k in range(4)]

    # Functions.

    def begin(self, names: dict[Expression, str]) -> None:
        """The body of another function, in which these have names, and numbers theirs."""
        self.names = {p: f"p{p.index}" for p in self.kernel.find_all(Parameter)} | names
        self.lines, self.depth, self.count = [], 1, 0

    def function(self, name: str, parameters: Sequence[str]) -> str:
        """The lines as a function; one that is given `at` begins by taking out of it what they read."""
        words, order = set(re.findall(r"\w+", "\n".join(self.lines))), list(self.extra)
        read, opened = [known for known in order if known in words], list[str]()
        if "at" in parameters and (read or words & {"outer", "inner"}):
            opened = ["    outer, inner, extra = at"]
            opened += [f"    {', '.join(read)} = {', '.join(f'extra[{order.index(x)}]' for x in read)}"] * bool(read)
        return "\n".join([f"def {name}({', '.join(parameters)}):", *opened, *self.lines]) + "\n"

    def changes(self) -> dict[str, str]:
        """The prologue: an element that the kernel has loaded becomes one of its operand."""
        found = {}
        for name, i, side in (("change_a", "row", self.a), ("change_b", "col", self.b)):
            if side:
                e, main = side
                loads = Kernel((e,), ()).find_all(Load)
                self.begin(
                    {x: self.dialect.load(f"x{x.index}", x.dtype) if x.index == main else f"x{x.index}" for x in loads}
                )
                for x in loads:
                    if x.index != main:
                        self.line(f"x{x.index} = {self.element(x)}")
                self.define([e])
                self.line(f"return {self.bare(e)}")
                found[name] = self.function(name, [f"x{main}", i, "k", "at"])
        return found

    def finishes(self) -> dict[str, str]:
        """The epilogue: what one sum becomes; then, of one sum and of four, what is loaded and stored with them."""
        if not self.elements:
            return {}
        part = Kernel(self.elements, ())
        leaves: list[Load | ReadOutput] = [*part.find_all(Load), *part.find_all(ReadOutput)]
        numbers, sums = [f"p{p.index}" for p in part.find_all(Parameter)], part.find_all(Accumulator)
        shorts: dict[Expression, str] = {e: f"{'x' if isinstance(e, Load) else 'old'}{e.index}" for e in leaves}
        self.begin({**shorts, **dict.fromkeys(sums, "total")})
        self.define(self.elements)
        self.line(f"return {', '.join(self.bare(e) for e in self.elements)}")
        found = {"point": self.function("point", [*["total"] * len(sums), *shorts.values(), *numbers])}

        def call(total: str, values: Sequence[str]) -> str:
            return f"point({', '.join([*[self.dialect.load(total, e.dtype) for e in sums], *values, *numbers])})"

        self.begin({})
        self.give([call("total", [self.element(e) for e in leaves])])
        found["finish"] = self.function("finish", ["total", "row", "col", "at"])
        self.begin({})
        loaded = [self.neighbours(e, shorts[e]) for e in leaves]
        self.give([call(f"totals[{k}]", [x[k] for x in loaded]) for k in range(4)])
        found["finish_four"] = self.function("finish_four", ["totals", "row", "col", "at"])
        return found

    def give(self, calls: Sequence[str]) -> None:
        """Return the first result of each call, and store the others: four side by side at once."""
        count = len(self.elements)
        if count == 1 and len(calls) == 1:
            self.line(f"return {calls[0]}")
        elif count == 1:
            self.lines += ["    return (", *[f"        {text}," for text in calls], "    )"]
        else:
            each = [[f"y{k}_{n}" if len(calls) > 1 else f"y{k}" for n in range(len(calls))] for k in range(count)]
            for names, text in zip(zip(*each, strict=True), calls, strict=True):
                self.line(f"{', '.join(names)} = {text}")
            for k in range(1, count):
                self.store_other(f"out{k}", each[k])
            self.line(f"return {', '.join(each[0])}")

    def store_other(self, name: str, values: Sequence[str]) -> None:
        """Store one value, or four."""
        if len(values) > 1 and self.along[name][COL] == "1":
            self.line(f"store4({name}, {self.index(name)}, ({', '.join(values)}))")
        else:
            for shift, value in enumerate(values):
                self.line(f"{name}[{self.index(name, shift)}] = {value}")
