"""How generated CUDA kernels name functions and load elements."""

from collections.abc import Callable, Sequence

from ....core.dtypes import DType, bool_, int32, int64
from ....ir.kernel_ir import Expression, Op
from ...codegen.expression_printer import WRAPPING_OPS
from ...codegen.loop_emitter import Dialect

BY_KIND = {"pow", "floordiv", "mod", "lshift", "rshift"}  # functions with other names and other semantics for integers


class CudaDialect(Dialect):
    """The dialect of one CUDA thread: reductions may run across memory, and bools are stored as bytes."""

    reduces_columns = True
    wrapping = frozenset({int64})  # sums and products of int32 fit in Numba's 64 bits

    def word(self, name: str, dtype: DType) -> str:
        """Return the name of a function in kernels. Some functions of integers have different names."""
        is_own = dtype.is_integer and (name in BY_KIND or (name in WRAPPING_OPS and dtype in self.wrapping))
        return f"integer_{name}" if is_own else name

    def load(self, place: str, dtype: DType) -> str:
        """Return the element at a place in memory, where a bool is a byte."""
        return f"({place} != 0)" if dtype is bool_ else place

    def operation(self, e: Op, inputs: Sequence[str], default: Callable[[Expression], str]) -> str | None:
        """Return the text of an operator that Numba CUDA computes differently; None for all others."""
        assert e.operator is not None
        name = e.operator.name
        if e.dtype is bool_ and name in ("invert", "abs"):
            return f"(not {inputs[0]})" if name == "invert" else inputs[0]
        if e.dtype.is_integer and name in ("neg", "abs"):  # Numba computes 64 bits, and the interpreter exactly
            return f"{e.dtype.short}({'-' if name == 'neg' else 'abs('}{inputs[0]}{')' * (name == 'abs')})"
        if name == "invert":
            return f"(~{inputs[0]})"
        if e.dtype is int32 and name in BY_KIND:
            return f"i32({default(e)})"
        return None
