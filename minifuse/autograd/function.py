"""`Function`: an operation with a backward pass of your own.

Eagerly, `apply` runs `forward` without recording, and a `FunctionBackward` on the tape calls `backward`. Inside a fused
function, both are traced: the call is a composite op whose definition is `forward` and whose VJP is `backward`.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ..compiler.plan import modified_error
from ..compiler.tensor_meta import TensorMeta
from ..core.autograd import FREED_GRAPH, GradFn, grad_edge
from ..core.dispatch import active_tracer, mode, no_grad
from ..core.errors import FuseError, GradientError
from ..ir.array_functions import Full
from ..ir.array_methods import Array
from ..ir.composite_op import CompositeOp
from ..ir.graph import Node, literal
from ..runtime.memory_pool import write_clock
from ..tensors.tensor import Tensor
from ..tensors.transforms import apply_traced

TENSOR = object()  # stands for a tensor among the inputs of a traced call


class FunctionContext:
    """Hold what `forward` passes to `backward`: saved tensors, and any attribute that you set.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For each input, whether its gradient is used.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._saved: tuple[Any, ...] | None = ()
        self._nondifferentiable: tuple[Any, ...] = ()
        self._materialize = True
        self._check: Callable[[Sequence[Any]], tuple[Any, ...]] = tuple

    def save_for_backward(self, *tensors: Any) -> None:
        """Save inputs, outputs or other tensors. `saved_tensors` raises an error if one was modified in place since."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Return the saved tensors."""
        if self._saved is None:
            raise GradientError(FREED_GRAPH)
        return self._check(self._saved)

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Declare outputs that have no gradient."""
        self._nondifferentiable = outputs

    def is_marked(self, output: Any) -> bool:
        """Return True if an output was declared to have no gradient."""
        return any(output is x for x in self._nondifferentiable)

    def set_materialize_grads(self, value: bool) -> None:
        """Pass None instead of zeros to `backward` for an output that was not used."""
        self._materialize = value

    def mark_dirty(self, *tensors: Any) -> None:
        """Raise an error: in-place operations are not recorded."""
        raise GradientError("mark_dirty: in-place operations are not recorded; return a new tensor instead")


class FunctionBackward:
    """The tape node of one call of a `Function`."""

    __slots__ = ("_hooks", "count", "ctx", "edges", "function", "inputs", "metas", "run_time")

    def __init__(
        self, function: "type[Function]", ctx: FunctionContext, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        self.function, self.ctx, self.count, self.run_time = function, ctx, len(outputs), write_clock.clock
        self.inputs: list[Any] = [x.meta if isinstance(x, Tensor) else None for x in inputs]
        self.metas = [y.meta if isinstance(y, Tensor) else None for y in outputs]
        self.edges: tuple[Any, ...] = tuple(
            grad_edge(x) if needs else None for x, needs in zip(inputs, ctx.needs_input_grad, strict=True)
        )
        output_index = {id(y): k for k, y in enumerate(outputs)}
        indices = [output_index.get(id(x)) for x in ctx._saved or ()]
        ctx._check = lambda saved: tuple(self.restore(x, k) for x, k in zip(saved, indices, strict=True))

    def restore(self, x: Any, output: int | None) -> Any:
        """Return a saved tensor, with its history if it is an output."""
        if isinstance(x, Tensor):
            if x.buffer.version.last_write > self.run_time:
                raise modified_error(f"a tensor of shape {x.shape}", self.function)
            if output is not None and mode.is_recording and output not in self.nondifferentiable():
                return with_history(x, (self, output))
        return x

    def nondifferentiable(self) -> set[int]:
        """Return the indices of the outputs without a gradient."""
        return {k for k, meta in enumerate(self.metas) if meta is None or not meta.dtype.is_float}

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Call `backward` of the function, and check the gradients that it returns."""
        if self.ctx._materialize:
            gradients = [
                Tensor.full(meta.layout.shape, 0, meta.dtype, meta.backend) if g is None and meta else g
                for g, meta in zip(gradients, self.metas, strict=True)
            ]
        results = input_gradients(self.function, self.ctx, gradients, len(self.inputs))
        shapes = [
            None if meta is None or edge is None else meta.layout.shape
            for meta, edge in zip(self.inputs, self.edges, strict=True)
        ]
        check_shapes(self.function, results, shapes)
        return [None if g is None else g.to(meta.dtype) for g, meta in zip(results, self.inputs, strict=True)]

    def free_saved(self) -> None:
        """Free the saved tensors."""
        self.ctx._saved, self.edges = None, ()


def with_history(x: Tensor, grad_fn: GradFn) -> Tensor:
    """Return a tensor of the same memory that was computed by a recorded call."""
    y = Tensor(x.buffer, x.address, TensorMeta(x.meta.layout, x.dtype, x.meta.backend, True))
    y.grad_fn = grad_fn
    return y


def input_gradients(function: "type[Function]", ctx: FunctionContext, gradients: Sequence[Any], count: int) -> list[Any]:
    """Call `backward` of a function, and return a gradient, or None, for each input of `forward`."""
    results = function.backward(ctx, *gradients)
    found = list(results) if isinstance(results, tuple) else [results]
    if len(found) != count:
        raise GradientError(
            f"{function.__name__}.backward: got {len(found)} gradients, expected {count}, one for each input of forward; "
            "return None for an input without a gradient"
        )
    return found


def check_shapes(function: "type[Function]", gradients: Sequence[Any], shapes: Sequence[Any]) -> None:
    """Raise an error if a gradient has another shape than its input. A shape is None for an input without a gradient."""
    for k, (g, shape) in enumerate(zip(gradients, shapes, strict=True)):
        if g is not None and shape is not None and g.shape != shape:
            raise GradientError(
                f"{function.__name__}.backward: gradient {k} has shape {g.shape}, expected {shape}, the shape of the input; "
                "sum over the dims that were broadcast"
            )


class Function:
    """Base class of operations with a backward pass of your own. Call `MyFunction.apply(...)`.

    Define `forward(ctx, *inputs)`, or `forward(*inputs)` and `setup_context(ctx, inputs, output)`; and `backward(ctx,
    *gradients)`, which returns one gradient, or None, for each input. All are static methods.

    Notes
    -----
    Inside a fused function, `forward` and `backward` are called with graph nodes. They may use operators, methods and
    `mf.where`, but not the values of elements.

    Examples
    --------
    >>> import minifuse as mf
    >>> class Cube(mf.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x * x * gradient
    >>> x = mf.tensor([1.0, 2.0], requires_grad=True)
    >>> Cube.apply(x).sum().backward()
    >>> x.grad
    tensor([ 3., 12.])
    """

    @staticmethod
    def forward(*inputs: Any, **named: Any) -> Any:
        """Compute the outputs."""
        raise NotImplementedError("Function: define the static methods forward and backward")

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Compute the gradient of each input."""
        raise NotImplementedError("Function: define the static method backward(ctx, *gradients)")

    setup_context: Callable[..., None] | None = None

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """Run `forward`, and record the call for `backward`."""
        arrays = [x for x in inputs if isinstance(x, Array)]
        if arrays and (active_tracer() is not None or any(isinstance(x, Node) for x in arrays)):
            return cls._trace(*inputs)
        needs = tuple(isinstance(x, Tensor) and x.requires_grad and bool(mode.is_recording) for x in inputs)
        ctx = FunctionContext(needs)
        with no_grad():
            result = cls._run(ctx, inputs)
        if not any(needs):
            return result
        outputs = result if isinstance(result, tuple) else (result,)
        node = FunctionBackward(cls, ctx, inputs, outputs)
        excluded = node.nondifferentiable() | {
            k for k, y in enumerate(outputs) if any(y is x for x in ctx._nondifferentiable)
        }
        recorded = tuple(y if k in excluded else with_history(y, (node, k)) for k, y in enumerate(outputs))
        return recorded if isinstance(result, tuple) else recorded[0]

    @classmethod
    def _run(cls, ctx: FunctionContext, inputs: Sequence[Any]) -> Any:
        if cls.setup_context is None:
            return cls.forward(ctx, *inputs)
        result = cls.forward(*inputs)
        cls.setup_context(ctx, inputs, result)
        return result

    @classmethod
    def _trace(cls, *inputs: Any) -> Any:
        is_operand = [isinstance(x, Array) or type(x).__name__ == "TracedScalar" for x in inputs]
        template = tuple(TENSOR if operand else x for x, operand in zip(inputs, is_operand, strict=True))
        try:
            hash(template)
        except TypeError:
            raise FuseError(
                f"{cls.__name__}.apply: inside @mf.fuse, expected tensors or hashable inputs; use a tuple"
            ) from None

        def run(*nodes: Node) -> Any:
            ctx = FunctionContext((True,) * len(template))
            result = cls._run(ctx, fill(template, nodes))
            outputs = result if isinstance(result, tuple) else (result,)
            traced = FunctionOp(cls, template, len(outputs)).outputs(*nodes)
            excluded = [ctx.is_marked(y) for y in outputs]
            traced = tuple(y.detach() if out and y.dtype.is_float else y for y, out in zip(traced, excluded, strict=True))
            return traced if isinstance(result, tuple) else traced[0]

        return apply_traced(run, [x for x, operand in zip(inputs, is_operand, strict=True) if operand])


def fill(template: tuple[Any, ...], nodes: Sequence[Any]) -> tuple[Any, ...]:
    """Return a template with its tensors filled in."""
    remaining = iter(nodes)
    return tuple(next(remaining) if x is TENSOR else x for x in template)


class FunctionOp(CompositeOp):
    """A `Function` in a graph: `forward` is its definition, and `backward` its VJP."""

    def __init__(self, function: type[Function], template: tuple[Any, ...], count: int) -> None:
        self.function, self.template = function, template
        self.names = (f"autograd.Function {function.__name__}",) * count
        self.output_layout_like = (None,) * count

    def _run(self, inputs: Sequence[Any]) -> tuple[FunctionContext, tuple[Any, ...]]:
        ctx = FunctionContext((True,) * len(self.template))
        result = self.function._run(ctx, fill(self.template, inputs))
        return ctx, result if isinstance(result, tuple) else (result,)

    def infer(self, *inputs: Any) -> Any:
        """Return the shape and dtype of each output."""
        return tuple((y.shape, y.dtype) for y in self.body(*inputs))

    def body(self, *inputs: Any) -> tuple[Any, ...]:
        """Call `forward`."""
        return self._run(inputs)[1]

    def vjp(self, index: int, g: Any, *inputs: Any) -> tuple[Any, ...]:
        """Call `backward` with a gradient of one output, and zeros for the others."""
        ctx, outputs = self._run(inputs)
        zeros = [Full(y.shape, y.dtype)(literal(0, y.dtype)) for y in outputs]
        gradients = [g if k == index else zero for k, zero in enumerate(zeros)]
        results = input_gradients(self.function, ctx, gradients, len(self.template))
        found = [x for x, slot in zip(results, self.template, strict=True) if slot is TENSOR]
        check_shapes(self.function, found, [x.shape if isinstance(x, Node) and not x.is_number else None for x in inputs])
        return tuple(found)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Make a `backward` raise an error if its own gradient would be needed."""

    @wraps(backward)
    def run(ctx: Any, *gradients: Any) -> Any:
        if mode.is_recording and active_tracer() is None:
            raise GradientError("backward: create_graph=True through a function that is marked with once_differentiable")
        return backward(ctx, *gradients)

    return run
