"""Format steps for readers: a formula of what a kernel computes, and its operands. Nothing is run or compiled.

The formula is made from the kernel's expressions, so it shows what is computed, not what the user wrote. It is not source
code: it rounds numbers, defines a repeated value once, after the word `where`, and omits the dims of reductions unless some
of them are nested.
"""

from collections import Counter
from collections.abc import Sequence

from ..core.interning import toposort
from ..ir.format_expressions import (
    ATOM_PRECEDENCE,
    FormattedExpression,
    format_binary,
    format_call,
    format_number,
    reduction_name,
)
from ..ir.gather import match_clamped_load
from ..ir.kernel_ir import (
    Accumulator,
    Constant,
    Expression,
    IndexedAccess,
    KernelParameter,
    Load,
    Op,
    OpaqueOutput,
    ReadOutput,
    ReduceExpr,
    stride_kinds_of,
)
from ..ir.steps import NO_BUFFER, BufferView, Step

MAX_REPEATED_LENGTH = 12  # characters; a longer text that occurs several times gets a name
COMMENT_WIDTH = 118  # characters of a line of a kernel's comment, without the #


class Formula:
    """The formula of a step.

    Attributes
    ----------
    stored : list of str
        The text of each output.
    shared : dict of str to str
        Values that occur several times: name -> text.
    """

    def __init__(self, step: Step, names: Sequence[str]) -> None:
        self.step, self.names = step, names
        self.outputs, self.inputs = operand_names(step, names)
        self.formatted: dict[Expression, FormattedExpression] = {}
        self.shared: dict[str, str] = {}
        roots = list(step.kernel.outputs)
        factors = step.kernel.factors
        order = toposort([*factors, *roots], formula_inputs)
        self.uses = Counter(roots) + Counter(x for e in order for x in formula_inputs(e))
        self.matmul = format_binary("@", *[self.format(e) for e in factors]) if factors else ("", 0)
        self.stored = [self.format(e)[0] for e in roots]

    def format(self, root: Expression) -> FormattedExpression:
        """Return the text of an expression, after formatting its inputs."""
        for e in toposort([root], formula_inputs):
            if e not in self.formatted:
                self.formatted[e] = self.name_repeated(e, self.text(e))
        return self.formatted[root]

    def name_repeated(self, e: Expression, text: FormattedExpression) -> FormattedExpression:
        """Return a name for a long text that occurs several times, or the text itself."""
        if not e.inputs or self.uses[e] < 2 or len(text[0]) <= MAX_REPEATED_LENGTH:
            return text
        name = f"t{len(self.shared)}"
        self.shared[name] = text[0]
        return name, ATOM_PRECEDENCE

    def text(self, e: Expression) -> FormattedExpression:
        """Return the text of an expression whose inputs are formatted."""
        if (load := match_clamped_load(e)) is not None:
            return self.element(*load)
        xs = [self.formatted[x] for x in e.inputs]
        if isinstance(e, Load | ReadOutput):
            return (self.outputs if isinstance(e, ReadOutput) else self.inputs)[e.index], ATOM_PRECEDENCE
        if isinstance(e, KernelParameter):
            source = self.step.numbers[e.index]
            return (format_number(source) if isinstance(source, str) else self.names[source]), ATOM_PRECEDENCE
        if isinstance(e, Constant):
            return format_number(e.text), ATOM_PRECEDENCE
        if isinstance(e, Accumulator):
            return self.matmul
        if isinstance(e, OpaqueOutput):
            return f"{e.name}({', '.join(x for x, _ in xs)})", ATOM_PRECEDENCE
        if isinstance(e, IndexedAccess):
            return self.element(e, e.inputs)
        assert isinstance(e, Op | ReduceExpr)
        if isinstance(e, ReduceExpr):
            dims = f", dim={', '.join(map(str, e.reduced(self.step.dims)))}" * self.step.kernel.is_nested
            return f"{reduction_name(e.operator.name)}({', '.join(x for x, _ in xs)}{dims})", ATOM_PRECEDENCE
        if e.operator is None:
            return format_call(e.dtype.name, None, xs)
        return format_call(e.operator.name, e.operator.symbol, xs)

    def element(self, e: IndexedAccess, indices: Sequence[Expression]) -> FormattedExpression:
        """Return the text of an indexed element. It does not show that the index is clamped."""
        slot, _ = self.step.indexed_operands[e.index]
        return f"{self.names[slot]}[{', '.join(self.formatted[x][0] for x in indices)}]", ATOM_PRECEDENCE

    def __str__(self) -> str:
        shared = "; ".join(f"{name} = {text}" for name, text in self.shared.items())
        return ", ".join(self.stored) + f" where {shared}" * bool(shared)


def formula_inputs(e: Expression) -> tuple[Expression, ...]:
    """Return the expressions that the text of an expression contains."""
    load = match_clamped_load(e)
    return e.inputs if load is None else load[1]


def operand_names(step: Step, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names of outputs and inputs. Other views of the same array have primes: x, x', x''."""
    names_by_view: dict[BufferView, str] = {}
    view_counts: Counter[int] = Counter()  # slot -> how many of its views are named
    for x in (*step.outputs, *step.inputs):
        if x not in names_by_view:
            names_by_view[x] = (names[x[0]] if x[0] != NO_BUFFER else "index") + "'" * view_counts[x[0]]
            view_counts[x[0]] += 1
    return [names_by_view[x] for x in step.outputs], [names_by_view[x] for x in step.inputs]


def format_step(step: Step, names: Sequence[str]) -> str:
    """Return the formula of a step. `names` are the names of the slots."""
    first, *others = step.parts()
    return f"{Formula(first, names)}{f'; and {len(others)} more like it' * bool(others)}"


def describe_kernel(step: Step) -> str:
    """Return the kind of a step's kernel, and its iteration space.

    Examples
    --------
    >>> from minifuse.ir.kernel_ir import Kernel
    >>> describe_kernel(Step(Kernel((), ()), (4, 5), (1,), [], []))
    'rows of (4, 5) along dim 1'
    """
    return step.kernel.describe(step.shape, step.dims, [layout.shape for _, layout in step.inputs])


def kernel_comment(title: str, step: Step, names: Sequence[str]) -> str:
    """Return the comment above the text of a kernel: what it computes, and the user's names of its operands."""
    first, *others = step.parts()
    if others:
        rest = [name for part in others for group in operand_names(part, names) for name in group]
        comment = comment_lines(f"then the same of {', '.join(rest)}: {describe_kernel(step)}")
        return kernel_comment(title, first, names) + comment
    operands = [f"out{k}" for k in range(len(step.outputs))] + [f"in{k}" for k in range(len(step.inputs))]
    user_names = [name for group in operand_names(step, names) for name in group]
    outputs, inputs = step.layouts()
    stride_kinds = step.kernel.stride_kinds(step.shape, step.dims, [*outputs, *inputs])
    meanings = [f"{x} = {name} [{kinds}]" for x, name, kinds in zip(operands, user_names, stride_kinds, strict=True)]
    indexed = zip(step.indexed_operands, stride_kinds_of(layout for _, layout in step.indexed_operands), strict=True)
    meanings += [f"raw{k} = {names[slot]} [{kinds}]" for k, ((slot, _), kinds) in enumerate(indexed)]
    meanings += [f"p{k} = {x if isinstance(x, str) else names[x]}" for k, x in enumerate(step.numbers)]
    formula = comment_lines(f"{title}: {format_step(step, names)}")
    return formula + comment_lines(f"{describe_kernel(step)}; {', '.join(meanings)}")


def comment_lines(text: str) -> str:
    """Return a text as lines of a Python comment."""
    return "".join(f"# {line}\n" for line in wrap_lines(text, COMMENT_WIDTH))


def wrap_lines(text: str, width: int) -> list[str]:
    """Split a text into lines of at most `width` characters. All lines but the first are indented.

    Examples
    --------
    >>> wrap_lines("one two three", 8)
    ['one two', '    three']
    """
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) >= width and lines[-1].strip():
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines
