"""LLVM code of the intrinsics in `base`: each function returns the Numba intrinsic that compiles one of them.

This module and the other modules `*_llvm`, which use its types, are imported only if a kernel is compiled. Numba's own
indexing checks whether an index is negative; the code emitted here does not.
"""

from collections.abc import Callable, Sequence

from llvmlite import ir
from numba.core import types
from numba.core.types.common import Buffer
from numba.core.typing.templates import Signature
from numba.cuda import nvvmutils
from numba.cuda.extending import intrinsic
from numba.cuda.target import CUDATargetContext, CUDATypingContext

from ....simt.arithmetic import RealNumber
from .base import Intrinsic, vector_alignment

I32, I64, F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()
GLOBAL_SPACE = 1  # LLVM's number for the address space of global memory

Memory = types.CPointer | Buffer  # the Numba type of a pointer or an array
Values = Sequence[ir.Value]  # the LLVM values of an intrinsic's operands
CodeGenerator = Callable[[CUDATargetContext, ir.IRBuilder, Signature, Values], ir.Value]  # emits code, returns the result
TypedImplementation = tuple[Signature, CodeGenerator]  # what a Numba intrinsic returns for given types of operands


def address(context: CUDATargetContext, builder: ir.IRBuilder, kind: Memory, value: ir.Value, index: ir.Value) -> ir.Value:
    """Return the address of element `index` of a pointer or an array."""
    first_pointer = (
        value if isinstance(kind, types.CPointer) else context.make_array(kind)(context, builder, value=value).data
    )
    return builder.gep(first_pointer, [index])


def load4() -> object:
    """Return an intrinsic that loads four adjacent elements, with one instruction."""

    @intrinsic
    def load(typingctx: CUDATypingContext, source: Memory, i: types.Integer) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            element_pointer = address(context, builder, source, *values)
            element = context.get_data_type(source.dtype)
            pointer = builder.bitcast(element_pointer, ir.VectorType(element, 4).as_pointer())
            vector = builder.load(pointer, align=vector_alignment(context.get_abi_sizeof(element)))
            numbers = [builder.extract_element(vector, ir.Constant(I32, k)) for k in range(4)]
            return context.make_tuple(builder, signature.return_type, numbers)

        return types.UniTuple(source.dtype, 4)(source, i), codegen

    return load


def store4() -> object:
    """Return an intrinsic that stores four adjacent elements, with one instruction."""

    @intrinsic
    def store(
        typingctx: CUDATypingContext, target: Memory, i: types.Integer, numbers: types.UniTuple
    ) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            element_pointer = address(context, builder, target, *values[:2])
            element = context.get_data_type(target.dtype)
            vector = ir.Constant(ir.VectorType(element, 4), ir.Undefined)
            for k in range(4):
                number = context.cast(builder, builder.extract_value(values[2], k), numbers[k], target.dtype)
                vector = builder.insert_element(vector, number, ir.Constant(I32, k))
            pointer = builder.bitcast(element_pointer, vector.type.as_pointer())
            builder.store(vector, pointer, align=vector_alignment(context.get_abi_sizeof(element)))
            return context.get_dummy_value()

        return types.void(target, i, numbers), codegen

    return store


def load4_strided(stride: int) -> object:
    """Return an intrinsic that loads four elements that are `stride` elements apart."""

    @intrinsic
    def load(typingctx: CUDATypingContext, memory: Memory, i: types.Integer) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            element_pointer = address(context, builder, memory, *values)
            pointers = [builder.gep(element_pointer, [ir.Constant(I64, stride * k)]) for k in range(4)]
            return context.make_tuple(builder, signature.return_type, [builder.load(pointer) for pointer in pointers])

        return types.UniTuple(memory.dtype, 4)(memory, i), codegen

    return load


def store4_scalar() -> object:
    """Return an intrinsic that stores four adjacent elements with four instructions."""

    @intrinsic
    def store(typingctx: CUDATypingContext, tile: Memory, i: types.Integer, numbers: types.UniTuple) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            element_pointer = address(context, builder, tile, *values[:2])
            for k in range(4):
                pointer = builder.gep(element_pointer, [ir.Constant(I64, k)])
                builder.store(builder.extract_value(values[2], k), pointer)
            return context.get_dummy_value()

        return types.void(tile, i, numbers), codegen

    return store


def make_generic_pointer() -> object:
    """Return an intrinsic that returns a generic pointer: each load checks in hardware whether it is in shared memory."""

    @intrinsic
    def generic_pointer(typingctx: CUDATypingContext, memory: Memory, i: types.Integer) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            return address(context, builder, memory, *values)

        return types.CPointer(memory.dtype)(memory, i), codegen

    return generic_pointer


def load_pointer(element: Intrinsic[RealNumber]) -> object:
    """Return an intrinsic that loads a pointer from a table, and marks it as a pointer to global memory."""

    @intrinsic
    def load(typingctx: CUDATypingContext, table: Memory, k: types.Integer) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            pointer_bits = builder.load(address(context, builder, table, *values))
            kind = context.get_value_type(signature.return_type)
            return builder.addrspacecast(builder.inttoptr(pointer_bits, kind.pointee.as_pointer(GLOBAL_SPACE)), kind)

        return types.CPointer(element.compiled)(table, k), codegen

    return load


def atomic_add() -> object:
    """Return an intrinsic that adds to an element atomically."""

    @intrinsic
    def add(typingctx: CUDATypingContext, target: Memory, i: types.Integer, value: types.Number) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            element_pointer = address(context, builder, target, values[0], context.cast(builder, values[1], i, types.int64))
            number = context.cast(builder, values[2], value, target.dtype)
            if isinstance(target.dtype, types.Float):
                is_single = number.type == F32
                name = f"declare_atomic_add_float{32 if is_single else 64}"
                builder.call(getattr(nvvmutils, name)(builder.module), [element_pointer, number])
            else:
                builder.atomic_rmw("add", element_pointer, number, "monotonic")
            return context.get_dummy_value()

        return types.void(target, i, value), codegen

    return add


def no_unroll() -> object:
    """Return an intrinsic that does nothing and may not be duplicated, which prevents unrolling."""

    @intrinsic
    def nothing(typingctx: CUDATypingContext) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            empty = ir.InlineAsm(ir.FunctionType(ir.VoidType(), ()), "", "", side_effect=True)
            set.add(builder.call(empty, ()).attributes, "noduplicate")  # llvmlite does not know this attribute
            return context.get_dummy_value()

        return types.void(), codegen

    return nothing


def cast_like() -> object:
    """Return an intrinsic that converts `number` to the type of x."""

    @intrinsic
    def convert(typingctx: CUDATypingContext, x: types.Number, number: types.Number) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            return context.cast(builder, values[1], number, x)

        return x(x, number), codegen

    return convert


def floor() -> object:
    """Return an intrinsic that rounds a float down."""

    @intrinsic
    def round_down(typingctx: CUDATypingContext, x: types.Float) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            return builder.call(builder.module.declare_intrinsic("llvm.floor", [values[0].type]), values)

        return x(x), codegen

    return round_down
