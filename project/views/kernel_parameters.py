"""The parameters of a kernel, as its source uses them: arrays of so many dims, and numbers. From that follow a launch and
arguments to begin with.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

GRIDS = {1: (2,), 2: (2, 2), 3: (2, 2, 2)}  # blocks along x, y and z, by the dims of the launch
BLOCKS = {1: (32,), 2: (8, 8), 3: (4, 4, 2)}
DEEP = 4  # size of the dims that an array has more than the launch


@dataclass(frozen=True)
class ArrayUse:
    """The expression of the source that needs the most dims of an array."""

    dims: int
    line: int
    text: str


@dataclass(frozen=True)
class KernelUses:
    """How the source of a kernel uses its indices and its parameters."""

    dims: int
    """The dims of the launch: of `cuda.grid(2)`, or of threadIdx.y."""
    arrays: dict[str, ArrayUse]
    numbers: frozenset[str]

    @property
    def grid(self) -> tuple[int, ...]:
        """Blocks of a launch to begin with."""
        return GRIDS[self.dims]

    @property
    def block(self) -> tuple[int, ...]:
        """Threads of its blocks."""
        return BLOCKS[self.dims]

    def shape(self, dims: int) -> tuple[int, ...]:
        """Return the shape of an array with an element for each thread, of so many dims."""
        threads = [n * size for n, size in zip(self.grid, self.block, strict=True)]
        if dims <= 1:
            return (prod(threads),)
        return (*reversed(threads[:dims]), *[DEEP] * (dims - len(threads)))

    def argument(self, name: str) -> str:
        """Return an argument for a parameter, as in `minifuse trace --arg`."""
        if name in self.numbers:
            return f"{name}={prod(self.grid[:1]) * prod(self.block[:1])}"
        dims = self.arrays[name].dims if name in self.arrays else 1
        return f"{name}={','.join(map(str, self.shape(dims)))}:float32"


def kernel_uses(kernel: Any) -> KernelUses:
    """Return how a kernel uses its parameters. Without a source, each is an array of one dim."""
    function = getattr(kernel, "py_func", kernel)
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return KernelUses(1, {}, frozenset())
    ast.increment_lineno(tree, first - 1)
    names = list(inspect.signature(function).parameters)
    arrays = dict[str, ArrayUse]()
    for name, node, dims in (*array_uses(tree), *passed_arrays(tree, function)):
        if name in names and (name not in arrays or dims > arrays[name].dims):
            arrays[name] = ArrayUse(dims, node.lineno, ast.unparse(node))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return KernelUses(launch_dims(tree), arrays, frozenset(used & {*names} - {*arrays}))


def launch_dims(tree: ast.AST) -> int:
    """Return the dims of the indices that a kernel reads, 1 to 3."""
    found = {1}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="grid" | "gridsize"), args=[ast.Constant(value=int(dims))]):
                found.add(dims)
            case ast.Attribute(
                value=ast.Attribute(attr="threadIdx" | "blockIdx" | "blockDim" | "gridDim"), attr="y" | "z" as axis
            ):
                found.add(2 if axis == "y" else 3)
    return min(max(found), 3)


def array_uses(tree: ast.AST) -> Iterator[tuple[str, ast.expr, int]]:
    """Yield each expression that uses a name as an array, with the dims that it needs."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=indices)):
                yield name, node, len(indices)
            case ast.Subscript(value=ast.Name(id=name)):
                yield name, node, 1
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant(value=int(dim))
            ):
                yield name, node, dim + 1 if dim >= 0 else -dim
            case ast.Assign(targets=[ast.Tuple(elts=sizes)], value=ast.Attribute(value=ast.Name(id=name), attr="shape")):
                yield name, node.value, len(sizes)
            case ast.Attribute(value=ast.Name(id=name)):
                yield name, node, 1
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="atomic")), args=[ast.Name(id=name), index, *_]):
                yield name, node, len(index.elts) if isinstance(index, ast.Tuple) else 1


def passed_arrays(tree: ast.AST, function: Any) -> Iterator[tuple[str, ast.expr, int]]:
    """Yield each name that is passed to a device function, which uses it as an array."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = getattr(function.__globals__.get(node.func.id), "py_func", None)
            if called in (None, function):
                continue
            arrays = kernel_uses(called).arrays
            for parameter, argument in zip(inspect.signature(called).parameters, node.args, strict=False):
                if parameter in arrays and isinstance(argument, ast.Name):
                    yield argument.id, node, arrays[parameter].dims
