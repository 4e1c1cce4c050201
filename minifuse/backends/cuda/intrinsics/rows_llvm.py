"""LLVM code of the intrinsics in `rows`: each function returns a Numba intrinsic that emits one of them.

This module is imported only if something is compiled. Accumulators are passed as tuples, in registers, as in `gemm_llvm`.
"""

from collections.abc import Callable, Sequence

from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.cuda.extending import intrinsic
from numba.cuda.target import CUDATargetContext, CUDATypingContext

from .base_llvm import F32, I32, I64, Memory, TypedImplementation, Values, address
from .gemm_llvm import ELEMENTS, vector_pointer

BinaryEmitter = Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]
MINUS_INF = ir.Constant(F32, float("-inf"))


def unpack(builder: ir.IRBuilder, acc: ir.Value, count: int) -> list[ir.Value]:
    """Return the accumulators of a lane as a list."""
    return [builder.extract_value(acc, e) for e in range(count)]


def element_addresses(
    context: CUDATargetContext, builder: ir.IRBuilder, kind: Memory, value: ir.Value, count: int
) -> list[ir.Value]:
    """Return the addresses of the first `count` elements of a local array."""
    return [address(context, builder, kind, value, ir.Constant(I64, k)) for k in range(count)]


def load_elements(
    context: CUDATargetContext, builder: ir.IRBuilder, kind: Memory, value: ir.Value, count: int
) -> list[ir.Value]:
    """Load the first `count` elements of a local array."""
    return [builder.load(pointer) for pointer in element_addresses(context, builder, kind, value, count)]


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
    def power(typingctx: CUDATypingContext, x: types.Float) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            return emit_exp2(builder, values[0])

        return types.float32(types.float32), codegen

    return power


def mask_scores(rows: Sequence[int], columns: Sequence[int]) -> object:
    """Return an intrinsic that masks scores: acc if column < end and low <= column - row <= high, else -inf."""
    column_count = len(columns)

    @intrinsic
    def mask(
        typingctx: CUDATypingContext, acc: types.UniTuple, row: types.Integer, column: types.Integer, end: types.Integer,
        low: types.Integer, high: types.Integer,
    ) -> TypedImplementation:  # fmt: skip
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            operands = zip(values[1:], signature.args[1:], strict=True)
            row, column, end, low, high = [context.cast(builder, x, kind, types.int64) for x, kind in operands]
            sums = unpack(builder, values[0], len(rows) * column_count)
            first_distance = builder.sub(column, row)
            for c, column_step in enumerate(columns):
                is_before_end = builder.icmp_signed("<", builder.add(column, ir.Constant(I64, column_step)), end)
                for r, row_step in enumerate(rows):
                    distance = builder.add(first_distance, ir.Constant(I64, column_step - row_step))
                    is_near = builder.and_(
                        builder.icmp_signed("<=", low, distance), builder.icmp_signed("<=", distance, high)
                    )
                    e = r * column_count + c
                    sums[e] = builder.select(builder.and_(is_before_end, is_near), sums[e], MINUS_INF)
            return context.make_tuple(builder, signature.return_type, sums)

        return acc(acc, row, column, end, low, high), codegen

    return mask


def row_reduction(rows: int, columns: int, reduce: BinaryEmitter) -> object:
    """Return an intrinsic that reduces each row r of acc into array[r]."""

    @intrinsic
    def reduce_rows(typingctx: CUDATypingContext, array: Memory, acc: types.UniTuple) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            sums = unpack(builder, values[1], rows * columns)
            for r, pointer in enumerate(element_addresses(context, builder, array, values[0], rows)):
                total = builder.load(pointer)
                for c in range(columns):
                    total = reduce(builder, total, sums[r * columns + c])
                builder.store(total, pointer)
            return context.get_dummy_value()

        return types.void(array, acc), codegen

    return reduce_rows


def row_maxima(rows: int, columns: int) -> object:
    """Return an intrinsic that updates the maximum of each row, ignoring NaN: the maximum of x and NaN is x."""

    def larger(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        return call_ptx(builder, "max", x, y)

    return row_reduction(rows, columns, larger)


def add_rows(rows: int, columns: int) -> object:
    """Return an intrinsic that adds each row to its sum."""
    return row_reduction(rows, columns, lambda builder, x, y: builder.fadd(x, y))


def exponentials(rows: int, columns: int, along: str) -> object:
    """Return an intrinsic that computes 2 ** (scale * acc - shift), with one shift per row or per column (`along`)."""

    @intrinsic
    def exponential(
        typingctx: CUDATypingContext, acc: types.UniTuple, scale: types.Float, shift: Memory
    ) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            shifts = load_elements(context, builder, shift, values[2], rows if along == "row" else columns)
            shifts = [builder.fsub(ir.Constant(F32, -0.0), x) for x in shifts]  # NVVM has no fneg
            sums = unpack(builder, values[0], rows * columns)
            for e, x in enumerate(sums):
                negated_shift = shifts[e // columns if along == "row" else e % columns]
                sums[e] = emit_exp2(builder, builder.fma(x, values[1], negated_shift))
            return context.make_tuple(builder, signature.return_type, sums)

        return acc(acc, types.float32, shift), codegen

    return exponential


def scale_rows(rows: int, columns: int) -> object:
    """Return an intrinsic that multiplies each row of acc by its factor."""

    @intrinsic
    def scale(typingctx: CUDATypingContext, acc: types.UniTuple, factors: Memory) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            row_factors = load_elements(context, builder, factors, values[1], rows)
            sums = unpack(builder, values[0], rows * columns)
            scaled = [builder.fmul(x, row_factors[e // columns]) for e, x in enumerate(sums)]
            return context.make_tuple(builder, signature.return_type, scaled)

        return acc(acc, factors), codegen

    return scale


def softmax_gradients(rows: int, columns: int, along: str) -> object:
    """Return an intrinsic that computes p * (g - delta), with one delta per row or per column (`along`)."""

    @intrinsic
    def gradient(typingctx: CUDATypingContext, p: types.UniTuple, g: types.UniTuple, delta: Memory) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            deltas = load_elements(context, builder, delta, values[2], rows if along == "row" else columns)
            gradients = []
            for e in range(rows * columns):
                shift = deltas[e // columns if along == "row" else e % columns]
                x, y = (builder.extract_value(acc, e) for acc in values[:2])
                gradients.append(builder.fmul(x, builder.fsub(y, shift)))
            return context.make_tuple(builder, signature.return_type, gradients)

        return p(p, g, delta), codegen

    return gradient


def store_transposed(rows: Sequence[int], columns: Sequence[int], pitch: int) -> object:
    """Return an intrinsic that stores acc transposed, 16 bytes at a time: four rows of a column."""
    element, column_count = ELEMENTS["f32"], len(columns)

    @intrinsic
    def store(typingctx: CUDATypingContext, tile: Memory, i: types.Integer, acc: types.UniTuple) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            base = address(context, builder, tile, *values[:2])
            for c, column in enumerate(columns):
                for r in range(0, len(rows), 4):
                    vector = ir.Constant(ir.VectorType(element.memory, 4), ir.Undefined)
                    for q in range(4):
                        x = builder.extract_value(values[2], (r + q) * column_count + c)
                        vector = builder.insert_element(vector, x, ir.Constant(I32, q))
                    pointer = builder.gep(base, [ir.Constant(I64, column * pitch + rows[r])])
                    builder.store(vector, vector_pointer(builder, pointer, element), align=16)
            return context.get_dummy_value()

        return types.void(tile, i, acc), codegen

    return store
