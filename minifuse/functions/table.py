"""The table of functions: one decorated body becomes `mf.name(x)`, the method `x.name()` and its twin in place, `x.name_()`.

    @function(operands=1)
    def tril(x, diagonal=0):
        '''Keep the part on and below a diagonal; 0 elsewhere.'''
        ...

A body is written with operators and methods of arrays. So it runs on tensors, traced tensors and graph nodes, on each
backend, and has its gradient. With `operands=n` its first n parameters are the inputs of one call, which is planned and
fused as a whole, and the others are bound to it, so they must be hashable. Without, it is called as it is: for views, and
for bodies that need the values of an array. NumPy's names of parameters are accepted beside PyTorch's.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

from ..core.errors import DTypeError, FuseError, users_line
from ..core.operators import Operator
from ..ir.array_methods import Array
from ..ir.numpy_api.table import as_key, as_parameter, call_once, is_array

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS: dict[str, Callable[..., Any]] = {}  # name -> the function that `mf.name` is
OTHER_NAMES = {"axis": "dim", "axes": "dims", "keepdims": "keepdim", "input": "x", "other": "y"}  # -> of the parameter
OPERANDS = "x", "y", "z"  # the parameters of functions that are made of operators


def function(*names: str, operands: int = 0, method: bool = True) -> Callable[[F], F]:
    """Add a function of arrays to the table, under its own name or the given ones; also as a method, unless method=False."""

    def register(body: F) -> F:
        public = one_call(body, operands) if operands else renaming(body)
        for name in names or (body.__name__,):
            FUNCTIONS[name] = public
            if method:
                setattr(Array, name, public)
        return public  # type: ignore[return-value]  # has the signature of the body

    return register


def name_after(body: Callable[..., Any], call: Any, name: str) -> None:
    """Give a function that is made of an operator or a body a name, the docstring, and its operands as parameters."""
    count = len(signature(body.body if isinstance(body, Operator) else body).parameters)
    call.__name__, call.__doc__ = name, body.__doc__
    call.__signature__ = Signature([Parameter(operand, Parameter.POSITIONAL_OR_KEYWORD) for operand in OPERANDS[:count]])


def renaming(body: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that accepts NumPy's names of parameters, too."""

    @wraps(body)
    def call(*inputs: Any, **named: Any) -> Any:
        return body(*inputs, **renamed(named)) if named else body(*inputs)

    return call


def one_call(body: Callable[..., Any], operands: int) -> Callable[..., Any]:
    """Return a function that makes one call of `body` on the first arguments. The others are bound to the call."""
    code, defaults = body.__code__, body.__defaults__ or ()
    parameters = code.co_varnames[: code.co_argcount]
    default_of = dict(zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True))
    names = parameters[operands:]

    @wraps(body)
    def call(*arguments: Any, **named: Any) -> Any:
        if named or len(arguments) < len(parameters):
            rest = {**default_of, **renamed(named)}
            given = parameters[len(arguments) :]
            if not rest.keys() >= {*given} or not {*rest} <= {*parameters} or named.keys() & {*parameters[: len(arguments)]}:
                return body(*arguments, **named)  # raises Python's TypeError
            arguments = (*arguments, *[rest[name] for name in given])
        elif len(arguments) > len(parameters):
            return body(*arguments)  # raises Python's TypeError
        bound = tuple([plain(x, default_of.get(name)) for name, x in zip(names, arguments[operands:], strict=True)])
        return call_once(body, *arguments[:operands], parameters=bound)

    return call


def plain(value: Any, default: object) -> Any:
    """Convert a parameter to a key. A traced number becomes a plain one, if the default is an integer or a bool."""
    is_traced = isinstance(value, int) and type(value) not in (bool, int) and isinstance(default, int)
    return as_parameter(value, default) if is_traced else as_key(value)


def renamed(named: dict[str, Any]) -> dict[str, Any]:
    """Replace NumPy's names of parameters, and PyTorch's names of operands, by those of the bodies."""
    return {OTHER_NAMES.get(name, name): x for name, x in named.items()}


def values_of(name: str, x: Array, remedy: str) -> Any:
    """Return the elements as a NumPy array, for a result whose shape depends on them. Raise FuseError while tracing."""
    try:
        return x.numpy()
    except FuseError:
        raise FuseError(
            f"{users_line()}: the shape of {name} depends on values, which do not exist while tracing; {remedy}"
        ) from None


def require_array(name: str, x: object) -> None:
    """Raise DTypeError unless x is an array."""
    if not is_array(x):
        raise DTypeError(f"{name}: got {type(x).__name__}, expected a tensor; write mf.tensor(...)")
