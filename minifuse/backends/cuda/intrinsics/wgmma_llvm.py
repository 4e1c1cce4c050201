"""What Numba compiles the words of `wgmma` to: inline PTX for the copy engine, its barriers, and the warpgroup's product.

Imported only where something is compiled, for sm_90a. The sums of a warpgroup are one list of registers from end to end:
they go into each product and come out of it tied to the same places, since the tensor cores write them while the threads go
on. Addresses of shared memory are its own, of 32 bits.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.cuda.extending import intrinsic

from .base import vector_alignment
from .gemm_llvm import ELEMENTS, I32, I64, SHARED_SPACE, address, vector_at

F32 = ir.FloatType()
U32, I64_, FLOAT = types.uint32, types.int64, types.float32
INSTRUCTIONS = {  # the instruction's k and types, and whether each operand's k is contiguous, which tf32 takes for granted
    "tf32": ("k8.f32.tf32.tf32", "1, 1"),
    "bf16": ("k16.f32.bf16.bf16", "1, 1, 0, 0"),
}
ROW_BYTES = 128  # bytes of a row of a tile
FRAGMENT_REGISTERS = 8  # registers of a lane: 16 rows and 16 k of a left operand
FULL_LANES = 0xFFFFFFFF


def ptx_statement(text: str, constraints: str = "") -> Callable[..., Any]:
    """The code of a statement of PTX over the operands as they come."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        clobbers = f"{constraints},~{{memory}}" if constraints else "~{memory}"
        builder.call(ir.InlineAsm(function, text, clobbers, side_effect=True), values)
        return context.get_dummy_value()

    return codegen


def statement(text: str) -> Any:
    """A statement without operands."""

    @intrinsic
    def emit(typingctx: Any) -> Any:
        return types.void(), ptx_statement(text)

    return emit


def on_one(text: str) -> Any:
    """A statement over one address of shared memory."""

    @intrinsic
    def emit(typingctx: Any, at: Any) -> Any:
        return types.void(U32), ptx_statement(text, "r")

    return emit


def on_two(text: str) -> Any:
    """A statement over an address of shared memory and a number."""

    @intrinsic
    def emit(typingctx: Any, at: Any, number: Any) -> Any:
        return types.void(U32, U32), ptx_statement(text, "r,r")

    return emit


def shared_address() -> Any:
    """Where an element of shared memory lies."""

    @intrinsic
    def where(typingctx: Any, shared: Any, i: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            at = builder.addrspacecast(address(context, builder, shared, *values), ir.PointerType(F32, SHARED_SPACE))
            return builder.ptrtoint(at, I32)

        return U32(shared, i), codegen

    return where


def acquire_map() -> Any:
    """See a tensor map as the host has written it last."""

    @intrinsic
    def acquire(typingctx: Any, tensor_map: Any) -> Any:
        return types.void(tensor_map), ptx_statement("fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l")

    return acquire


def copy_box() -> Any:
    """Start the copy of a box; the barrier counts its bytes."""
    text = (
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[$0], [$1, {$2, $3, $4, $5}], [$6];"
    )

    @intrinsic
    def copy(typingctx: Any, to: Any, tensor_map: Any, x: Any, y: Any, inner: Any, outer: Any, barrier: Any) -> Any:
        return types.void(U32, tensor_map, *[types.int32] * 4, U32), ptx_statement(text, "r,l,r,r,r,r,r")

    return copy


def zeros(count: int) -> Any:
    """The sums before the first product."""

    @intrinsic
    def zero(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return ir.Constant(context.get_value_type(signature.return_type), [ir.Constant(F32, 0)] * count)

        return types.UniTuple(FLOAT, count)(), codegen  # type: ignore[no-untyped-call]

    return zero


def accumulator_asm(text: str, more: str) -> Callable[..., Any]:
    """The code of PTX that changes the sums: its operands $0 ... are these, from twice as many on all else."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        acc, *others = values
        count = acc.type.count
        operands = [builder.extract_value(acc, e) for e in range(count)]
        for value in others:
            if isinstance(value.type, ir.ArrayType | ir.LiteralStructType):
                operands += [builder.extract_value(value, e) for e in range(value.type.count)]
            else:
                operands.append(value)
        constraints = ",".join(["=f"] * count + [str(e) for e in range(count)] + more.split() + ["~{memory}"])
        function = ir.FunctionType(ir.LiteralStructType([F32] * count), [x.type for x in operands])
        found = builder.call(ir.InlineAsm(function, text, constraints, side_effect=True), operands)
        return context.make_tuple(builder, signature.return_type, [builder.extract_value(found, e) for e in range(count)])

    return codegen


def start_product(body: str) -> str:
    """A product started, and the one before it waited for."""
    registers = "{.reg .pred yes; .reg .b64 da, db; setp.eq.u32 yes, 0, 0; wgmma.fence.sync.aligned; "
    return registers + body + "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;}"


def multiply_shared(kind: str, columns: int) -> Any:
    """acc += A B of 64 rows, both operands read from shared memory by the tensor cores, one row of 128 bytes deep."""
    shape, flags = INSTRUCTIONS[kind]
    count = columns // 2
    acc, a, b = ", ".join(f"${e}" for e in range(count)), f"${2 * count}", f"${2 * count + 1}"
    text = "".join(
        f"add.s64 da, {a}, {step}; add.s64 db, {b}, {step}; "
        f"wgmma.mma_async.sync.aligned.m64n{columns}{shape} {{{acc}}}, da, db, yes, {flags}; "
        for step in range(0, ROW_BYTES // 16, 2)
    )

    @intrinsic
    def multiply(typingctx: Any, acc: Any, a: Any, b: Any) -> Any:
        return acc(acc, I64_, I64_), accumulator_asm(start_product(text), "l l")

    return multiply


def multiply_from_registers(columns: int) -> Any:
    """acc += A B of 64 rows in tf32, A from the registers that `load_fragments` has filled, 16 k deep."""
    count = columns // 2
    acc, b = ", ".join(f"${e}" for e in range(count)), f"${2 * count + FRAGMENT_REGISTERS}"
    text = ""
    for step in range(FRAGMENT_REGISTERS // 4):
        a = ", ".join(f"${2 * count + 4 * step + e}" for e in range(4))
        text += f"add.s64 db, {b}, {2 * step}; "
        text += f"wgmma.mma_async.sync.aligned.m64n{columns}k8.f32.tf32.tf32 {{{acc}}}, {{{a}}}, db, yes, 1, 1; "
    constraints = " ".join(["r"] * FRAGMENT_REGISTERS + ["l"])

    @intrinsic
    def multiply(typingctx: Any, acc: Any, fragments: Any, b: Any) -> Any:
        return acc(acc, fragments, I64_), accumulator_asm(start_product(text), constraints)

    return multiply


def finish_products() -> Any:
    """Wait for the last product."""

    @intrinsic
    def finish(typingctx: Any, acc: Any) -> Any:
        return acc(acc), accumulator_asm("wgmma.wait_group.sync.aligned 0;", "")

    return finish


def load_fragments() -> Any:
    """The part of a tile whose rows are k that a lane needs: two neighbours at k = t and at t + 4, of each 8 k of 16.

    The tensor cores read these registers until their product has ended. So two sets of them take turns: one is loaded while
    the product of the other one runs. With one set alone the assembler lets each product end before the next load.
    """
    text = ""
    for step in range(FRAGMENT_REGISTERS // 4):
        for k in range(2):
            e = 4 * step + 2 * k
            text += f"ld.shared.v2.b32 {{${e}, ${e + 1}}}, [${FRAGMENT_REGISTERS + k} + {8 * step * ROW_BYTES}]; "

    @intrinsic
    def load(typingctx: Any, near: Any, far: Any) -> Any:
        kind = types.UniTuple(U32, FRAGMENT_REGISTERS)  # type: ignore[no-untyped-call]

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            function = ir.FunctionType(ir.LiteralStructType([I32] * FRAGMENT_REGISTERS), [I32, I32])
            constraints = ",".join(["=r"] * FRAGMENT_REGISTERS + ["r", "r", "~{memory}"])
            found = builder.call(ir.InlineAsm(function, text, constraints, side_effect=True), values)
            return context.make_tuple(builder, kind, [builder.extract_value(found, e) for e in range(FRAGMENT_REGISTERS)])

        return kind(U32, U32), codegen

    return load


def arranged(pairs: Sequence[int], lanes: int) -> Any:
    """The sums in fours: a lane and its neighbour, lane xor `lanes`, exchange pairs, and each keeps one row of two.

    `pairs` are places in a group of four sums: of the pair of one row, then of the other.
    """

    text = f"shfl.sync.bfly.b32 $0, $1, {lanes}, 31, {FULL_LANES:#x};"

    @intrinsic
    def exchange(typingctx: Any, acc: Any, is_odd: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            acc, is_odd = values
            shuffle = ir.InlineAsm(ir.FunctionType(F32, [F32]), text, "=f,f", side_effect=True)
            found = []
            for e in range(0, acc.type.count, 4):
                x, y = [[builder.extract_value(acc, e + k) for k in pair] for pair in (pairs[:2], pairs[2:])]
                kept = [builder.select(is_odd, q, p) for p, q in zip(x, y, strict=True)]
                other = [builder.call(shuffle, [builder.select(is_odd, p, q)]) for p, q in zip(x, y, strict=True)]
                both = zip([*kept, *other], [*other, *kept], strict=True)
                found += [builder.select(is_odd, q, p) for p, q in both]
            return context.make_tuple(builder, signature.return_type, found)

        return acc(acc, types.boolean), codegen

    return exchange


def store_fours(places: Sequence[tuple[int, int]], stored: str) -> Any:
    """out[start + row * row_step + column * column_step] = finish(sum, row, column, at), four sums at once where `wide`."""
    target = ELEMENTS[stored]

    @intrinsic
    def store(
        typingctx: Any, out: Any, start: Any, i: Any, j: Any, M: Any, N: Any, row_step: Any, column_step: Any, wide: Any,
        acc: Any, finish: Any, finish_four: Any, at: Any,
    ) -> Any:  # fmt: skip
        four_sums = types.UniTuple(FLOAT, 4)  # type: ignore[no-untyped-call]
        one_type = finish.get_call_type(typingctx, (FLOAT, I64_, I64_, at), {})
        four_type = finish_four.get_call_type(typingctx, (four_sums, I64_, I64_, at), {})

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            base, start, i, j, M, N, row_step, column_step, wide, acc, _, _, at = values
            base = builder.gep(base, [start])
            finish_one, finish_all = context.get_function(finish, one_type), context.get_function(finish_four, four_type)
            for k, (r, c) in enumerate(places):
                row, column = builder.add(i, ir.Constant(I64, r)), builder.add(j, ir.Constant(I64, c))
                line = builder.gep(base, [builder.mul(row, row_step)])
                sums = [builder.extract_value(acc, 4 * k + q) for q in range(4)]
                inside = builder.and_(builder.icmp_signed("<", row, M), builder.icmp_signed("<", column, N))
                with builder.if_then(inside), builder.if_else(wide) as (at_once, one_by_one):
                    with at_once:
                        given = context.make_tuple(builder, four_sums, sums)
                        found = finish_all(builder, [given, row, column, at])
                        vector = ir.Constant(ir.VectorType(target.memory, 4), ir.Undefined)
                        for q in range(4):
                            number = builder.extract_value(found, q)
                            number = context.cast(builder, number, four_type.return_type[q], out.dtype)
                            vector = builder.insert_element(vector, number, ir.Constant(I32, q))
                        to = vector_at(builder, builder.gep(line, [column]), target)
                        builder.store(vector, to, align=vector_alignment(target.nbytes))
                    with one_by_one:
                        for q in range(4):
                            here = builder.add(column, ir.Constant(I64, q))
                            with builder.if_then(builder.icmp_signed("<", here, N)):
                                value = finish_one(builder, [sums[q], row, here, at])
                                value = context.cast(builder, value, one_type.return_type, out.dtype)
                                builder.store(value, builder.gep(line, [builder.mul(here, column_step)]))
            return context.get_dummy_value()

        return types.void(
            out, start, I64_, I64_, M, N, row_step, column_step, types.boolean, acc, finish, finish_four, at
        ), codegen

    return store
