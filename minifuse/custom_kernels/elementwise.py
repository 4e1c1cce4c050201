"""Custom kernels written as Python functions of single elements.

Without indexed arguments (`raw=`), the function is traced like any other: it broadcasts, promotes dtypes,
differentiates, and fuses with the kernels around it. With indexed arguments it becomes a separate kernel (`indexed`),
which can read and modify any element of those arguments.
"""

import inspect
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import update_wrapper
from numbers import Real
from typing import Any, overload

import numpy as np

from ..compiler import plan
from ..core.dispatch import mode
from ..core.dtypes import Number, as_number
from ..core.errors import FuseError
from ..core.indexing import Shape, ShapeLike
from ..core.interning import Interned
from ..core.layout import broadcast
from ..core.traceable import Traceable
from ..ir.array_functions import Full, View
from ..ir.array_methods import Array
from ..ir.graph import Argument, Node, literal
from ..jit.guards import ClosureGuard
from ..tensors.tensor import Tensor
from .indexed import IndexedOperand, IndexedPlan
from .scalar_tracer import ScalarTracer, trace_elements, tracing

ElementFunction = Callable[..., Any]  # the user's function of elements: it returns an element, a tuple of elements, or None

MAX_CACHED_RUNS = 1_000  # cached functions per kernel, one for each kind of call


class TracedArgument(metaclass=Interned):
    """An argument that is traced: number `index` among the inputs of the call."""

    def __init__(self, index: int) -> None:
        self.index = index


class StaticArgument(metaclass=Interned):
    """An argument that is neither an array nor a number, such as a dtype or None: a constant of the function.

    Type and text distinguish values that compare equal, such as (1,) and (True,).
    """

    def __init__(self, value: Hashable, kind: type, text: str) -> None:
        self.value = value


class ElementwiseCall(metaclass=Interned):
    """A function of elements, the closure and global state that it reads, and how a call passes its arguments.

    Called on nodes, the object returns nodes. A plan is compiled for each object, which is a part of the plan's key.
    """

    __slots__ = ("__name__", "__weakref__", "arguments", "function", "names")

    def __init__(
        self,
        function: ElementFunction,
        outside: Hashable,
        arguments: tuple[TracedArgument | StaticArgument, ...],
        names: tuple[str, ...],
    ) -> None:
        self.function, self.arguments, self.names = function, arguments, names
        self.__name__ = function_name(function)

    def call(self, *inputs: object) -> Any:
        """Call the user's function with these values for the inputs."""
        values = [inputs[a.index] if isinstance(a, TracedArgument) else a.value for a in self.arguments]
        positional_count = len(values) - len(self.names)
        return self.function(*values[:positional_count], **dict(zip(self.names, values[positional_count:], strict=True)))

    def __call__(self, *inputs: Node | Number) -> Node | tuple[Node, ...]:
        """Trace the function on nodes; each result has the shape that the nodes broadcast to."""
        nodes = [x if isinstance(x, Node) else literal(x) for x in inputs]
        shape = broadcast(*[x.shape for x in nodes])
        result = trace_elements(self.call, nodes, shape)
        nodes = [self.result(x, shape) for x in (result if isinstance(result, tuple) else (result,))]
        return tuple(nodes) if isinstance(result, tuple) else nodes[0]

    def result(self, x: object, shape: Shape) -> Node:
        """Convert a result to a node of a shape, in new memory: an argument or a view of one is copied."""
        node = x.node if isinstance(x, ScalarTracer) else literal(x) if isinstance(x, Real | np.bool_) else None
        if node is None:
            got = "None" if x is None else type(x).__name__
            raise FuseError(
                f"{function_location(self.function)}: {self.__name__} returned {got}, expected an element, or a tuple"
            )
        if node.is_number:
            dtype = ScalarTracer(node).dtype
            filled: Node = Full(shape, dtype)(Node(node.function, (), (), dtype))
            return filled
        expanded: Node = node.expand(*shape)
        return expanded.clone() if isinstance(expanded.function, View | Argument) else expanded

    def __repr__(self) -> str:
        return self.__name__


class Elementwise:
    """A function of elements that is called with arrays; `mf.elementwise` makes one.

    A call with numbers only runs the plain Python function.
    """

    def __init__(self, function: ElementFunction, raw: Sequence[str] = ()) -> None:
        update_wrapper(self, function)
        self.__name__ = function_name(function)
        self.function, self.guard = function, ClosureGuard(function)
        self.signature = inspect.signature(function)
        kinds = [p.kind for p in self.signature.parameters.values()]
        self.names = tuple(self.signature.parameters)
        self.positional_count = len(kinds) if all(kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in kinds) else -1
        self.raw = frozenset(raw)
        self.runs: dict[Hashable, Callable[..., Any]] = {}  # key of a call -> the function that runs it
        for name in self.raw - self.signature.parameters.keys():
            raise FuseError(f"elementwise: raw= names {name!r}, which is not a parameter of {self.__name__}{self.signature}")
        if self.raw and "shape" in self.signature.parameters:
            raise FuseError(
                f"elementwise: {self.__name__} has a parameter 'shape', the name of the shape to run over; rename it"
            )

    def __call__(self, *inputs: object, **named: Any) -> Any:
        """Apply the function to each element of the broadcast arguments.

        With indexed arguments, `shape=` is the shape to run over; it is required if no other argument is an array.
        """
        shape = named.pop("shape", None) if self.raw else None
        shape = tuple(shape) if isinstance(shape, list) else shape
        if named or tracing.stack:
            return self.compile_and_run(None, inputs, named, shape)
        key = (self.guard.fingerprint(), mode.is_recording, shape, *[getattr(x, "meta", None) or type(x) for x in inputs])
        run = self.runs.get(key)
        return self.compile_and_run(key, inputs, named, shape) if run is None else run(*inputs)

    def compile_and_run(
        self, key: Hashable | None, inputs: Sequence[object], named: dict[str, object], shape: ShapeLike | None
    ) -> Any:
        """Find or compile the kernel of a call, cache it if the key is complete, and run it."""
        call, values, names = self.bind_arguments(inputs, named)
        if any(isinstance(x, ScalarTracer | IndexedOperand) for x in values):
            return call.call(*values)  # a call inside another function of elements
        example = next((x for x in values if isinstance(x, Array)), None)
        if example is None:
            return call.call(*values)  # numbers only
        if any(isinstance(x, np.ndarray) for x in values):
            values, key = [example.asarray_like(x) if isinstance(x, np.ndarray) else x for x in values], None
        if self.raw:
            run: Any = IndexedPlan(call, values, names, self.raw, shape).run
        else:
            result = plan.call(call, *values)
            run = plan.runs.get(plan.plan_key(call, values))
        if key is not None and run is not None and len(values) == len(inputs):
            if len(self.runs) >= MAX_CACHED_RUNS:
                self.runs.clear()
            self.runs[key] = run
        return run(*values) if self.raw else result

    def bind_arguments(
        self, inputs: Sequence[object], named: dict[str, object]
    ) -> tuple[ElementwiseCall, list[Any], Sequence[str]]:
        """Return the function as this call uses it, the inputs of the call, and the names of their parameters."""
        names: Sequence[str] = self.names
        keywords: tuple[str, ...] = ()
        if named or len(inputs) != self.positional_count:
            bound = self.signature.bind(*inputs, **named)
            inputs, keywords = [*bound.args, *bound.kwargs.values()], tuple(bound.kwargs)
            names = [name for name, x in bound.arguments.items() for _ in self.values_of_argument(name, x)]
        values, arguments, traced_names = list[Any](), list[TracedArgument | StaticArgument](), list[str]()
        for x, name in zip(map(as_number, inputs), names, strict=True):
            if isinstance(x, Traceable | Real | IndexedOperand) or hasattr(x, "__array_interface__"):
                arguments.append(TracedArgument(len(values)))
                values.append(x)
                traced_names.append(name)
            else:
                arguments.append(self.static_argument(name, x))
        return ElementwiseCall(self.function, self.fingerprint(), tuple(arguments), keywords), values, traced_names

    def fingerprint(self) -> Hashable:
        """Return a key of the closure and global state that the function reads, which must not include arrays."""
        key: Hashable = self.guard.fingerprint()
        if self.guard.tensors:
            advice = "reads an array from a closure or a global; pass it as an argument, or name it in raw= to index it"
            raise FuseError(f"{function_location(self.function)}: {self.__name__} {advice}")
        return key

    @property
    def __guarded__(self) -> ElementFunction:
        """Return the function, which a guard of another function checks in the place of this object."""
        return self.function

    def values_of_argument(self, name: str, x: Any) -> Collection[object]:
        """Return the values of a parameter: several for *args and **kwargs, one for any other."""
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return x if self.signature.parameters[name].kind in several else (x,)

    def static_argument(self, name: str, x: Any) -> StaticArgument:
        """Return an argument that is neither an array nor a number, as a part of the key."""
        try:
            return StaticArgument(x, type(x), repr(x))
        except TypeError:
            advice = "expected an array, a number or a hashable object; convert lists with mf.tensor"
            raise FuseError(f"{self.__name__}: {name} is {type(x).__name__}; {advice}") from None

    def source(self, *inputs: object, backend: str | None = None, **named: Any) -> str:
        """Return the source that a call runs, as `mf.source` does; with `backend`, the source for that backend."""
        shape = named.pop("shape", None) if self.raw else None
        call, values, names = self.bind_arguments(inputs, named)
        if backend is not None:
            values = [x.detach().to(backend) if isinstance(x, Tensor) else x for x in values]
        return IndexedPlan(call, values, names, self.raw, shape).source() if self.raw else plan.Plan(call, values).source()

    def __repr__(self) -> str:
        return f"<elementwise {self.__name__}{self.signature}>"


def function_name(function: ElementFunction) -> str:
    """Return the name of a function for messages."""
    name: str = getattr(function, "__name__", None) or getattr(function, "name", None) or type(function).__name__
    return name


def function_location(function: ElementFunction) -> str:
    """Return the definition of a function as file:line."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else function_name(function)


@overload
def elementwise(function: ElementFunction, *, raw: str | Sequence[str] = ()) -> Elementwise: ...
@overload
def elementwise(*, raw: str | Sequence[str] = ()) -> Callable[[ElementFunction], Elementwise]: ...


def elementwise(function: ElementFunction | None = None, *, raw: str | Sequence[str] = ()) -> object:
    """Make a Python function of single elements a function of arrays.

    The function is traced: it is called once for each kind of arguments, with elements that have no values. Loops over
    Python numbers are unrolled and calls are inlined; to choose by value, use `mf.where`.

    Parameters
    ----------
    function : callable
        Takes elements, and returns an element, or a tuple of elements, one per result.
    raw : sequence of str
        Names of arguments that the function indexes itself: it may read them (`x[i, j]`), store to them (`x[i] = v`) and
        add to them (`mf.atomic_add`). The function may then return None.

    Returns
    -------
    Elementwise
        Call it with tensors and numbers, which broadcast as in any operator, except raw arguments. `source(*args)`
        returns the source that a call runs. With raw arguments, `shape=` is the shape to run over, if no other argument is
        an array.

    Raises
    ------
    FuseError
        The function branches on a value, reduces, or uses an operation of whole arrays; the message has its file and
        line. Or a kernel with raw arguments is called inside a fused function.
    GradientError
        A kernel with raw arguments is called with a tensor that requires a gradient.
    IndexingError
        An index of a raw argument is not an integer, or is a constant out of range.

    Notes
    -----
    Without raw arguments, the function is differentiable to any order, and fuses with the operations around it. With raw
    arguments it is one kernel, without a gradient. Elements run in any order. If several store to one element, any of them
    may be the last. A load may or may not return the value that another element stored, so `x[i] += v` may lose updates.
    Computed indices are checked on the python backend only: keep them in range with `mf.minimum` and `mf.maximum`, since
    both sides of `mf.where` are computed.

    Examples
    --------
    >>> import minifuse as mf
    >>> @mf.elementwise
    ... def squared_diff(x, y):
    ...     return (x - y) * (x - y)
    >>> squared_diff(mf.tensor([[1.0], [2.0]]), mf.tensor([0.0, 4.0]))
    tensor([[1., 9.],
            [4., 4.]])
    >>> @mf.elementwise(raw=("x",))
    ... def from_the_left(y, x):
    ...     i = mf.index()
    ...     return y + x[mf.maximum(i - 1, 0)]
    >>> x = mf.tensor([1.0, 10.0, 100.0])
    >>> from_the_left(x, x)
    tensor([  2.,  11., 110.])
    """
    if function is None:
        return lambda function: elementwise(function, raw=raw)
    if not callable(function):
        raise FuseError(
            f"elementwise: got {type(function).__name__}, expected a function; write @mf.elementwise above a function"
        )
    return Elementwise(function, (raw,) if isinstance(raw, str) else raw)
