"""LLVM code of the intrinsics in `gemm`: each function returns a Numba intrinsic that emits one of them.

This module is imported only if something is compiled. The intrinsics keep their values in registers: they take and return
tuples, unpack all elements once, work on Python lists of LLVM values, and pack once.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.cuda.extending import intrinsic
from numba.cuda.target import CUDATargetContext, CUDATypingContext

from ..compiler import compile_target
from ..tile_shapes import swizzle
from .base import ALL_LANES, vector_alignment
from .base_llvm import I32, I64, Memory, TypedImplementation, Values, address
from .gemm import exchange_steps, interleaved_indices

I8 = ir.IntType(8)
SHARED_SPACE = 3  # number of the address space in LLVM
MIN_ASYNC_COPY_CC = (8, 0)  # first compute capability with asynchronous copies
MAX_ASYNC_COPY_BYTES = 16  # largest size of one asynchronous copy; the smallest is 4 bytes


class ElementType(NamedTuple):
    """An element type in memory and in the accumulators of a product."""

    memory: ir.Type
    sum: ir.Type
    kind: types.Number  # Numba's type of a sum
    nbytes: int

    @property
    def is_bool(self) -> bool:
        """Return True if an element is a byte that is 0 or 1."""
        return bool(self.memory == I8)

    def add_product(self, builder: ir.IRBuilder, total: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
        """Return total + x * y, rounded once for floats, or total | x & y for bools."""
        if isinstance(self.sum, ir.IntType):
            product = builder.and_(x, y) if self.is_bool else builder.mul(x, y)
            return builder.or_(total, product) if self.is_bool else builder.add(total, product)
        return builder.fma(x, y, total)

    def scale(self, builder: ir.IRBuilder, alpha: ir.Value, total: ir.Value) -> ir.Value:
        """Return alpha * total for floats; integers are returned unchanged."""
        return total if isinstance(self.sum, ir.IntType) else builder.fmul(alpha, total)


LANE_ID = ir.InlineAsm(ir.FunctionType(I32, []), "mov.u32 $0, %laneid;", "=r")
ELEMENTS = {
    "f32": ElementType(ir.FloatType(), ir.FloatType(), types.float32, 4),
    "f64": ElementType(ir.DoubleType(), ir.DoubleType(), types.float64, 8),
    "i32": ElementType(I32, I32, types.int32, 4),
    "i64": ElementType(I64, I64, types.int64, 8),
    "u8": ElementType(I8, I32, types.int32, 1),
}


def vector_pointer(builder: ir.IRBuilder, pointer: ir.Value, element: ElementType, width: int = 4) -> ir.Value:
    """Cast an address to a pointer to a vector of elements."""
    return builder.bitcast(pointer, ir.VectorType(element.memory, width).as_pointer())


def emit_asm(builder: ir.IRBuilder, text: str, constraints: str, operands: Values) -> None:
    """Emit PTX that accesses memory, so that the compiler does not move it."""
    function = ir.FunctionType(ir.VoidType(), [operand.type for operand in operands])
    builder.call(ir.InlineAsm(function, text, constraints + "~{memory}", side_effect=True), operands)


def statement(text: str) -> object:
    """Return an intrinsic of one line of PTX, or of nothing on GPUs without asynchronous copies."""

    @intrinsic
    def emit(typingctx: CUDATypingContext) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            if compile_target.get() >= MIN_ASYNC_COPY_CC:
                emit_asm(builder, text, "", [])
            return context.get_dummy_value()

        return types.void(), codegen

    return emit


def copy_async(width: int, name: str) -> object:
    """Return an intrinsic that copies from global to shared memory, or writes zeros if not `valid`."""
    element = ELEMENTS[name]
    nbytes = width * element.nbytes
    piece = min(nbytes, MAX_ASYNC_COPY_BYTES)
    cache = "cg" if piece == MAX_ASYNC_COPY_BYTES else "ca"  # 16 bytes may bypass L1
    text = f"{{.reg .pred skip; setp.eq.u32 skip, $2, 0; cp.async.{cache}.shared.global [$0], [$1], {piece}, skip;}}"

    @intrinsic
    def copy(
        typingctx: CUDATypingContext, shared: Memory, i: types.Integer, source: Memory, j: types.Integer,
        valid: types.Boolean,
    ) -> TypedImplementation:  # fmt: skip
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            to = address(context, builder, shared, *values[:2])
            at = address(context, builder, source, *values[2:4])
            if compile_target.get() < MIN_ASYNC_COPY_CC or nbytes < 4:
                places = vector_pointer(builder, to, element, width), vector_pointer(builder, at, element, width)
                copy_through_registers(builder, *places, values[4], min(nbytes, MAX_ASYNC_COPY_BYTES))
            else:
                to = builder.ptrtoint(builder.addrspacecast(to, ir.PointerType(element.memory, SHARED_SPACE)), I32)
                at, valid_bit = builder.ptrtoint(at, I64), builder.zext(values[4], I32)
                for offset in range(0, nbytes, piece):
                    places = builder.add(to, ir.Constant(I32, offset)), builder.add(at, ir.Constant(I64, offset))
                    emit_asm(builder, text, "r,l,r,", [*places, valid_bit])
            return context.get_dummy_value()

        return types.void(shared, i, source, j, valid), codegen

    return copy


def copy_through_registers(builder: ir.IRBuilder, target: ir.Value, source: ir.Value, valid: ir.Value, align: int) -> None:
    """Copy through registers: used for single bytes, and on GPUs without asynchronous copies."""
    entry_block = builder.block
    with builder.if_then(valid):
        then_block, loaded = builder.block, builder.load(source, align=align)
    value = builder.phi(loaded.type)
    value.add_incoming(ir.Constant(loaded.type, None), entry_block)
    value.add_incoming(loaded, then_block)
    builder.store(value, target, align=align)


def zeros(count: int, name: str) -> object:
    """Return an intrinsic that returns a tuple of zeros."""
    element = ELEMENTS[name]

    @intrinsic
    def make(typingctx: CUDATypingContext) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            return ir.Constant(context.get_value_type(signature.return_type), [ir.Constant(element.sum, 0)] * count)

        return types.UniTuple(element.kind, count)(), codegen

    return make


def interleave_columns(
    builder: ir.IRBuilder, sums: Sequence[ir.Value], element: ElementType, lanes: int, lane: ir.Value
) -> list[ir.Value]:
    """Return the sums of a row after `gemm.interleave_columns`, by a select and a shuffle of half of them in each step."""
    sums = list(sums)
    for mask, bit in exchange_steps(lanes):
        is_set = builder.trunc(builder.lshr(lane, ir.Constant(I32, mask.bit_length() - 1)), ir.IntType(1))
        for e in [e for e in range(len(sums)) if not e >> bit & 1]:
            x, y = sums[e], sums[e | 1 << bit]
            got = shuffle(builder, builder.select(is_set, x, y), element, mask)
            sums[e], sums[e | 1 << bit] = builder.select(is_set, got, x), builder.select(is_set, y, got)
    return sums


def shuffle(builder: ir.IRBuilder, x: ir.Value, element: ElementType, mask: int) -> ir.Value:
    """Return a sum of the lane whose number differs in the bits of `mask`, in words of 32 bits."""
    text = f"shfl.sync.bfly.b32 $0, $1, {mask}, 31, {ALL_LANES:#x};"
    function = ir.InlineAsm(ir.FunctionType(I32, [I32]), text, "=r,r", side_effect=True)
    words = builder.bitcast(x, ir.VectorType(I32, 2 if element.nbytes == 8 else 1))
    for k in range(words.type.count):
        place = ir.Constant(I32, k)
        words = builder.insert_element(words, builder.call(function, [builder.extract_element(words, place)]), place)
    return builder.bitcast(words, element.sum)


def outer_products(
    rows: Sequence[int],
    columns: Sequence[int],
    steps: int,
    pitch_a: int,
    pitch_b: int,
    name: str,
    are_swizzled: tuple[bool, bool],
) -> object:
    """Return an intrinsic: acc[i, j] += sum over k of A[k, i] * B[k, j], by loads of four elements and one fma per product.

    Every second row of products is computed in reverse order. So each fma shares one operand with the previous fma, and
    reads it from the operand cache instead of a register bank.
    """
    element, column_count, (is_a_swizzled, is_b_swizzled) = ELEMENTS[name], len(columns), are_swizzled
    traversal = [(i, j if i % 2 == 0 else column_count - 1 - j) for i in range(len(rows)) for j in range(column_count)]

    def load(builder: ir.IRBuilder, base: ir.Value, places: Iterator[int], order: int) -> Iterator[ir.Value]:
        for place in places:
            pointer = vector_pointer(builder, builder.gep(base, [ir.Constant(I32, place)]), element)
            vector = builder.load(pointer, align=vector_alignment(element.nbytes))
            for lane in range(4):
                value = builder.extract_element(vector, ir.Constant(I32, lane ^ order))
                yield builder.zext(value, element.sum) if element.is_bool else value

    @intrinsic
    def multiply(
        typingctx: CUDATypingContext, acc: types.UniTuple, a: Memory, i: types.Integer, b: Memory, j: types.Integer
    ) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            sums = [builder.extract_value(values[0], e) for e in range(len(traversal))]
            tile_a = address(context, builder, a, *values[1:3])
            tile_b = address(context, builder, b, *values[3:5])
            for k in range(steps):
                order_a, order_b = swizzle(k) * is_a_swizzled, swizzle(k) * is_b_swizzled
                x = list(load(builder, tile_a, (k * pitch_a + row for row in rows[::4]), order_a))
                y = list(load(builder, tile_b, (k * pitch_b + column for column in columns[::4]), order_b))
                for r, c in traversal:
                    e = r * column_count + c
                    sums[e] = element.add_product(builder, sums[e], x[r], y[c])
            return context.make_tuple(builder, signature.return_type, sums)

        return acc(acc, a, i, b, j), codegen

    return multiply


def float64_mma_products(rows: int, columns: int, steps: int, steps_a: tuple[int, int], steps_b: tuple[int, int]) -> object:
    """Return an intrinsic: acc[i, j] += sum over k of A[i, k] * B[k, j] over a warp, 8 x 8 sums and 4 k per instruction.

    PTX defines which elements a lane has. Lane 4 * g + t has a's element at row g, k = t, b's at k = t, column g, and the
    sums of row g and columns 2 * t and 2 * t + 1. Wider instructions (16 x 8 x 4, 8 or 16) were slower on an H200.
    """
    double, text = ir.DoubleType(), "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {$0, $1}, {$2}, {$3}, {$4, $5};"
    kind = ir.FunctionType(ir.LiteralStructType([double] * 2), [double] * 4)
    instruction = ir.InlineAsm(kind, text, "=d,=d,d,d,d,d")  # without side effects, so LLVM may move it
    (ax, ak), (bx, bk) = steps_a, steps_b

    @intrinsic
    def multiply(
        typingctx: CUDATypingContext, acc: types.UniTuple, a: Memory, i: types.Integer, b: Memory, j: types.Integer,
        lane: types.Integer,
    ) -> TypedImplementation:  # fmt: skip
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            sums = [builder.extract_value(values[0], e) for e in range(rows * columns)]
            number = context.cast(builder, values[5], lane, types.int64)
            g, t = builder.lshr(number, ir.Constant(I64, 2)), builder.and_(number, ir.Constant(I64, 3))

            def advance(tile: Memory, at: int, *terms: tuple[ir.Value, int]) -> ir.Value:
                base = address(context, builder, tile, *values[at : at + 2])
                for count, step in terms:
                    base = builder.gep(base, [builder.mul(count, ir.Constant(I64, step))])
                return base

            def load(base: ir.Value, place: int) -> ir.Value:
                return builder.load(builder.gep(base, [ir.Constant(I32, place)]), align=8)

            if compile_target.get() < MIN_ASYNC_COPY_CC:  # no float64 tensor cores either: each lane computes its own sums
                tile_a, tile_b = advance(a, 1, (g, ax)), advance(b, 3, (t, 2 * bx))
                for k in range(steps):
                    row = [load(tile_a, 8 * r * ax + k * ak) for r in range(rows)]
                    column = [load(tile_b, (c // 2 * 8 + c % 2) * bx + k * bk) for c in range(columns)]
                    sums = [builder.fma(row[e // columns], column[e % columns], total) for e, total in enumerate(sums)]
                return context.make_tuple(builder, signature.return_type, sums)
            tile_a, tile_b = advance(a, 1, (g, ax), (t, ak)), advance(b, 3, (g, bx), (t, bk))
            for k in range(0, steps, 4):
                x = [load(tile_a, 8 * r * ax + k * ak) for r in range(rows)]
                y = [load(tile_b, 8 * c * bx + k * bk) for c in range(columns // 2)]
                for r, c in product(range(rows), range(0, columns, 2)):
                    at = r * columns + c
                    pair = builder.call(instruction, [x[r], y[c // 2], *sums[at : at + 2]])
                    sums[at : at + 2] = [builder.extract_value(pair, e) for e in (0, 1)]
            return context.make_tuple(builder, signature.return_type, sums)

        return acc(acc, a, i, b, j, lane), codegen

    return multiply


def store_tile(rows: Sequence[int], columns: Sequence[int], guarded: bool, name: str, stored: str, lanes: int) -> object:
    """Return an intrinsic: out[i * row_step + j * column_step] = epilogue(alpha * acc, i, j, at), four at once if `wide`.

    Rows above `top` and columns before `left` belong to other blocks. Every kernel contains the store of four values: it
    makes the assembler assign the accumulators to registers that do not conflict.
    """
    element, target_element, column_count = ELEMENTS[name], ELEMENTS[stored], len(columns)

    @intrinsic
    def store(
        typingctx: CUDATypingContext, out: types.CPointer, start: types.Integer, i: types.Integer, j: types.Integer,
        top: types.Integer, left: types.Integer, M: types.Integer, N: types.Integer, row_step: types.Integer,
        column_step: types.Integer, wide: types.Boolean, acc: types.UniTuple, alpha: types.Number, epilogue: types.Callable,
        epilogue4: types.Callable, at: types.BaseTuple,
    ) -> TypedImplementation:  # fmt: skip
        four_sums = types.UniTuple(element.kind, 4)
        one_type = epilogue.get_call_type(typingctx, (element.kind, types.int64, types.int64, at), {})
        four_type = epilogue4.get_call_type(typingctx, (four_sums, types.int64, types.int64, at), {})
        assert one_type is not None
        assert four_type is not None

        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            base, start, i, j, top, left, M, N, row_step, column_step, wide, acc, alpha, _, _, at = values
            base = builder.gep(base, [start])
            call_epilogue, call_epilogue4 = (
                context.get_function(epilogue, one_type),
                context.get_function(epilogue4, four_type),
            )
            lane = builder.urem(builder.call(LANE_ID, []), ir.Constant(I32, lanes))

            def is_inside(index: ir.Value, first: ir.Value, end: ir.Value) -> ir.Value:
                after = builder.icmp_signed(">=", index, first)
                return builder.and_(after, builder.icmp_signed("<", index, end)) if guarded else after

            def scaled_sums(r: int) -> list[ir.Value]:
                sums = [builder.extract_value(acc, r * column_count + c) for c in range(column_count)]
                return [element.scale(builder, alpha, x) for x in sums]

            def vector_result(sums: Sequence[ir.Value], row: ir.Value, column: ir.Value) -> ir.Value:
                four = context.make_tuple(builder, four_sums, sums)
                results = call_epilogue4(builder, [four, row, column, at])
                vector = ir.Constant(ir.VectorType(target_element.memory, 4), ir.Undefined)
                for q in range(4):
                    number = builder.extract_value(results, q)
                    number = context.cast(builder, number, four_type.return_type[q], out.dtype)
                    vector = builder.insert_element(vector, number, ir.Constant(I32, q))
                return vector

            def store_rows(places: Sequence[ir.Value], width: int) -> None:
                are_columns = [is_inside(column, left, N) for column in places]
                for r, place in enumerate(rows):
                    row, sums = builder.add(i, ir.Constant(I64, place)), scaled_sums(r)
                    if width == 1 and lanes > 1:
                        sums = interleave_columns(builder, sums, element, lanes, lane)
                    line = builder.gep(base, [builder.mul(row, row_step)])
                    with builder.if_then(is_inside(row, top, M)):
                        for c in range(0, column_count, width):
                            with builder.if_then(are_columns[c]):
                                if width == 1:
                                    result = call_epilogue(builder, [sums[c], row, places[c], at])
                                    result = context.cast(builder, result, one_type.return_type, out.dtype)
                                    builder.store(result, builder.gep(line, [builder.mul(places[c], column_step)]))
                                else:
                                    to = vector_pointer(builder, builder.gep(line, [places[c]]), target_element)
                                    result = vector_result(sums[c : c + width], row, places[c])
                                    builder.store(result, to, align=vector_alignment(target_element.nbytes))

            with builder.if_else(wide) as (at_once, one_by_one):
                with at_once:
                    store_rows([builder.add(j, ir.Constant(I64, column)) for column in columns], 4)
                with one_by_one:
                    first = builder.sub(j, builder.mul(builder.zext(lane, I64), ir.Constant(I64, 3))) if lanes > 1 else j
                    offsets = interleaved_indices(column_count, lanes) if lanes > 1 else columns
                    store_rows([builder.add(first, ir.Constant(I64, column)) for column in offsets], 1)
            return context.get_dummy_value()

        arguments = (out, start, i, j, top, left, M, N, row_step, column_step, wide, acc, alpha, epilogue, epilogue4, at)
        return types.void(*arguments), codegen

    return store
