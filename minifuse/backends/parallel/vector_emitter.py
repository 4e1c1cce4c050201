"""Emit LLVM vector instructions and loops, for `micro_kernel` and `stage_call`."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps

from llvmlite import ir
from llvmlite.ir import Value
from numba.core import types
from numba.core.base import BaseContext
from numba.core.typing.context import Context
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from ..llvm_linker import VECTOR_BYTES

I64, I32 = ir.IntType(64), ir.IntType(32)

Lowering = Callable[[BaseContext, ir.IRBuilder, Signature, Sequence[Value]], Value]  # emits the call of an intrinsic


def const_i64(n: int) -> ir.Constant:
    """Return an int64 constant."""
    return ir.Constant(I64, n)


class VectorEmitter:
    """Emit instructions on vectors of a pointer's element type. A vector fills a register; addresses may be unaligned."""

    def __init__(self, builder: ir.IRBuilder, pointer: Value) -> None:
        element = pointer.type.pointee
        self.is_float, self.is_bool = not isinstance(element, ir.IntType), element == ir.IntType(8)
        nbytes = {"float": 4, "double": 8}[str(element)] if self.is_float else element.width // 8
        self.builder, self.element, self.lanes = builder, element, VECTOR_BYTES // nbytes
        self.type = ir.VectorType(element, self.lanes)
        self.zeros = ir.Constant(self.type, None)

    def add(self, x: Value, y: Value) -> Value:
        """Return x + y; for bools x | y."""
        if self.is_float:
            return self.builder.fadd(x, y, flags=["contract"])
        return self.builder.or_(x, y) if self.is_bool else self.builder.add(x, y)

    def add_product(self, total: Value, x: Value, y: Value) -> Value:
        """Return total + x * y, rounded once if the processor has fused multiply-add; for bools total | x & y."""
        if self.is_float:
            return self.add(self.builder.fmul(x, y, flags=["contract"]), total)
        return self.add(self.builder.and_(x, y) if self.is_bool else self.builder.mul(x, y), total)

    def add_products(self, totals: Sequence[Value], xs: Sequence[Value], ys: Sequence[Value]) -> list[Value]:
        """Call add_product for each pair of an x and a y."""
        pairs = [(x, y) for x in xs for y in ys]
        return [self.add_product(total, x, y) for total, (x, y) in zip(totals, pairs, strict=True)]

    def sum_lanes(self, vectors: list[Value]) -> list[Value]:
        """Return the sum of the lanes of each vector. The number of vectors is a power of two.

        Each step adds the two halves of each run of lanes, and merges two vectors into one while there are at least two.
        """
        run = self.lanes
        while run > 1:
            pairs = list(zip(vectors[::2], vectors[1::2], strict=True)) if len(vectors) > 1 else [(vectors[0], vectors[0])]
            lanes = range(vectors[0].type.count * min(len(vectors), 2))
            low, high = [i for i in lanes if i % run < run // 2], [i for i in lanes if i % run >= run // 2]
            vectors = [self.add(self.shuffle(x, y, low), self.shuffle(x, y, high)) for x, y in pairs]
            run //= 2
        return [self.builder.extract_element(x, ir.Constant(I32, i)) for x in vectors for i in range(x.type.count)]

    def transpose(self, rows: list[Value]) -> list[Value]:
        """Transpose a square matrix of rows, by swapping the off-diagonal quarters of squares of 2, 4, 8 ... rows."""
        side, distance = len(rows), 1
        while distance < side:
            upper = [i for i in range(side) if not i & distance]
            for i in upper:
                x, y = rows[i], rows[i + distance]
                rows[i] = self.shuffle(x, y, [k if k in upper else k - distance + side for k in range(side)])
                rows[i + distance] = self.shuffle(x, y, [k + distance if k in upper else k + side for k in range(side)])
            distance *= 2
        return rows

    def shuffle(self, x: Value, y: Value, lanes: Sequence[int]) -> Value:
        """Select lanes by index, where the lanes of y follow those of x."""
        return self.builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes)))

    def broadcast(self, x: Value) -> Value:
        """Return a vector with one element in all lanes."""
        undefined = ir.Constant(ir.VectorType(x.type, self.lanes), ir.Undefined)
        first = self.builder.insert_element(undefined, x, ir.Constant(I32, 0))
        return self.shuffle(first, first, [0] * self.lanes)

    def first_lanes(self, count: Value) -> Value:
        """Return the mask of the first `count` lanes: all lanes if `count` is larger, none if it is negative."""
        numbers = ir.Constant(ir.VectorType(I32, self.lanes), list(range(self.lanes)))
        return self.builder.icmp_signed("<", numbers, self.broadcast(self.builder.trunc(count, I32)))

    def advance(self, base: Value, *steps: tuple[Value, Value]) -> Value:
        """Return the pointer to an element: base plus index * stride, summed over pairs (index, stride)."""
        for index, stride in steps:
            base = self.builder.gep(base, [self.builder.mul(index, stride)])
        return base

    def row_pointers(self, base: Value, stride: Value, valid_count: Value, count: int) -> list[Value]:
        """Return pointers to `count` rows or columns. If only `valid_count` exist, repeat the last pointer."""
        last = self.builder.sub(valid_count, const_i64(1))
        return [self.advance(base, (self.minimum(const_i64(i), last), stride)) for i in range(count)]

    def minimum(self, x: Value, y: Value) -> Value:
        """Return the smaller of two int64 values."""
        return self.builder.select(self.builder.icmp_signed("<", x, y), x, y)

    def load(self, pointer: Value, mask: Value | None = None, lanes: int | None = None) -> Value:
        """Load the vector that begins at an element. Lanes with a false mask are 0, and their memory is not accessed."""
        kind = ir.VectorType(self.element, lanes or self.lanes)
        pointer = self.builder.bitcast(pointer, kind.as_pointer())
        if mask is None:
            return self.builder.load(pointer, align=1)
        name = f"masked.load.v{self.lanes}{self._suffix()}.p0"
        return self._call(name, kind, pointer, ir.Constant(I32, 1), mask, self.zeros)

    def store(self, x: Value, pointer: Value, mask: Value | None = None) -> None:
        """Store a vector that begins at an element, or only the lanes whose mask is true."""
        pointer = self.builder.bitcast(pointer, x.type.as_pointer())
        if mask is None:
            self.builder.store(x, pointer, align=1)
        else:
            name = f"masked.store.v{self.lanes}{self._suffix()}.p0"
            self._call(name, ir.VoidType(), x, pointer, ir.Constant(I32, 1), mask)

    def prefetch(self, pointer: Value, is_written: bool = False) -> None:
        """Prefetch the cache line of an element that will be read or written."""
        to_write, into_all_caches, data = (ir.Constant(I32, n) for n in (int(is_written), 3, 1))
        self._call("prefetch.p0", ir.VoidType(), pointer, to_write, into_all_caches, data)

    def _suffix(self) -> str:
        return {"float": "f32", "double": "f64"}.get(str(self.element), str(self.element))

    def _call(self, name: str, result: ir.Type, *args: Value) -> Value:
        kind = ir.FunctionType(result, [x.type for x in args])
        return self.builder.call(self.builder.module.declare_intrinsic(f"llvm.{name}", (), kind), args)

    def loop(
        self,
        start: Value,
        stop: Value,
        step: Value,
        values: Sequence[Value],
        body: Callable[[Value, list[Value]], Iterable[Value]],
    ) -> tuple[Value, list[Value]]:
        """Emit `while k + step <= stop: values = body(k, values); k += step` in registers; return the last k and values."""
        builder, entry_block = self.builder, self.builder.block
        head, inside, after = [builder.append_basic_block(name) for name in ("head", "inside", "after")]
        builder.branch(head)
        builder.position_at_end(head)
        k, *current = phis = [builder.phi(x.type) for x in (start, *values)]
        next_k = builder.add(k, step)
        builder.cbranch(builder.icmp_signed("<=", next_k, stop), inside, after)
        builder.position_at_end(inside)
        following = [*body(k, current)]
        for phi, x, y in zip(phis, (start, *values), (next_k, *following), strict=True):
            phi.add_incoming(x, entry_block)
            phi.add_incoming(y, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return k, current

    def for_each(self, start: Value, stop: Value, step: Value, body: Callable[[Value], object]) -> Value:
        """Emit `while k + step <= stop: body(k); k += step`. Return the last k."""
        return self.loop(start, stop, step, [], lambda k, _: [body(k)][:0])[0]

    def for_range(self, stop: Value, step: Value, body: Callable[[Value], object]) -> None:
        """Emit `for k in range(0, stop, step): body(k)`."""
        self.for_each(const_i64(0), self.builder.sub(self.builder.add(stop, step), const_i64(1)), step, body)

    def for_each_vector(self, stop: Value, body: Callable[[Value, Value | None], object]) -> None:
        """Emit body(j, None) for each whole vector at j, then body(j, mask) for the remaining elements, if any."""
        builder = self.builder
        j = self.for_each(const_i64(0), stop, const_i64(self.lanes), lambda j: body(j, None))
        with builder.if_then(builder.icmp_signed("<", j, stop)):
            body(j, self.first_lanes(builder.sub(stop, j)))


def emitted_function(body: Callable[..., None]) -> Callable[..., None]:
    """Turn a function that emits instructions into a Numba intrinsic without a result, which kernels can call.

    The function receives a VectorEmitter for the element type of the first pointer among the arguments, then the arguments.
    """

    @wraps(body)  # Numba reads the signature of the function that is wrapped
    def define(typing: Context, *args: types.Type) -> tuple[Signature, Lowering]:
        first = next(i for i, t in enumerate(args) if isinstance(t, types.CPointer))

        def emit(context: BaseContext, builder: ir.IRBuilder, _: Signature, values: Sequence[Value]) -> Value:
            body(VectorEmitter(builder, values[first]), *values)
            return context.get_dummy_value()

        return types.void(*args), emit

    return intrinsic(define)
