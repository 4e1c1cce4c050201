"""Parse functions of tensors that a user types, such as "(x @ w).relu().sum()". The text is never run as Python.

Its syntax is Python's. It can call what the library has: the entries of the operator table, and the methods of arrays. It is
taken apart into calls, one a line, which run one after the other. Before, they run on nodes of a graph, which have shapes
but no elements: so an error shows its position, and nothing is computed that is too large.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import Parameter, Signature
from types import FunctionType
from typing import Any, NamedTuple

import minifuse as mf
from minifuse.core.dtypes import float32
from minifuse.core.errors import MinifuseError
from minifuse.core.operators import TABLE
from minifuse.core.traceable import Traceable
from minifuse.ir.array_methods import Array
from minifuse.ir.graph import Argument, Node

from .expressions import InputError, TokenReader, format_entry
from .functions import FILE, Example, find_example

OWN = "your own"  # the name of a function that is typed
MAX_CALLS, MAX_INPUTS, MAX_NAME, MAX_NUMBER = 24, 4, 8, 1e9
MAX_ELEMENTS = 64  # of an input or a result, by default
HEAD = ("import minifuse as mf", "", "")  # its first lines
TOKEN = re.compile(
    r"\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])|[A-Za-z_]\w*|\.\.\.|\*\*|//|<<|>>|[<>=!]=|[-+*/%@&|^~<>=()\[\],.:])",
    re.ASCII,
)
SHAPES = re.compile(r"\s*([A-Za-z_]\w*|-?\d+|[(),:;])", re.ASCII)
PYTHON: Mapping[type, Callable[..., Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv},
    **{ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.MatMult: operator.matmul},
    **{ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.Invert: operator.invert},
    **{ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.USub: operator.neg, ast.UAdd: operator.pos},
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le},
    **{ast.Gt: operator.gt, ast.GtE: operator.ge},
}  # the syntax of Python: which function it calls for an operator
FUNCTIONS = {name: entry for name, entry in TABLE.items() if getattr(mf, name, None) is entry}
OWN_METHODS = {
    name
    for name, method in vars(Array).items()
    if getattr(body := getattr(method, "fget", method), "__qualname__", "") == f"Array.{name}"
    and not name.startswith("_")
    and body.__annotations__["return"] == "Self"
}  # of arrays, which return arrays; those that NumPy or PyTorch have are not among them, and some of those take long
METHODS = OWN_METHODS | {name for name in TABLE if hasattr(Traceable, name)}
ERRORS = (MinifuseError, ArithmeticError, AttributeError, IndexError, TypeError, ValueError)  # of calls with wrong arguments

Number = bool | int | float | None


@dataclass(frozen=True)
class Name:
    """A tensor in an expression: an input, or the result of a call."""

    text: str


@dataclass(frozen=True)
class FormulaCall:
    """A call of a function: on tensors by name, on numbers, and on tuples of them."""

    name: str
    """The name of the result."""
    text: str
    """The call as a line of Python writes it."""
    at: int
    """The position of the call in the text of the user."""
    function: Callable[..., Any] | str
    """What is called; a text is a method of the first operand."""
    operands: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...] = ()

    def run(self, tensors: Mapping[str, Any], run: Callable[..., Any]) -> Any:
        """Return the result for these tensors. `run` calls the function."""
        operands = [tensors[x.text] if isinstance(x, Name) else x for x in self.operands]
        function = getattr(operands.pop(0), self.function) if isinstance(self.function, str) else self.function
        return run(function, operands, dict(self.named))


@dataclass(frozen=True)
class Formula:
    """A function that was typed: its inputs in the order of their names in the text, and its calls."""

    text: str
    inputs: tuple[str, ...]
    calls: tuple[FormulaCall, ...]
    result: str

    def lines(self) -> tuple[str, ...]:
        """Return the function as the lines of a file, with a line for each call."""
        body = [f"{call.name} = {call.text}" for call in self.calls[:-1]]
        returned = self.calls[-1].text if self.calls else self.result
        return (*HEAD, f"def own({', '.join(self.inputs)}):", *[f"    {line}" for line in (*body, f"return {returned}")])

    def function(self) -> Callable[..., Any]:
        """Return the function. Each call has its line of the file, where errors and records look for it."""
        first = len(HEAD) + 2
        runs = [at_line(first + k) for k in range(len(self.calls))]
        calls = list(zip(self.calls, runs, strict=True))

        def own(*tensors: Any) -> Any:
            values = dict(zip(self.inputs, tensors, strict=True))
            for call, run in calls:
                values[call.name] = call.run(values, run)
            return values[self.result]

        own.__code__ = own.__code__.replace(co_filename=FILE)
        parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in self.inputs]
        own.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return own

    def check(self, shapes: Mapping[str, tuple[int, ...]], max_elements: int = MAX_ELEMENTS) -> None:
        """Raise InputError if a call does not fit these shapes of the inputs, or has too many elements."""
        values: dict[str, Any] = {x: Node(Argument(k), (), shapes[x], float32) for k, x in enumerate(self.inputs)}
        for name in self.inputs:
            self._check_size(name, values[name], max_elements, 0)
        for call in self.calls:
            try:
                values[call.name] = call.run(values, run_call)
            except ERRORS as error:
                raise InputError(self.text, call.at, str(error)) from error
            self._check_size("the result", values[call.name], max_elements, call.at)

    def _check_size(self, what: str, value: Any, max_elements: int, at: int) -> None:
        if callable(value):
            raise InputError(self.text, at, f"{what} is a method; call it, as in x.sum()")
        if not isinstance(value, Array):
            raise InputError(self.text, at, f"{what} returns {type(value).__name__}; expected a call that returns a tensor")
        if value.size > max_elements:
            raise InputError(self.text, at, f"{what} has {value.size:,} elements; expected at most {max_elements:,}")


def run_call(function: Callable[..., Any], operands: list[Any], named: dict[str, Any]) -> Any:
    """Call a function. `at_line` moves this call to the line that it stands for."""
    return function(*operands, **named)


def at_line(line: int) -> FunctionType:
    """Return `run_call`, with its last line at this line of FILE for whoever asks for the line that runs."""
    code = run_call.__code__
    *_, (_, _, last) = code.co_lines()
    return FunctionType(code.replace(co_filename=FILE, co_firstlineno=line - ((last or 0) - code.co_firstlineno)), {})


class FunctionChoice(NamedTuple):
    """A function of a page: the name of an example, or OWN with the texts that a user typed."""

    name: str
    text: str = ""
    shapes: str = ""

    def example(self, among: tuple[Example, ...], size: int, max_elements: int = MAX_ELEMENTS) -> Example:
        """Return the function with its arguments.

        Raises
        ------
        InputError
            A text is invalid, or a call does not fit the shapes.
        """
        if self.name == OWN:
            return own_example(self.text, self.shapes, size, max_elements)
        return find_example(self.name, among)


def own_example(text: str, shapes: str, size: int, max_elements: int = MAX_ELEMENTS) -> Example:
    """Return the function that a user typed, with inputs of the shapes that were typed; others are rows of `size` elements.

    Raises
    ------
    InputError
        A text is invalid, or a call does not fit the shapes.
    """
    formula, given = parse_formula(text), parse_shapes(shapes)
    kinds = tuple(given.get(name, ("n",)) for name in formula.inputs)
    example = Example(OWN, formula.function(), kinds, "", formula.lines())
    formula.check(dict(zip(formula.inputs, example.shapes(size), strict=True)), max_elements)
    return example


def parse_shapes(text: str) -> dict[str, tuple[int | str, ...]]:
    """Parse the shapes of inputs. A size is a number, or `n`, the size that the page chooses.

    Raises
    ------
    InputError
        The text is invalid.

    Examples
    --------
    >>> parse_shapes("x: n, 4; w: (4, 2); b:")
    {'x': ('n', 4), 'w': (4, 2), 'b': ()}
    """
    words, shapes = TokenReader(text, SHAPES), dict[str, tuple[int | str, ...]]()
    while not words.is_done:
        at, name = words.at, words.next("the name of an input")
        if not name[0].isalpha() or name in shapes:
            raise InputError(text, at, f"got {name!r}; expected the name of another input, as in x: 3, 4; w: 4, 2")
        words.need(":", "a colon and sizes, as in x: 3, 4; w: 4, 2")
        shapes[name] = words.shape(";", "n")
        if not words.take(";"):
            words.end()
    return shapes


def parse_formula(text: str) -> Formula:
    """Parse a function such as "(x @ w).relu().sum()".

    Raises
    ------
    InputError
        The text is invalid.

    Examples
    --------
    >>> formula = parse_formula("x * x + sin(x)")
    >>> print("\\n".join(formula.lines()[3:]))
    def own(x):
        t1 = x * x
        t2 = mf.sin(x)
        return t1 + t2
    """
    text = re.sub(r"\s", " ", text)
    if TokenReader(text, TOKEN).is_done:
        raise InputError(text, 0, "it is empty; write a function such as x * x + sin(x)")
    start = len(text) - len(text.lstrip())
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        offset = getattr(error, "offset", None)  # 0 at the end of the text
        at = start + offset - 1 if offset else len(text)
        what = getattr(error, "msg", "") or "it is too deep"
        raise InputError(text, min(at, len(text)), f"{what}; write a function such as x * x + sin(x)") from error
    builder = FormulaBuilder(text, start)
    value, _ = builder.operand(tree)
    if not isinstance(value, Name):
        raise InputError(text, 0, "it has no input; write a name such as x")
    return Formula(text, tuple(builder.inputs), tuple(builder.calls), value.text)


class FormulaBuilder:
    """Takes an expression apart into calls. Each part is returned as a value, and as Python writes it."""

    def __init__(self, text: str, start: int) -> None:
        self.text, self.start, self.inputs, self.calls = text, start, dict[str, None](), list[FormulaCall]()
        names = set(re.findall(r"\w+", text))
        self.results = [name for k in range(1, 2 * MAX_CALLS) if (name := f"t{k}") not in names]

    def error(self, node: ast.AST, what: str) -> InputError:
        """Return an error at a part of the expression."""
        return InputError(self.text, self.start + getattr(node, "col_offset", 0), what)

    def after(self, node: ast.expr) -> int:
        """Return the position after a part of the expression, without parentheses and spaces."""
        at = self.start + (node.end_col_offset or 0)
        return at + len(self.text[at:]) - len(self.text[at:].lstrip(" )."))

    def operand(self, node: ast.expr) -> tuple[Any, str]:
        """Return the value of a part, after adding its calls: a Name, a number, or a tuple or slice of numbers."""
        match node:
            case ast.Constant(value=bool() | None as value):
                return value, str(value)
            case ast.Constant(value=int() | float() as value):
                return self.number(node, value)
            case ast.Name(id=name):
                return self.input(node, name)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = tuple(self.constant(part) for part in parts)
                return values, str(values)
            case ast.UnaryOp(op=op, operand=part) if type(op) in PYTHON:
                return self.python_call(node, op, self.start + node.col_offset, part)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in PYTHON:
                return self.python_call(node, op, self.after(left), left, right)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in PYTHON:
                return self.python_call(node, op, self.after(left), left, right)
            case ast.Compare() | ast.BoolOp():
                raise self.error(node, "a tensor has many truth values; write (x > 0) & (x < 1) for both")
            case ast.Subscript(value=part, slice=index):
                (tensor, text), entries = self.tensor(part), self.index(index)
                return self.add(
                    f"{text}[{', '.join(map(format_entry, entries)) or '()'}]",
                    self.after(part),
                    operator.getitem,
                    tensor,
                    entries,
                )
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id="mf"), attr=name)):
                return self.function_call(node, name)
            case ast.Call(func=ast.Attribute(value=part, attr=name)):
                return self.method_call(node, name, part, self.after(part), node.args)
            case ast.Attribute(value=part, attr=name):
                tensor, text = self.tensor(part)
                self.check_method(name, self.after(part))
                return self.add(f"{text}.{name}", self.after(part), getattr, tensor, name)
        raise self.error(
            node, f"{type(node).__name__} means nothing here; write operators, functions and methods of tensors"
        )

    def number(self, node: ast.AST, value: Any) -> tuple[float, str]:
        """Return a number, after checking that it is one, and not too large."""
        if not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
            raise self.error(node, f"got a number of {MAX_NUMBER:,.0f} or more, or none at all; expected a smaller one")
        return value, str(value)

    def input(self, node: ast.AST, name: str) -> tuple[Name, str]:
        """Return an input."""
        if name.startswith("_") or name == "mf" or len(name) > MAX_NAME:
            raise self.error(node, f"got {name!r}; expected the name of an input, of at most {MAX_NAME} letters")
        self.inputs[name] = None
        if len(self.inputs) > MAX_INPUTS:
            raise self.error(node, f"{name} is input number {len(self.inputs)}; expected at most {MAX_INPUTS}")
        return Name(name), name

    def tensor(self, node: ast.expr) -> tuple[Name, str]:
        """Return the value of a part that must be a tensor."""
        value, text = self.operand(node)
        if not isinstance(value, Name):
            raise self.error(node, f"got {text}; expected a tensor, such as x")
        return value, text

    def constant(self, node: ast.expr) -> Number:
        """Return the value of a part that must be a number, without calls."""
        value, text = self.operand(node)
        if isinstance(value, Name | tuple):
            raise self.error(node, f"got {text}; expected a number")
        result: Number = value
        return result

    def index(self, node: ast.expr) -> tuple[Any, ...]:
        """Return the entries of an index."""
        return tuple(map(self.entry, node.elts if isinstance(node, ast.Tuple) else [node]))

    def entry(self, node: ast.expr) -> Any:
        """Return an entry of an index: a number, a slice, None or `...`."""
        match node:
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*[None if part is None else self.constant(part) for part in (lower, upper, step)])
            case ast.Constant(value=value) if value is Ellipsis:
                return value
        return self.constant(node)

    def python_call(self, node: ast.AST, op: Any, at: int, *parts: ast.expr) -> tuple[Any, str]:
        """Add the call of an operator; one on numbers alone is computed here, as one on floats."""
        (values, texts), function = zip(*map(self.operand, parts), strict=True), PYTHON[type(op)]
        if any(isinstance(value, Name) for value in values):
            names: list[ast.expr] = [ast.Name(text if text[0] != "-" else f"({text})") for text in texts]
            operations: dict[type, Callable[[], ast.expr]] = {
                ast.UnaryOp: lambda: ast.UnaryOp(op, *names),
                ast.BinOp: lambda: ast.BinOp(names[0], op, names[-1]),
                ast.Compare: lambda: ast.Compare(names[0], [op], [names[-1]]),
            }
            return self.add(ast.unparse(operations[type(node)]()), at, function, *values)
        try:
            is_whole = len(values) == 1 and isinstance(values[0], int)
            return self.number(node, function(*values if is_whole else map(float, values)))
        except (ArithmeticError, TypeError) as error:
            raise self.error(node, f"{error.args[-1]}; write a number that is not too large") from error

    def function_call(self, node: ast.Call, name: str) -> tuple[Name, str]:
        """Add the call of a function: of an operator of the table, or of a method of the first argument."""
        if name not in FUNCTIONS and name in METHODS and node.args:
            return self.method_call(node, name, node.args[0], self.start + node.col_offset, node.args[1:])
        if name not in FUNCTIONS:
            raise self.error(node, unknown("function", name, {*FUNCTIONS, *METHODS}))
        values, texts = self.arguments(node, node.args)
        at = self.start + node.col_offset
        self.check_count(name, len(values), FUNCTIONS[name].arity, at)
        return self.add(f"mf.{name}({', '.join(texts)})", at, FUNCTIONS[name], *values, named=self.named(node))

    def method_call(self, node: ast.Call, name: str, part: ast.expr, at: int, args: list[ast.expr]) -> tuple[Name, str]:
        """Add the call of a method."""
        tensor, text = self.tensor(part)
        self.check_method(name, at)
        values, texts = self.arguments(node, args)
        if name not in OWN_METHODS:
            self.check_count(name, len(values), TABLE[name].arity - 1, at)
        named = self.named(node)
        words = ", ".join([*texts, *[f"{key}={value}" for key, value in named]])
        return self.add(f"{text}.{name}({words})", at, name, tensor, *values, named=named)

    def check_method(self, name: str, at: int) -> None:
        """Raise InputError if tensors have no method of this name, or none that is known here."""
        if name not in METHODS:
            raise InputError(self.text, at, unknown("method", name, METHODS))

    def check_count(self, name: str, count: int, expected: int, at: int) -> None:
        """Raise InputError if an operator of the table got another number of arguments than it takes."""
        if count != expected:
            raise InputError(self.text, at, f"{name} got {count} arguments; expected {expected}")

    def arguments(self, node: ast.Call, args: list[ast.expr]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """Return the values of arguments, and their texts."""
        found = [self.operand(part) for part in args]
        return tuple(value for value, _ in found), tuple(text for _, text in found)

    def named(self, node: ast.Call) -> tuple[tuple[str, Any], ...]:
        """Return the arguments that have names. They are numbers, or tuples of numbers."""
        found = list[tuple[str, Any]]()
        for word in node.keywords:
            value, text = self.operand(word.value)
            if word.arg is None or isinstance(value, Name):
                raise self.error(word, f"got {text}; expected a number, as in dim=1")
            found.append((word.arg, value))
        return tuple(found)

    def add(
        self, text: str, at: int, function: Callable[..., Any] | str, *values: Any, named: tuple[tuple[str, Any], ...] = ()
    ) -> tuple[Name, str]:
        """Add a call, and return its result."""
        if len(self.calls) == MAX_CALLS:
            raise InputError(self.text, at, f"more than {MAX_CALLS} calls; leave some out")
        name = self.results[len(self.calls)]
        self.calls.append(FormulaCall(name, text, at, function, values, named))
        return Name(name), name


def unknown(what: str, name: str, known: set[str]) -> str:
    """Describe an unknown name, with those that look like it."""
    near = get_close_matches(name, known, 3, 0.5) or sorted(known)
    return f"no {what} {name!r} is known here; expected one such as {', '.join(near[:12])}"
