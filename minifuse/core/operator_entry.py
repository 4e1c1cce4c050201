"""Operator: one entry of the operator table, and how a scalar function enters the table.

The entries themselves are in `operators`, which says what an entry holds.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from .dtypes import DType, WeakType, as_number, bool_, float32, float64, promote, weak_type_of
from .errors import DTypeError
from .traceable import Traceable

Vjp = Callable[..., tuple[Any, ...]]

TABLE: dict[str, "Operator"] = {}
NUMPY_SCALARS = {np.float32, np.float64, np.int32, np.int64}  # scalars that divide by 0 and overflow as tensors do


class Operator:
    """An entry of the table. Called on numbers it computes; called on Values it does what their `apply` says."""

    def __init__(
        self,
        body: Callable[..., Any],
        vjp: Vjp | None,
        symbol: str | None,
        identity: float | bool | None,
        reduce_vjp: Callable[..., Any] | None,
        is_selection: bool,
        accepts: str,
        result: str,
        on_bools: "Operator | None",
        cost: int,
        is_primitive: bool,
    ) -> None:
        self.name, self.body, self.vjp, self.symbol = body.__name__, body, vjp, symbol
        self.identity, self.reduce_vjp, self.is_selection = identity, reduce_vjp, is_selection
        self.accepts, self.result, self.on_bools = accepts, result, on_bools
        self.cost, self.is_primitive = cost, is_primitive
        self.arity = body.__code__.co_argcount
        self.accepts_floats, self.accepts_bools = accepts in ("any", "numbers"), accepts in ("any", "integers")
        self.__doc__ = body.__doc__

    def __call__(self, *inputs: Any) -> Any:
        """Compute on numbers; on Values, do what their `apply` says."""
        if len(inputs) != self.arity:
            raise TypeError(f"{self.name} takes {self.arity} operands, got {len(inputs)}")
        for x in inputs:
            if isinstance(x, Traceable):
                return x.apply(self, *inputs)
        numbers = [x if type(x) in NUMPY_SCALARS else as_number(x) for x in inputs]
        for x in numbers:
            weak_type_of(x)  # anything but a number is an error that says so
        return self.body(*numbers)

    def __repr__(self) -> str:
        return self.name

    def identity_for(self, dtype: DType) -> bool | int | float:
        """The identity as a number of this element type; the ends of their range stand for the infinities of integers.

        Examples
        --------
        >>> from minifuse.core.operators import add, and_, maximum
        >>> maximum.identity_in(float32), add.identity_in(float32), and_.identity_in(bool_)
        (-inf, 0.0, True)
        """
        if self.identity is None:
            raise DTypeError(f"{self.name} has no identity, so it cannot fold; operators that can: {reducible_names()}")
        if dtype is bool_:
            return bool((self.on_bools or self).identity)
        if dtype.is_float:
            return float(self.identity)
        limits = np.iinfo(dtype.numpy)
        return int(min(max(self.identity, int(limits.min)), int(limits.max)))

    def result_dtype(self, *dtypes: DType | WeakType) -> tuple[DType, DType]:
        """(element type that it computes in, element type that it gives) for these operands.

        Python's numbers stand as their type and are weak: they take the type of the arrays beside them.
        """
        operands = dtypes[1:] if self is TABLE.get("where") else dtypes
        is_weak = all(isinstance(d, type) for d in operands)
        dtype = float32 if is_weak and float in operands else promote(*operands)
        if self.result == "float" and not dtype.is_float:
            dtype = float64  # as NumPy's, for integers
        if operands is not dtypes and dtypes[0] not in (bool_, bool):
            raise DTypeError(f"{self.name}: the condition is {dtypes[0]}, expected bool; compare first, as in x != 0")
        if (dtype is bool_ and not self.accepts_bools) or (dtype.is_float and not self.accepts_floats):
            wanted = "numbers" if self.accepts_floats else "integers and bools" if self.accepts_bools else "integers"
            advice = ": convert bools first, as in x.to(mf.int64)" if dtype is bool_ else ""
            raise DTypeError(f"{self.name}: got {dtype}, expected {wanted}{advice}")
        return dtype, bool_ if self.result == "bool" else dtype


def reducible_names() -> str:
    """The names of the operators that can fold, for messages."""
    return ", ".join(entry.name for entry in TABLE.values() if entry.identity is not None)


def operator(
    vjp: Vjp | None = None,
    symbol: str | None = None,
    methods: str | None = None,
    *,
    identity: float | bool | None = None,
    reduce_vjp: Callable[..., Any] | None = None,
    is_selection: bool = False,
    accepts: Literal["any", "numbers", "integers", "integers alone"] = "any",
    result: Literal["same", "bool", "float"] = "same",
    on_bools: Operator | None = None,
    cost: int = 1,
    primitive: bool = False,
) -> Callable[[Callable[..., Any]], Operator]:
    """Enter a scalar function into the table.

    Parameters
    ----------
    vjp, symbol, identity, fold_vjp, selects, cost
        As the module describes them.
    methods
        Names that `Traceable` gets, separated by spaces; `__radd__` beside `__add__` takes its operands swapped. The
        operator's name if omitted.
    accepts
        "any" element type, "numbers" (no bools), "integers" (and bools), or "integers alone" (no bools).
    gives
        "same" as the inputs, "bool", or "float" (float64 where the inputs are integers or bools, as in NumPy).
    on_bools
        The operator that stands for this one where all operands are bools.
    primitive
        Whether every backend has an instruction for it.
    """

    def enter(body: Callable[..., Any]) -> Operator:
        entry = Operator(body, vjp, symbol, identity, reduce_vjp, is_selection, accepts, result, on_bools, cost, primitive)
        TABLE[entry.name] = entry
        names = (entry.name if methods is None else methods).split()
        for method in names:
            if entry.arity == 1:
                setattr(Traceable, method, lambda self: self.apply(entry, self))
            elif method.startswith("__r") and f"__{method[3:]}" in names:  # __rshift__ is no reflected method
                setattr(Traceable, method, lambda self, other: self.apply(entry, other, self))
            elif entry.arity == 2:
                setattr(Traceable, method, lambda self, other: self.apply(entry, self, other))
        return entry

    return enter


def primitive(vjp: Vjp | None = None, symbol: str | None = None, methods: str | None = None, **more: Any) -> Any:
    """Enter a scalar function for which every backend has an instruction."""
    return operator(vjp, symbol, methods, primitive=True, **more)
