"""How generated CUDA kernels name functions, load elements and compute operators."""

from ....core.dtypes import DType, bool_, int32, int64
from ....core.operators import floordiv, mod
from ....ir.kernel_ir import Constant, Expression, Op
from ...codegen.expression_printer import WRAPPING_OPS, Dialect, ExpressionPrinter

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


class CudaPrinter(ExpressionPrinter):
    """Prints expressions as Numba CUDA computes them: some operators differ, and accumulators of bools are integers."""

    dialect: Dialect = CudaDialect()

    def word(self, name: str, dtype: DType) -> str:
        """Return the name of the function that computes an operator."""
        return self.dialect.word(name, dtype)

    def operand_of_combiner(self, name: str, dtype: DType) -> str:
        """Return an operand of a combiner; bools are passed as integers."""
        return f"({name} != 0)" if dtype is bool_ else name

    def combiner_result(self, e: Expression) -> str:
        """Return the result of a combiner as an expression; a bool is converted to an integer."""
        return f"i32({self.bare(e)})" if e.dtype is bool_ else super().combiner_result(e)

    def text(self, e: Expression) -> str:
        """Return the text of an expression."""
        if e in self.names:
            return self.names[e]
        if isinstance(e, Op) and e.operator is not None:
            inputs, name = [self.text(x) for x in e.inputs], e.operator.name
            if e.dtype is bool_ and name in ("invert", "abs"):
                return f"(not {inputs[0]})" if name == "invert" else inputs[0]
            if e.dtype.is_integer and name in ("neg", "abs"):  # Numba computes 64 bits, and the interpreter exactly
                return f"{e.dtype.short}({'-' if name == 'neg' else 'abs('}{inputs[0]}{')' * (name == 'abs')})"
            if name == "invert":
                return f"(~{inputs[0]})"
            if (shift := power_of_two_divisor(e)) is not None:
                text = f"({inputs[0]} >> {shift})" if name == "floordiv" else f"({inputs[0]} & {2**shift - 1})"
                return f"i32{text}" if e.dtype is int32 else text
            if e.dtype is int32 and name in BY_KIND:
                return f"i32({super().text(e)})"
        return super().text(e)


def power_of_two_divisor(e: Op) -> int | None:
    """Return k if an integer is divided by 2**k: then the quotient, which is rounded down, is a shift by k bits."""
    if e.operator is not floordiv and e.operator is not mod:
        return None
    divisor = e.inputs[1]
    if not (e.dtype in (int32, int64) and isinstance(divisor, Constant) and int(divisor.value).bit_count() == 1):
        return None
    return int(divisor.value).bit_length() - 1 if divisor.value > 0 else None


def storage_of(dtype: DType) -> str:
    """Return the type of an element in memory: a bool is a byte."""
    return "u8" if dtype is bool_ else dtype.short


def accumulator_of(dtype: DType) -> str:
    """Return the type of a reduction's accumulator: an integer for bools, since shuffles do not support bools."""
    return "i32" if dtype is bool_ else dtype.short
