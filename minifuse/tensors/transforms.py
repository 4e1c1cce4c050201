"""Function transforms: the gradient of a Python function, and the source of its kernels."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

from ..compiler import plan
from ..core import autograd, dispatch
from ..core.errors import DTypeError, GradientError, IndexingError
from ..core.pytree import tree_leaves, tree_map
from ..ir.array_functions import Alias, Full, View
from ..ir.array_methods import Array
from ..ir.graph import Node, literal, wrap
from ..ir.vjp import differentiate
from .creation import full
from .tape_nodes import ViewBackward
from .tensor import Tensor

_variable_count = count()


def grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that computes the gradient of `function`.

    Parameters
    ----------
    function
        A function of tensors, also in tuples, lists and dicts, and of anything else, that returns a tensor of one element.
    argnums : int or sequence of int
        The arguments to differentiate with respect to.

    Returns
    -------
    function
        Takes the same arguments, and returns the gradient, with the shape of the argument, or a tuple of gradients. The
        returned function can be differentiated again.

    Raises
    ------
    GradientError
        The result has more than one element.
    DTypeError
        An argument in `argnums` is not a tensor of floats.

    Examples
    --------
    >>> import minifuse as mf
    >>> cube = lambda x: (x * x * x).sum()
    >>> x = mf.tensor([1.0, 2.0])
    >>> mf.grad(cube)(x)
    tensor([ 3., 12.])
    >>> mf.grad(lambda x: mf.grad(cube)(x).sum())(x)
    tensor([ 6., 12.])
    """

    def gradient(*inputs: Any, **named: object) -> Any:
        indices = [normalize_argnum(k, len(inputs)) for k in ((argnums,) if isinstance(argnums, int) else argnums)]
        with dispatch.grad_recording(True):
            variables = {k: tree_map(inputs[k], partial(make_variable, k=k)) for k in indices}
            y = function(*[variables.get(k, x) for k, x in enumerate(inputs)], **named)
            if not isinstance(y, Array) or y.size != 1:
                got = f"shape {y.shape}" if isinstance(y, Array) else type(y).__name__
                advice = "expected a tensor of one element; end it with sum() or mean()"
                raise GradientError(f"grad: the function returned {got}, {advice}")
            wrt = [x for k in indices for x in tree_leaves(variables[k])]
            grads = gradients_of([y], wrt, [filled_like(y, 1)], create_graph=True)
            results = [filled_like(x, 0) if g is None else g for x, g in zip(wrt, grads, strict=True)]
        remaining = iter(results if is_recorded([*tree_leaves(inputs)]) else [g.detach() for g in results])
        found = [tree_map(variables[k], lambda x: next(remaining)) for k in indices]
        return found[0] if isinstance(argnums, int) else tuple(found)

    return gradient


def gradients_of(
    roots: Sequence[Any], wrt: Sequence[Any], gradients: Sequence[Any], create_graph: bool, retain_graph: bool | None = None
) -> list[Any]:
    """Return the gradients of roots with respect to other values, all of them tensors, traced tensors or nodes.

    The gradient is None where no root depends on a value.
    """
    if any(isinstance(x, Node) for x in (*roots, *wrt)):
        nodes = [(y, g) for y, g in zip(roots, gradients, strict=True) if isinstance(y, Node)]
        return list(differentiate([y for y, _ in nodes], [wrap(g) for _, g in nodes], wrt))
    retain = create_graph if retain_graph is None else retain_graph
    if (tracer := dispatch.active_tracer()) is not None:
        traced: list[Any] = tracer.gradients.gradients(roots, wrt, gradients, create_graph, retain)
        return traced
    pairs = [(y, g) for y, g in zip(roots, gradients, strict=True) if y.requires_grad]
    edges = [autograd.grad_edge(x) for x in wrt]
    options: dict[str, Any] = {"create_graph": create_graph, "retain_graph": retain, "wrt": edges}
    found = autograd.run_backward([y for y, _ in pairs], [g for _, g in pairs], **options)
    return [found.get(edge) for edge in edges]


def apply_traced(function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """Call a function of nodes as one call, on tensors, traced tensors or nodes."""
    node = next((x for x in arrays if isinstance(x, Node)), None)
    return plan.call(function, *arrays) if node is None else node.apply(function, *arrays)


def is_recorded(inputs: Sequence[object]) -> bool:
    """Return True if gradients of a function of these inputs have a history: recording is on, and an input requires it."""
    return any(isinstance(x, Node) or (dispatch.mode.is_recording and getattr(x, "requires_grad", False)) for x in inputs)


def filled_like(x: Any, value: float) -> Any:
    """Return an array with the shape and dtype of another, filled with one number."""
    if isinstance(x, Node):
        return Full(x.shape, x.dtype)(literal(value, x.dtype))
    return full(x.shape, value, dtype=x.dtype, backend=x.meta.backend)


def normalize_argnum(k: int, count: int) -> int:
    """Convert a negative argument index to the index from the front."""
    if not -count <= k < count:
        raise IndexingError(
            f"grad: argnums names argument {k}, and the function was called with {count} arguments; change argnums"
        )
    return k % count


def make_variable(x: Any, k: int) -> Any:
    """Return a new autograd variable with the same elements, so that its gradient is separate from that of `x`."""
    if isinstance(x, Node):
        return Alias(("variable", next(_variable_count), k))(x)
    check_float_argument(x, k)
    if (tracer := dispatch.active_tracer()) is not None:
        return tracer.gradients.make_variable(x, k)
    y = x.detach()
    y.requires_grad = True
    if x.requires_grad:
        y.grad_fn = ViewBackward(View("expand", x.shape), x), 0
    return y


def source(function: Callable[..., Any], *inputs: Any) -> str:
    """Return the source that a call runs: its host program and its kernels.

    Parameters
    ----------
    function
        An operator such as `mf.exp`, or a Python function of tensors. Its calls, loops and methods are traced as one
        graph.
    inputs
        Tensors and numbers like those of the call. The function is traced for them, not run.

    Returns
    -------
    str
        Python source, as it is compiled for these layouts.

    Examples
    --------
    >>> import minifuse as mf
    >>> print(mf.source(lambda x: mf.exp(x) * 2, mf.ones(2, 3)))
    def run(x0):
        m0 = allocate(64)
        launch0(m0.address, x0.address)
        y0 = Tensor(m0, m0.address, meta0)
        return y0
    <BLANKLINE>
    # launch0
    def kernel(start, stop, args):
        out0 = pointer_f32(args[0])
        in0 = pointer_f32(args[1])
        for i0 in range(start, stop):
            out0[i0] = exp(in0[i0]) * f32(2.0)
    <BLANKLINE>
    """
    return plan.Plan(function, inputs).source()


def check_float_argument(x: object, k: int) -> None:
    """Raise an error if `grad` cannot differentiate argument k."""
    if not isinstance(x, Tensor) or not x.dtype.is_float:
        got = f"a tensor of {x.dtype}" if isinstance(x, Tensor) else type(x).__name__
        raise DTypeError(f"grad: argument {k} is {got}, expected a tensor of floats; choose others with argnums")
