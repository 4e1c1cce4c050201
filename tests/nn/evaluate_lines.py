"""Lines of `mf.nn` in `lines.txt` that PyTorch and minifuse both run, with the same values and gradients.

A line may use `t(*shape)`, a float64 input that requires a gradient, `i(...)`, a tensor of integers, and `fixed(layer)`,
a layer whose parameters have fixed values. Statements are separated by `;`, and the last one is an expression.
"""

import ast
import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

LINES = [line for line in (Path(__file__).parent / "lines.txt").read_text().splitlines() if line]


def values(shape: tuple[int, ...], seed: int) -> Any:
    """Numbers of few digits between -2 and 2, all different if they are less than 256."""
    return ((np.arange(math.prod(shape)) * 101 + 37 * seed) % 256 / 64 - 2).reshape(shape)


class Inputs(ast.NodeTransformer):
    """Compute the inputs and layers of a line, and replace the calls that make them by names."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Evaluate the call of t, i or fixed."""
        if not isinstance(node.func, ast.Name):
            return self.generic_visit(node)
        name = f"input{len(self.names)}"
        self.names[name] = eval(ast.unparse(node), self.names)
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def evaluate(line: str, library: str, call: Callable[[Callable[[], Any]], Any] = lambda f: f()) -> dict[str, Any]:
    """Run a line: its results y0, y1, ..., and the gradients g0, ... of inputs, then of parameters.

    `call` calls the expression, which is a function without arguments.
    """
    torch = import_module(library)
    leaves: list[Any] = []

    def t(*shape: int) -> Any:
        x = torch.from_numpy(values(shape, len(leaves)))
        x.requires_grad = True
        leaves.append(x)
        return x

    def fixed(layer: Any) -> Any:
        layer = layer.to(torch.float64)
        with torch.no_grad():
            for k, p in enumerate(layer.parameters()):
                p.copy_(torch.from_numpy(values(tuple(p.shape), 5 + k) / 2))
                leaves.append(p)
        return layer

    nn = import_module(f"{library}.nn")
    names = {"torch": torch, "nn": nn, "F": nn.functional, "t": t, "fixed": fixed, "i": torch.tensor}
    *statements, last = ast.parse(line).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(statements, []), "<line>", "exec"), names)
    expression = compile(ast.Expression(Inputs(names).visit(last.value)), "<line>", "eval")
    results = [y for y in flattened(call(lambda: eval(expression, names))) if y is not None]
    weighted = [
        (y * torch.from_numpy(values(tuple(y.shape), 50 + k))).sum() for k, y in enumerate(results) if y.requires_grad
    ]
    if weighted:
        sum(weighted[1:], weighted[0]).backward()
    gradients = [leaf.grad for leaf in leaves]
    found = {f"y{k}": y.detach().numpy() for k, y in enumerate(results)}
    return found | {f"g{k}": g.numpy() for k, g in enumerate(gradients) if g is not None and g.numpy().any()}


def flattened(nested: Any) -> list[Any]:
    """The tensors in nested tuples."""
    return [y for part in nested for y in flattened(part)] if isinstance(nested, tuple | list) else [nested]
