"""Checks for tests (all backends agree, gradients are correct), and strategies for Hypothesis.

    mf.testing.assert_backends_agree(lambda x: x.softmax(1), array)
    mf.testing.gradcheck(lambda x: x.softmax(1), mf.randn(3, 5, dtype=mf.float64, requires_grad=True))

    @given(mf.testing.expressions())
    def test_fused_is_eager(program): ...

The checks only need NumPy. The strategies (`shapes`, `dtypes`, `layouts`, `arrays`, `tensors`, `expressions`) need
Hypothesis, which is imported when the first of them is used.
"""

from typing import TYPE_CHECKING

from .agreement import Agreement, Deviation, assert_backends_agree, assert_close
from .gradients import gradcheck
from .programs import Program
from .tolerances import TOLERANCES, Tolerance, tolerance_for
from .views import Recipe

if TYPE_CHECKING:
    from .strategies import arrays, dtypes, expressions, layouts, shapes, tensors

__all__ = [
    "TOLERANCES",
    "Agreement",
    "Deviation",
    "Program",
    "Recipe",
    "Tolerance",
    "arrays",
    "assert_backends_agree",
    "assert_close",
    "dtypes",
    "expressions",
    "gradcheck",
    "layouts",
    "shapes",
    "tensors",
    "tolerance_for",
]


def __getattr__(name: str) -> object:
    """Import the strategies on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import strategies

    return getattr(strategies, name)
