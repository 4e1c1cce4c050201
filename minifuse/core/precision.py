"""The precision of float32 matrix products: a setting, in PyTorch's words.

It stands beside the switch for gradients in the mode that is a part of the key of every call (`autodiff.mode`), so no plan,
no fused function and no replayed graph of another precision is ever found. Which kernels it chooses is the matter of the
backend: `backends.cuda.product`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from .dispatch import DispatchMode, active_hook, make_state, matmul_precision, mode
from .dtypes import PRECISIONS
from .errors import DTypeError


def require_precision(name: str, value: str) -> str:
    """One of PRECISIONS, or an error that says which there are."""
    if value not in PRECISIONS:
        raise DTypeError(f'{name}: got {value!r}, expected "highest", "high" (tf32) or "medium" (bf16)')
    return value


def set_float32_matmul_precision(precision: str) -> None:
    """Choose how exact products of float32 matrices are on a GPU, for this thread and for those that start to compute later.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}
        "highest", the default: all 24 bits of float32. "high": operands rounded to tf32, which has 11 bits. "medium": to
        bf16, which has 8. Sums are float32 always.

    Raises
    ------
    DTypeError
        It is none of these.

    Notes
    -----
    Only products of float32 on the backend `cuda` change, gradients among them: those of a product are computed in the
    precision in which it was. Attention, which is one kernel, keeps float32. float64 and integers never change, nor
    anything on a CPU. What is too small for tensor cores to help may be computed in float32 all the same.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.set_float32_matmul_precision("high")
    >>> mf.get_float32_matmul_precision()
    'high'
    >>> mf.set_float32_matmul_precision("highest")
    """
    value = require_precision("set_float32_matmul_precision", precision)
    DispatchMode.initial = make_state(True, None, value)
    mode.is_recording = make_state(bool(mode.is_recording), active_hook(), value)


def get_float32_matmul_precision() -> str:
    """The precision of float32 products in this thread: "highest", "high" or "medium".

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.get_float32_matmul_precision()
    'highest'
    """
    return matmul_precision()


@contextmanager
def use_float32_matmul_precision(precision: str) -> Iterator[None]:
    """Compute products of float32 matrices so in a block of code, in this thread.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}
        As `set_float32_matmul_precision` takes it.

    Raises
    ------
    DTypeError
        It is none of these.

    Examples
    --------
    >>> import minifuse as mf
    >>> with mf.use_float32_matmul_precision("high"):
    ...     mf.get_float32_matmul_precision()
    'high'
    >>> mf.get_float32_matmul_precision()
    'highest'
    """
    value, before = require_precision("use_float32_matmul_precision", precision), get_float32_matmul_precision()
    mode.is_recording = make_state(bool(mode.is_recording), active_hook(), value)
    try:
        yield
    finally:
        mode.is_recording = make_state(bool(mode.is_recording), active_hook(), before)
