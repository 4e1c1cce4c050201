"""Find what Numba cannot compile for a GPU in the source of a kernel, although the interpreter could run it.

Python accepts shapes that are computed, and kernels that return a value. Without these rules, a script would pass here and
fail on a machine with a GPU. Types are not inferred, so Numba may refuse a kernel that passes.
"""

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import FunctionType
from typing import Final, NamedTuple

MAX_PARSED_FILES: Final = 64
DYNAMIC: Final = {  # memory space -> how to have arrays of any size
    "shared": "or cuda.shared.array(0, dtype) and kernel[grid, block, stream, nbytes] for a size that the launch decides",
    "local": "or pass an array to the kernel",
}
MISSING: Final = object()


class SyntaxRefusal(NamedTuple):
    """Something in the source of a kernel that Numba refuses."""

    text: str  # what it is, and what to write instead
    line: int


class FunctionSource(NamedTuple):
    """A function, and its definition in a file."""

    function: FunctionType
    definition: ast.FunctionDef
    is_kernel: bool  # False for a device function, to which a kernel may pass a constant

    @property
    def parameters(self) -> set[str]:
        """The names of the parameters."""
        arguments = self.definition.args
        return {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}

    def nodes(self) -> Iterator[ast.AST]:
        """Iterate over the body, without decorators and default values."""
        for statement in self.definition.body:
            yield from ast.walk(statement)

    def global_value(self, name: str) -> object:
        """Return the value of a global or closure variable, or MISSING."""
        code = self.function.__code__
        for free_name, cell in zip(code.co_freevars, self.function.__closure__ or (), strict=True):
            if free_name == name:
                try:
                    return cell.cell_contents
                except ValueError:  # it has no value yet
                    return MISSING
        values: dict[str, object] = self.function.__globals__  # type: ignore[attr-defined]  # mypy takes it for a method
        return values.get(name, MISSING)


def find_source(function: FunctionType, is_kernel: bool) -> FunctionSource | None:
    """Return a function with its definition, or None if there is no source."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    definition = definitions("".join(linecache.getlines(code.co_filename))).get(code.co_firstlineno)
    if definition is None or definition.name != code.co_name:
        return None
    return FunctionSource(function, definition, is_kernel)


@lru_cache(MAX_PARSED_FILES)
def definitions(text: str) -> dict[int, ast.FunctionDef]:
    """Parse a file, and return the functions that it defines, by their first lines."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # it has changed since it was imported
        return {}
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {min([node.lineno, *(one.lineno for one in node.decorator_list)]): node for node in nodes}


def refusals(source: FunctionSource) -> list[SyntaxRefusal]:
    """Find shapes that are no constants, launches, and results of kernels, in the order of their lines."""
    found = [*find_computed_shapes(source), *find_launches(source), *(find_results(source) if source.is_kernel else ())]
    return sorted(found, key=lambda refusal: refusal.line)


def find_results(source: FunctionSource) -> Iterator[SyntaxRefusal]:
    """Find values that a kernel returns. A call may return None, so `describe_result` is also used when the kernel runs."""
    nested = {inner for node in source.nodes() if isinstance(node, ast.FunctionDef) for inner in ast.walk(node)}
    for node in source.nodes():
        if not isinstance(node, ast.Return) or node in nested or isinstance(node.value, ast.Call | None):
            continue
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield SyntaxRefusal(describe_result(ast.unparse(node.value)), node.lineno)


def describe_result(value: str) -> str:
    """Return the sentence about a kernel that returns a value."""
    return f"the kernel returns {value}, and a kernel cannot return a value: store it in an array"


def find_launches(source: FunctionSource) -> Iterator[SyntaxRefusal]:
    """Find launches of kernels."""
    for node in source.nodes():
        match node:
            case ast.Call(func=ast.Subscript(value=ast.Name(id=name))) if is_function(source.global_value(name)):
                yield SyntaxRefusal(f"kernels cannot launch kernels; launch {name} from the host", node.lineno)


def find_computed_shapes(source: FunctionSource) -> Iterator[SyntaxRefusal]:
    """Find sizes of shared and local arrays that are no constants."""
    for node in source.nodes():
        space = array_space(node)
        if not isinstance(node, ast.Call) or not space:
            continue
        shapes = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "shape")]
        for size in [size for shape in shapes for size in (shape.elts if isinstance(shape, ast.Tuple) else [shape])]:
            if is_computed(size, source):
                yield SyntaxRefusal(
                    f"the size {ast.unparse(size)} of a {space} array is computed in the kernel, and Numba needs a "
                    f"constant: write a number, the name of an integer that is defined outside the kernel, {DYNAMIC[space]}",
                    size.lineno,
                )


def array_space(node: ast.AST) -> str:
    """Return "shared" or "local" for a call of `cuda.shared.array` or `cuda.local.array`, otherwise ""."""
    match node:
        case ast.Call(func=ast.Attribute(attr="array", value=ast.Attribute(attr=space) | ast.Name(id=space))):
            return space if space in DYNAMIC else ""
    return ""


def is_computed(size: ast.expr, source: FunctionSource, seen: frozenset[str] = frozenset()) -> bool:
    """Return whether a size is certainly no constant of Numba: those are integers, names of integers, and items of tuples.

    Arithmetic with a global is no constant: of `TILE + 1`, Numba knows only that it is an integer.
    """

    def any_computed(*parts: ast.expr) -> bool:
        return any(is_computed(part, source, seen) for part in parts)

    match size:
        case ast.Name(id=name) if name in source.parameters:
            return source.is_kernel
        case ast.Name(id=name):
            values = [] if name in seen else list(values_of(name, source))
            if values:
                return any(is_computed(value, source, seen | {name}) for value in values)
            return name not in seen and not is_constant(source.global_value(name))
        case ast.Attribute(attr=name):
            return name != "ndim"
        case ast.Call(func=ast.Name(id=name)):
            return not is_function(source.global_value(name))  # whose result may be a constant
        case ast.BinOp() | ast.UnaryOp() | ast.Call():
            return any(isinstance(node, ast.Name) for node in ast.walk(size))
        case ast.Tuple(elts=parts):
            return any_computed(*parts)
        case ast.Subscript(value=array, slice=index):
            return any_computed(array, index)
        case ast.IfExp(body=first, orelse=second):
            return any_computed(first, second)
    return False


def is_function(value: object) -> bool:
    """Return whether a value is a Python function, a kernel or a device function."""
    return isinstance(getattr(value, "py_func", value), FunctionType)


def is_constant(value: object) -> bool:
    """Return whether Numba compiles a global variable in as a constant, or may do so."""
    return type(value) in (int, tuple) or value is MISSING


def values_of(name: str, source: FunctionSource) -> Iterator[ast.expr]:
    """Find the expressions that a function assigns to a variable."""
    for node in source.nodes():
        match node:
            case ast.AugAssign(target=ast.Name(id=target)) if target == name:
                yield ast.BinOp(node.target, node.op, node.value)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from values_for(name, target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from values_for(name, target, value)
            case ast.For(target=target, iter=value):
                yield from values_for(name, target, value)


def values_for(name: str, target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
    """Find what one assignment assigns to a variable. An item of a value counts as the value."""
    if isinstance(target, ast.Tuple | ast.List):
        values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
        for part, part_value in zip(target.elts, values or [value] * len(target.elts), strict=True):
            yield from values_for(name, part, part_value)
    elif isinstance(target, ast.Name) and target.id == name:
        yield value
