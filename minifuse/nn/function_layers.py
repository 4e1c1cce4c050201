"""Layers made from functions: a decorated body becomes a function of `mf.nn.functional` and a class of `mf.nn`.

    @layer("CELU", inplace=True)
    def celu(x, alpha: float = 1.0):
        '''Return x where x > 0, and alpha * (exp(x / alpha) - 1) elsewhere.'''
        return where(x > 0, x, ...)

    mf.nn.functional.celu(x, 2.0, inplace=True)
    mf.nn.CELU(alpha=2.0)(x)

A body is written with operators and methods of arrays, and runs as one composite op. Its arrays are operands of the op. So
are the parameters annotated with `float`: they are passed to the kernel at launch, and a body does not branch on them. All
other parameters are constants of the op. The parameters without a default are the inputs of the class; the others are
parameters of its constructor, except `training`, which is the attribute of the module.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

from ..core.dtypes import as_number
from ..core.errors import DTypeError
from ..ir.array_methods import MAX_CACHED_CALLS, Array
from ..tensors.tensor import Tensor
from .layers import FunctionLayer, apply, require_tensor
from .module import Buffer

F = TypeVar("F", bound=Callable[..., Any])
Constant = int | float  # the annotation of a number that is a constant of the op, so that the body can branch on it
OPERAND = object()
PYTORCH_NAMES = {"input": 0, "input1": 0, "x1": 0, "logits": 0, "input2": 1, "x2": 1}  # -> position of the parameter


class GeneratedLayer(FunctionLayer):
    """Base class of the layers that `layer` makes from functions. `options` are the parameters of the constructor."""

    function: Callable[..., Any]
    fields: tuple[str, ...]
    uses_training = False
    __signature__: Signature

    def __init__(self, *arguments: Any, **named: Any) -> None:
        bound = self.__signature__.bind(*arguments, **named)  # raises Python's TypeError
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            setattr(self, name, Buffer(value) if isinstance(value, Tensor) else value)

    def forward(self, *inputs: Any) -> Any:
        """Apply the function."""
        named = {name: getattr(self, name) for name in self.fields}
        return type(self).function(*inputs, **named, **({"training": self.training} if self.uses_training else {}))

    @property
    def options(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the constructor's parameters, without those that are left out by default."""
        return tuple(n for n in self.fields if getattr(self, n) is not None and (n != "inplace" or self.inplace))


def layer(
    name: str = "", *, inplace: bool = False, floats: bool = True, is_op: bool = True, required: tuple[str, ...] = ()
) -> Callable[[F], F]:
    """Make a function of arrays a name of its module, and a class named `name` beside it.

    Parameters
    ----------
    name
        The name of the class. By default there is none.
    inplace
        Whether function and class have the parameter `inplace`.
    floats
        Whether the first input must have a float dtype.
    is_op
        Whether the body runs as one op. Otherwise it is called as it is, and may draw random numbers or read values.
    required
        Parameters without a default that the constructor has.
    """

    def register(body: F) -> F:
        public = one_call(body, inplace, floats, is_op)
        namespace = body.__globals__
        namespace.setdefault("__all__", []).append(body.__name__)
        if name:
            namespace[name] = layer_class(name, public, body.__module__, required)
            namespace["__all__"].append(name)
        return public

    return register


def layer_class(
    name: str, function: Callable[..., Any], module: str, required: tuple[str, ...] = ()
) -> type[GeneratedLayer]:
    """Return a class whose constructor has the optional parameters of a function, and whose inputs are the others."""
    found = {n: p for n, p in signature(function).parameters.items() if p.default is not Parameter.empty or n in required}
    options = {n: p for n, p in found.items() if n != "training"}
    attributes = {
        "function": staticmethod(function),
        "fields": tuple(options),
        "uses_training": len(found) > len(options),
        "__doc__": f"`{function.__name__}` as a module.",
        "__module__": module,
        "__signature__": signature(function).replace(parameters=[*options.values()]),
    }
    return type(name, (GeneratedLayer,), attributes)


def one_call(body: F, inplace: bool = False, floats: bool = True, is_op: bool = True) -> F:
    """Return a function that runs `body` as one op of the given arrays and numbers. See `layer`."""
    body_signature = signature(body)
    parameters = [*body_signature.parameters.values()]
    names, defaults = [p.name for p in parameters], [p.default for p in parameters]
    is_number = [p.annotation is float for p in parameters]
    required_count = sum(p.default is Parameter.empty for p in parameters)

    @wraps(body)
    def call(*arguments: Any, **named: Any) -> Any:
        in_place = inplace and (named.pop("inplace", False) or (len(arguments) > len(names) and arguments[-1]))
        if inplace and len(arguments) == len(names) + 1:
            arguments = arguments[:-1]
        if named:
            named = {
                names[k] if (k := PYTORCH_NAMES.get(n)) is not None and n not in names else n: v for n, v in named.items()
            }
        if named or not required_count <= len(arguments) <= len(names):
            bound = body_signature.bind(*arguments, **named)  # raises Python's TypeError
            bound.apply_defaults()
            values = [bound.arguments[n] for n in names]
        else:
            values = [*arguments, *defaults[len(arguments) :]]
        x = values[0]
        require_tensor(body.__name__, x)
        if floats and not x.dtype.is_float:
            raise DTypeError(f"{body.__name__}: got dtype {x.dtype}, expected floats; write x.to(mf.float32)")
        if is_op:
            is_operand = [number or isinstance(v, Array) for v, number in zip(values, is_number, strict=True)]
            template = [OPERAND if k else as_constant(v) for v, k in zip(values, is_operand, strict=True)]
            y = apply(bind(body, *template), *[as_number(v) for v, k in zip(values, is_operand, strict=True) if k])
        else:
            y = body(*values)
        return x.copy_(y) if in_place else y

    if inplace:
        flag = Parameter("inplace", Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation=bool)
        call.__signature__ = body_signature.replace(parameters=[*parameters, flag])  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def as_constant(value: Any) -> Any:
    """Convert a parameter to one that may be a key: a list to a tuple, a NumPy number to a Python number."""
    return tuple(map(as_constant, value)) if isinstance(value, list | tuple) else as_number(value)


@lru_cache(MAX_CACHED_CALLS, typed=True)
def bind(body: Callable[..., Any], *template: Hashable) -> Callable[..., Any]:
    """Return a function of the operands only: `template` has the constants, and OPERAND in the places of operands."""

    def call(*operands: Any) -> Any:
        rest = iter(operands)
        return body(*[next(rest) if x is OPERAND else x for x in template])

    call.__name__ = body.__name__
    return call
