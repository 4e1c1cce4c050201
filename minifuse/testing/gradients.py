"""Check gradients against central differences, element by element, independently of all derivative rules."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy import ndarray

from ..core import autograd
from ..core.dtypes import float64
from ..core.errors import DTypeError, GradientError
from ..tensors.tensor import Tensor
from .agreement import as_tensor_list, compare_arrays, max_magnitude, weighted_outputs
from .tolerances import Tolerance, tolerance_for

Outputs = Callable[[Sequence[Tensor]], list[Tensor]]


def gradcheck(
    fn: Callable[..., object],
    *tensors: object,
    eps: float = 1e-6,
    rtol: float | None = None,
    atol: float | None = None,
    second: bool = False,
) -> bool:
    """Compare the gradients of a function with central differences, for each element of each input that requires one.

    Parameters
    ----------
    fn
        Takes tensors (and any other arguments), and returns a tensor or a tuple of tensors. The sum of its outputs times
        fixed random weights is differentiated.
    tensors
        The inputs. Those with `requires_grad` are checked, in their layout. They must be float64.
    eps : float
        The step of the differences, in both directions.
    rtol, atol : float, optional
        |analytic - numeric| <= atol + rtol * |numeric|. Default: the tolerances for differences in `TOLERANCES`.
    second : bool
        If True, check the gradients of the gradients, too.

    Returns
    -------
    bool
        Always True; a wrong gradient raises.

    Raises
    ------
    AssertionError
        A gradient differs. The message contains the input, the index and both values.
    DTypeError
        An input to check is not float64: with fewer digits, the differences are too inaccurate.
    GradientError
        No input requires a gradient.

    Notes
    -----
    Calls the function twice for each element, and with `second` once more for each pair. At a kink (`relu` at 0, equal
    elements in `max`) there is no derivative, and differences do not match the rule: choose inputs that are more than `eps`
    away from kinks.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([0.5, 2.0], dtype=mf.float64, requires_grad=True)
    >>> gradcheck(lambda x: x.log() * x, x, second=True)
    True
    """
    checked_inputs = {k: x for k, x in enumerate(tensors) if isinstance(x, Tensor) and x.requires_grad}
    if not checked_inputs:
        raise GradientError("gradcheck: no input requires a gradient; make one with requires_grad=True")
    for k, x in checked_inputs.items():
        if x.dtype is not float64:
            raise DTypeError(f"gradcheck: input {k} is {x.dtype}, expected float64; convert it with x.to(mf.float64)")
    tolerance = tolerance_for("difference", float64)
    tolerance = tolerance if rtol is None and atol is None else Tolerance(rtol or 0.0, atol or 0.0, "given by the caller")

    def values(xs: Sequence[Tensor]) -> list[Tensor]:
        arguments = list(tensors)
        for k, x in zip(checked_inputs, xs, strict=True):
            arguments[k] = x
        return as_tensor_list(fn(*arguments))

    leaves, input_numbers = [as_leaf(x) for x in checked_inputs.values()], list(checked_inputs)
    check_gradients(values, leaves, input_numbers, "gradient", eps, tolerance)
    if second:
        check_gradients(
            lambda xs: weighted_gradients(values, xs, True), leaves, input_numbers, "second derivative", eps, tolerance
        )
    return True


def as_leaf(x: Tensor) -> Tensor:
    """Return a detached tensor that requires a gradient."""
    return x.detach().requires_grad_()


def check_gradients(
    outputs: Outputs, leaves: Sequence[Tensor], input_numbers: Sequence[int], what: str, eps: float, tolerance: Tolerance
) -> None:
    """Compare the gradients of autodiff with central differences."""
    gradients = weighted_gradients(outputs, leaves, False)
    for k, (number, g) in enumerate(zip(input_numbers, gradients, strict=True)):
        differences, scale = central_differences(outputs, leaves, k, eps)
        floor = 0.0 if tolerance.reason == "given by the caller" else tolerance.rtol * scale
        compare_arrays(
            g.numpy(),
            differences,
            tolerance._replace(atol=tolerance.atol + floor),
            f"gradcheck: the {what} of input {number}",
        )


def weighted_gradients(outputs: Outputs, leaves: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    """Return the gradients of the weighted sum of outputs; zeros for inputs without a gradient."""
    totals: dict[Tensor, Tensor] = {}
    for y, weight in weighted_outputs(outputs(leaves)):
        if y.requires_grad:
            for x, g in autograd.run_backward([y], [weight], create_graph=create_graph, retain_graph=True).items():
                totals[x] = totals[x] + g if x in totals else g
    return [totals[x] if x in totals else x.asarray_like(np.zeros(x.shape)) for x in leaves]


def central_differences(outputs: Outputs, leaves: Sequence[Tensor], k: int, eps: float) -> tuple[ndarray, float]:
    """Return the central differences for each element of leaf k, and the magnitude of the subtracted values."""
    arrays = [np.array(x.numpy(), order="C") for x in leaves]
    result, flat = np.empty(arrays[k].shape), arrays[k].reshape(-1)
    largest = 0.0
    for i, x in enumerate(flat.copy()):
        flat[i] = upper = x + eps
        upper_outputs = evaluate_outputs(outputs, leaves, arrays)
        flat[i] = lower = x - eps
        lower_outputs = evaluate_outputs(outputs, leaves, arrays)
        flat[i] = x
        result.reshape(-1)[i] = sum(
            float(((a - b) * w).sum()) for (a, w), (b, _) in zip(upper_outputs, lower_outputs, strict=True)
        ) / (upper - lower)
        largest = max(largest, max_magnitude(*[a for a, _ in upper_outputs]))
    return result, largest


def evaluate_outputs(outputs: Outputs, leaves: Sequence[Tensor], arrays: Sequence[ndarray]) -> list[tuple[ndarray, ndarray]]:
    """Return the float outputs, with their weights, for other values of the leaves."""
    xs = [x.asarray_like(array.copy()).requires_grad_() for x, array in zip(leaves, arrays, strict=True)]
    return [(y.numpy(), w.numpy()) for y, w in weighted_outputs(outputs(xs))]
