"""The precision of float32 matrix multiplication: a setting with PyTorch's names.

It is part of the dispatch state of a thread (`core.dispatch`), which is part of every cache key. So no plan, fused function
or recorded CUDA graph is reused with another precision. The backend chooses kernels for it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from .dispatch import DispatchMode, active_hook, make_state, matmul_precision, mode
from .dtypes import PRECISIONS
from .errors import DTypeError


def require_precision(name: str, value: str) -> str:
    """Return a precision, or raise DTypeError if it is not one of PRECISIONS."""
    if value not in PRECISIONS:
        raise DTypeError(f'{name}: got {value!r}, expected "highest", "high" (tf32) or "medium" (bf16)')
    return value


def set_float32_matmul_precision(precision: str) -> None:
    """Set the precision of float32 matmuls on a GPU, for this thread and for threads that start to compute later.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}
        "highest", the default, uses all 24 bits of float32. "high" rounds operands to tf32, which has 11 bits. "medium"
        rounds them to bf16, which has 8. Sums are always float32.

    Raises
    ------
    DTypeError
        The precision is none of these.

    Notes
    -----
    The setting affects only float32 matmuls on the backend `cuda`. Their gradients use the precision of the forward pass.
    Attention, which is one kernel, keeps float32. float64, integers and the CPU are not affected. Matrices too small for
    tensor cores may be multiplied in float32 anyway.

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
    """Return the precision of float32 matrix multiplication in this thread: "highest", "high" or "medium".

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.get_float32_matmul_precision()
    'highest'
    """
    return matmul_precision()


@contextmanager
def use_float32_matmul_precision(precision: str) -> Iterator[None]:
    """Set the precision of float32 matrix multiplication in a block of code, in this thread.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}
        See `set_float32_matmul_precision`.

    Raises
    ------
    DTypeError
        The precision is none of these.

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
