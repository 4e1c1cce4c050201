"""LLVM code of the intrinsics in `rows`: each function returns a Numba intrinsic that emits one of them.

Imported only if something is compiled. Accumulators are passed as tuples and stay in registers, as in `gemm_llvm`.
"""

from collections.abc import Callable, Sequence

from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.cuda.extending import intrinsic
from numba.cuda.target import CUDATargetContext, CUDATypingContext

from .base_llvm import F32, I32, I64, Memory, Typed, Values, address
from .gemm_llvm import ELEMENTS, vector_at

BinaryEmitter = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]
MINUS_INF = ir.Constant(F32, float("-inf"))


def unpack(builder: ir.IRBuilder, acc: ir.Value, count: int) -> list[ir.Value]:
    """Return the accumulators of a lane as a list."""
    return [builder.extract_value(acc, e) for e in range(count)]


def element_addresses(
    context: CUDATargetContext, builder: ir.IRBuilder, kind: Memory, value: ir.Value, count: int
) -> list[ir.Value]:
    """Return the addresses of the first elements of a local array."""
    return [address(context, builder, kind, value, ir.Constant(I64, k)) for k in range(count)]


def load_elements(
    context: CUDATargetContext, builder: ir.IRBuilder, kind: Memory, value: ir.Value, count: int
) -> list[ir.Value]:
    """Load the first elements of a local array."""
    return [builder.load(place) for place in element_addresses(context, builder, kind, value, count)]


def call_ptx(builder: ir.IRBuilder, name: str, *operands: ir.Value) -> ir.Value:
    """Emit one PTX instruction on float32, which the compiler may move and merge like any other."""
    places = ", ".join(f"${k}" for k in range(len(operands) + 1))
    kind = ir.FunctionType(F32, [F32] * len(operands))
    return builder.call(ir.InlineAsm(kind, f"{name}.f32 {places};", ",".join(["=f", *["f"] * len(operands)])), operands)


def emit_exp2(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """Emit 2 ** x."""
    return call_ptx(builder, "ex2.approx.ftz", x)


def exp2() -> object:
    """Return the intrinsic that computes 2 ** x of one number."""

    @intrinsic
    def power(typingctx: CUDATypingContext, x: types.Float) -> Typed:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            return emit_exp2(builder, values[0])

        return types.float32(types.float32), codegen

    return power


def mask_scores(rows: Sequence[int], columns: Sequence[int]) -> object:
    """Emit the mask of scores: acc where the column is below the end and near enough to its row, else -inf."""
    across = len(columns)

    @intrinsic
    def keep(
        typingctx: CUDATypingContext, acc: types.UniTuple, row: types.Integer, column: types.Integer, end: types.Integer,
        low: types.Integer, high: types.Integer,
    ) -> Typed:  # fmt: skip
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            given = zip(values[1:], signature.args[1:], strict=True)
            row, column, end, low, high = [context.cast(builder, x, kind, types.int64) for x, kind in given]
            sums = unpack(builder, values[0], len(rows) * across)
            apart = builder.sub(column, row)
            for c, there in enumerate(columns):
                inside = builder.icmp_signed("<", builder.add(column, ir.Constant(I64, there)), end)
                for r, here in enumerate(rows):
                    far = builder.add(apart, ir.Constant(I64, there - here))
                    near = builder.and_(builder.icmp_signed("<=", low, far), builder.icmp_signed("<=", far, high))
                    e = r * across + c
                    sums[e] = builder.select(builder.and_(inside, near), sums[e], MINUS_INF)
            return context.make_tuple(builder, signature.return_type, sums)

        return acc(acc, row, column, end, low, high), codegen

    return keep


def row_reduction(rows: int, columns: int, reduce: BinaryEmitter) -> object:
    """Return an intrinsic that reduces row r into array[r]."""

    @intrinsic
    def reduce_rows(typingctx: CUDATypingContext, array: Memory, acc: types.UniTuple) -> Typed:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            sums = unpack(builder, values[1], rows * columns)
            for r, place in enumerate(element_addresses(context, builder, array, values[0], rows)):
                total = builder.load(place)
                for c in range(columns):
                    total = reduce(builder, total, sums[r * columns + c])
                builder.store(total, place)
            return context.get_dummy_value()

        return types.void(array, acc), codegen

    return reduce_rows


def row_maxima(rows: int, columns: int) -> object:
    """Emit the maximum of each row. NaN is ignored: the maximum of a number and NaN is the number."""

    def larger(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        return call_ptx(builder, "max", x, y)

    return row_reduction(rows, columns, larger)


def add_rows(rows: int, columns: int) -> object:
    """Emit the sum of each row."""
    return row_reduction(rows, columns, lambda builder, x, y: builder.fadd(x, y))


def exponentials(rows: int, columns: int, along: str) -> object:
    """Emit 2 ** (scale * acc - shift)."""

    @intrinsic
    def exponential(typingctx: CUDATypingContext, acc: types.UniTuple, scale: types.Float, shift: Memory) -> Typed:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            shifts = load_elements(context, builder, shift, values[2], rows if along == "row" else columns)
            shifts = [builder.fsub(ir.Constant(F32, -0.0), x) for x in shifts]  # NVVM has no fneg
            sums = unpack(builder, values[0], rows * columns)
            for e, x in enumerate(sums):
                beside = shifts[e // columns if along == "row" else e % columns]
                sums[e] = emit_exp2(builder, builder.fma(x, values[1], beside))
            return context.make_tuple(builder, signature.return_type, sums)

        return acc(acc, types.float32, shift), codegen

    return exponential


def scale_rows(rows: int, columns: int) -> object:
    """Emit acc * factors."""

    @intrinsic
    def scale(typingctx: CUDATypingContext, acc: types.UniTuple, factors: Memory) -> Typed:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            by = load_elements(context, builder, factors, values[1], rows)
            sums = unpack(builder, values[0], rows * columns)
            found = [builder.fmul(x, by[e // columns]) for e, x in enumerate(sums)]
            return context.make_tuple(builder, signature.return_type, found)

        return acc(acc, factors), codegen

    return scale


def softmax_gradients(rows: int, columns: int, along: str) -> object:
    """Emit p * (g - delta)."""

    @intrinsic
    def gradient(typingctx: CUDATypingContext, p: types.UniTuple, g: types.UniTuple, delta: Memory) -> Typed:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            deltas = load_elements(context, builder, delta, values[2], rows if along == "row" else columns)
            found = []
            for e in range(rows * columns):
                beside = deltas[e // columns if along == "row" else e % columns]
                x, y = (builder.extract_value(acc, e) for acc in values[:2])
                found.append(builder.fmul(x, builder.fsub(y, beside)))
            return context.make_tuple(builder, signature.return_type, found)

        return p(p, g, delta), codegen

    return gradient


def store_transposed(rows: Sequence[int], columns: Sequence[int], pitch: int) -> object:
    """Emit stores of 16 bytes: four rows of a column."""
    element, across = ELEMENTS["f32"], len(columns)

    @intrinsic
    def store(typingctx: CUDATypingContext, tile: Memory, i: types.Integer, acc: types.UniTuple) -> Typed:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            base = address(context, builder, tile, *values[:2])
            for c, column in enumerate(columns):
                for r in range(0, len(rows), 4):
                    vector = ir.Constant(ir.VectorType(element.memory, 4), ir.Undefined)
                    for q in range(4):
                        x = builder.extract_value(values[2], (r + q) * across + c)
                        vector = builder.insert_element(vector, x, ir.Constant(I32, q))
                    place = builder.gep(base, [ir.Constant(I64, column * pitch + rows[r])])
                    builder.store(vector, vector_at(builder, place, element), align=16)
            return context.get_dummy_value()

        return types.void(tile, i, acc), codegen

    return store
