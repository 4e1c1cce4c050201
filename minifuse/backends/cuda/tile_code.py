"""What Numba compiles the words of `tiles` to: each function here gives an intrinsic that emits the LLVM of one idea.

Imported only where something is compiled. The intrinsics keep their values in registers: they take and give tuples, take all
elements out once, work on Python lists of LLVM values, and pack once.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.cuda.extending import intrinsic

from .compiler import target
from .words import first_element

F32, I1, I32, I64 = ir.FloatType(), ir.IntType(1), ir.IntType(32), ir.IntType(64)
SHARED = 3  # LLVM's number of the address space
ASYNC_COPIES = (8, 0)  # the first compute capability that has them


def address(context: Any, builder: Any, kind: Any, value: Any, index: Any) -> Any:
    """Of element `index` of a pointer or an array."""
    return builder.gep(first_element(context, builder, kind, value), [index])


def vector_at(builder: Any, place: Any, width: int) -> Any:
    """An address as that of a vector of floats."""
    return builder.bitcast(place, ir.VectorType(F32, width).as_pointer())


def emit_asm(builder: Any, text: str, constraints: str, operands: Sequence[Any]) -> None:
    """PTX that touches memory, and so stays where it is."""
    function = ir.FunctionType(ir.VoidType(), [operand.type for operand in operands])
    builder.call(ir.InlineAsm(function, text, constraints + "~{memory}", side_effect=True), operands)


def statement(text: str, fallback: str = "") -> Any:
    """An intrinsic of one line of PTX; of another line, or none, where there are no asynchronous copies."""

    @intrinsic
    def emit(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            line = text if target.get() >= ASYNC_COPIES else fallback
            if line:
                emit_asm(builder, line, "", [])
            return context.get_dummy_value()

        return types.void(), codegen

    return emit


def copy_async(width: int) -> Any:
    """Shared memory <- global memory, past the registers; zeros where not `valid`."""
    cache = "cg" if width == 4 else "ca"  # 16 bytes need not stay in L1
    text = f"{{.reg .pred skip; setp.eq.u32 skip, $2, 0; cp.async.{cache}.shared.global [$0], [$1], {4 * width}, skip;}}"

    @intrinsic
    def copy(typingctx: Any, shared: Any, i: Any, source: Any, j: Any, valid: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            to = address(context, builder, shared, *values[:2])
            at = address(context, builder, source, *values[2:4])
            if target.get() >= ASYNC_COPIES:
                to = builder.ptrtoint(builder.addrspacecast(to, ir.PointerType(F32, SHARED)), I32)
                emit_asm(builder, text, "r,l,r,", [to, builder.ptrtoint(at, I64), builder.zext(values[4], I32)])
            else:
                copy_now(builder, vector_at(builder, to, width), vector_at(builder, at, width), values[4], 4 * width)
            return context.get_dummy_value()

        return types.void(shared, i, source, j, valid), codegen

    return copy


def copy_now(builder: Any, to: Any, at: Any, valid: Any, align: int) -> None:
    """The same through registers, for GPUs without asynchronous copies."""
    before = builder.block
    with builder.if_then(valid):
        inside, loaded = builder.block, builder.load(at, align=align)
    value = builder.phi(loaded.type)
    value.add_incoming(ir.Constant(loaded.type, None), before)
    value.add_incoming(loaded, inside)
    builder.store(value, to, align=align)


def zeros(count: int) -> Any:
    """A tuple of float32 zeros."""

    @intrinsic
    def make(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return ir.Constant(context.get_value_type(signature.return_type), [ir.Constant(F32, 0)] * count)

        return types.UniTuple(types.float32, count)(), codegen  # type: ignore[no-untyped-call]

    return make


def outer_products(rows: Sequence[int], columns: Sequence[int], steps: int, pitch_a: int, pitch_b: int) -> Any:
    """acc[i, j] += the sum over k of A[k, i] * B[k, j]: loads of 16 bytes, and one fma a product.

    The walk turns round at the end of each row (i, j), so that every fma shares one operand with the one before and reads
    it from the operand cache, not from a register bank.
    """
    across = len(columns)
    walk = [(i, j if i % 2 == 0 else across - 1 - j) for i in range(len(rows)) for j in range(across)]

    def load(builder: Any, base: Any, places: Iterator[int]) -> Iterator[Any]:
        for place in places:
            at = vector_at(builder, builder.gep(base, [ir.Constant(I32, place)]), 4)
            vector = builder.load(at, align=16)
            yield from (builder.extract_element(vector, ir.Constant(I32, lane)) for lane in range(4))

    @intrinsic
    def multiply(typingctx: Any, acc: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            sums = [builder.extract_value(values[0], e) for e in range(len(walk))]
            tile_a = address(context, builder, a, *values[1:3])
            tile_b = address(context, builder, b, *values[3:5])
            for k in range(steps):
                x = list(load(builder, tile_a, (k * pitch_a + row for row in rows[::4])))
                y = list(load(builder, tile_b, (k * pitch_b + column for column in columns[::4])))
                for r, c in walk:
                    sums[r * across + c] = builder.fma(x[r], y[c], sums[r * across + c])
            return context.make_tuple(builder, signature.return_type, sums)

        return acc(acc, a, i, b, j), codegen

    return multiply


def store_tile(rows: Sequence[int], columns: Sequence[int], guarded: bool) -> Any:
    """out[i * row_step + j * column_step] = finish(alpha * acc, i, j, extra), four values at once where `wide`.

    Rows above `top` and columns before `left` belong to other blocks. The store of four is there in every kernel: it makes
    the assembler choose registers for the sums that do not collide.
    """
    across = len(columns)

    @intrinsic
    def store(
        typingctx: Any, out: Any, start: Any, i: Any, j: Any, top: Any, left: Any, M: Any, N: Any, row_step: Any,
        column_step: Any, wide: Any, acc: Any, alpha: Any, finish: Any, extra: Any,
    ) -> Any:  # fmt: skip
        finished = finish.get_call_type(typingctx, (types.float32, types.int64, types.int64, extra), {})

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            base, start, i, j, top, left, M, N, row_step, column_step, wide, acc, alpha, _, extra = values
            apply, base = context.get_function(finish, finished), builder.gep(base, [start])
            columns_of_out = [builder.add(j, ir.Constant(I64, column)) for column in columns]

            def is_inside(place: Any, first: Any, end: Any) -> Any:
                after = builder.icmp_signed(">=", place, first)
                return builder.and_(after, builder.icmp_signed("<", place, end)) if guarded else after

            def value(r: int, c: int) -> Any:
                product = builder.fmul(alpha, builder.extract_value(acc, r * across + c))
                return apply(builder, [product, row, columns_of_out[c], extra])

            is_column = [is_inside(column, left, N) for column in columns_of_out]
            for r, place in enumerate(rows):
                row = builder.add(i, ir.Constant(I64, place))
                line = builder.gep(base, [builder.mul(row, row_step)])
                with builder.if_then(is_inside(row, top, M)), builder.if_else(wide) as (at_once, one_by_one):
                    with at_once:
                        for c in range(0, across, 4):
                            with builder.if_then(is_column[c]):
                                four = ir.Constant(ir.VectorType(F32, 4), ir.Undefined)
                                for q in range(4):
                                    four = builder.insert_element(four, value(r, c + q), ir.Constant(I32, q))
                                at = builder.gep(line, [columns_of_out[c]])
                                builder.store(four, vector_at(builder, at, 4), align=16)
                    with one_by_one:
                        for c in range(across):
                            with builder.if_then(is_column[c]):
                                at = builder.gep(line, [builder.mul(columns_of_out[c], column_step)])
                                builder.store(value(r, c), at)
            return context.get_dummy_value()

        arguments = (out, start, i, j, top, left, M, N, row_step, column_step, wide, acc, alpha, finish, extra)
        return types.void(*arguments), codegen

    return store
