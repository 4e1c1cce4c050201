"""Steps in words, for people: a formula of what a kernel computes, and what its operands are. Nothing is run or compiled.

The formula is read off the kernel's expressions, so it says what is computed, not what was written. It is no source: folds
have no dims in it, numbers are rounded, and what occurs several times is named once, after the word `where`.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..core.dtypes import HIGHEST
from ..core.interning import toposort
from ..core.operators import Operator
from ..ir import array_functions
from ..ir.array_functions import Cast, Matmul, View
from ..ir.gather import Gather, ScatterAdd
from ..ir.graph import Literal, Node
from ..ir.kernel_ir import (
    Accumulator,
    Constant,
    Expression,
    IndexedAccess,
    KernelParameter,
    Load,
    LoopNest,
    Op,
    OpaqueOutput,
    ReadOutput,
    ReduceExpr,
    stride_kind,
    stride_kinds_of,
)
from ..ir.steps import NO_BUFFER, BufferView, KernelLaunch, LibraryCall, MatmulLaunch, Step
from .batch_launches import BatchedLaunch
from .lower_gather import match_clamped_load

REDUCTION_NAMES = {"add": "sum", "mul": "prod", "maximum": "max", "minimum": "min", "or_": "any", "and_": "all"}
PRECEDENCE = {
    "==": 1, "!=": 1, "<": 1, ">": 1, "<=": 1, ">=": 1, "|": 2, "^": 3, "&": 4, "+": 5, "-": 5, "*": 6, "/": 6, "@": 6,
}  # fmt: skip
PREFIX_PRECEDENCE, ATOM_PRECEDENCE = 7, 9  # strengths of -x, and of what needs no parentheses
MAX_REPEATED_LENGTH = 12  # characters that are repeated rather than named

FormattedExpression = tuple[str, int]  # and how strongly it holds together


class Formula:
    """What a step stores, with the names of slots in the place of memory.

    `stored` has a text for each output; `shared` those of values that occur several times, each under its name.
    """

    def __init__(self, step: Step, names: Sequence[str]) -> None:
        self.step, self.names = step, names
        self.outputs, self.inputs = operand_names(step, names)
        self.known: dict[Expression, FormattedExpression] = {}
        self.shared: dict[str, str] = {}
        roots = list(step.kernel.outputs)
        factors = [step.kernel.a, step.kernel.b] if isinstance(step, MatmulLaunch) else []
        order = toposort([*factors, *roots], formula_inputs)
        self.uses = Counter(roots) + Counter(x for e in order for x in formula_inputs(e))
        self.dot = format_binary("@", *[self.part(e) for e in factors]) if factors else ("", 0)
        self.stored = [self.part(e)[0] for e in roots]

    def part(self, root: Expression) -> FormattedExpression:
        """An expression, after those that it is made of."""
        for e in toposort([root], formula_inputs):
            if e not in self.known:
                self.known[e] = self.named(e, self.text(e))
        return self.known[root]

    def named(self, e: Expression, text: FormattedExpression) -> FormattedExpression:
        """A name in the place of a long text that occurs several times."""
        if not e.inputs or self.uses[e] < 2 or len(text[0]) <= MAX_REPEATED_LENGTH:
            return text
        name = f"t{len(self.shared)}"
        self.shared[name] = text[0]
        return name, ATOM_PRECEDENCE

    def text(self, e: Expression) -> FormattedExpression:
        """An expression whose inputs are known."""
        if (found := match_clamped_load(e)) is not None:
            return self.element(*found)
        xs = [self.known[x] for x in e.inputs]
        if isinstance(e, Load | ReadOutput):
            return (self.outputs if isinstance(e, ReadOutput) else self.inputs)[e.index], ATOM_PRECEDENCE
        if isinstance(e, KernelParameter):
            source = self.step.numbers[e.index]
            return (format_number(source) if isinstance(source, str) else self.names[source]), ATOM_PRECEDENCE
        if isinstance(e, Constant):
            return format_number(e.text), ATOM_PRECEDENCE
        if isinstance(e, Accumulator):
            return self.dot
        if isinstance(e, OpaqueOutput):
            return f"{e.name}({', '.join(x for x, _ in xs)})", ATOM_PRECEDENCE
        if isinstance(e, IndexedAccess):
            return self.element(e, e.inputs)
        assert isinstance(e, Op | ReduceExpr)
        if isinstance(e, ReduceExpr):
            return f"{REDUCTION_NAMES.get(e.operator.name, e.operator.name)}({xs[0][0]})", ATOM_PRECEDENCE
        if e.operator is None:
            return format_call(e.dtype.name, None, xs)
        return format_call(e.operator.name, e.operator.symbol, xs)

    def element(self, e: IndexedAccess, indices: Sequence[Expression]) -> FormattedExpression:
        """An element that is picked by index. That an index outside is held inside goes without saying."""
        return (
            f"{self.names[self.step.indexed_operands[e.index][0]]}[{', '.join(self.known[x][0] for x in indices)}]",
            ATOM_PRECEDENCE,
        )

    def __str__(self) -> str:
        shared = "; ".join(f"{name} = {text}" for name, text in self.shared.items())
        return ", ".join(self.stored) + f" where {shared}" * bool(shared)


def formula_inputs(e: Expression) -> tuple[Expression, ...]:
    """What the text of an expression is made of."""
    found = match_clamped_load(e)
    return e.inputs if found is None else found[1]


def operand_names(step: Step, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names of outputs and inputs: of those that see one array in several ways, the others have a prime."""
    known: dict[BufferView, str] = {}
    seen: Counter[int] = Counter()
    for place in (*step.outputs, *step.inputs):
        if place not in known:
            known[place] = (names[place[0]] if place[0] != NO_BUFFER else "index") + "'" * seen[place[0]]
            seen[place[0]] += 1
    return [known[place] for place in step.outputs], [known[place] for place in step.inputs]


def format_call(name: str, symbol: str | None, xs: Sequence[FormattedExpression]) -> FormattedExpression:
    """A function of texts: between two operands, before one, or as a call."""
    if symbol and len(xs) == 2:
        return format_binary(symbol, *xs)
    if symbol:
        return f"{symbol}{parenthesize(xs[0], PREFIX_PRECEDENCE)}", PREFIX_PRECEDENCE
    return f"{name}({', '.join(x for x, _ in xs)})", ATOM_PRECEDENCE


def format_binary(symbol: str, a: FormattedExpression, b: FormattedExpression) -> FormattedExpression:
    """A symbol between two texts."""
    strength = PRECEDENCE[symbol]
    return f"{parenthesize(a, strength + (symbol == '@'))} {symbol} {parenthesize(b, strength + 1)}", strength


def parenthesize(text: FormattedExpression, strength: int) -> str:
    """A text as an operand, in parentheses where it would fall apart."""
    return text[0] if text[1] >= strength else f"({text[0]})"


def format_number(text: str) -> str:
    """A literal, rounded.

    Examples
    --------
    >>> number("2.0"), number("0.7071067811865475"), number("True")
    ('2', '0.7071', 'True')
    """
    try:
        return f"{float(text):.4g}"
    except ValueError:
        return text


def format_step(step: Step, names: Sequence[str]) -> str:
    """What a step computes. `names` are those of the slots in the memory of the call."""
    if isinstance(step, BatchedLaunch):
        return f"{Formula(step.parts[0], names)}; and {len(step.parts) - 1} more like it"
    return str(Formula(step, names))


def describe_kernel(step: Step) -> str:
    """What kind of kernel a step is, and over which space.

    Examples
    --------
    >>> from ..kernels import Kernel
    >>> form(Launch(Kernel((), ()), (4, 5), (1,), [], []))
    'rows of (4, 5) along dim 1'
    """
    if isinstance(step, MatmulLaunch):
        a, b, _ = step.kernel.loads()
        shapes = (step.inputs[loads[0].index][1].shape for loads in (a, b))
        parts = [*["prologue"] * (not (isinstance(step.kernel.a, Load) and isinstance(step.kernel.b, Load)))]
        parts += ["epilogue"] * (step.kernel.pointwise_outputs != (Accumulator(step.dtype),))
        precision = "" if step.kernel.precision == HIGHEST else f" in {step.kernel.precision} precision"
        return f"product {' @ '.join(map(str, shapes))}{precision}{' with ' * bool(parts)}{' and '.join(parts)}"
    if isinstance(step, LibraryCall):
        return f"{step.function.names[0]} of {', '.join(str(layout.shape) for _, layout in step.inputs)}"
    if isinstance(step, BatchedLaunch):
        return f"pointwise over {' and '.join(count_shapes(step))}"
    if not step.dims:
        return f"pointwise over {step.shape}"
    if all(n == 1 or d in step.dims for d, n in enumerate(step.shape)):
        return f"all of {step.shape} as one row"
    return f"rows of {step.shape} along dim{'s' * (len(step.dims) > 1)} {', '.join(map(str, step.dims))}"


def count_shapes(step: BatchedLaunch) -> list[str]:
    """The shapes of a launch over several arrays, each with how often it is there.

    Examples
    --------
    >>> from ..kernels import Kernel
    >>> from .together import together
    >>> parts = [Launch(Kernel((), ()), shape, (), [], []) for shape in ((4, 5), (3,), (4, 5))]
    >>> counted_shapes(together(parts))
    ['2 x (4, 5)', '(3,)']
    """
    counts = Counter(part.shape for part in step.parts)
    return [f"{n} x {shape}" if n > 1 else str(shape) for shape, n in counts.items()]


def operand_stride_kinds(step: Step) -> list[str]:
    """The stride classes of outputs and inputs, as the text of the kernel knows them: a letter for each of its axes."""
    outputs, inputs = step.layouts()
    if isinstance(step, KernelLaunch):
        return list(LoopNest(step.shape, step.dims, [*outputs, *inputs]).stride_kinds)
    return ["".join(map(stride_kind, layout.strides)) for layout in (*outputs, *inputs)]


def kernel_comment(title: str, step: Step, names: Sequence[str]) -> str:
    """The comment above the text of a kernel: what it computes, and what stands behind the names in it."""
    if isinstance(step, BatchedLaunch):
        rest = [name for part in step.parts[1:] for known in operand_names(part, names) for name in known]
        first, after = (
            kernel_comment(title, step.parts[0], names),
            f"then the same of {', '.join(rest)}: {describe_kernel(step)}",
        )
        return first + "".join(f"# {line}\n" for line in wrap_lines(after, 118))
    operands = [f"out{k}" for k in range(len(step.outputs))] + [f"in{k}" for k in range(len(step.inputs))]
    known = [name for part in operand_names(step, names) for name in part]
    behind = [f"{name} = {x} [{c}]" for name, x, c in zip(operands, known, operand_stride_kinds(step), strict=True)]
    picked = zip(step.indexed_operands, stride_kinds_of(layout for _, layout in step.indexed_operands), strict=True)
    behind += [f"raw{k} = {names[slot]} [{c}]" for k, ((slot, _), c) in enumerate(picked)]
    behind += [f"p{k} = {x if isinstance(x, str) else names[x]}" for k, x in enumerate(step.numbers)]
    lines = [f"{title}: {format_step(step, names)}", f"{describe_kernel(step)}; {', '.join(behind)}"]
    return "".join(f"# {line}\n" for text in lines for line in wrap_lines(text, 118))


def wrap_lines(text: str, width: int) -> list[str]:
    """A text in lines of a width; what follows the first is indented.

    Examples
    --------
    >>> wrapped("one two three", 8)
    ['one two', '    three']
    """
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) >= width and lines[-1].strip():
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def format_node(node: Node, text_of: Callable[[Node], str]) -> str:
    """What a node of the graph is, in the words of the formula; `text_of` names its inputs."""
    function = node.function
    if isinstance(function, Literal):
        return format_number(function.text)
    xs: list[FormattedExpression] = [(text_of(x), ATOM_PRECEDENCE) for x in node.inputs]
    if isinstance(function, Operator):
        return format_call(function.name, function.symbol, xs)[0]
    if isinstance(function, array_functions.CustomVJP):
        return xs[0][0]
    if isinstance(function, Matmul):
        return format_binary("@", *xs)[0]
    if isinstance(function, array_functions.Reduce):
        dims = ", ".join(map(str, function.dims))
        return f"{REDUCTION_NAMES.get(function.operator.name, function.operator.name)}({xs[0][0]}, dim={dims})"
    if isinstance(function, Gather | ScatterAdd):
        return f"{snake_case(type(function).__name__)}({xs[0][0]}, {xs[1][0]}, dim={function.dim})"
    if isinstance(function, View):
        return f"{function.method}({xs[0][0]}, {', '.join(map(format_parameter, function.parameters))})"
    if isinstance(function, array_functions.CompositeOutput):
        return f"{function}({', '.join(x for x, _ in xs)})"
    name = function.dtype.name if isinstance(function, Cast) else snake_case(type(function).__name__)
    return f"{name}({', '.join(x for x, _ in xs)})"


def snake_case(name: str) -> str:
    """Return the name of a class as that of a function.

    >>> snake_case("SliceUpdate"), snake_case("GatherND")
    ('slice_update', 'gather_nd')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def format_parameter(parameter: Any) -> str:
    """A parameter of a view; a range as Python writes it."""
    if isinstance(parameter, tuple) and len(parameter) == 3:
        start, step, size = parameter
        stop = start + step * size
        return f"{start}:{stop if stop >= 0 else ''}{f':{step}' * (step != 1)}"
    return str(parameter)
