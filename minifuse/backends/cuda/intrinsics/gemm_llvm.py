"""LLVM code of the intrinsics in `gemm`. This module is imported only if something is compiled.

The intrinsics keep accumulators in registers: they take and return tuples, and work on Python lists of LLVM values.
"""

from collections.abc import Iterator, Sequence
from inspect import Parameter, Signature
from itertools import product
from typing import NamedTuple

from llvmlite import ir
from numba import types

from ..compiler import compile_target
from ..tile_shapes import swizzle
from .base import ALL_LANES
from .base_llvm import I32, I64, Emitter, emits, first_type
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


def statement(text: str, constraints: str = "") -> object:
    """Return an intrinsic for a line of PTX, or for nothing on GPUs without asynchronous copies.

    There is one constraint for each operand: "r" for 32 bits, such as an address in shared memory, and "l" for a pointer.
    """
    letters = constraints.split(",") if constraints else []

    def emit(code: Emitter, *operands: ir.Value) -> None:
        if compile_target.get() >= MIN_ASYNC_COPY_CC:
            code.asm(text, constraints, operands)

    names = ["code", *[f"operand{k}" for k in range(len(letters))]]
    emit.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])  # type: ignore[attr-defined]  # Numba reads it
    return emits(
        lambda *kinds: types.void(
            *[types.uint32 if letter == "r" else kind for kind, letter in zip(kinds, letters, strict=True)]
        )
    )(emit)


def copy_async(width: int, name: str) -> object:
    """Return an intrinsic that copies from global to shared memory, or writes zeros if not `valid`."""
    element = ELEMENTS[name]
    nbytes = width * element.nbytes
    piece = min(nbytes, MAX_ASYNC_COPY_BYTES)
    cache = "cg" if piece == MAX_ASYNC_COPY_BYTES else "ca"  # 16 bytes may bypass L1
    text = f"{{.reg .pred skip; setp.eq.u32 skip, $2, 0; cp.async.{cache}.shared.global [$0], [$1], {piece}, skip;}}"

    @emits(types.void)
    def copy(code: Emitter, shared: ir.Value, i: ir.Value, source: ir.Value, j: ir.Value, valid: ir.Value) -> None:
        to, at, builder = code.at(shared, i), code.at(source, j), code.builder
        if compile_target.get() < MIN_ASYNC_COPY_CC or nbytes < 4:
            copy_through_registers(code, to, at, width, valid)
            return
        to = builder.ptrtoint(builder.addrspacecast(to, ir.PointerType(element.memory, SHARED_SPACE)), I32)
        at, valid_bit = builder.ptrtoint(at, I64), builder.zext(valid, I32)
        for offset in range(0, nbytes, piece):
            code.asm(text, "r,l,r", [builder.add(to, ir.Constant(I32, offset)), code.add(at, offset), valid_bit])

    return copy


def copy_through_registers(code: Emitter, target: ir.Value, source: ir.Value, width: int, valid: ir.Value) -> None:
    """Copy through registers: used for single bytes, and on GPUs without asynchronous copies."""
    builder, entry_block, (to, align) = code.builder, code.builder.block, code.vector_pointer(target, width)
    with builder.if_then(valid):
        then_block, loaded = builder.block, builder.load(code.vector_pointer(source, width)[0], align=align)
    value = builder.phi(loaded.type)
    value.add_incoming(ir.Constant(loaded.type, None), entry_block)
    value.add_incoming(loaded, then_block)
    builder.store(value, to, align=align)


def zeros(count: int, name: str) -> object:
    """Return an intrinsic that returns a tuple of zeros."""
    element = ELEMENTS[name]

    @emits(types.UniTuple(element.kind, count))
    def make(code: Emitter) -> ir.Value:
        return ir.Constant(code.context.get_value_type(code.signature.return_type), [ir.Constant(element.sum, 0)] * count)

    return make


def interleave_columns(code: Emitter, sums: Sequence[ir.Value], lanes: int, lane: ir.Value) -> list[ir.Value]:
    """Return the sums of a row after `gemm.interleave_columns`, by a select and a shuffle of half of them in each step."""
    builder, sums = code.builder, list(sums)
    for mask, bit in exchange_steps(lanes):
        is_set = builder.trunc(builder.lshr(lane, ir.Constant(I32, mask.bit_length() - 1)), ir.IntType(1))
        for e in [e for e in range(len(sums)) if not e >> bit & 1]:
            x, y = sums[e], sums[e | 1 << bit]
            got = shuffle(code, builder.select(is_set, x, y), mask)
            sums[e], sums[e | 1 << bit] = builder.select(is_set, got, x), builder.select(is_set, y, got)
    return sums


def shuffle(code: Emitter, x: ir.Value, mask: int) -> ir.Value:
    """Return a number of the lane whose index differs in the bits of `mask`, in words of 32 bits."""
    text, builder = f"shfl.sync.bfly.b32 $0, $1, {mask}, 31, {ALL_LANES:#x};", code.builder
    function = ir.InlineAsm(ir.FunctionType(I32, [I32]), text, "=r,r", side_effect=True)
    words = builder.bitcast(x, ir.VectorType(I32, code.context.get_abi_sizeof(x.type) // 4))
    for k in range(words.type.count):
        place = ir.Constant(I32, k)
        words = builder.insert_element(words, builder.call(function, [builder.extract_element(words, place)]), place)
    return builder.bitcast(words, x.type)


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

    def load(code: Emitter, tile: ir.Value, places: Iterator[int], order: int) -> Iterator[ir.Value]:
        for place in places:
            values = code.load(code.at(tile, place))
            for lane in range(4):
                yield code.builder.zext(values[lane ^ order], element.sum) if element.is_bool else values[lane ^ order]

    @emits(first_type)
    def multiply(code: Emitter, acc: ir.Value, a: ir.Value, i: ir.Value, b: ir.Value, j: ir.Value) -> list[ir.Value]:
        sums, tile_a, tile_b = code.unpack(acc), code.at(a, i), code.at(b, j)
        for k in range(steps):
            order_a, order_b = swizzle(k) * is_a_swizzled, swizzle(k) * is_b_swizzled
            x = list(load(code, tile_a, (k * pitch_a + row for row in rows[::4]), order_a))
            y = list(load(code, tile_b, (k * pitch_b + column for column in columns[::4]), order_b))
            for r, c in traversal:
                e = r * column_count + c
                sums[e] = element.add_product(code.builder, sums[e], x[r], y[c])
        return sums

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

    def advance(code: Emitter, pointer: ir.Value, *terms: tuple[ir.Value, int]) -> ir.Value:
        for count, step in terms:
            pointer = code.at(pointer, code.builder.mul(count, ir.Constant(I64, step)))
        return pointer

    @emits(first_type)
    def multiply(code: Emitter, acc: ir.Value, a: ir.Value, i: ir.Value, b: ir.Value, j: ir.Value) -> list[ir.Value]:
        builder, sums, tile_a, tile_b = code.builder, code.unpack(acc), code.at(a, i), code.at(b, j)
        number = builder.zext(builder.call(LANE_ID, []), I64)
        g, t = builder.lshr(number, ir.Constant(I64, 2)), builder.and_(number, ir.Constant(I64, 3))
        if compile_target.get() < MIN_ASYNC_COPY_CC:  # no float64 tensor cores either: each lane computes its own sums
            tile_a, tile_b = advance(code, tile_a, (g, ax)), advance(code, tile_b, (t, 2 * bx))
            for k in range(steps):
                row = [builder.load(code.at(tile_a, 8 * r * ax + k * ak)) for r in range(rows)]
                column = [builder.load(code.at(tile_b, (c // 2 * 8 + c % 2) * bx + k * bk)) for c in range(columns)]
                sums = [builder.fma(row[e // columns], column[e % columns], total) for e, total in enumerate(sums)]
            return sums
        tile_a, tile_b = advance(code, tile_a, (g, ax), (t, ak)), advance(code, tile_b, (g, bx), (t, bk))
        for k in range(0, steps, 4):
            x = [builder.load(code.at(tile_a, 8 * r * ax + k * ak)) for r in range(rows)]
            y = [builder.load(code.at(tile_b, 8 * c * bx + k * bk)) for c in range(columns // 2)]
            for r, c in product(range(rows), range(0, columns, 2)):
                at = r * columns + c
                pair = builder.call(instruction, [x[r], y[c // 2], *sums[at : at + 2]])
                sums[at : at + 2] = [builder.extract_value(pair, e) for e in (0, 1)]
        return sums

    return multiply


class ResultStore(NamedTuple):
    """The store of the sums of a product: its epilogue is called with one sum, or with four adjacent ones."""

    code: Emitter
    kind: types.Number  # of a sum
    epilogue: int  # the operand with the epilogue of one sum; that of four sums and `at` follow
    at: ir.Value

    def store(self, pointer: ir.Value, row: ir.Value, column: ir.Value, sums: list[ir.Value]) -> None:
        """Store epilogue(sums, row, column, at), at once."""
        code, is_single = self.code, len(sums) == 1
        out, one, four, at = [code.signature.args[k] for k in (0, *range(self.epilogue, self.epilogue + 3))]
        function, sums_kind = (one, self.kind) if is_single else (four, types.UniTuple(self.kind, 4))
        call = function.get_call_type(code.context.typing_context, (sums_kind, types.int64, types.int64, at), {})
        operand = sums[0] if is_single else code.wrap(sums_kind, sums)
        result = code.context.get_function(function, call)(code.builder, [operand, row, column, self.at])
        if is_single:
            code.builder.store(code.context.cast(code.builder, result, call.return_type, out.dtype), pointer)
        else:
            code.store(code.unpack_as(out.dtype, call.return_type, result), pointer)


def store_tile(rows: Sequence[int], columns: Sequence[int], guarded: bool, name: str, lanes: int) -> object:
    """Return an intrinsic: out[i * row_step + j * column_step] = epilogue(alpha * acc, i, j, at), four at once if `wide`.

    Rows above `top` and columns before `left` belong to other blocks. Every kernel contains the store of four values: it
    makes the assembler assign the accumulators to registers that do not conflict.
    """
    element, column_count = ELEMENTS[name], len(columns)

    @emits(types.void)
    def store(
        code: Emitter, out: ir.Value, start: ir.Value, i: ir.Value, j: ir.Value, top: ir.Value, left: ir.Value, M: ir.Value,
        N: ir.Value, row_step: ir.Value, column_step: ir.Value, wide: ir.Value, acc: ir.Value, alpha: ir.Value,
        epilogue: ir.Value, epilogue4: ir.Value, at: ir.Value,
    ) -> None:  # fmt: skip
        builder, first, results = code.builder, code.at(out, start), ResultStore(code, element.kind, 13, at)
        lane = builder.urem(builder.call(LANE_ID, []), ir.Constant(I32, lanes))

        def is_inside(index: ir.Value, start: ir.Value, end: ir.Value) -> ir.Value:
            after = builder.icmp_signed(">=", index, start)
            return builder.and_(after, builder.icmp_signed("<", index, end)) if guarded else after

        def store_rows(places: Sequence[ir.Value], width: int) -> None:
            are_columns = [is_inside(column, left, N) for column in places]
            for r, place in enumerate(rows):
                row = code.add(i, place)
                sums = [element.scale(builder, alpha, x) for x in code.unpack(acc, r * column_count, column_count)]
                if width == 1 and lanes > 1:
                    sums = interleave_columns(code, sums, lanes, lane)
                line = code.at(first, builder.mul(row, row_step))
                with builder.if_then(is_inside(row, top, M)):
                    for c in range(0, column_count, width):
                        with builder.if_then(are_columns[c]):
                            offset = builder.mul(places[c], column_step) if width == 1 else places[c]
                            results.store(code.at(line, offset), row, places[c], sums[c : c + width])

        with builder.if_else(wide) as (at_once, one_by_one):
            with at_once:
                store_rows([code.add(j, column) for column in columns], 4)
            with one_by_one:
                lane_start = builder.sub(j, builder.mul(builder.zext(lane, I64), ir.Constant(I64, 3))) if lanes > 1 else j
                offsets = interleaved_indices(column_count, lanes) if lanes > 1 else columns
                store_rows([code.add(lane_start, column) for column in offsets], 1)

    return store
