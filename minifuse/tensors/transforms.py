"""Function transforms: the gradient of a Python function, and the source of its kernels."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..compiler import plan
from ..core import autograd, dispatch
from ..core.errors import DTypeError, GradientError, IndexingError
from ..ir.array_functions import View
from .tape_nodes import ViewBackward
from .tensor import Tensor


def grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that computes the gradient of `function`.

    Parameters
    ----------
    function
        A function of tensors (and anything else) that returns a tensor of one element.
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
        if (tracer := dispatch.active_tracer()) is not None:
            traced = tracer.gradients.trace_grad(partial(function, **named), inputs, indices)
            return traced[0] if isinstance(argnums, int) else tuple(traced)
        is_recorded = dispatch.mode.is_recording and any(isinstance(x, Tensor) and x.requires_grad for x in inputs)
        with dispatch.grad_recording(True):
            variables = [wrap_variable(x, k) if k in indices else x for k, x in enumerate(inputs)]
            y = function(*variables, **named)
            if not isinstance(y, Tensor) or y.size != 1:
                got = f"shape {y.shape}" if isinstance(y, Tensor) else type(y).__name__
                advice = "expected a tensor of one element; end it with sum() or mean()"
                raise GradientError(f"grad: the function returned {got}, {advice}")
            edges = [autograd.grad_edge(variables[k]) for k in indices]
            if y.requires_grad:
                one = Tensor.full(y.shape, 1, y.dtype, y.meta.backend)
                grads = autograd.run_backward(y, one, create_graph=True, retain_graph=True, wrt=edges)
            else:
                grads = {}
        zeros = [Tensor.full(inputs[k].shape, 0, inputs[k].dtype, inputs[k].meta.backend) for k in indices]
        results = [grads.get(e, zero) for e, zero in zip(edges, zeros, strict=True)]
        results = results if is_recorded else [g.detach() for g in results]
        return results[0] if isinstance(argnums, int) else tuple(results)

    return gradient


def normalize_argnum(k: int, count: int) -> int:
    """Convert a negative argument index to the index from the front."""
    if not -count <= k < count:
        raise IndexingError(
            f"grad: argnums names argument {k}, and the function was called with {count} arguments; change argnums"
        )
    return k % count


def wrap_variable(x: Tensor, k: int) -> Tensor:
    """Return a new autograd variable with the same memory, so that its gradient is separate from that of `x`."""
    check_float_argument(x, k)
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
