"""Python scalars while tracing: symbolic, specialized only if control flow reads the value."""

import math
import operator
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..core.dtypes import NumpyArray
from ..core.pytree import tree_map
from ..core.traceable import TraceableFunction
from ..ir.numpy_api import on_function
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from .tracer import Tracer


@dataclass(frozen=True, eq=False)
class DynamicAttr:
    """A number that is the entry `name` of the dict `settings`; each call reads it again."""

    settings: Any
    name: Hashable

    @property
    def value(self) -> float:
        """Return the current value."""
        return float(self.settings[self.name])

    def __hash__(self) -> int:
        return hash((id(self.settings), self.name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DynamicAttr) and other.settings is self.settings and other.name == self.name


class DynamicGuard(DynamicAttr):
    """A value in the key, computed before each call by calling `settings`. `name` identifies the guard."""

    @property
    def value(self) -> Any:
        """Compute the current value."""
        return self.settings()

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DynamicGuard) and other.name == self.name


Source = int | str | DynamicAttr  # an input's index, "a count" (of calls), or a value that each call reads or computes


class TracedScalar:
    """A Python number that is an input, or is computed from inputs. Each call computes its value.

    `text` is the Python expression that computes it from inputs x0, x1, ...; `value` is its value in this call. If
    Python needs the value (a branch, a size, `math.sqrt`), the trace is specialized: its `sources` become part of the
    key.
    """

    __slots__ = ("sources", "text", "tracer", "value")

    def __init__(self, tracer: "Tracer", value: Any, text: str, sources: frozenset[Source]) -> None:
        self.tracer, self.value, self.text, self.sources = tracer, value, text, sources

    @property  # type: ignore[misc]  # mypy expects a class, not a property
    def __class__(self) -> type:  # so isinstance(x, float) is True for a float
        return type(self.value)

    def concretize(self) -> Any:
        """Return the value, and specialize the trace on it."""
        self.tracer.specialize_on(self.sources)
        return self.value

    def item(self) -> "TracedScalar":
        """Convert a NumPy scalar to a Python number."""
        return TracedScalar(self.tracer, self.value.item(), f"{self.text}.item()", self.sources)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **named: object) -> Any:
        if any(isinstance(x, Tensor) for x in inputs):
            return NotImplemented
        return getattr(ufunc, method)(*[x.concretize() if type(x) is TracedScalar else x for x in inputs], **named)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NumpyArray:
        """Return the value as a 0-d array: NumPy's arrays cannot contain symbols."""
        return np.asarray(self.concretize(), dtype)

    def __array_function__(
        self, function: TraceableFunction, types: Collection[type], args: tuple[object, ...], named: dict[str, object]
    ) -> Any:
        """Call a NumPy function. It is traced if an argument is a tensor; else it computes with the numbers' values."""
        if any(issubclass(t, Tensor) for t in types):
            return on_function(function, [t for t in types if t is not TracedScalar], args, named)
        args, named = tree_map((args, named), _concretize)
        return function(*args, **named)

    def __format__(self, spec: str) -> str:
        return format(self.concretize(), spec)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self.value, name):
            raise AttributeError(f"{type(self.value).__name__!r} object has no attribute {name!r}")
        return getattr(self.concretize(), name)


def _concretize(x: object) -> Any:
    return x.concretize() if type(x) is TracedScalar else x


def _add_arithmetic(name: str, symbol: str) -> None:
    compute = getattr(operator, name)

    def method(a: TracedScalar, b: object) -> Any:
        if name == "pow" and type(a.value) is int and isinstance(b, int):  # an int or a float, depending on the values
            return compute(a.concretize(), _concretize(b))
        if type(b) is TracedScalar:
            return TracedScalar(a.tracer, compute(a.value, b.value), f"({a.text} {symbol} {b.text})", a.sources | b.sources)
        if isinstance(b, int | float | np.generic):
            return TracedScalar(a.tracer, compute(a.value, b), f"({a.text} {symbol} {b!r})", a.sources)
        return NotImplemented

    def swapped(a: TracedScalar, b: object) -> Any:
        if name == "pow" and type(a.value) is int and isinstance(b, int):
            return compute(b, a.concretize())
        if isinstance(b, int | float):
            return TracedScalar(a.tracer, compute(b, a.value), f"({b!r} {symbol} {a.text})", a.sources)
        return NotImplemented

    setattr(TracedScalar, f"__{name}__", method)
    setattr(TracedScalar, f"__r{name}__", swapped)


def _add_sign(name: str, symbol: str) -> None:
    compute = getattr(operator, name)

    def method(a: TracedScalar) -> TracedScalar:
        return TracedScalar(a.tracer, compute(a.value), f"({symbol}{a.text})", a.sources)

    setattr(TracedScalar, f"__{name}__", method)


def _add_concrete_method(name: str, function: Callable[..., Any]) -> None:
    setattr(TracedScalar, f"__{name}__", lambda a, *others: function(a.concretize(), *map(_concretize, others)))


def _add_comparison(name: str) -> None:
    compare = getattr(operator, name)

    def method(a: TracedScalar, b: object) -> Any:
        return NotImplemented if isinstance(b, Tensor) else compare(a.concretize(), _concretize(b))

    setattr(TracedScalar, f"__{name}__", method)


def _add_binary_by_value(compute: Callable[[Any, Any], Any]) -> None:
    name = compute.__name__.rstrip("_")

    def method(a: TracedScalar, b: object) -> Any:
        return NotImplemented if isinstance(b, Tensor) else compute(a.concretize(), _concretize(b))

    setattr(TracedScalar, f"__{name}__", method)
    setattr(TracedScalar, f"__r{name}__", lambda a, b: compute(_concretize(b), a.concretize()))


for _name, _symbol in {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
}.items():  # fmt: skip
    _add_arithmetic(_name, _symbol)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _add_comparison(_name)
CONCRETE_FUNCTIONS = (float, int, bool, hash, repr, str, round, abs, math.trunc, math.floor, math.ceil)
for _function in (*CONCRETE_FUNCTIONS, operator.index, operator.invert):
    _add_concrete_method(_function.__name__, _function)
for _compute in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, divmod):
    _add_binary_by_value(_compute)
for _name, _symbol in {"neg": "-", "pos": "+"}.items():
    _add_sign(_name, _symbol)
