"""The precision of float32 arithmetic on a GPU: of matrix multiplication, with PyTorch's names, and of a few functions.

Both settings are part of the dispatch state of a thread (`core.dispatch`), which is part of every cache key. So no plan,
fused function or recorded CUDA graph is reused with another precision. The backend chooses kernels for them.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from .dispatch import (
    ThreadSettings,
    change_settings,
    is_fast_math,
    matmul_precision,
    mode,
    set_settings,
    settings_of,
)
from .dtypes import PRECISIONS, DType, float32
from .errors import DTypeError
from .operator_entry import Operator


@contextmanager
def use_precision(
    change: Callable[[ThreadSettings], ThreadSettings], restore: Callable[[ThreadSettings, ThreadSettings], ThreadSettings]
) -> Iterator[None]:
    """Change a setting of this thread in a block of code. `restore(precision, before)` sets it to its value before."""
    before = settings_of(mode.is_recording)
    change_settings(change)
    try:
        yield
    finally:
        change_settings(lambda precision: restore(precision, before))


# Matrix multiplication.


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
    set_settings(lambda precision: precision._replace(matmul=value))


def get_float32_matmul_precision() -> str:
    """Return the precision of float32 matrix multiplication in this thread: "highest", "high" or "medium".

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.get_float32_matmul_precision()
    'highest'
    """
    return matmul_precision()


def use_float32_matmul_precision(precision: str) -> AbstractContextManager[None]:
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
    value = require_precision("use_float32_matmul_precision", precision)
    return use_precision(lambda p: p._replace(matmul=value), lambda p, before: p._replace(matmul=before.matmul))


# Functions.


def require_flag(name: str, value: object) -> bool:
    """Return a flag, or raise DTypeError if it is neither True nor False."""
    if value is not True and value is not False:
        advice = f"; as a decorator, write @mf.{name}()" if callable(value) else ""
        raise DTypeError(f"{name}: got {value!r:.60}, expected True or False{advice}")
    return value


def set_fast_math(enabled: bool) -> None:
    """Approximate some functions of float32 on a GPU, for this thread and for threads that start to compute later.

    Parameters
    ----------
    enabled : bool
        True: `/`, `exp`, `rsqrt` and `sigmoid` of float32 have errors of a few units in the last place, and `exp` of large
        numbers up to 110, as in code that `torch.compile` generates for GPUs. False, the default: they are exact to the last
        place, or nearly so.

    Raises
    ------
    DTypeError
        `enabled` is neither True nor False.

    Notes
    -----
    The setting affects only float32 on the backend `cuda`. float64, integers and the CPU are not affected. The gradient of a
    function is approximated if the function was. Errors and special cases are listed in docs/guide/precision.md.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.set_fast_math(True)
    >>> mf.get_fast_math()
    True
    >>> mf.set_fast_math(False)
    """
    flag = require_flag("set_fast_math", enabled)
    set_settings(lambda precision: precision._replace(is_fast_math=flag))


def get_fast_math() -> bool:
    """Return whether this thread approximates some functions of float32 on a GPU.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.get_fast_math()
    False
    """
    return is_fast_math()


def use_fast_math(enabled: bool = True) -> AbstractContextManager[None]:
    """Approximate some functions of float32 on a GPU in a block of code, in this thread.

    Parameters
    ----------
    enabled : bool
        See `set_fast_math`. False computes a block exactly.

    Raises
    ------
    DTypeError
        `enabled` is neither True nor False.

    Notes
    -----
    The call changes nothing by itself: write it in a `with` statement, or above a function, as in `@mf.use_fast_math()`.
    `set_fast_math` has no end.

    Examples
    --------
    >>> import minifuse as mf
    >>> with mf.use_fast_math():
    ...     mf.get_fast_math()
    True
    >>> mf.get_fast_math()
    False
    """
    flag = require_flag("use_fast_math", enabled)
    return use_precision(
        lambda p: p._replace(is_fast_math=flag), lambda p, before: p._replace(is_fast_math=before.is_fast_math)
    )


def choose_operator(operator: Operator, dtype: DType) -> Operator:
    """Return the operator that this thread computes with: its approximation, if it is set and there is one for the dtype."""
    return operator.fast if operator.fast is not None and dtype is float32 and is_fast_math() else operator


def use_precision_of(operator: Operator) -> AbstractContextManager[None]:
    """Compute a block of code with approximations if the operator is one, and exactly otherwise."""
    return use_fast_math(operator.exact is not operator)
