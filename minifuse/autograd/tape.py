"""Gradients of several tensors at once: `backward` adds them to `grad` of leaves, and `grad` returns them."""

from collections.abc import Sequence
from typing import Any

from ..core.autograd import NO_GRADIENT
from ..core.errors import GradientError
from ..tensors.creation import zeros_like
from ..tensors.grad_methods import accumulate_gradients, check_gradient
from ..tensors.tensor import Tensor
from ..tensors.transforms import gradients_of

Tensors = Tensor | Sequence[Tensor]


def as_sequence(x: Any) -> tuple[Any, ...]:
    """Return a sequence as a tuple, and anything else as a tuple of one."""
    return tuple(x) if isinstance(x, list | tuple) else (x,)


def backward(
    tensors: Tensors,
    grad_tensors: "Tensor | Sequence[Tensor | None] | None" = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradient of the sum of some tensors to `grad` of every leaf, as `Tensor.backward` does for one.

    Parameters
    ----------
    tensors : Tensor, or sequence of tensors
        The tensors to differentiate.
    grad_tensors : sequence of Tensor or None, optional
        The gradient with respect to each of them; for one element, the default is 1.
    retain_graph, create_graph, inputs
        As for `Tensor.backward`.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([1.0, 2.0], requires_grad=True)
    >>> mf.autograd.backward([(x * x).sum(), x.sum()])
    >>> x.grad
    tensor([3., 5.])
    """
    roots = as_sequence(tensors)
    gradients = (None,) * len(roots) if grad_tensors is None else as_sequence(grad_tensors)
    if len(gradients) != len(roots):
        raise GradientError(f"backward: got {len(gradients)} gradients for {len(roots)} tensors; pass one for each, or None")
    accumulate_gradients(roots, gradients, retain_graph, create_graph, inputs)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: "Tensor | Sequence[Tensor | None] | None" = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Return the gradients of the sum of some tensors with respect to others. `grad` of no tensor changes.

    Parameters
    ----------
    outputs : Tensor, or sequence of tensors
        The tensors to differentiate.
    inputs : Tensor, or sequence of tensors
        The tensors to differentiate with respect to: leaves, or tensors from which the outputs were computed.
    grad_outputs : sequence of Tensor or None, optional
        The gradient with respect to each output; for one element, the default is 1.
    retain_graph : bool, optional
        Keep the saved tensors for another call. Default: the value of `create_graph`.
    create_graph : bool
        Record the backward pass, so that the gradients can be differentiated again.
    allow_unused : bool, optional
        Return None for an input that no output depends on, instead of raising an error. Default: `materialize_grads`.
    is_grads_batched : bool
        Not supported: True raises an error that names the recipe.
    materialize_grads : bool
        Return zeros for an input that no output depends on.

    Returns
    -------
    tuple
        The gradient of each input.

    Raises
    ------
    GradientError
        An input is unused or requires no gradient; or in the same cases as for `Tensor.backward`.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x * x
    >>> mf.autograd.grad(y.sum(), [x, y])
    (tensor([2., 4.]), tensor([1., 1.]))
    """
    if is_grads_batched:
        raise GradientError("grad: is_grads_batched=True is not supported; use mf.func.vmap, or call grad for each row")
    roots, wrt = as_sequence(outputs), as_sequence(inputs)
    gradients = (None,) * len(roots) if grad_outputs is None else as_sequence(grad_outputs)
    if len(gradients) != len(roots):
        raise GradientError(f"grad: got {len(gradients)} gradients for {len(roots)} outputs; pass one for each, or None")
    for k, x in enumerate(wrt):
        if not x.requires_grad:
            raise GradientError(f"grad: input {k} does not require a gradient; write x.requires_grad_() before it is used")
    if not any(y.requires_grad for y in roots):
        raise GradientError(NO_GRADIENT)
    used = [check_gradient(y, g, "grad") for y, g in zip(roots, gradients, strict=True)]
    results = gradients_of(roots, wrt, used, create_graph=create_graph, retain_graph=retain_graph)
    for k, (x, g) in enumerate(zip(wrt, results, strict=True)):
        if g is None and materialize_grads:
            results[k] = zeros_like(x)
        elif g is None and not allow_unused:
            raise GradientError(f"grad: no output depends on input {k}; pass allow_unused=True to get None for it")
    return tuple(results)
