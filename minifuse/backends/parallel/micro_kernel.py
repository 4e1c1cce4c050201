"""The innermost loops of matmuls, emitted as LLVM vector instructions.

The loops of `gemm` iterate over tiles, blocks and panels, and call these functions inside. Three micro-kernels compute a
panel of sums of products: `multiply_outer` with vectors along n, `multiply_dot` with vectors along k, `multiply_row` for a
single row. The other functions copy elements.

Written as Numba loops, they would compile three times slower, and LLVM might choose other vectors. The element type is that
of the pointers. Numbers are multiplied and added (integers wrap around), bools are combined by `and` and `or`. A sum has
exactly the terms of the matmul and no padding, so NaN and infinity appear only in results that contain them.

References
----------
K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34 (2008).
F. G. Van Zee and R. van de Geijn, BLIS: A Framework for Rapidly Instantiating BLAS Functionality, ACM TOMS 41 (2015).
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from ..llvm_linker import VECTOR_BYTES
from .gemm_config import DOT_COLUMNS, DOT_ROWS, ROW_STEP, ROWS, VECTORS

I64, I32 = ir.IntType(64), ir.IntType(32)
MAX_SQUARE = 16  # side of the largest square that is transposed in registers
PREFETCH_VECTORS = 16  # distance of prefetches in vectors; the prefetcher of the processor stops at the end of a page


def const_i64(n: int) -> Any:
    """Return an int64 constant."""
    return ir.Constant(I64, n)


class VectorEmitter:
    """Emit instructions on vectors of a pointer's element type. A vector fills a register; addresses may be unaligned."""

    def __init__(self, builder: Any, pointer: Any) -> None:
        element = pointer.type.pointee
        self.is_float, self.is_bool = not isinstance(element, ir.IntType), element == ir.IntType(8)
        nbytes = {"float": 4, "double": 8}[str(element)] if self.is_float else element.width // 8
        self.builder, self.element, self.lanes = builder, element, VECTOR_BYTES // nbytes
        self.type = ir.VectorType(element, self.lanes)
        self.zeros = ir.Constant(self.type, None)

    def add(self, x: Any, y: Any) -> Any:
        """Return x + y; for bools x | y."""
        if self.is_float:
            return self.builder.fadd(x, y, flags=["contract"])
        return self.builder.or_(x, y) if self.is_bool else self.builder.add(x, y)

    def add_product(self, total: Any, x: Any, y: Any) -> Any:
        """Return total + x * y, rounded once if the processor has fused multiply-add; for bools total | x & y."""
        if self.is_float:
            return self.add(self.builder.fmul(x, y, flags=["contract"]), total)
        return self.add(self.builder.and_(x, y) if self.is_bool else self.builder.mul(x, y), total)

    def add_products(self, totals: Sequence[Any], xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
        """Call add_product for each pair of an x and a y."""
        pairs = [(x, y) for x in xs for y in ys]
        return [self.add_product(total, x, y) for total, (x, y) in zip(totals, pairs, strict=True)]

    def sum_lanes(self, vectors: list[Any]) -> list[Any]:
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

    def transpose(self, rows: list[Any]) -> list[Any]:
        """Transpose a square, given as rows, by swapping the two off-diagonal quarters of larger and larger squares."""
        side, distance = len(rows), 1
        while distance < side:
            upper = [i for i in range(side) if not i & distance]
            for i in upper:
                x, y = rows[i], rows[i + distance]
                rows[i] = self.shuffle(x, y, [k if k in upper else k - distance + side for k in range(side)])
                rows[i + distance] = self.shuffle(x, y, [k + distance if k in upper else k + side for k in range(side)])
            distance *= 2
        return rows

    def shuffle(self, x: Any, y: Any, lanes: Sequence[int]) -> Any:
        """Select lanes by index, where the lanes of y follow those of x."""
        return self.builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes)))

    def broadcast(self, x: Any) -> Any:
        """Return a vector with one element in all lanes."""
        undefined = ir.Constant(ir.VectorType(x.type, self.lanes), ir.Undefined)
        first = self.builder.insert_element(undefined, x, ir.Constant(I32, 0))
        return self.shuffle(first, first, [0] * self.lanes)

    def first_lanes(self, count: Any) -> Any:
        """Return the mask of the first `count` lanes: all lanes if `count` is larger, none if it is negative."""
        steps = ir.Constant(ir.VectorType(I32, self.lanes), list(range(self.lanes)))
        return self.builder.icmp_signed("<", steps, self.broadcast(self.builder.trunc(count, I32)))

    def at(self, base: Any, *steps: tuple[Any, Any]) -> Any:
        """Return the pointer to an element: base plus index * stride, summed over pairs (index, stride)."""
        for index, stride in steps:
            base = self.builder.gep(base, [self.builder.mul(index, stride)])
        return base

    def row_pointers(self, base: Any, stride: Any, count: Any, number: int) -> list[Any]:
        """Return pointers to `number` rows or columns. Past `count`, the last one is repeated, which handles edges."""
        last = self.builder.sub(count, const_i64(1))
        return [self.at(base, (self.minimum(const_i64(i), last), stride)) for i in range(number)]

    def minimum(self, x: Any, y: Any) -> Any:
        """Return the smaller of two int64."""
        return self.builder.select(self.builder.icmp_signed("<", x, y), x, y)

    def load(self, place: Any, mask: Any = None, lanes: int | None = None) -> Any:
        """Load the vector that begins at an element. Lanes with a false mask are 0, and their memory is not accessed."""
        kind = ir.VectorType(self.element, lanes or self.lanes)
        place = self.builder.bitcast(place, kind.as_pointer())
        if mask is None:
            return self.builder.load(place, align=1)
        return self._call(f"masked.load.v{self.lanes}{self._short()}.p0", kind, place, ir.Constant(I32, 1), mask, self.zeros)

    def store(self, x: Any, place: Any, mask: Any = None) -> None:
        """Store a vector that begins at an element, or only the lanes whose mask is true."""
        place = self.builder.bitcast(place, x.type.as_pointer())
        if mask is None:
            self.builder.store(x, place, align=1)
        else:
            self._call(f"masked.store.v{self.lanes}{self._short()}.p0", ir.VoidType(), x, place, ir.Constant(I32, 1), mask)

    def prefetch(self, place: Any, is_written: bool = False) -> None:
        """Prefetch the cache line of an element that will be read or written."""
        to_write, into_all_caches, data = (ir.Constant(I32, n) for n in (int(is_written), 3, 1))
        self._call("prefetch.p0", ir.VoidType(), place, to_write, into_all_caches, data)

    def _short(self) -> str:
        return {"float": "f32", "double": "f64"}.get(str(self.element), str(self.element))

    def _call(self, name: str, result: Any, *args: Any) -> Any:
        kind = ir.FunctionType(result, [x.type for x in args])
        return self.builder.call(self.builder.module.declare_intrinsic(f"llvm.{name}", (), kind), args)

    def loop(
        self, start: Any, stop: Any, step: Any, values: Sequence[Any], body: Callable[[Any, list[Any]], Iterable[Any]]
    ) -> tuple[Any, list[Any]]:
        """Emit `while k + step <= stop: values = body(k, values); k += step`, in registers. Return the last k and values."""
        builder, before = self.builder, self.builder.block
        head, inside, after = [builder.append_basic_block(name) for name in ("head", "inside", "after")]
        builder.branch(head)
        builder.position_at_end(head)
        k, *current = phis = [builder.phi(x.type) for x in (start, *values)]
        next_k = builder.add(k, step)
        builder.cbranch(builder.icmp_signed("<=", next_k, stop), inside, after)
        builder.position_at_end(inside)
        following = [*body(k, current)]
        for phi, x, y in zip(phis, (start, *values), (next_k, *following), strict=True):
            phi.add_incoming(x, before)
            phi.add_incoming(y, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return k, current

    def for_each(self, start: Any, stop: Any, step: Any, body: Callable[[Any], object]) -> Any:
        """Emit `while k + step <= stop: body(k); k += step`. Return the last k."""
        return self.loop(start, stop, step, [], lambda k, _: [body(k)][:0])[0]

    def for_range(self, stop: Any, step: Any, body: Callable[[Any], object]) -> None:
        """Emit `for k in range(0, stop, step): body(k)`."""
        self.for_each(const_i64(0), self.builder.sub(self.builder.add(stop, step), const_i64(1)), step, body)

    def for_each_vector(self, stop: Any, body: Callable[[Any, Any], object]) -> None:
        """Emit body(j, None) for each whole vector at j, then body(j, mask) for the remaining elements, if any."""
        builder = self.builder
        j = self.for_each(const_i64(0), stop, const_i64(self.lanes), lambda j: body(j, None))
        with builder.if_then(builder.icmp_signed("<", j, stop)):
            body(j, self.first_lanes(builder.sub(stop, j)))


def emitted_function(body: Callable[..., None]) -> Any:
    """Decorate a function that emits instructions, so that kernels can call it. It becomes a Numba intrinsic without result.

    The function receives a VectorEmitter for the element type of the first pointer among the arguments, then the arguments.
    """

    def define(typingctx: Any, *args: Any) -> Any:
        first = next(i for i, t in enumerate(args) if isinstance(t, types.CPointer))

        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            body(VectorEmitter(builder, values[first]), *values)
            return context.get_dummy_value()

        return types.void(*args), emit

    define.__name__, define.__doc__ = body.__name__, body.__doc__
    define.__signature__ = inspect.signature(body)  # type: ignore[attr-defined]  # Numba reads it
    return intrinsic(define)


@intrinsic
def pointer(typingctx: Any, address: Any, element: Any) -> Any:
    """Return a pointer to elements of a type at an address."""
    kind = types.CPointer(element.dtype)

    def emit(context: Any, builder: Any, _: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], context.get_value_type(kind))

    return kind(address, element), emit


@intrinsic
def shift(typingctx: Any, base: Any, count: Any) -> Any:
    """Return the pointer plus `count` elements."""
    return base(base, types.int64), lambda context, builder, _, values: builder.gep(values[0], [values[1]])


@intrinsic(prefer_literal=True)
def scratch(typingctx: Any, like: Any, nbytes: Any) -> Any:
    """Return memory on the stack, aligned to a cache line, valid until the kernel returns."""

    def emit(context: Any, builder: Any, _: Any, values: Any) -> Any:
        with builder.goto_entry_block():
            place = builder.alloca(ir.ArrayType(ir.IntType(8), nbytes.literal_value))
            place.align = 64
            return builder.bitcast(place, values[0].type)

    return like(like, nbytes), emit


@emitted_function
def multiply_outer(
    v: VectorEmitter, vectors: Any, to: Any, step: Any, x: Any, x_m: Any, x_k: Any, rows: Any, y: Any, y_k: Any, depth: Any
) -> None:
    """Compute to[i * step + j] = sum over k of x[i, k] * y[k, j], for ROWS rows and 1 to VECTORS vectors of columns.

    All sums stay in registers. x has any strides and is read element by element. y has unit stride along n. If x has fewer
    rows, its last one is repeated.
    """
    b = v.builder

    def multiply(width: int) -> None:
        rows_of_x, columns = v.row_pointers(x, x_m, rows, ROWS), [const_i64(j * v.lanes) for j in range(width)]

        def add_outer_product(k: Any, totals: list[Any]) -> list[Any]:
            row_of_y = v.at(y, (k, y_k))
            ys = [v.load(b.gep(row_of_y, [j])) for j in columns]
            xs = [v.broadcast(b.load(v.at(row, (k, x_k)))) for row in rows_of_x]
            return v.add_products(totals, xs, ys)

        _, totals = v.loop(const_i64(0), depth, const_i64(1), [v.zeros] * (ROWS * width), add_outer_product)
        for n, total in enumerate(totals):
            v.store(total, b.gep(v.at(to, (const_i64(n // width), step)), [columns[n % width]]))

    for width in range(VECTORS, 0, -1):
        with b.if_then(b.icmp_signed("==", vectors, const_i64(width))):
            multiply(width)


@emitted_function
def multiply_dot(
    v: VectorEmitter, to: Any, step: Any, x: Any, x_m: Any, rows: Any, y: Any, y_n: Any, columns: Any, depth: Any
) -> None:
    """Compute the sums of `multiply_outer` with vectors along k, for 1 or DOT_ROWS rows and DOT_COLUMNS columns.

    x and y have unit stride along k. Each lane sums every n-th product, where n is the number of lanes. Then the lanes are
    added. The order of additions depends only on the depth.
    """
    b = v.builder

    def multiply(height: int) -> None:
        rows_of_x, columns_of_y = v.row_pointers(x, x_m, rows, height), v.row_pointers(y, y_n, columns, DOT_COLUMNS)

        def add_products(k: Any, totals: list[Any], mask: Any = None) -> list[Any]:
            xs, ys = ([v.load(b.gep(line, [k]), mask) for line in lines] for lines in (rows_of_x, columns_of_y))
            if height == 1 and mask is None:  # each element of y is read once, from memory
                for line in columns_of_y:
                    v.prefetch(b.gep(line, [b.add(k, const_i64(PREFETCH_VECTORS * v.lanes))]))
            return v.add_products(totals, xs, ys)

        k, totals = v.loop(const_i64(0), depth, const_i64(v.lanes), [v.zeros] * (height * DOT_COLUMNS), add_products)
        for n, total in enumerate(v.sum_lanes(add_products(k, totals, v.first_lanes(b.sub(depth, k))))):
            b.store(total, b.gep(v.at(to, (const_i64(n // DOT_COLUMNS), step)), [const_i64(n % DOT_COLUMNS)]))

    with b.if_else(b.icmp_signed("==", rows, const_i64(1))) as (is_single, otherwise):
        with is_single:
            multiply(1)
        with otherwise:
            multiply(DOT_ROWS)


@emitted_function
def multiply_row(v: VectorEmitter, to: Any, x: Any, x_k: Any, y: Any, y_k: Any, columns: Any, depth: Any) -> None:
    """Compute the sums of `multiply_outer` for a single row.

    y has unit stride along n, and is read once in order, ROW_STEP rows at a time.
    """
    b = v.builder

    def add_rows(k: Any, count: int) -> None:
        ks = [b.add(k, const_i64(i)) for i in range(count)]
        factors, rows = [v.broadcast(b.load(v.at(x, (i, x_k)))) for i in ks], [v.at(y, (i, y_k)) for i in ks]

        def add_vector(j: Any, mask: Any) -> None:
            total = v.load(b.gep(to, [j]), mask)
            for factor, row in zip(factors, rows, strict=True):
                total = v.add_product(total, factor, v.load(b.gep(row, [j]), mask))
            v.store(total, b.gep(to, [j]), mask)

        v.for_each_vector(columns, add_vector)

    v.for_each_vector(columns, lambda j, mask: v.store(v.zeros, b.gep(to, [j]), mask))
    k = v.for_each(const_i64(0), depth, const_i64(ROW_STEP), lambda k: add_rows(k, ROW_STEP))
    v.for_each(k, depth, const_i64(1), lambda k: add_rows(k, 1))


@emitted_function
def pack(v: VectorEmitter, to: Any, width: Any, y: Any, y_k: Any, y_n: Any, columns: Any, depth: Any, height: Any) -> None:
    """Pack y, of any strides, into consecutive panels of `width` columns and `height` rows. `depth` rows are copied.

    If the last vector of a row is not full, it ends with zeros or with copies of the last column.
    """
    b, side, last = v.builder, min(v.lanes, MAX_SQUARE), v.builder.sub(columns, const_i64(1))

    def copy_row(k: Any) -> None:
        def copy_panel(p: Any) -> None:
            row, source, rest = v.at(to, (p, height), (k, width)), b.gep(v.at(y, (k, y_k)), [p]), b.sub(columns, p)

            def copy_vector(j: Any) -> None:
                v.store(v.load(b.gep(source, [j]), v.first_lanes(b.sub(rest, j))), b.gep(row, [j]))

            v.for_range(v.minimum(rest, width), const_i64(v.lanes), copy_vector)

        v.for_range(columns, width, copy_panel)

    def copy_columns(j: Any) -> None:
        inside = b.srem(j, width)
        panel = b.gep(v.at(to, (b.sub(j, inside), height)), [inside])

        def copy_square(k: Any) -> None:
            columns_of_y = [v.load(b.gep(v.at(y, (b.add(j, const_i64(i)), y_n)), [k]), lanes=side) for i in range(side)]
            for i, row in enumerate(v.transpose(columns_of_y)):
                v.store(row, v.at(panel, (b.add(k, const_i64(i)), width)))

        def copy_elements(k: Any) -> None:
            for i in range(side):
                column = v.minimum(b.add(j, const_i64(i)), last)
                b.store(b.load(v.at(y, (k, y_k), (column, y_n))), b.gep(v.at(panel, (k, width)), [const_i64(i)]))

        is_square = b.and_(b.icmp_signed("==", y_k, const_i64(1)), b.icmp_signed("<=", b.add(j, const_i64(side)), columns))
        k = v.for_each(const_i64(0), b.select(is_square, depth, const_i64(0)), const_i64(side), copy_square)
        v.for_each(k, depth, const_i64(1), copy_elements)

    with b.if_else(b.icmp_signed("==", y_n, const_i64(1))) as (is_unit, otherwise):
        with is_unit:
            v.for_range(depth, const_i64(1), copy_row)
        with otherwise:
            v.for_range(columns, const_i64(side), copy_columns)


@emitted_function
def pack_rows(v: VectorEmitter, to: Any, x: Any, x_k: Any, rows: Any, depth: Any) -> None:
    """Pack x, of unit stride along m, into consecutive panels of ROWS rows, each in column-major order.

    Rows that do not fill a panel are not packed.
    """
    b = v.builder

    def copy_column(k: Any) -> None:
        def copy_panel(i: Any) -> None:
            v.store(v.load(b.gep(v.at(x, (k, x_k)), [i]), lanes=ROWS), v.at(to, (i, depth), (k, const_i64(ROWS))))

        v.for_each(const_i64(0), rows, const_i64(ROWS), copy_panel)

    v.for_range(depth, const_i64(1), copy_column)


@emitted_function
def gather(v: VectorEmitter, to: Any, x: Any, x_m: Any, x_k: Any, rows: Any, depth: Any) -> None:
    """Copy rows of any strides to contiguous rows: to[i * depth + k] = x[i, k]."""
    b = v.builder

    def copy_row(i: Any) -> None:
        row, source = v.at(to, (i, depth)), v.at(x, (i, x_m))
        v.for_range(depth, const_i64(1), lambda k: b.store(b.load(v.at(source, (k, x_k))), b.gep(row, [k])))

    v.for_range(rows, const_i64(1), copy_row)


@emitted_function
def prefetch(v: VectorEmitter, out: Any, out_m: Any, rows: Any, columns: Any) -> None:
    """Prefetch the cache lines of a panel, of unit stride along n, that will be written."""

    def prefetch_row(i: Any) -> None:
        row = v.at(out, (i, out_m))
        v.for_range(columns, const_i64(v.lanes), lambda j: v.prefetch(v.builder.gep(row, [j]), is_written=True))

    v.for_range(rows, const_i64(1), prefetch_row)


@emitted_function
def store(
    v: VectorEmitter, out: Any, out_m: Any, out_n: Any, tile: Any, step: Any, rows: Any, columns: Any, adds: Any
) -> None:
    """Store out[i, j] = tile[i * step + j], or += if `adds`. Memory past the rows and columns is not accessed."""
    b = v.builder

    def write(x: Any, place: Any, load: Callable[[Any], Any], store: Callable[[Any, Any], None]) -> None:
        with b.if_else(b.trunc(adds, ir.IntType(1))) as (then, otherwise):
            with then:
                store(v.add(load(place), x), place)
            with otherwise:
                store(x, place)

    def store_row(i: Any) -> None:
        to, source = v.at(out, (i, out_m)), v.at(tile, (i, step))

        def store_vector(j: Any, mask: Any) -> None:
            x, place = v.load(b.gep(source, [j])), b.gep(to, [j])
            write(x, place, lambda place: v.load(place, mask), lambda x, place: v.store(x, place, mask))

        v.for_each_vector(columns, store_vector)

    def store_column(j: Any) -> None:
        def store_element(i: Any) -> None:
            x, place = b.load(b.gep(v.at(tile, (i, step)), [j])), v.at(out, (i, out_m), (j, out_n))
            write(x, place, b.load, b.store)

        v.for_range(rows, const_i64(1), store_element)

    with b.if_else(b.icmp_signed("==", out_n, const_i64(1))) as (is_unit, otherwise):
        with is_unit:
            v.for_range(rows, const_i64(1), store_row)
        with otherwise:
            v.for_range(columns, const_i64(1), store_column)
