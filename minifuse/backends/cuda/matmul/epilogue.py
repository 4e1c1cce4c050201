"""Generate the prologue and epilogue of matrix products as device functions.

The kernels of matrix products are written by hand. They call four functions, which in a plain product return their argument:

    epilogue(total, row, col, at)           returns the first output for a sum, and stores the other outputs
    epilogue4(totals, row, col, at)         the epilogue of four adjacent sums, with loads and stores of 16 bytes
    prologue_a(x, row, k, at)               transforms an element of a after it is loaded
    prologue_b(x, col, k, at)               transforms an element of b

In the generated text they are called finish, finish_four, change_a and change_b (`HOOK_OF_NAME`).

`at` contains the index of the matrix in the batch and `extra`: the pointers, numbers and strides that the functions read.
These follow the kernel's own arguments. So the text contains no sizes, and of each stride only whether it is 0, 1 or other.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ....ir.kernel_ir import Accumulator, Expression, IndexValue, Kernel, KernelParameter, Load, ReadOutput
from ....ir.step_kernels import MatmulKernel
from ....simt import Array
from ....simt.arithmetic import RealNumber
from ...codegen.expression_printer import operand_name
from ..codegen.base import CudaSource
from ..codegen.dialect import storage_of
from ..compiler import functions_from_text
from ..intrinsics.base import device

AXES = ("outer", "inner", "row", "col", "k")  # two axes of the batch, and those of the product
COL = AXES.index("col")

Numbers = tuple[RealNumber, ...]  # four adjacent elements
HookPosition = tuple[int, int, tuple[int | RealNumber | Array, ...]]  # indices of a matrix in the batch, and `extra`
Hook = Callable[[Any, int, int, HookPosition], Any]  # from and to a number of the kernel's element type


@device
def identity_epilogue(total: RealNumber, row: int, col: int, at: HookPosition) -> RealNumber:
    """Return the sum unchanged."""
    return total


@device
def identity_epilogue4(totals: Numbers, row: int, col: int, at: HookPosition) -> Numbers:
    """Return the sums unchanged."""
    return totals


@device
def identity_prologue(x: RealNumber, i: int, k: int, at: HookPosition) -> RealNumber:
    """Return the element unchanged."""
    return x


class GemmHooks(NamedTuple):
    """The prologue and epilogue functions of a product, their text, and the arguments that they read."""

    epilogue: Hook = identity_epilogue
    epilogue4: Callable[[Numbers, int, int, HookPosition], Numbers] = identity_epilogue4
    prologue_a: Hook = identity_prologue
    prologue_b: Hook = identity_prologue
    text: str = ""
    stored: str = ""  # type of the first output in memory; empty if the sums have the same type
    extra: tuple[str, ...] = ()  # names of the arguments that follow the kernel's own
    types: tuple[str, ...] = ()  # types of these arguments


NO_HOOKS = GemmHooks()
HOOK_OF_NAME = {"finish": "epilogue", "finish_four": "epilogue4", "change_a": "prologue_a", "change_b": "prologue_b"}


class HookExpressions(NamedTuple):
    """The parts of a matmul kernel that one launch computes: the prologues of its a and b, and the epilogue.

    A prologue is an expression and the index of its main load, which the kernel itself executes.
    """

    a: tuple[Expression, int] | None
    b: tuple[Expression, int] | None
    elements: tuple[Expression, ...]


def hook_expressions(
    kernel: MatmulKernel, main_loads: tuple[int, int], is_transposed: bool, is_first: bool = True, is_last: bool = True
) -> HookExpressions:
    """Return the prologues of a kernel if it multiplies (`is_first`), and the epilogue if it stores outputs (`is_last`).

    `main_loads` are the indices of the main loads of a and b. If `is_transposed`, the product is computed as out.T = b.T @
    a.T: the operand that the device kernel calls a is b.
    """
    a, b = (
        None if isinstance(e, Load) or not is_first else (e, main)
        for e, main in zip((kernel.a, kernel.b), main_loads, strict=True)
    )
    has_no_epilogue = kernel.pointwise_outputs == (Accumulator(kernel.a.dtype),) or not is_last
    return HookExpressions(
        b if is_transposed else a, a if is_transposed else b, () if has_no_epilogue else kernel.pointwise_outputs
    )


@lru_cache(1024)
def build_hooks(hook_parts: HookExpressions, stride_kinds: tuple[tuple[str, str], ...]) -> GemmHooks:
    """Return the device functions of a kernel's prologues and epilogue.

    Parameters
    ----------
    sides : HookExpressions
        The expressions that the functions compute.
    stride_kinds : tuple of (str, str)
        Each operand that the functions read or store, such as in2 or out1, and the kinds of its strides along AXES.

    Notes
    -----
    The text defines the functions completely, so it identifies the kernel in the cache.

    Examples
    --------
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.core.operators import relu
    >>> a, b, bias = (Load(k, float32) for k in range(3))
    >>> kernel = MatmulKernel(a, b, (relu(Accumulator(float32) + bias),))
    >>> print(build_hooks(hook_expressions(kernel, (0, 1), False), (("in2", "00010"),)).text)
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
    if hook_parts == (None, None, ()):
        return NO_HOOKS
    source = HookEmitter(hook_parts, dict(stride_kinds))
    functions = {**source.prologues(), **source.epilogues()}
    text = "\n\n".join(functions.values())
    compiled = functions_from_text(text)
    hooks = {hook: device(compiled[name]) for name, hook in HOOK_OF_NAME.items() if name in functions}
    stored = storage_of(hook_parts.elements[0].dtype) if hook_parts.elements else ""
    return GemmHooks(**hooks, text=text, stored=stored, extra=tuple(source.extra), types=tuple(source.extra.values()))


class HookEmitter(CudaSource):
    """An emitter of prologues and epilogues; `extra` maps the names of the arguments that they read to types."""

    def __init__(self, hook_parts: HookExpressions, stride_kinds: dict[str, str]) -> None:
        self.a, self.b, self.elements = hook_parts
        self.stride_kinds_of_operand = stride_kinds
        prologues = [side for side in (self.a, self.b) if side]
        kernel = Kernel((*[e for e, _ in prologues], *self.elements), ())
        super().__init__(kernel, 1, ["00"] * (len(kernel.outputs) + len(kernel.find_all(Load))))  # it emits no loops
        main_loads, is_read = {main for _, main in prologues}, any(e.index == 0 for e in kernel.find_all(ReadOutput))
        outputs = {f"out{k}": f"*{storage_of(e.dtype)}" for k, e in enumerate(self.elements) if k or is_read}
        loads = [e for e in kernel.find_all(Load) if e.index not in main_loads]
        operands = outputs | {
            operand_name(e): "i64" if isinstance(e, IndexValue) else f"*{storage_of(e.dtype)}" for e in loads
        }
        self.extra = operands | {f"p{p.index}": storage_of(p.dtype) for p in kernel.find_all(KernelParameter)}
        for name in operands:
            self.extra |= {f"{name}_{axis}": "i64" for axis, c in zip(AXES, stride_kinds[name], strict=True) if c == "s"}

    # Operands.

    def index(self, name: str, shift: int = 0) -> str:
        """Return the index of an operand's element, `shift` columns after the current one."""
        terms = []
        for axis, c in zip(AXES, self.stride_kinds_of_operand[name], strict=True):
            i = f"(col + {shift})" if shift and axis == "col" else axis
            terms += [i if c == "1" else f"{i} * {name}_{axis}"] if c != "0" else []
        return " + ".join(terms) or "0"

    def element(self, e: Load | ReadOutput, shift: int = 0) -> str:
        """Return an operand's element, or its index if it is an index value."""
        name = operand_name(e)
        if isinstance(e, IndexValue):
            return f"{name} + {self.index(name, shift)}"
        return self.dialect.load(f"{name}[{self.index(name, shift)}]", e.dtype)

    def load_four(self, e: Load | ReadOutput, short: str) -> list[str]:
        """Return four adjacent elements: one load if they are contiguous or equal."""
        name = operand_name(e)
        if self.stride_kinds_of_operand[name][COL] == "0":
            self.line(f"{short} = {self.element(e)}")
            return [short] * 4
        if self.stride_kinds_of_operand[name][COL] == "s" or isinstance(e, IndexValue):
            return [self.element(e, shift) for shift in range(4)]
        self.line(f"{short} = load4({name}, {self.index(name)})")
        return [self.dialect.load(f"{short}[{k}]", e.dtype) for k in range(4)]

    # Functions.

    def begin(self, names: dict[Expression, str]) -> None:
        """Start the body of another function, in which expressions have these names."""
        self.names = {p: f"p{p.index}" for p in self.kernel.find_all(KernelParameter)} | names
        self.lines, self.depth, self.count = [], 1, 0

    def function(self, name: str, parameters: Sequence[str]) -> str:
        """Return the lines as a function. If it has the parameter `at`, it first unpacks the names that the lines read."""
        names, order = set(re.findall(r"\w+", "\n".join(self.lines))), list(self.extra)
        read, unpacking = [name for name in order if name in names], list[str]()
        if "at" in parameters and (read or names & {"outer", "inner"}):
            unpacking = ["    outer, inner, extra = at"]
            unpacking += [f"    {', '.join(read)} = {', '.join(f'extra[{order.index(x)}]' for x in read)}"] * bool(read)
        return "\n".join([f"def {name}({', '.join(parameters)}):", *unpacking, *self.lines]) + "\n"

    def prologues(self) -> dict[str, str]:
        """Return the prologues: functions of an element that the kernel has loaded."""
        functions = {}
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
                functions[name] = self.function(name, [f"x{main}", i, "k", "at"])
        return functions

    def epilogues(self) -> dict[str, str]:
        """Return the epilogue: the function of one sum, and those that load and store operands for one sum and for four."""
        if not self.elements:
            return {}
        part = Kernel(self.elements, ())
        leaves: list[Load | ReadOutput] = [*part.find_all(Load), *part.find_all(ReadOutput)]
        numbers, sums = [f"p{p.index}" for p in part.find_all(KernelParameter)], part.find_all(Accumulator)
        variables: dict[Expression, str] = {e: f"{'x' if isinstance(e, Load) else 'old'}{e.index}" for e in leaves}
        self.begin({**variables, **dict.fromkeys(sums, "total")})
        self.define(self.elements)
        self.line(f"return {', '.join(self.bare(e) for e in self.elements)}")
        functions = {"point": self.function("point", [*["total"] * len(sums), *variables.values(), *numbers])}

        def call(total: str, values: Sequence[str]) -> str:
            return f"point({', '.join([*[self.dialect.load(total, e.dtype) for e in sums], *values, *numbers])})"

        self.begin({})
        self.emit_results([call("total", [self.element(e) for e in leaves])])
        functions["finish"] = self.function("finish", ["total", "row", "col", "at"])
        self.begin({})
        loaded = [self.load_four(e, variables[e]) for e in leaves]
        self.emit_results([call(f"totals[{k}]", [x[k] for x in loaded]) for k in range(4)])
        functions["finish_four"] = self.function("finish_four", ["totals", "row", "col", "at"])
        return functions

    def emit_results(self, calls: Sequence[str]) -> None:
        """Emit the return of each call's first result, and stores of the others: four adjacent elements at once."""
        count = len(self.elements)
        if count == 1 and len(calls) == 1:
            self.line(f"return {calls[0]}")
        elif count == 1:
            self.lines += ["    return (", *[f"        {text}," for text in calls], "    )"]
        else:
            result_names = [[f"y{k}_{n}" if len(calls) > 1 else f"y{k}" for n in range(len(calls))] for k in range(count)]
            for names, text in zip(zip(*result_names, strict=True), calls, strict=True):
                self.line(f"{', '.join(names)} = {text}")
            for k in range(1, count):
                self.store_other(f"out{k}", result_names[k])
            self.line(f"return {', '.join(result_names[0])}")

    def store_other(self, name: str, values: Sequence[str]) -> None:
        """Emit the stores of one value or of four adjacent values."""
        if len(values) > 1 and self.stride_kinds_of_operand[name][COL] == "1":
            self.line(f"store4({name}, {self.index(name)}, ({', '.join(values)}))")
        else:
            for shift, value in enumerate(values):
                self.line(f"{name}[{self.index(name, shift)}] = {value}")
