"""Trace Python functions of scalars as expressions of a kernel."""

from collections.abc import Callable, Sequence

from ..core.dtypes import BY_PYTHON, DType, weak_type_of
from ..core.operator_entry import TracedValue
from .kernel_ir import Expression, Load, constant


def trace(function: Callable[..., object], dtypes: Sequence[DType]) -> Expression:
    """Trace a Python function of scalars: return it as an expression of loads 0, 1, ...

    Raises
    ------
    FuseError
        The function branches on a value, or reads one, as `math.exp` does.
    """
    result = function(*[TracedValue(Load(k, dtype)) for k, dtype in enumerate(dtypes)])
    return result.value if isinstance(result, TracedValue) else constant(result, BY_PYTHON[weak_type_of(result)])
