"""Programs as data: a few lines of arithmetic that run on tensors, on graph nodes and on NumPy arrays in float64.

A program is a list of steps. Each step is an operation on inputs or on results of earlier steps. Operations call functions
of an `ArrayNamespace`, of which there is one for tensors (`TENSORS`) and one for NumPy (`NUMPY`). So the NumPy reference
shares no code with minifuse. For random programs, see `strategies.expressions`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core import operators
from ..core.dtypes import as_dtype
from ..core.indexing import Shape
from ..ir.array_methods import Array
from . import views
from .views import V


class ArrayNamespace(NamedTuple, Generic[V]):
    """The functions that operations use, for one kind of array."""

    exp: Callable[[V], V]
    log: Callable[[V], V]
    log1p: Callable[[V], V]
    sqrt: Callable[[V], V]
    tanh: Callable[[V], V]
    sin: Callable[[V], V]
    erf: Callable[[V], V]
    sigmoid: Callable[[V], V]
    maximum: Callable[..., V]
    minimum: Callable[..., V]
    where: Callable[..., V]
    cast: Callable[[V, str], V]
    asarray_like: Callable[[V, V], V]  # (x, y): x as the dtype of y
    reduce: Callable[[str, V, int, bool], V]  # (name, x, dim, keepdim)
    array: Callable[[V], V]  # the result of a step as an array


def _numpy_reduction(name: str) -> Callable[[np.ndarray, int, bool], np.ndarray]:
    return lambda x, dim, keepdim: getattr(np, name)(x, axis=dim, keepdims=keepdim)


def _softmax(x: np.ndarray, dim: int, keepdim: bool) -> np.ndarray:
    e = np.exp(x - x.max(dim, keepdims=True))
    y: np.ndarray = e / e.sum(dim, keepdims=True)
    return y


def _logsumexp(x: np.ndarray, dim: int, keepdim: bool) -> np.ndarray:
    y: np.ndarray = np.log(np.exp(x).sum(dim, keepdims=keepdim))
    return y


REDUCTIONS = {name: _numpy_reduction(name) for name in ("sum", "mean", "max", "min", "prod", "var")} | {
    "softmax": _softmax,
    "logsumexp": _logsumexp,
}
REDUCTIONS_WITHOUT_KEEPDIM = ("softmax",)  # their results have the shape of the operand


def _reduce_tensor(name: str, x: Array, dim: int, keepdim: bool) -> Array:
    if name == "var":
        return x.var(dim, 0, keepdim)
    y: Array = getattr(x, name)(dim) if name in REDUCTIONS_WITHOUT_KEEPDIM else getattr(x, name)(dim, keepdim)
    return y


TENSORS = ArrayNamespace[Array](
    exp=operators.exp,
    log=operators.log,
    log1p=operators.log1p,
    sqrt=operators.sqrt,
    tanh=operators.tanh,
    sin=operators.sin,
    erf=operators.erf,
    sigmoid=operators.sigmoid,
    maximum=operators.maximum,
    minimum=operators.minimum,
    where=operators.where,
    cast=lambda x, dtype: x.to(as_dtype(dtype)),
    asarray_like=lambda x, y: x.to(y.dtype),
    reduce=_reduce_tensor,
    array=lambda x: x,
)
NUMPY = ArrayNamespace[np.ndarray](
    exp=np.exp,
    log=np.log,
    log1p=np.log1p,
    sqrt=np.sqrt,
    tanh=np.tanh,
    sin=np.sin,
    erf=np.vectorize(math.erf, otypes=[np.float64]),
    sigmoid=lambda x: 1 / (1 + np.exp(-x)),
    maximum=np.maximum,
    minimum=np.minimum,
    where=np.where,
    cast=lambda x, dtype: x.astype(dtype).astype(np.float64),
    asarray_like=lambda x, y: x.astype(y.dtype),
    reduce=lambda name, x, dim, keepdim: REDUCTIONS[name](x, dim, keepdim),
    array=np.asarray,
)


class Operation(NamedTuple):
    """One kind of step: its source text, and a function of an `ArrayNamespace` and the operands."""

    text: str  # {0}, {1}: the operands
    run: Callable[..., Any]  # (namespace, *operands)


# These operations are bounded and well-conditioned, so a difference is a bug. Values are rarely equal to a threshold.
UNARY = {
    "neg": Operation("-{0}", lambda xp, x: -x),
    "exp": Operation("mf.exp({0} * 0.3)", lambda xp, x: xp.exp(x * 0.3)),
    "log": Operation("mf.log({0} * {0} + 0.5)", lambda xp, x: xp.log(x * x + 0.5)),
    "log1p": Operation("mf.log1p({0} * {0})", lambda xp, x: xp.log1p(x * x)),
    "sqrt": Operation("mf.sqrt({0} * {0} + 0.1)", lambda xp, x: xp.sqrt(x * x + 0.1)),
    "tanh": Operation("mf.tanh({0})", lambda xp, x: xp.tanh(x)),
    "sin": Operation("mf.sin({0})", lambda xp, x: xp.sin(x)),
    "erf": Operation("mf.erf({0})", lambda xp, x: xp.erf(x)),
    "sigmoid": Operation("mf.sigmoid({0})", lambda xp, x: xp.sigmoid(x)),
    "inverse": Operation("1 / ({0} * {0} + 1)", lambda xp, x: 1 / (x * x + 1)),
    "complement": Operation("2.0 - {0}", lambda xp, x: 2.0 - x),
    "relu": Operation("mf.maximum({0}, 0)", lambda xp, x: xp.maximum(x, 0)),
    "mask": Operation("({0} > 0.13).to({0}.dtype)", lambda xp, x: xp.asarray_like(x > 0.13, x)),
}
BINARY = {
    "add": Operation("{0} + {1}", lambda xp, x, y: x + y),
    "sub": Operation("{0} - {1}", lambda xp, x, y: x - y),
    "mul": Operation("{0} * {1}", lambda xp, x, y: x * y),
    "div": Operation("{0} / ({1} * {1} + 0.7)", lambda xp, x, y: x / (y * y + 0.7)),
    "maximum": Operation("mf.maximum({0}, {1})", lambda xp, x, y: xp.maximum(x, y)),
    "minimum": Operation("mf.minimum({0}, {1})", lambda xp, x, y: xp.minimum(x, y)),
    "where": Operation("mf.where({0} > 0.13, {0} * 2, {1})", lambda xp, x, y: xp.where(x > 0.13, x * 2, y)),
    "hold": Operation("mf.where({0} < {1} + 0.17, {1}, 0.5)", lambda xp, x, y: xp.where(x < y + 0.17, y, 0.5)),
}
ROUNDING = Operation('{0}.to("float32")', lambda xp, x: xp.cast(x, "float32"))
SQUASH = Operation("mf.tanh({0} * 0.1)", lambda xp, x: xp.tanh(x * 0.1))


def reduce_operation(name: str, dim: int, keepdim: bool) -> Operation:
    """Return the operation that reduces a dim."""
    arguments = (
        f"{dim}" if name in REDUCTIONS_WITHOUT_KEEPDIM else f"{dim}, 0, {keepdim}" if name == "var" else f"{dim}, {keepdim}"
    )
    return Operation(f"{{0}}.{name}({arguments})", lambda xp, x: xp.reduce(name, x, dim, keepdim))


def view_operation(method: str, argument: views.ViewArguments) -> Operation:
    """Return the operation of a view."""
    if method == "reshape":
        return Operation(f"{{0}}.reshape({', '.join(map(str, argument))})", lambda xp, x: x.reshape(argument))
    return Operation("{0}" + views.format_view(method, argument), lambda xp, x: views.METHODS[method](x, argument))


def matmul_operation(size: int, transposed: bool = False) -> Operation:
    """Return the operation that multiplies two matrices, or one by its transpose, divided by K = size."""
    if transposed:
        return Operation(f"({{0}} @ {{0}}.mT) / {size}", lambda xp, x: (x @ x.mT) / size)
    return Operation(f"({{0}} @ {{1}}) / {size}", lambda xp, x, y: (x @ y) / size)


class ProgramStep(NamedTuple):
    """An operation on values of the program, by index: inputs first, then the results of the steps."""

    operation: Operation
    operands: tuple[int, ...]


class Program:
    """A function of several tensors. Call it with tensors or graph nodes; `numpy` computes the reference.

    Parameters
    ----------
    shapes : sequence of tuples
        Shapes of the inputs.
    steps : sequence of ProgramStep
        The operations in order.
    outputs : sequence of int
        Indices of the results.

    Examples
    --------
    >>> import minifuse as mf
    >>> product = ProgramStep(BINARY["mul"], (0, 1))
    >>> total = ProgramStep(reduce_operation("sum", 0, False), (2,))
    >>> program = Program([(3,), (3,)], [product, total], [3])
    >>> program
    def program(x0, x1):  # (3,), (3,)
        t0 = x0 * x1
        t1 = t0.sum(0, False)
        return t1
    >>> program(mf.arange(3), mf.arange(3)), program.numpy(np.arange(3), np.arange(3))
    (tensor(5), array(5.))
    """

    def __init__(self, shapes: Sequence[Shape], steps: Sequence[ProgramStep], outputs: Sequence[int]) -> None:
        self.shapes, self.steps, self.outputs = tuple(shapes), tuple(steps), tuple(outputs)

    def __call__(self, *inputs: Array) -> Array | tuple[Array, ...]:
        """Compute the outputs: one tensor, or a tuple."""
        return self._run(TENSORS, inputs)

    def numpy(self, *inputs: npt.ArrayLike) -> np.ndarray | tuple[np.ndarray, ...]:
        """Compute the outputs with NumPy in float64."""
        return self._run(NUMPY, [np.asarray(x, np.float64) for x in inputs])

    @property
    def rounds(self) -> bool:
        """Return True if a step casts to float32, which limits the precision of results."""
        return any(step.operation is ROUNDING for step in self.steps)

    def _run(self, namespace: ArrayNamespace[V], inputs: Sequence[V]) -> V | tuple[V, ...]:
        values = list(inputs)
        for operation, operands in self.steps:
            values.append(namespace.array(operation.run(namespace, *[values[k] for k in operands])))
        results = tuple(values[k] for k in self.outputs)
        return results if len(results) > 1 else results[0]

    def __repr__(self) -> str:
        names = [f"x{k}" for k in range(len(self.shapes))] + [f"t{k}" for k in range(len(self.steps))]
        first = len(self.shapes)
        lines = [f"def program({', '.join(names[:first])}):  # {', '.join(map(str, self.shapes))}"]
        for k, (operation, operands) in enumerate(self.steps):
            lines.append(f"    {names[first + k]} = {operation.text.format(*[names[i] for i in operands])}")
        return "\n".join([*lines, f"    return {', '.join(names[k] for k in self.outputs)}"])
