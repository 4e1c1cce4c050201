"""Is a gradient right? Compared with central differences, element by element. Nothing here trusts a derivative rule."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core import autograd
from ..core.dtypes import float64
from ..core.errors import DTypeError, GradientError
from ..tensors.tensor import Tensor
from .agreement import compare, magnitude, tensors_in, weighted
from .tolerances import Tolerance, tolerance_for

Array = npt.NDArray[Any]
Outputs = Callable[[Sequence[Tensor]], list[Tensor]]


def gradcheck(
    fn: Callable[..., Any],
    *tensors: Any,
    eps: float = 1e-6,
    rtol: float | None = None,
    atol: float | None = None,
    second: bool = False,
) -> bool:
    """Compare the gradients of a function with central differences, for every element of every input that requires one.

    Parameters
    ----------
    fn
        Takes tensors (and anything else), gives a tensor or a tuple of tensors. Differentiated is the sum of its outputs
        times fixed random weights.
    tensors
        The inputs. Those of them with `requires_grad` are checked, in the layout that they have; they must be float64.
    eps : float
        The step of the differences, up and down.
    rtol, atol : float, optional
        |analytic - numeric| <= atol + rtol * |numeric|; those of `TOLERANCES` for differences if left out.
    second : bool
        Whether to check the gradients of the gradients too.

    Returns
    -------
    bool
        True: where something is wrong it raises.

    Raises
    ------
    AssertionError
        A gradient differs. The message says of which input, at which index, and both values.
    DTypeError
        An input to check is not float64: with fewer digits the differences say nothing.
    GradientError
        No input requires a gradient.

    Notes
    -----
    Calls the function twice an element, and as often again for `second` times the elements. At a kink (`relu` at 0, equal
    elements under `max`) there is no derivative, and differences find another value than the rule: choose inputs that stay
    away from kinks by more than `eps`.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([0.5, 2.0], dtype=mf.float64, requires_grad=True)
    >>> gradcheck(lambda x: x.log() * x, x, second=True)
    True
    """
    chosen = [k for k, x in enumerate(tensors) if isinstance(x, Tensor) and x.requires_grad]
    if not chosen:
        raise GradientError("gradcheck: no input requires a gradient; make one with requires_grad=True")
    for k in chosen:
        if tensors[k].dtype is not float64:
            raise DTypeError(
                f"gradcheck: input {k} is {tensors[k].dtype}, expected float64; convert it with x.to(mf.float64)"
            )
    allowed = tolerance_for("difference", float64)
    allowed = allowed if rtol is None and atol is None else Tolerance(rtol or 0.0, atol or 0.0, "as the caller asked")

    def values(xs: Sequence[Tensor]) -> list[Tensor]:
        given = list(tensors)
        for k, x in zip(chosen, xs, strict=True):
            given[k] = x
        return tensors_in(fn(*given))

    leaves = [leaf(tensors[k]) for k in chosen]
    check(values, leaves, chosen, "gradient", eps, allowed)
    if second:
        check(lambda xs: gradients_of(values, xs, True), leaves, chosen, "second derivative", eps, allowed)
    return True


def leaf(x: Tensor) -> Tensor:
    """The same elements as a tensor that was not computed, so that a gradient ends there."""
    return x.detach().requires_grad_()


def check(
    outputs: Outputs, leaves: Sequence[Tensor], names: Sequence[int], what: str, eps: float, allowed: Tolerance
) -> None:
    """Compare what autodiff says of outputs with what differences say."""
    found = gradients_of(outputs, leaves, False)
    for k, (name, g) in enumerate(zip(names, found, strict=True)):
        right, scale = differences(outputs, leaves, k, eps)
        floor = 0.0 if allowed.reason == "as the caller asked" else allowed.rtol * scale
        compare(g.numpy(), right, allowed._replace(atol=allowed.atol + floor), f"gradcheck: the {what} of input {name}")


def gradients_of(outputs: Outputs, leaves: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    """The gradients of the weighted sum of outputs; zeros where nothing flows."""
    total: dict[Any, Tensor] = {}
    for y, weight in weighted(outputs(leaves)):
        if y.requires_grad:
            for x, g in autograd.run_backward(y, weight, create_graph=create_graph, retain_graph=True).items():
                total[x] = total[x] + g if x in total else g
    return [total[x] if x in total else x.asarray_like(np.zeros(x.shape)) for x in leaves]


def differences(outputs: Outputs, leaves: Sequence[Tensor], k: int, eps: float) -> tuple[Array, float]:
    """The derivative of the weighted sum of outputs by each element of leaf k, and the magnitude of what was subtracted."""
    arrays = [np.array(x.numpy(), order="C") for x in leaves]
    result, flat = np.empty(arrays[k].shape), arrays[k].reshape(-1)
    largest = 0.0
    for i, x in enumerate(flat.copy()):
        flat[i] = above = x + eps
        up = numbers(outputs, leaves, arrays)
        flat[i] = below = x - eps
        down = numbers(outputs, leaves, arrays)
        flat[i] = x
        result.reshape(-1)[i] = sum(float(((a - b) * w).sum()) for (a, w), (b, _) in zip(up, down, strict=True)) / (
            above - below
        )
        largest = max(largest, magnitude(*[a for a, _ in up]))
    return result, largest


def numbers(outputs: Outputs, leaves: Sequence[Tensor], arrays: Sequence[Array]) -> list[tuple[Array, Array]]:
    """The floating outputs, with their weights, for other elements of the leaves."""
    xs = [x.asarray_like(array.copy()).requires_grad_() for x, array in zip(leaves, arrays, strict=True)]
    return [(y.numpy(), w.numpy()) for y, w in weighted(outputs(xs))]
