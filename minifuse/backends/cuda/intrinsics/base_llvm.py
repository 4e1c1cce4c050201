"""LLVM code of the intrinsics in `base`, and the emitter with which all modules `*_llvm` write such code.

These modules are imported only if a kernel is compiled. A name in them is the Numba intrinsic of that name, or a function
that returns it for given parameters. `emits` makes an intrinsic from a function that emits the code of one call. Numba's own
indexing checks whether an index is negative; the code emitted here does not.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import NamedTuple, TypeAlias

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

Result: TypeAlias = ir.Value | list[ir.Value] | None  # of an emitting function: a list is a tuple


class Emitter(NamedTuple):
    """Emits the code of one call of an intrinsic, at the end of Numba's current block."""

    context: CUDATargetContext
    builder: ir.IRBuilder
    signature: Signature

    def unwrap(self, kind: types.Type, value: ir.Value) -> ir.Value:
        """Return an operand as emitting functions take it: instead of an array, a pointer to its first element."""
        is_array = isinstance(kind, Buffer)
        return self.context.make_array(kind)(self.context, self.builder, value=value).data if is_array else value

    def wrap(self, kind: types.Type, result: Result) -> ir.Value:
        """Return the result of an emitting function as Numba's value."""
        if isinstance(result, list):
            return self.context.make_tuple(self.builder, kind, result)
        return self.context.get_dummy_value() if result is None else result

    def unpack(self, values: ir.Value, first: int = 0, count: int | None = None) -> list[ir.Value]:
        """Return the elements of a tuple, or `count` of them."""
        end = values.type.count if count is None else first + count
        return [self.builder.extract_value(values, e) for e in range(first, end)]

    def unpack_as(self, kind: types.Type, kinds: types.UniTuple, values: ir.Value) -> list[ir.Value]:
        """Return the elements of a tuple of type `kinds`, each converted to one type."""
        elements = zip(self.unpack(values), kinds, strict=True)
        return [self.context.cast(self.builder, x, element_kind, kind) for x, element_kind in elements]

    def at(self, pointer: ir.Value, index: int | ir.Value) -> ir.Value:
        """Return the address of an element."""
        return self.builder.gep(pointer, [ir.Constant(I64, index) if isinstance(index, int) else index])

    def add(self, x: ir.Value, number: int) -> ir.Value:
        """Return an integer of 64 bits plus a number."""
        return self.builder.add(x, ir.Constant(I64, number))

    def cast(self, x: ir.Value, operand: int, kind: types.Type) -> ir.Value:
        """Convert the operand with this number to another type."""
        return self.context.cast(self.builder, x, self.signature.args[operand], kind)

    def vector_pointer(self, pointer: ir.Value, count: int) -> tuple[ir.Value, int]:
        """Return a pointer to a vector of adjacent elements, and its alignment."""
        element = pointer.type.pointee
        nbytes = self.context.get_abi_sizeof(element)
        return self.builder.bitcast(pointer, ir.VectorType(element, count).as_pointer()), vector_alignment(nbytes, count)

    def load(self, pointer: ir.Value, count: int = 4) -> list[ir.Value]:
        """Load adjacent elements at once."""
        vectors, alignment = self.vector_pointer(pointer, count)
        vector = self.builder.load(vectors, align=alignment)
        return [self.builder.extract_element(vector, ir.Constant(I32, k)) for k in range(count)]

    def store(self, numbers: Sequence[ir.Value], pointer: ir.Value) -> None:
        """Store adjacent elements at once."""
        vectors, alignment = self.vector_pointer(pointer, len(numbers))
        vector = ir.Constant(vectors.type.pointee, ir.Undefined)
        for k, number in enumerate(numbers):
            vector = self.builder.insert_element(vector, number, ir.Constant(I32, k))
        self.builder.store(vector, vectors, align=alignment)

    def instruction(self, name: str, *operands: ir.Value) -> ir.Value:
        """Emit one PTX instruction on float32, which the compiler may move and merge like any other."""
        places = ", ".join(f"${k}" for k in range(len(operands) + 1))
        function = ir.FunctionType(F32, [F32] * len(operands))
        constraints = ",".join(["=f", *["f"] * len(operands)])
        return self.builder.call(ir.InlineAsm(function, f"{name}.f32 {places};", constraints), operands)

    def asm(
        self, text: str, constraints: str, operands: Sequence[ir.Value], results: Sequence[ir.Type] = ()
    ) -> list[ir.Value]:
        """Emit PTX that accesses memory, so that the compiler does not move it. Return its results."""
        kind = ir.LiteralStructType(results) if len(results) > 1 else results[0] if results else ir.VoidType()
        function = ir.FunctionType(kind, [operand.type for operand in operands])
        clobbers = ",".join(filter(None, (constraints, "~{memory}")))
        call = self.builder.call(ir.InlineAsm(function, text, clobbers, side_effect=True), operands)
        return [self.builder.extract_value(call, k) for k in range(len(results))] if len(results) > 1 else [call]


def emits(signature: Callable[..., Signature]) -> Callable[[Callable[..., Result]], object]:
    """Return a decorator that turns a function that emits code into a Numba intrinsic.

    `signature` returns the signature of the intrinsic for types of operands; operands are converted to the types in it. The
    decorated function takes an `Emitter` and the operands, see `Emitter.unwrap`.
    """

    def make(emit: Callable[..., Result]) -> object:
        @intrinsic
        @wraps(emit)
        def call(typingctx: CUDATypingContext, *kinds: types.Type) -> tuple[Signature, Callable[..., ir.Value]]:
            def codegen(
                context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Sequence[ir.Value]
            ) -> ir.Value:
                emitter = Emitter(context, builder, signature)
                return emitter.wrap(signature.return_type, emit(emitter, *map(emitter.unwrap, signature.args, values)))

            return signature(*kinds), codegen

        return call

    return make


def first_type(first: types.Type, *others: types.Type) -> Signature:
    """Return the signature of an intrinsic whose result has the type of its first operand."""
    return first(first, *others)


@emits(lambda source, i: types.UniTuple(source.dtype, 4)(source, i))
def load4(code: Emitter, source: ir.Value, i: ir.Value) -> list[ir.Value]:
    """Load four adjacent elements, with one instruction."""
    return code.load(code.at(source, i))


@emits(types.void)
def store4(code: Emitter, target: ir.Value, i: ir.Value, numbers: ir.Value) -> None:
    """Store four adjacent elements, with one instruction."""
    to, _, kinds = code.signature.args
    code.store(code.unpack_as(to.dtype, kinds, numbers), code.at(target, i))


def load4_strided(stride: int) -> object:
    """Return an intrinsic that loads four elements that are `stride` elements apart."""

    @emits(lambda memory, i: types.UniTuple(memory.dtype, 4)(memory, i))
    def load(code: Emitter, memory: ir.Value, i: ir.Value) -> list[ir.Value]:
        first = code.at(memory, i)
        pointers = [code.at(first, stride * k) for k in range(4)]
        return [code.builder.load(pointer) for pointer in pointers]

    return load


@emits(types.void)
def store4_scalar(code: Emitter, tile: ir.Value, i: ir.Value, numbers: ir.Value) -> None:
    """Store four adjacent elements with four instructions."""
    first = code.at(tile, i)
    for k, number in enumerate(code.unpack(numbers)):
        code.builder.store(number, code.at(first, k))


@emits(lambda memory, i: types.CPointer(memory.dtype)(memory, i))
def generic_pointer(code: Emitter, memory: ir.Value, i: ir.Value) -> ir.Value:
    """Return a generic pointer: each load checks in hardware whether it is in shared memory."""
    return code.at(memory, i)


def load_pointer(element: Intrinsic[RealNumber]) -> object:
    """Return an intrinsic that loads a pointer from a table, and marks it as a pointer to global memory."""

    @emits(lambda table, k: types.CPointer(element.compiled)(table, k))
    def load(code: Emitter, table: ir.Value, k: ir.Value) -> ir.Value:
        kind = code.context.get_value_type(code.signature.return_type)
        pointer = code.builder.inttoptr(code.builder.load(code.at(table, k)), kind.pointee.as_pointer(GLOBAL_SPACE))
        return code.builder.addrspacecast(pointer, kind)

    return load


@emits(types.void)
def atomic_add(code: Emitter, target: ir.Value, i: ir.Value, value: ir.Value) -> None:
    """Add to an element atomically."""
    kind = code.signature.args[0].dtype
    pointer, number = code.at(target, code.cast(i, 1, types.int64)), code.cast(value, 2, kind)
    if isinstance(kind, types.Float):
        name = f"declare_atomic_add_float{32 if number.type == F32 else 64}"
        code.builder.call(getattr(nvvmutils, name)(code.builder.module), [pointer, number])
    else:
        code.builder.atomic_rmw("add", pointer, number, "monotonic")


@emits(lambda target, i, value: types.int32(target, i, types.int32))
def fetch_add(code: Emitter, target: ir.Value, i: ir.Value, value: ir.Value) -> ir.Value:
    """Add to an int32 atomically."""
    return code.builder.atomic_rmw("add", code.at(target, code.cast(i, 1, types.int64)), value, "monotonic")


@emits(lambda target, i, value: types.void(target, i, types.int32))
def atomic_store(code: Emitter, target: ir.Value, i: ir.Value, value: ir.Value) -> None:
    """Store an int32 atomically."""
    code.builder.atomic_rmw("xchg", code.at(target, code.cast(i, 1, types.int64)), value, "monotonic")


@emits(lambda source, i: types.int32(source, i))
def load_acquire(code: Emitter, source: ir.Value, i: ir.Value) -> ir.Value:
    """Load an int32, before all later accesses of this thread."""
    place = code.at(source, code.cast(i, 1, types.int64))
    (value,) = code.asm("ld.acquire.gpu.global.b32 $0, [$1];", "=r,l", [place], [I32])
    return value


@emits(types.void)
def atomic_max(code: Emitter, target: ir.Value, i: ir.Value, value: ir.Value) -> None:
    """Replace an integer by a larger one atomically."""
    number = code.cast(value, 2, code.signature.args[0].dtype)
    code.builder.atomic_rmw("max", code.at(target, code.cast(i, 1, types.int64)), number, "monotonic")


@emits(types.void)
def store_at(code: Emitter, address: ir.Value, value: ir.Value, condition: ir.Value) -> None:
    """Emit a predicated store: a branch would separate the loads around it."""
    text = "{ .reg .pred p; setp.ne.s32 p, $2, 0; @p st.global.b64 [$0], $1; }"
    is_needed = code.builder.zext(code.cast(condition, 2, types.boolean), I32)
    code.asm(text, "l,l,r", [code.cast(address, 0, types.int64), code.cast(value, 1, types.int64), is_needed])


@emits(types.int32)
def atomic_or(code: Emitter, target: ir.Value, i: ir.Value, bits: ir.Value) -> ir.Value:
    """Set bits of an integer atomically."""
    number = code.cast(bits, 2, code.signature.args[0].dtype)
    return code.builder.atomic_rmw("or", code.at(target, code.cast(i, 1, types.int64)), number, "monotonic")


@emits(types.uint32)
def byte_of(code: Emitter, x: ir.Value, place: ir.Value) -> ir.Value:
    """Shift an integer, and keep 8 bits."""
    shift = code.builder.shl(code.cast(place, 1, code.signature.args[0]), ir.Constant(x.type, 3))
    low = code.builder.lshr(x, shift)
    low = code.builder.trunc(low, I32) if x.type != I32 else low
    return code.builder.and_(low, ir.Constant(I32, 255))


@emits(types.uint32)
def equal_lanes(code: Emitter, byte: ir.Value) -> ir.Value:
    """Vote on each bit, and keep the lanes that agree: eight votes are faster than one `match.any.sync`."""
    builder, all_lanes = code.builder, ir.Constant(I32, -1)
    ballot = builder.module.declare_intrinsic("llvm.nvvm.vote.ballot.sync", (), ir.FunctionType(I32, [I32, ir.IntType(1)]))
    byte, lanes = code.cast(byte, 0, types.uint32), all_lanes
    for bit in range(8):
        is_set = builder.trunc(builder.lshr(byte, ir.Constant(I32, bit)), ir.IntType(1))
        votes = builder.call(ballot, [all_lanes, is_set])
        lanes = builder.and_(lanes, builder.select(is_set, votes, builder.not_(votes)))
    return lanes


@emits(types.void)
def no_unroll(code: Emitter) -> None:
    """Do nothing, but in a way that may not be duplicated, which prevents unrolling."""
    empty = ir.InlineAsm(ir.FunctionType(ir.VoidType(), ()), "", "", side_effect=True)
    set.add(code.builder.call(empty, ()).attributes, "noduplicate")  # llvmlite does not know this attribute


@emits(first_type)
def cast_like(code: Emitter, x: ir.Value, number: ir.Value) -> ir.Value:
    """Convert `number` to the type of x."""
    return code.cast(number, 1, code.signature.return_type)


@emits(first_type)
def floor(code: Emitter, x: ir.Value) -> ir.Value:
    """Round a float down."""
    return code.builder.call(code.builder.module.declare_intrinsic("llvm.floor", [x.type]), [x])
