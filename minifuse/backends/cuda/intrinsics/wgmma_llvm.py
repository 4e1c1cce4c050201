"""LLVM code of the intrinsics in `wgmma`: inline PTX for the copy engine, its barriers, and the product of a warpgroup.

This module is imported only if something is compiled, for sm_90a. All accumulators of a warpgroup are operands of each
product, tied to the same registers on input and output, since the tensor cores write them while the threads continue.
Addresses of shared memory are 32-bit addresses within shared memory.
"""

from collections.abc import Sequence

from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.cuda.extending import intrinsic
from numba.cuda.target import CUDATargetContext, CUDATypingContext

from .base import ALL_LANES, vector_alignment
from .base_llvm import F32, I32, I64, CodeGenerator, Memory, TypedImplementation, Values, address
from .gemm_llvm import ELEMENTS, SHARED_SPACE, vector_pointer
from .wgmma import ROW_BYTES

U32, INT64, FLOAT = types.uint32, types.int64, types.float32
INSTRUCTIONS = {  # the instruction's k and types, and flags for operands contiguous along k, which tf32 implies
    "tf32": ("k8.f32.tf32.tf32", "1, 1"),
    "bf16": ("k16.f32.bf16.bf16", "1, 1, 0, 0"),
}
FRAGMENT_REGISTERS = 8  # registers of a lane: 16 rows and 16 k of a left operand


def ptx_statement(text: str, constraints: str = "") -> CodeGenerator:
    """Return the code generator of a PTX statement over its operands in order."""

    def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
        function = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        clobbers = f"{constraints},~{{memory}}" if constraints else "~{memory}"
        builder.call(ir.InlineAsm(function, text, clobbers, side_effect=True), values)
        return context.get_dummy_value()

    return codegen


def statement(text: str) -> object:
    """Return an intrinsic for a statement without operands."""

    @intrinsic
    def emit(typingctx: CUDATypingContext) -> TypedImplementation:
        return types.void(), ptx_statement(text)

    return emit


def statement_with_address(text: str) -> object:
    """Return an intrinsic for a statement with one operand: an address in shared memory."""

    @intrinsic
    def emit(typingctx: CUDATypingContext, at: types.Integer) -> TypedImplementation:
        return types.void(U32), ptx_statement(text, "r")

    return emit


def statement_with_address_and_number(text: str) -> object:
    """Return an intrinsic for a statement with two operands: an address in shared memory and a number."""

    @intrinsic
    def emit(typingctx: CUDATypingContext, at: types.Integer, number: types.Integer) -> TypedImplementation:
        return types.void(U32, U32), ptx_statement(text, "r,r")

    return emit


def shared_address() -> object:
    """Return the intrinsic that computes the address of an element within shared memory."""

    @intrinsic
    def where(typingctx: CUDATypingContext, shared: Memory, i: types.Integer) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            at = builder.addrspacecast(address(context, builder, shared, *values), ir.PointerType(F32, SHARED_SPACE))
            return builder.ptrtoint(at, I32)

        return U32(shared, i), codegen

    return where


def acquire_map() -> object:
    """Return the intrinsic that makes the host's last write of a tensor map visible."""

    @intrinsic
    def acquire(typingctx: CUDATypingContext, tensor_map: types.CPointer) -> TypedImplementation:
        return types.void(tensor_map), ptx_statement("fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l")

    return acquire


def copy_box() -> object:
    """Return the intrinsic that starts the copy of a box. The barrier counts its bytes."""
    text = (
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[$0], [$1, {$2, $3, $4, $5}], [$6];"
    )

    @intrinsic
    def copy(
        typingctx: CUDATypingContext, to: types.Integer, tensor_map: types.CPointer, x: types.Integer, y: types.Integer,
        inner: types.Integer, outer: types.Integer, barrier: types.Integer,
    ) -> TypedImplementation:  # fmt: skip
        return types.void(U32, tensor_map, *[types.int32] * 4, U32), ptx_statement(text, "r,l,r,r,r,r,r")

    return copy


def accumulator_asm(text: str, other_constraints: str) -> CodeGenerator:
    """Return the code generator of PTX that updates the accumulators.

    Operands $0 ... are the accumulators. If there are n accumulators, the other operands start at $2n.
    """

    def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
        acc, *others = values
        count = acc.type.count
        operands = [builder.extract_value(acc, e) for e in range(count)]
        for value in others:
            if isinstance(value.type, ir.ArrayType | ir.LiteralStructType):
                operands += [builder.extract_value(value, e) for e in range(value.type.count)]
            else:
                operands.append(value)
        constraints = ",".join(["=f"] * count + [str(e) for e in range(count)] + other_constraints.split() + ["~{memory}"])
        function = ir.FunctionType(ir.LiteralStructType([F32] * count), [x.type for x in operands])
        sums = builder.call(ir.InlineAsm(function, text, constraints, side_effect=True), operands)
        return context.make_tuple(builder, signature.return_type, [builder.extract_value(sums, e) for e in range(count)])

    return codegen


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

    @intrinsic
    def multiply(
        typingctx: CUDATypingContext, acc: types.UniTuple, a: types.Integer, b: types.Integer
    ) -> TypedImplementation:
        return acc(acc, INT64, INT64), accumulator_asm(start_product(text), "l l")

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
    constraints = " ".join(["r"] * FRAGMENT_REGISTERS + ["l"])

    @intrinsic
    def multiply(
        typingctx: CUDATypingContext, acc: types.UniTuple, fragments: types.UniTuple, b: types.Integer
    ) -> TypedImplementation:
        return acc(acc, fragments, INT64), accumulator_asm(start_product(text), constraints)

    return multiply


def finish_products() -> object:
    """Return the intrinsic that waits for the last product."""

    @intrinsic
    def finish(typingctx: CUDATypingContext, acc: types.UniTuple) -> TypedImplementation:
        return acc(acc), accumulator_asm("wgmma.wait_group.sync.aligned 0;", "")

    return finish


def load_fragments() -> object:
    """Return an intrinsic that loads a lane's part of 16 rows (k) of a tile: two elements at k = t, t + 4, t + 8 and t + 12.

    The tensor cores read these registers until their product has ended, so two sets of them alternate: one is loaded while
    the product of the other runs. With only one set, the assembler waits for each product to end before the next load.
    """
    text = ""
    for step in range(FRAGMENT_REGISTERS // 4):
        for k in range(2):
            e = 4 * step + 2 * k
            text += f"ld.shared.v2.b32 {{${e}, ${e + 1}}}, [${FRAGMENT_REGISTERS + k} + {8 * step * ROW_BYTES}]; "

    @intrinsic
    def load(typingctx: CUDATypingContext, near: types.Integer, far: types.Integer) -> TypedImplementation:
        kind = types.UniTuple(U32, FRAGMENT_REGISTERS)

        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            function = ir.FunctionType(ir.LiteralStructType([I32] * FRAGMENT_REGISTERS), [I32, I32])
            constraints = ",".join(["=r"] * FRAGMENT_REGISTERS + ["r", "r", "~{memory}"])
            loaded = builder.call(ir.InlineAsm(function, text, constraints, side_effect=True), values)
            return context.make_tuple(builder, kind, [builder.extract_value(loaded, e) for e in range(FRAGMENT_REGISTERS)])

        return kind(U32, U32), codegen

    return load


def exchange_pairs(pairs: Sequence[int], lanes: int) -> object:
    """Return an intrinsic that exchanges sums with the lane xor `lanes`, so that each lane has four sums of one row.

    `pairs` are indices into a group of four sums: the pair of one row, then that of the other.
    """

    text = f"shfl.sync.bfly.b32 $0, $1, {lanes}, 31, {ALL_LANES:#x};"

    @intrinsic
    def exchange(typingctx: CUDATypingContext, acc: types.UniTuple, is_odd: types.Boolean) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            acc, is_odd = values
            shuffle = ir.InlineAsm(ir.FunctionType(F32, [F32]), text, "=f,f", side_effect=True)
            exchanged = []
            for e in range(0, acc.type.count, 4):
                x, y = [[builder.extract_value(acc, e + k) for k in pair] for pair in (pairs[:2], pairs[2:])]
                kept = [builder.select(is_odd, q, p) for p, q in zip(x, y, strict=True)]
                other = [builder.call(shuffle, [builder.select(is_odd, p, q)]) for p, q in zip(x, y, strict=True)]
                both = zip([*kept, *other], [*other, *kept], strict=True)
                exchanged += [builder.select(is_odd, q, p) for p, q in both]
            return context.make_tuple(builder, signature.return_type, exchanged)

        return acc(acc, types.boolean), codegen

    return exchange


def store_vectors(places: Sequence[tuple[int, int]], stored: str) -> object:
    """Return an intrinsic: out[start + row * row_step + column * column_step] = epilogue(sum, row, column, at)."""
    target = ELEMENTS[stored]

    @intrinsic
    def store(
        typingctx: CUDATypingContext, out: types.CPointer, start: types.Integer, i: types.Integer, j: types.Integer,
        M: types.Integer, N: types.Integer, row_step: types.Integer, column_step: types.Integer, wide: types.Boolean,
        acc: types.UniTuple, epilogue: types.Callable, epilogue4: types.Callable, at: types.BaseTuple,
    ) -> TypedImplementation:  # fmt: skip
        four_sums = types.UniTuple(FLOAT, 4)
        one_type = epilogue.get_call_type(typingctx, (FLOAT, INT64, INT64, at), {})
        four_type = epilogue4.get_call_type(typingctx, (four_sums, INT64, INT64, at), {})
        assert one_type is not None
        assert four_type is not None

        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            base, start, i, j, M, N, row_step, column_step, wide, acc, _, _, at = values
            base = builder.gep(base, [start])
            call_epilogue, call_epilogue4 = (
                context.get_function(epilogue, one_type),
                context.get_function(epilogue4, four_type),
            )
            for k, (r, c) in enumerate(places):
                row, column = builder.add(i, ir.Constant(I64, r)), builder.add(j, ir.Constant(I64, c))
                line = builder.gep(base, [builder.mul(row, row_step)])
                sums = [builder.extract_value(acc, 4 * k + q) for q in range(4)]
                is_inside = builder.and_(builder.icmp_signed("<", row, M), builder.icmp_signed("<", column, N))
                with builder.if_then(is_inside), builder.if_else(wide) as (at_once, one_by_one):
                    with at_once:
                        results = call_epilogue4(builder, [context.make_tuple(builder, four_sums, sums), row, column, at])
                        vector = ir.Constant(ir.VectorType(target.memory, 4), ir.Undefined)
                        for q in range(4):
                            number = builder.extract_value(results, q)
                            number = context.cast(builder, number, four_type.return_type[q], out.dtype)
                            vector = builder.insert_element(vector, number, ir.Constant(I32, q))
                        to = vector_pointer(builder, builder.gep(line, [column]), target)
                        builder.store(vector, to, align=vector_alignment(target.nbytes))
                    with one_by_one:
                        for q in range(4):
                            column_q = builder.add(column, ir.Constant(I64, q))
                            with builder.if_then(builder.icmp_signed("<", column_q, N)):
                                value = call_epilogue(builder, [sums[q], row, column_q, at])
                                value = context.cast(builder, value, one_type.return_type, out.dtype)
                                builder.store(value, builder.gep(line, [builder.mul(column_q, column_step)]))
            return context.get_dummy_value()

        return types.void(
            out, start, INT64, INT64, M, N, row_step, column_step, types.boolean, acc, epilogue, epilogue4, at
        ), codegen

    return store
