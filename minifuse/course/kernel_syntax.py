"""Refuse what Numba cannot compile for a GPU in a student's kernel: lists, dicts and sets, and shapes that are computed.

The interpreter would run them, so the same file would pass on a machine without a GPU, and fail on one with a GPU.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

from .verdicts import Wrong

COLLECTIONS = {
    ast.List: "a list",
    ast.ListComp: "a list",
    ast.Dict: "a dict",
    ast.DictComp: "a dict",
    ast.Set: "a set",
    ast.SetComp: "a set",
}
Refusal = tuple[str, int]
"""A sentence, and the line."""


def check_syntax(kernel: FunctionType, folder: Path) -> None:
    """Raise `Wrong` if a kernel, or a function of the folder that it calls, has something that Numba cannot compile."""
    waiting, seen = [kernel], set[FunctionType]()
    while waiting:
        function = waiting.pop()
        path = Path(function.__code__.co_filename)
        if function in seen or path.parent != folder or (definition := definition_of(function)) is None:
            continue
        seen.add(function)
        for text, line in sorted(refusals(definition), key=lambda refusal: refusal[1]):
            raise Wrong(f"{function.__name__}: {text}", lines=[(path.name, line)], kind="no kernel for a GPU")
        names = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
        called = (getattr(value, "__wrapped__", value) for name, value in function.__globals__.items() if name in names)
        waiting += [value for value in called if isinstance(value, FunctionType)]


def definition_of(function: FunctionType) -> ast.FunctionDef | None:
    """Return the definition of a function in its file; None if it is not found."""
    path = Path(function.__code__.co_filename)
    if not path.is_file():
        return None
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef) or node.name != function.__name__:
            continue
        if function.__code__.co_firstlineno == min([node.lineno, *(one.lineno for one in node.decorator_list)]):
            return node
    return None


def refusals(definition: ast.FunctionDef) -> Iterator[Refusal]:
    """Find lists, dicts and sets, and shapes of arrays that are no constants."""
    compiled_as_tuples = set[ast.expr]()  # Python makes tuples of these lists
    for node in ast.walk(definition):
        listed = [node.iter] if isinstance(node, ast.For | ast.comprehension) else []
        if isinstance(node, ast.Compare) and isinstance(node.ops[-1], ast.In | ast.NotIn):
            listed = node.comparators[-1:]
        compiled_as_tuples.update(one for one in listed if isinstance(one, ast.List))
    for node in ast.walk(definition):
        kind = COLLECTIONS.get(type(node))
        if isinstance(node, ast.List) and not isinstance(node.ctx, ast.Load):
            kind = None  # `[a, b] = pair` makes no list
        if kind and isinstance(node, ast.expr) and node not in compiled_as_tuples:
            text = f"{kind} cannot be compiled for a GPU; take variables, a tuple, or cuda.local.array(shape, dtype)"
            yield text, node.lineno
        if isinstance(node, ast.Call) and (shape := shape_of(node)) is not None:
            for size in shape.elts if isinstance(shape, ast.Tuple) else [shape]:
                if is_computed(size, definition):
                    text = (
                        f"the size {ast.unparse(size)} of an array is computed in the kernel, and a GPU's compiler needs a "
                        "constant: write a number, or a name that is defined at the top of the file"
                    )
                    yield text, size.lineno


def shape_of(call: ast.Call) -> ast.expr | None:
    """Return the shape if the call is `cuda.shared.array(...)` or `cuda.local.array(...)`."""
    place = call.func
    if not isinstance(place, ast.Attribute) or place.attr != "array":
        return None
    space = place.value
    if (space.attr if isinstance(space, ast.Attribute) else space.id if isinstance(space, ast.Name) else "") not in (
        "shared",
        "local",
    ):
        return None
    named = [keyword.value for keyword in call.keywords if keyword.arg == "shape"]
    found = [*call.args, *named]
    return found[0] if found else None


def is_computed(size: ast.expr, definition: ast.FunctionDef, seen: frozenset[str] = frozenset()) -> bool:
    """Return whether a size is certainly no constant: computed from names, a parameter, or a variable of those."""
    names = {node.id for node in ast.walk(size) if isinstance(node, ast.Name)}
    if isinstance(size, ast.BinOp | ast.UnaryOp | ast.Call | ast.IfExp):
        return bool(names)
    parameters = {one.arg for one in definition.args.args}
    if isinstance(size, ast.Name) and size.id not in parameters | seen:
        return any(is_computed(value, definition, seen | {size.id}) for value in values_of(size.id, definition))
    if isinstance(size, ast.Tuple):
        return any(is_computed(part, definition, seen) for part in size.elts)
    return not names.isdisjoint(parameters)


def values_of(name: str, definition: ast.FunctionDef) -> Iterator[ast.expr]:
    """Find the expressions that a kernel assigns to a variable."""
    for node in ast.walk(definition):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            yield ast.BinOp(node.target, node.op, node.value)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                yield from (value for one, value in pairs if isinstance(one, ast.Name) and one.id == name)
