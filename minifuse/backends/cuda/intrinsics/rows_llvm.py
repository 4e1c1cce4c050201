"""LLVM code of the intrinsics in `rows`.

This module is imported only if something is compiled. Accumulators are passed as tuples, in registers, as in `gemm_llvm`.
"""

from collections.abc import Callable, Sequence

from llvmlite import ir
from numba import types

from .base_llvm import F32, Emitter, emits, first_type

EXP2 = "ex2.approx.ftz"
MINUS_INF = ir.Constant(F32, float("-inf"))


def load_elements(code: Emitter, array: ir.Value, count: int) -> list[ir.Value]:
    """Load the first `count` elements of a local array."""
    pointers = [code.at(array, k) for k in range(count)]
    return [code.builder.load(pointer) for pointer in pointers]


@emits(lambda x: types.float32(types.float32))
def exp2(code: Emitter, x: ir.Value) -> ir.Value:
    """Return 2 ** x."""
    return code.instruction(EXP2, x)


def mask_scores(rows: Sequence[int], columns: Sequence[int]) -> object:
    """Return an intrinsic that masks scores: acc if column < end and low <= column - row <= high, else -inf."""

    @emits(first_type)
    def mask(
        code: Emitter, acc: ir.Value, row: ir.Value, column: ir.Value, end: ir.Value, low: ir.Value, high: ir.Value
    ) -> list[ir.Value]:
        numbers = enumerate((row, column, end, low, high), 1)
        row, column, end, low, high = [code.cast(x, operand, types.int64) for operand, x in numbers]
        sums = code.unpack(acc)
        compare, both = code.builder.icmp_signed, code.builder.and_
        first_distance = code.builder.sub(column, row)
        for c, column_step in enumerate(columns):
            is_before_end = compare("<", code.add(column, column_step), end)
            for r, row_step in enumerate(rows):
                distance = code.add(first_distance, column_step - row_step)
                is_near = both(compare("<=", low, distance), compare("<=", distance, high))
                e = r * len(columns) + c
                sums[e] = code.builder.select(both(is_before_end, is_near), sums[e], MINUS_INF)
        return sums

    return mask


def row_reduction(columns: int, reduce: Callable[[Emitter, ir.Value, ir.Value], ir.Value]) -> object:
    """Return an intrinsic that reduces each row r of acc into array[r]."""

    @emits(types.void)
    def reduce_rows(code: Emitter, array: ir.Value, acc: ir.Value) -> None:
        sums = code.unpack(acc)
        pointers = [code.at(array, r) for r in range(len(sums) // columns)]
        for r, pointer in enumerate(pointers):
            total = code.builder.load(pointer)
            for x in sums[r * columns : (r + 1) * columns]:
                total = reduce(code, total, x)
            code.builder.store(total, pointer)

    return reduce_rows


def row_maxima(columns: int) -> object:
    """Return an intrinsic that updates the maximum of each row, ignoring NaN: the maximum of x and NaN is x."""
    return row_reduction(columns, lambda code, x, y: code.instruction("max", x, y))


def add_rows(columns: int) -> object:
    """Return an intrinsic that adds each row to its sum."""
    return row_reduction(columns, lambda code, x, y: code.builder.fadd(x, y))


def per_line_values(code: Emitter, array: ir.Value, along: str, rows: int, columns: int) -> list[ir.Value]:
    """Return the number of its row, or of its column, for each element of a tile."""
    values = load_elements(code, array, rows if along == "row" else columns)
    return [values[e // columns if along == "row" else e % columns] for e in range(rows * columns)]


def exponentials(rows: int, columns: int, along: str) -> object:
    """Return an intrinsic that computes 2 ** (scale * acc - shift), with one shift per row or per column (`along`)."""

    @emits(lambda acc, scale, shift: acc(acc, types.float32, shift))
    def exponential(code: Emitter, acc: ir.Value, scale: ir.Value, shift: ir.Value) -> list[ir.Value]:
        shifts = per_line_values(code, shift, along, rows, columns)
        negated = [code.builder.fsub(ir.Constant(F32, -0.0), x) for x in shifts]  # NVVM has no fneg
        return [
            code.instruction(EXP2, code.builder.fma(x, scale, y)) for x, y in zip(code.unpack(acc), negated, strict=True)
        ]

    return exponential


def scale_rows(rows: int, columns: int) -> object:
    """Return an intrinsic that multiplies each row of acc by its factor."""

    @emits(first_type)
    def scale(code: Emitter, acc: ir.Value, factors: ir.Value) -> list[ir.Value]:
        row_factors = per_line_values(code, factors, "row", rows, columns)
        return [code.builder.fmul(x, y) for x, y in zip(code.unpack(acc), row_factors, strict=True)]

    return scale


def softmax_gradients(rows: int, columns: int, along: str) -> object:
    """Return an intrinsic that computes p * (g - delta), with one delta per row or per column (`along`)."""

    @emits(first_type)
    def gradient(code: Emitter, p: ir.Value, g: ir.Value, delta: ir.Value) -> list[ir.Value]:
        deltas = per_line_values(code, delta, along, rows, columns)
        return [
            code.builder.fmul(x, code.builder.fsub(y, z))
            for x, y, z in zip(code.unpack(p), code.unpack(g), deltas, strict=True)
        ]

    return gradient


def store_transposed(rows: Sequence[int], columns: Sequence[int], pitch: int) -> object:
    """Return an intrinsic that stores acc transposed, 16 bytes at a time: four rows of a column."""

    @emits(types.void)
    def store(code: Emitter, tile: ir.Value, i: ir.Value, acc: ir.Value) -> None:
        sums, first = code.unpack(acc), code.at(tile, i)
        for c, column in enumerate(columns):
            for r in range(0, len(rows), 4):
                column_sums = sums[r * len(columns) + c :: len(columns)][:4]
                code.store(column_sums, code.at(first, column * pitch + rows[r]))

    return store
