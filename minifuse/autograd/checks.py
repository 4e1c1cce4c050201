"""Gradient checks with PyTorch's signatures. `mf.testing.gradcheck` does the work."""

from collections.abc import Callable
from typing import Any

from ..testing.gradients import gradcheck as compare
from .tape import as_sequence

# PyTorch's options that choose how it checks. The check here is always the full one, of each element.
IGNORED = {"check_undefined_grad", "check_backward_ad", "check_grad_dtypes", "fast_mode", "masked", "nondet_tol"}


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    second: bool = False,
    **options: object,
) -> bool:
    """Compare the gradients of a function with central differences.

    Parameters
    ----------
    func
        Takes the inputs, and returns a tensor or a tuple of tensors.
    inputs : Tensor, or tuple
        Those that require a gradient are checked. They must be float64.
    eps, atol, rtol : float
        The step of the differences; |analytic - numeric| <= atol + rtol * |numeric|.
    raise_exception : bool
        If False, return False for a wrong gradient.
    second : bool
        If True, check the gradients of the gradients, too.
    options
        PyTorch's options that choose a way to check have no effect.

    Returns
    -------
    bool

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([0.5, 2.0], dtype=mf.float64, requires_grad=True)
    >>> mf.autograd.gradcheck(lambda x: x.log() * x, x)
    True
    """
    if unknown := options.keys() - IGNORED:
        raise TypeError(f"gradcheck: got {min(unknown)}=, which is not supported; use mf.testing.gradcheck")
    try:
        return compare(func, *as_sequence(inputs), eps=eps, rtol=rtol, atol=atol, second=second)
    except AssertionError:
        if raise_exception:
            raise
        return False


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: None = None, **options: Any) -> bool:
    """Compare the gradients of a function, and their gradients, with central differences; as `gradcheck`.

    The outputs are weighted with fixed random numbers in place of `grad_outputs`.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([0.5, 2.0], dtype=mf.float64, requires_grad=True)
    >>> mf.autograd.gradgradcheck(lambda x: x**3, x)
    True
    """
    return gradcheck(func, inputs, second=True, **options)
