"""The class of an operator table entry, and the decorator that registers a scalar function as one.

The entries are in `operators`, whose docstring explains the fields of an entry.
"""

from collections.abc import Callable
from inspect import CO_VARARGS, signature
from types import FunctionType
from typing import Any, Generic, Literal, TypeVar, get_args, overload

import numpy as np

from .dtypes import DType, Number, WeakType, as_number, bool_, float32, float64, promote, weak_type_of
from .errors import USE_OPERATORS, DTypeError, FuseError, users_line
from .traceable import Traceable, refuse_to_read

T = TypeVar("T", bound=Traceable)
V = TypeVar("V", bound=Traceable)
Vjp = Callable[..., tuple[Any, ...]]  # vjp(g, y, *inputs); the arguments are floats or Traceables
OperatorBody = Callable[..., Any]  # the body of an operator; its arguments are floats or Traceables, too
Accepts = Literal["any", "numbers", "integers", "integers alone"]
Result = Literal["same", "bool", "float"]
Fast = Literal["", "primitive", "composed"]

TABLE: dict[str, "Operator"] = {}
PYTORCH_NAMES = {"x": "input", "a": "input", "b": "other", "c": "condition"}  # what a call may write for these parameters
NUMPY_SCALARS = {np.float32, np.float64, np.int32, np.int64}  # not converted: they overflow and divide by 0 like tensors


class Operator:
    """An entry of the operator table. Called on numbers, it computes; called on Traceables, it calls their `apply`.

    `fast` is its approximation, a FastOperator, or None. `exact` is the operator itself; for an approximation, the entry.
    """

    exact: "Operator"
    fast: "FastOperator | None"
    unary: Callable[..., Any] | None = None  # what a call with one operand means, if it is no mistake

    def __init__(
        self,
        body: OperatorBody,
        vjp: Vjp | None,
        symbol: str | None,
        identity: float | bool | None,
        reduce_vjp: OperatorBody | None,
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
        self.exact, self.fast = self, None
        self.accepts_floats, self.accepts_bools = accepts in ("any", "numbers"), accepts in ("any", "integers")
        self.__doc__ = body.__doc__

    @overload
    def __call__(self, *inputs: Number) -> Any: ...
    @overload
    def __call__(self, *inputs: T | Number) -> T: ...
    @overload
    def __call__(self, *inputs: object) -> Any: ...
    def __call__(self, *inputs: Any, **named: object) -> Any:
        """Compute on numbers, or pass the call on to the `apply` of a Traceable input."""
        if named:
            return self(*inputs, *self.named_operands(len(inputs), named))
        if len(inputs) != self.arity:
            if len(inputs) == 1 and self.unary is not None:
                return self.unary(*inputs)
            raise TypeError(f"{self.name} takes {self.arity} operands, got {len(inputs)}")
        for x in inputs:
            if isinstance(x, Traceable):
                return x.apply(self, *inputs)
        numbers = [x if type(x) in NUMPY_SCALARS else as_number(x) for x in inputs]
        for x in numbers:
            weak_type_of(x, self.name)  # raises DTypeError for anything but a number
        return self.body(*numbers)

    def named_operands(self, start: int, named: dict[str, object]) -> list[object]:
        """Return the operands that a call names, in their order; those before `start` are positional."""
        parameters = self.body.__code__.co_varnames[: self.arity]
        names = [x if x in named else PYTORCH_NAMES.get(x, x) for x in parameters[start:]]
        for name in named:
            if name not in names:
                advice = f", or x.{self.name}_()" if self.arity == 1 else ""
                call = f"{self.name}({', '.join(parameters)})"
                raise TypeError(f"{self.name}: got an unexpected argument {name!r}; write {call}{advice}")
        return [named[name] for name in names if name in named]

    def inline(self, *inputs: Any) -> Any:
        """Apply the body to Traceables.

        Raises
        ------
        FuseError
            The body reads an attribute that they do not have, or a value that is not computed yet.
        """
        try:
            return self.body(*inputs)
        except AttributeError as error:
            raise FuseError(f"{self.name}: got a body that cannot be traced: {error}; {USE_OPERATORS}") from error

    def __repr__(self) -> str:
        return self.name

    @property
    def states(self) -> "tuple[Operator, ...]":
        """The operators of all states of a reduction: this one. Only a `Monoid` may have several."""
        return (self,)

    def identity_for(self, dtype: DType) -> bool | int | float:
        """Return the identity as a number of this dtype. For integers, infinity becomes the end of their range.

        Examples
        --------
        >>> from minifuse.core.operators import add, and_, maximum
        >>> maximum.identity_for(float32), add.identity_for(float32), and_.identity_for(bool_)
        (-inf, 0.0, True)
        """
        if self.identity is None:
            raise DTypeError(f"{self.name} has no identity, so it cannot reduce; use one of {reducible_names()}")
        if dtype is bool_:
            return bool((self.on_bools or self).identity)
        if dtype.is_float:
            return float(self.identity)
        low, high = dtype.limits
        return int(min(max(self.identity, low), high))

    def result_dtype(self, *dtypes: DType | WeakType) -> tuple[DType, DType]:
        """Return (dtype of the computation, dtype of the result) for these operands.

        A Python number is passed as its type. It is weak: it takes the dtype of the arrays in the same call.
        """
        operands = dtypes[1:] if self is TABLE.get("where") else dtypes
        is_weak = float in operands and all(isinstance(d, type) for d in operands)
        dtype = float32 if is_weak else promote(*operands)
        if self.result == "float" and not dtype.is_float:
            dtype = float64  # for integers, as in NumPy
        if operands is not dtypes and dtypes[0] not in (bool_, bool):
            raise DTypeError(f"{self.name}: got a condition of {dtypes[0]}, expected bool; compare first, as in x != 0")
        if (dtype is bool_ and not self.accepts_bools) or (dtype.is_float and not self.accepts_floats):
            expected = "numbers" if self.accepts_floats else "integers and bools" if self.accepts_bools else "integers"
            advice = "; convert bools first, as in x.to(mf.int64)" if dtype is bool_ else ""
            raise DTypeError(f"{self.name}: got {dtype}, expected {expected}{advice}")
        return dtype, bool_ if self.result == "bool" else dtype


class FastOperator(Operator):
    """The approximation of an operator for float32, which `use_fast_math` selects. It is not in the table.

    Kernels call a function of its name, such as `fast_div`. If the operator is composed of others, its approximation is
    composed of theirs. Dtypes, VJP and cost are those of the operator, so fast math changes no other decision.
    """

    def __init__(self, exact: Operator, is_primitive: bool) -> None:
        super().__init__(
            exact.body, exact.vjp, None, None, None, False, exact.accepts, exact.result, None, exact.cost, is_primitive
        )
        self.name, self.exact = f"fast_{exact.name}", exact
        if not is_primitive:
            self.body = self.apply_body

    def apply_body(self, *inputs: Traceable) -> Traceable:
        """Evaluate the body of the operator with approximations."""
        result: FastOperand = self.exact.body(*map(FastOperand, inputs))
        return result.value


class TracedValue(Traceable, Generic[V]):
    """A scalar in a Python function that is being traced. `value` is the expression or the node that computes it.

    An operator is applied to the values of its operands, and the result is a TracedValue again. `==` is an operator, too,
    unlike `==` of expressions, which compares identity.
    """

    __slots__ = ("value",)
    __hash__ = object.__hash__

    def __init__(self, value: V) -> None:
        self.value = value

    def apply(self, operator: Operator, *inputs: object) -> Any:
        """Apply an operator to the expressions or nodes that the inputs represent."""
        operands = [x.value if isinstance(x, TracedValue) else x for x in inputs]
        return type(self)(self.value.apply(operator, *operands))

    def __eq__(self, other: object) -> Any:
        return self.apply(TABLE["eq"], self, other)

    def __ne__(self, other: object) -> Any:
        return self.apply(TABLE["ne"], self, other)

    def __bool__(self) -> bool:
        raise FuseError(
            f"{users_line()}: cannot branch on the value of an element while tracing, since it is not computed yet; use "
            "where(c, a, b)"
        )

    __float__ = __int__ = __index__ = refuse_to_read


class FastOperand(TracedValue[Traceable]):
    """An operand in the body of an approximation: operators that are applied to it are approximated, too."""

    __slots__ = ()

    def apply(self, operator: Operator, *inputs: object) -> Any:
        """Apply the approximation of an operator, or the operator if it has none."""
        return super().apply(operator.fast or operator, *inputs)


def unlisted_operator(body: OperatorBody, identity: float | bool | None = None, accepts: str = "any") -> Operator:
    """Return an operator that is not in the table: a function that only kernels of some backend call."""
    return Operator(body, None, None, identity, None, False, accepts, "same", None, cost=1, is_primitive=True)


def reducible_names() -> str:
    """Return the names of all operators with an identity, for error messages."""
    return ", ".join(entry.name for entry in TABLE.values() if entry.identity is not None)


def check_rule(name: str, option: str, rule: object, parameters: tuple[str, ...]) -> None:
    """Raise TypeError if a gradient rule is neither None nor a function of these parameters."""
    if rule is None:
        return
    expected = ", ".join(parameters)
    if not callable(rule):
        raise TypeError(f"{name}: got {option}={rule!r}, expected a function; write {option}=lambda {expected}: ...")
    got = signature(rule)
    try:
        got.bind(*parameters)
    except TypeError:
        raise TypeError(
            f"{name}: got {option} with the parameters {got}, expected ({expected}); write lambda {expected}: ..."
        ) from None


def check_word(name: str, option: str, word: object, words: tuple[str, ...]) -> None:
    """Raise ValueError if an option is none of these words."""
    if word not in words:
        raise ValueError(f"{name}: got {option}={word!r}, expected one of {', '.join(map(repr, words))}")


def check_name(body: OperatorBody) -> None:
    """Raise ValueError if an entry would replace one of the library. A user's own is replaced: a cell may run twice."""
    present = TABLE.get(body.__name__)
    module = present.body.__module__ if present else ""
    if module != body.__module__ and module.startswith(f"{__package__.partition('.')[0]}."):
        raise ValueError(
            f"operator: got a body called {body.__name__}, expected a new name, since {module} has an entry of this name; "
            f"write def my_{body.__name__}"
        )


def add_method(name: str, function: Callable[..., Any]) -> None:
    """Add a method to `Traceable`, under the name that Python's errors print."""
    function.__name__, function.__qualname__ = name, f"Tensor.{name}"
    setattr(Traceable, name, function)


def operator(
    vjp: Vjp | None = None,
    symbol: str | None = None,
    methods: str | None = None,
    *,
    identity: float | bool | None = None,
    reduce_vjp: OperatorBody | None = None,
    is_selection: bool = False,
    accepts: Accepts = "any",
    result: Result = "same",
    on_bools: Operator | None = None,
    cost: int = 1,
    primitive: bool = False,
    fast: Fast = "",
) -> Callable[[OperatorBody], Operator]:
    """Register a scalar function as an operator.

    Parameters
    ----------
    vjp, symbol, identity, reduce_vjp, is_selection, cost
        See the docstring of `operators`.
    methods
        Names of the methods of `Traceable`, separated by spaces; default: the name of the operator. `__radd__` next to
        `__add__` swaps the operands.
    accepts
        "any" dtype, "numbers" (no bools), "integers" (and bools), or "integers alone" (no bools).
    result
        dtype of the result: "same" as the inputs, "bool", or "float" (float64 for integers and bools, as in NumPy).
    on_bools
        The operator to use instead if all operands are bools.
    primitive
        Whether every backend has an instruction for it.
    fast
        Its approximation under `use_fast_math`: "primitive" if kernels of the GPU have a function fast_NAME, "composed" if
        it is the body, evaluated with approximations; "" if it has none.

    Raises
    ------
    TypeError
        `vjp` or `reduce_vjp` is no function of these parameters, or `operator` has no parentheses.
    ValueError
        An unknown word for `accepts`, `result` or `fast`, or the name of an entry of the library.
    """
    if isinstance(vjp, FunctionType) and vjp.__name__ != "<lambda>":
        code = vjp.__code__
        if code.co_argcount < 3 and not code.co_flags & CO_VARARGS:
            raise TypeError(
                f"operator: got {vjp.__name__}{signature(vjp)} as the gradient rule, expected a function of g, y and the "
                f"operands; write @operator() above {vjp.__name__} if it is the body of an operator"
            )

    def register(body: OperatorBody) -> Operator:
        if not isinstance(body, FunctionType):
            raise TypeError(
                f"operator: got {type(body).__name__}, expected a function, the body; write @operator() above it"
            )
        operands = body.__code__.co_varnames[: body.__code__.co_argcount]
        check_rule(body.__name__, "vjp", vjp, ("g", "y", *operands))
        check_rule(body.__name__, "reduce_vjp", reduce_vjp, ("g", "y", "x", "reduce"))
        check_word(body.__name__, "accepts", accepts, get_args(Accepts))
        check_word(body.__name__, "result", result, get_args(Result))
        check_word(body.__name__, "fast", fast, get_args(Fast))
        check_name(body)
        entry = Operator(body, vjp, symbol, identity, reduce_vjp, is_selection, accepts, result, on_bools, cost, primitive)
        entry.fast = FastOperator(entry, fast == "primitive") if fast else None
        TABLE[entry.name] = entry
        names = (entry.name if methods is None else methods).split()
        for method in names:
            if entry.arity == 1:
                add_method(method, lambda self: self.apply(entry, self))
            elif method.startswith("__r") and f"__{method[3:]}" in names:  # __rshift__ is not a reflected method
                add_method(method, lambda self, other: self.apply(entry, other, self))
            elif entry.arity == 2:
                add_method(method, lambda self, other: self.apply(entry, self, other))
        return entry

    return register


def primitive(
    vjp: Vjp | None = None, symbol: str | None = None, methods: str | None = None, **options: Any
) -> Callable[[OperatorBody], Operator]:
    """Register a scalar function for which every backend has an instruction."""
    return operator(vjp, symbol, methods, primitive=True, **options)
