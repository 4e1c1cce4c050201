"""LLVM code of the intrinsics in `wgmma`: inline PTX for the copy engine, its barriers, and the product of a warpgroup.

This module is imported only if something is compiled, for sm_90a. All accumulators of a warpgroup are operands of each
product, tied to the same registers on input and output, since the tensor cores write them while the threads continue.
Addresses of shared memory are 32-bit addresses within shared memory.
"""

from collections.abc import Sequence
from functools import partial

from llvmlite import ir
from numba import types

from .base_llvm import F32, I32, Emitter, emits, first_type
from .gemm_llvm import SHARED_SPACE, ResultStore, shuffle
from .wgmma import ROW_BYTES

U32, INT64 = types.uint32, types.int64
INSTRUCTIONS = {  # the instruction's k and types, and flags for operands contiguous along k, which tf32 implies
    "tf32": ("k8.f32.tf32.tf32", "1, 1"),
    "bf16": ("k16.f32.bf16.bf16", "1, 1, 0, 0"),
}
FRAGMENT_REGISTERS = 8  # registers of a lane: 16 rows and 16 k of a left operand


@emits(lambda shared, i: U32(shared, i))
def shared_address(code: Emitter, shared: ir.Value, i: ir.Value) -> ir.Value:
    """Return the address of an element within shared memory."""
    address = code.builder.addrspacecast(code.at(shared, i), ir.PointerType(F32, SHARED_SPACE))
    return code.builder.ptrtoint(address, I32)


def update_accumulators(
    code: Emitter, text: str, acc: ir.Value, others: Sequence[ir.Value] = (), constraints: Sequence[str] = ()
) -> list[ir.Value]:
    """Emit PTX that updates the accumulators, which are operands $0 ...; of n accumulators, the others start at $2n."""
    sums = code.unpack(acc)
    places = [str(e) for e in range(len(sums))]
    return code.asm(text, ",".join(["=f"] * len(sums) + places + [*constraints]), [*sums, *others], [F32] * len(sums))


def start_product(body: str) -> str:
    """Return the PTX that starts a product and waits for the previous one."""
    registers = "{.reg .pred yes; .reg .b64 da, db; setp.eq.u32 yes, 0, 0; wgmma.fence.sync.aligned; "
    return registers + body + "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;}"


def multiply_shared(kind: str, columns: int) -> object:
    """Return an intrinsic: acc += A B of 64 rows, with both operands in shared memory, in rows of 128 bytes along k."""
    shape, flags = INSTRUCTIONS[kind]
    count = columns // 2
    acc, a, b = ", ".join(f"${e}" for e in range(count)), f"${2 * count}", f"${2 * count + 1}"
    text = "".join(
        f"add.s64 da, {a}, {step}; add.s64 db, {b}, {step}; "
        f"wgmma.mma_async.sync.aligned.m64n{columns}{shape} {{{acc}}}, da, db, yes, {flags}; "
        for step in range(0, ROW_BYTES // 16, 2)
    )

    @emits(lambda acc, a, b: acc(acc, INT64, INT64))
    def multiply(code: Emitter, acc: ir.Value, a: ir.Value, b: ir.Value) -> list[ir.Value]:
        return update_accumulators(code, start_product(text), acc, (a, b), "ll")

    return multiply


def multiply_from_registers(columns: int) -> object:
    """Return an intrinsic: acc += A B of 64 rows in tf32, over 16 k, with A in the registers that `load_fragments` set."""
    count = columns // 2
    acc, b = ", ".join(f"${e}" for e in range(count)), f"${2 * count + FRAGMENT_REGISTERS}"
    text = ""
    for step in range(FRAGMENT_REGISTERS // 4):
        a = ", ".join(f"${2 * count + 4 * step + e}" for e in range(4))
        text += f"add.s64 db, {b}, {2 * step}; "
        text += f"wgmma.mma_async.sync.aligned.m64n{columns}k8.f32.tf32.tf32 {{{acc}}}, {{{a}}}, db, yes, 1, 1; "

    @emits(lambda acc, fragments, b: acc(acc, fragments, INT64))
    def multiply(code: Emitter, acc: ir.Value, fragments: ir.Value, b: ir.Value) -> list[ir.Value]:
        return update_accumulators(
            code, start_product(text), acc, (*code.unpack(fragments), b), "r" * FRAGMENT_REGISTERS + "l"
        )

    return multiply


@emits(first_type)
def finish_products(code: Emitter, acc: ir.Value) -> list[ir.Value]:
    """Wait for the last product."""
    return update_accumulators(code, "wgmma.wait_group.sync.aligned 0;", acc)


@emits(lambda near, far: types.UniTuple(U32, FRAGMENT_REGISTERS)(U32, U32))
def load_fragments(code: Emitter, near: ir.Value, far: ir.Value) -> list[ir.Value]:
    """Load a lane's part of 16 rows (k) of a tile: two elements at k = t, t + 4, t + 8 and t + 12.

    The tensor cores read these registers until their product has ended, so two sets of them alternate: one is loaded while
    the product of the other runs. With only one set, the assembler waits for each product to end before the next load.
    """
    text = ""
    for step in range(FRAGMENT_REGISTERS // 4):
        for k in range(2):
            e = 4 * step + 2 * k
            text += f"ld.shared.v2.b32 {{${e}, ${e + 1}}}, [${FRAGMENT_REGISTERS + k} + {8 * step * ROW_BYTES}]; "
    return code.asm(text, ",".join(["=r"] * FRAGMENT_REGISTERS + ["r", "r"]), [near, far], [I32] * FRAGMENT_REGISTERS)


def exchange_pairs(pairs: Sequence[int], lanes: int) -> object:
    """Return an intrinsic that exchanges sums with the lane xor `lanes`, so that each lane has four sums of one row.

    `pairs` are indices into a group of four sums: the pair of one row, then that of the other.
    """

    @emits(lambda acc, is_odd: acc(acc, types.boolean))
    def exchange(code: Emitter, acc: ir.Value, is_odd: ir.Value) -> list[ir.Value]:
        exchanged, select, sums = list[ir.Value](), code.builder.select, code.unpack(acc)
        for e in range(0, len(sums), 4):
            x, y = [[sums[e + k] for k in pair] for pair in (pairs[:2], pairs[2:])]
            kept = [select(is_odd, q, p) for p, q in zip(x, y, strict=True)]
            other = [shuffle(code, select(is_odd, p, q), lanes) for p, q in zip(x, y, strict=True)]
            exchanged += [select(is_odd, q, p) for p, q in zip([*kept, *other], [*other, *kept], strict=True)]
        return exchanged

    return exchange


def store_vectors(places: Sequence[tuple[int, int]]) -> object:
    """Return an intrinsic: out[start + row * row_step + column * column_step] = epilogue(sum, row, column, at)."""

    @emits(
        lambda out, start, i, j, M, N, row_step, column_step, wide, *others: types.void(
            out, start, INT64, INT64, M, N, row_step, column_step, types.boolean, *others
        )
    )
    def store(
        code: Emitter, out: ir.Value, start: ir.Value, i: ir.Value, j: ir.Value, M: ir.Value, N: ir.Value,
        row_step: ir.Value, column_step: ir.Value, wide: ir.Value, acc: ir.Value, epilogue: ir.Value,
        epilogue4: ir.Value, at: ir.Value,
    ) -> None:  # fmt: skip
        builder, first, results = code.builder, code.at(out, start), ResultStore(code, types.float32, 10, at)
        is_before = partial(builder.icmp_signed, "<")
        for k, (r, c) in enumerate(places):
            row, column, sums = code.add(i, r), code.add(j, c), code.unpack(acc, 4 * k, 4)
            line = code.at(first, builder.mul(row, row_step))
            is_inside = builder.and_(is_before(row, M), is_before(column, N))
            with builder.if_then(is_inside), builder.if_else(wide) as (at_once, one_by_one):
                with at_once:
                    results.store(code.at(line, column), row, column, sums)
                with one_by_one:
                    for q, total in enumerate(sums):
                        column_q = code.add(column, q)
                        with builder.if_then(is_before(column_q, N)):
                            results.store(code.at(line, builder.mul(column_q, column_step)), row, column_q, [total])

    return store
