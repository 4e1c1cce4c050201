"""The innermost loops of matrix products, given to LLVM as vector instructions.

`gemm.py` walks tiles, blocks and panels in Python that Numba compiles, and calls these from the inside. Three micro-kernels compute
sums of products: `multiply_panel` with vectors along n and all sums in registers, `multiply_rows` with vectors along k, `multiply_row`
for a single row. The others move elements. Nothing here knows sizes of blocks, layouts or threads.

Written as Numba loops, the compiler would have to be talked into each vector; as instructions it has no choice, and the whole takes a
third of the time to compile. The element type is read off the pointers: numbers are multiplied and added (integers wrap around), bools
are combined by `and` and `or`. NaN and infinity propagate: no product is computed that is not part of the sum.

References
----------
K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34 (2008).
F. G. Van Zee and R. van de Geijn, BLIS: A Framework for Rapidly Instantiating BLAS Functionality, ACM TOMS 41 (2015).
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .gemm import DOT_COLUMNS, DOT_ROWS, ROW_STEP, ROWS, VECTOR_BYTES, VECTORS

I64, I32, BIT = ir.IntType(64), ir.IntType(32), ir.IntType(1)
Body = Callable[[Any, list[Any]], Iterable[Any]]


def number(n: int) -> Any:
    """An int64 constant."""
    return ir.Constant(I64, n)


class Vectors:
    """Emits instructions on vectors of the elements that a pointer leads to; a vector fills a register and may lie anywhere."""

    def __init__(self, builder: Any, pointer: Any) -> None:
        element = pointer.type.pointee
        self.is_float, self.is_bool = not isinstance(element, ir.IntType), element == ir.IntType(8)
        nbytes = {"float": 4, "double": 8}[str(element)] if self.is_float else element.width // 8
        self.builder, self.element, self.lanes = builder, element, VECTOR_BYTES // nbytes
        self.type = ir.VectorType(element, self.lanes)
        self.zeros = ir.Constant(self.type, None)

    def add(self, x: Any, y: Any) -> Any:
        """x + y; x | y over bools."""
        if self.is_float:
            return self.builder.fadd(x, y, flags=["contract"])
        return self.builder.or_(x, y) if self.is_bool else self.builder.add(x, y)

    def add_product(self, total: Any, x: Any, y: Any) -> Any:
        """total + x * y, rounded once where the processor can; total | x & y over bools."""
        if self.is_float:
            return self.add(self.builder.fmul(x, y, flags=["contract"]), total)
        return self.add(self.builder.and_(x, y) if self.is_bool else self.builder.mul(x, y), total)

    def add_products(self, totals: Sequence[Any], xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
        """The same for each x with each y."""
        pairs = [(x, y) for x in xs for y in ys]
        return [self.add_product(total, x, y) for total, (x, y) in zip(totals, pairs, strict=True)]

    def repeat(self, x: Any, kind: Any = None) -> Any:
        """One element in all lanes."""
        first = self.builder.insert_element(ir.Constant(kind or self.type, ir.Undefined), x, ir.Constant(I32, 0))
        return self.shuffle(first, first, [0] * self.lanes)

    def shuffle(self, x: Any, y: Any, lanes: Sequence[int]) -> Any:
        """The lanes with these numbers, counted through x and then y."""
        return self.builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes)))

    def at(self, base: Any, *steps: tuple[Any, Any]) -> Any:
        """The pointer to the element that lies index * stride from base, added up over (index, stride)."""
        for index, stride in steps:
            base = self.builder.gep(base, [self.builder.mul(index, stride)])
        return base

    def load(self, place: Any, lanes: int | None = None) -> Any:
        """The vector that begins at an element."""
        kind = ir.VectorType(self.element, lanes or self.lanes)
        return self.builder.load(self.builder.bitcast(place, kind.as_pointer()), align=1)

    def store(self, x: Any, place: Any) -> None:
        """Store a vector that begins at an element."""
        self.builder.store(x, self.builder.bitcast(place, x.type.as_pointer()), align=1)

    def first(self, count: Any) -> Any:
        """The mask of the first `count` lanes; of none if it is negative."""
        steps = ir.VectorType(I32, self.lanes)
        limit = self.repeat(self.builder.trunc(count, I32), steps)
        return self.builder.icmp_signed("<", ir.Constant(steps, list(range(self.lanes))), limit)

    def load_masked(self, place: Any, mask: Any) -> Any:
        """The lanes where the mask is true, zeros elsewhere; memory that is masked out is not touched."""
        return self._masked("load", self.type, [self._vector(place), ir.Constant(I32, 1), mask, self.zeros])

    def store_masked(self, x: Any, place: Any, mask: Any) -> None:
        """Store the lanes where the mask is true."""
        self._masked("store", ir.VoidType(), [x, self._vector(place), ir.Constant(I32, 1), mask])

    def _vector(self, place: Any) -> Any:
        return self.builder.bitcast(place, self.type.as_pointer())

    def _masked(self, action: str, result: Any, args: list[Any]) -> Any:
        short = {"float": "f32", "double": "f64"}.get(str(self.element), str(self.element))
        kind = ir.FunctionType(result, [x.type for x in args])
        name = f"llvm.masked.{action}.v{self.lanes}{short}.p0"
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), args)

    def sums(self, xs: Sequence[Any]) -> list[Any]:
        """The sum of the lanes of each vector; a power of two of them.

        Each step adds the halves of every run of lanes, of two vectors in one while there are two.
        """
        run, vectors = self.lanes, list(xs)
        while run > 1:
            pairs = list(zip(vectors[::2], vectors[1::2], strict=True)) if len(vectors) > 1 else [(vectors[0], vectors[0])]
            lanes = range(vectors[0].type.count * min(len(vectors), 2))
            low, high = [i for i in lanes if i % run < run // 2], [i for i in lanes if i % run >= run // 2]
            vectors = [self.add(self.shuffle(x, y, low), self.shuffle(x, y, high)) for x, y in pairs]
            run //= 2
        return [self.builder.extract_element(x, ir.Constant(I32, i)) for x in vectors for i in range(x.type.count)]

    def loop(self, start: Any, stop: Any, step: int, values: Sequence[Any], body: Body) -> tuple[Any, list[Any]]:
        """k = start; while k + step <= stop: values = body(k, values); k += step. Gives the last k and values, from registers."""
        builder, before = self.builder, self.builder.block
        head, inside, after = [builder.append_basic_block(name) for name in ("head", "inside", "after")]
        builder.branch(head)
        builder.position_at_end(head)
        initial = [start, *values]
        k, *current = phis = [builder.phi(x.type) for x in initial]
        following = builder.add(k, number(step))
        builder.cbranch(builder.icmp_signed("<=", following, stop), inside, after)
        builder.position_at_end(inside)
        for phi, x, y in zip(phis, initial, [following, *body(k, current)], strict=True):
            phi.add_incoming(x, before)
            phi.add_incoming(y, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return k, current

    def each_of(self, start, stop, step, body):
        builder, before = self.builder, self.builder.block
        head, inside, after = [builder.append_basic_block(name) for name in ("head", "inside", "after")]
        builder.branch(head)
        builder.position_at_end(head)
        k = builder.phi(I64)
        builder.cbranch(builder.icmp_signed("<", k, stop), inside, after)
        builder.position_at_end(inside)
        body(k)
        k.add_incoming(start, before)
        k.add_incoming(builder.add(k, step), builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    def each(self, start: Any, stop: Any, step: int, body: Callable[[Any], object]) -> Any:
        """The same for a body that gives no values; gives the last k."""
        return self.loop(start, stop, step, [], lambda k, _: [body(k)][:0])[0]

    def lines(self, base: Any, stride: Any, count: Any, most: int) -> list[Any]:
        """Pointers to `most` rows or columns; past `count` the last one again, so that edges need no code of their own."""
        last = self.builder.sub(count, number(1))
        inside = [self.builder.select(self.builder.icmp_signed("<", number(i), last), number(i), last) for i in range(most)]
        return [self.at(base, (i, stride)) for i in inside]


def instructions(body: Callable[..., None]) -> Any:
    """A function that emits instructions, as a Numba intrinsic that returns nothing: Vectors for its first pointer, then its arguments."""

    def define(typingctx: Any, *args: Any) -> Any:
        first = next(i for i, t in enumerate(args) if isinstance(t, types.CPointer))

        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            body(Vectors(builder, values[first]), *values)
            return context.get_dummy_value()

        return types.void(*args), emit

    define.__name__, define.__doc__ = body.__name__, body.__doc__
    define.__signature__ = inspect.signature(body)  # type: ignore[attr-defined]
    return intrinsic(define)


@intrinsic
def pointer(typingctx: Any, address: Any, element: Any) -> Any:
    """The pointer to elements of a type at an address."""
    kind = types.CPointer(element.dtype)
    return kind(address, element), lambda context, builder, _, values: builder.inttoptr(values[0], context.get_value_type(kind))


@intrinsic
def shift(typingctx: Any, base: Any, count: Any) -> Any:
    """The pointer to the element `count` places on."""
    return base(base, types.int64), lambda context, builder, _, values: builder.gep(values[0], [values[1]])


@intrinsic(prefer_literal=True)
def scratch(typingctx: Any, like: Any, nbytes: Any) -> Any:
    """Memory on the stack of the thread until the kernel returns, from a cache line on."""

    def emit(context: Any, builder: Any, _: Any, values: Any) -> Any:
        with builder.goto_entry_block():
            place = builder.alloca(ir.ArrayType(ir.IntType(8), nbytes.literal_value))
            place.align = 64
            return builder.bitcast(place, values[0].type)

    return like(like, nbytes), emit


@instructions
def multiply_panel(
    v: Vectors, vectors: Any, to: Any, step: Any, x: Any, x_m: Any, x_k: Any, rows: Any, y: Any, y_k: Any, depth: Any
) -> None:
    """to[i * step + j] = sum over k of x[i, k] * y[k, j], for ROWS rows and 1 to VECTORS vectors of columns.

    x has any strides and is read element by element; y has unit stride along n. Past `rows`, the last row is computed again.
    """
    b = v.builder
    for width in range(VECTORS, 0, -1):
        with b.if_then(b.icmp_signed("==", vectors, number(width))):
            columns, row_of_x = [number(j * v.lanes) for j in range(width)], v.lines(x, x_m, rows, ROWS)

            def add_outer_product(k: Any, totals: list[Any], columns: Any = columns, row_of_x: Any = row_of_x) -> list[Any]:
                row_of_y = v.at(y, (k, y_k))
                ys = [v.load(b.gep(row_of_y, [j])) for j in columns]
                xs = [v.repeat(b.load(v.at(row, (k, x_k)))) for row in row_of_x]
                return v.add_products(totals, xs, ys)

            _, totals = v.loop(number(0), depth, 1, [v.zeros] * (ROWS * width), add_outer_product)
            for n, total in enumerate(totals):
                v.store(total, b.gep(v.at(to, (number(n // width), step)), [columns[n % width]]))


@instructions
def multiply_rows(
    v: Vectors, to: Any, step: Any, x: Any, x_m: Any, rows: Any, y: Any, y_n: Any, columns: Any, depth: Any
) -> None:
    """The same where x and y have unit stride along k, for 1 or DOT_ROWS rows and DOT_COLUMNS columns.

    Each lane adds up one product in so many, then the lanes are added: an order that depends on the depth alone.
    """
    b = v.builder
    is_single = b.icmp_signed("==", rows, number(1))
    with b.if_else(is_single) as branches:
        for most, branch in zip((1, DOT_ROWS), branches, strict=True):
            with branch:
                row_of_x, column_of_y = v.lines(x, x_m, rows, most), v.lines(y, y_n, columns, DOT_COLUMNS)

                def add_products(k: Any, totals: list[Any], row_of_x: Any = row_of_x, column_of_y: Any = column_of_y) -> list[Any]:
                    xs, ys = ([v.load(b.gep(line, [k])) for line in lines] for lines in (row_of_x, column_of_y))
                    return v.add_products(totals, xs, ys)

                k, totals = v.loop(number(0), depth, v.lanes, [v.zeros] * (most * DOT_COLUMNS), add_products)
                mask = v.first(b.sub(depth, k))
                xs, ys = ([v.load_masked(b.gep(line, [k]), mask) for line in lines] for lines in (row_of_x, column_of_y))
                for n, total in enumerate(v.sums(v.add_products(totals, xs, ys))):
                    i, j = divmod(n, DOT_COLUMNS)
                    b.store(total, b.gep(v.at(to, (number(i), step)), [number(j)]))


@instructions
def multiply_row(v: Vectors, to: Any, x: Any, x_k: Any, y: Any, y_k: Any, columns: Any, depth: Any) -> None:
    """The same for one row: y, with unit stride along n, is read once from front to back, ROW_STEP rows at a time."""
    b = v.builder

    def add_rows(k: Any, step: int) -> None:
        ks = [b.add(k, number(i)) for i in range(step)]
        xs = [v.repeat(b.load(v.at(x, (i, x_k)))) for i in ks]
        rows = [v.at(y, (i, y_k)) for i in ks]

        def add_vector(j: Any, load: Callable[[Any], Any], store: Callable[[Any, Any], None]) -> None:
            place = b.gep(to, [j])
            total = load(place)
            for factor, row in zip(xs, rows, strict=True):
                total = v.add_product(total, factor, load(b.gep(row, [j])))
            store(total, place)

        j = v.each(number(0), columns, v.lanes, lambda j: add_vector(j, v.load, v.store))
        mask = v.first(b.sub(columns, j))
        with b.if_then(b.icmp_signed("<", j, columns)):
            add_vector(j, lambda place: v.load_masked(place, mask), lambda total, place: v.store_masked(total, place, mask))

    j = v.each(number(0), columns, v.lanes, lambda j: v.store(v.zeros, b.gep(to, [j])))
    v.store_masked(v.zeros, b.gep(to, [j]), v.first(b.sub(columns, j)))
    k = v.each(number(0), depth, ROW_STEP, lambda k: add_rows(k, ROW_STEP))
    v.each(k, depth, 1, lambda k: add_rows(k, 1))


@instructions
def pack(v: Vectors, to: Any, width: Any, y: Any, y_k: Any, y_n: Any, columns: Any, depth: Any) -> None:
    """y, of any strides, as panels of `width` columns one after the other, each of `depth` rows; after the last column zeros or copies of it."""
    b = v.builder
    side, last = min(v.lanes, 16), b.sub(columns, number(1))

    def place(k: Any, j: Any) -> Any:
        inside = b.srem(j, width)
        return b.gep(v.at(to, (b.sub(j, inside), depth), (k, width)), [inside])

    def copy_row(k: Any) -> None:
        source = v.at(y, (k, y_k))
        up = b.add(columns, number(v.lanes - 1))
        def copy_panel(p: Any) -> None:
            row = v.at(to, (p, depth), (k, width))
            end = b.sub(up, p)
            limit = b.select(b.icmp_signed("<", end, width), end, width)
            v.each(number(0), limit, v.lanes, lambda j: v.store(v.load_masked(b.gep(source, [b.add(p, j)]), v.first(b.sub(b.sub(columns, p), j))), b.gep(row, [j])))
        v.each_of(number(0), columns, width, copy_panel)

    def copy_columns(j: Any) -> None:
        def copy_square(k: Any) -> None:
            rows = transpose([v.load(b.gep(v.at(y, (b.add(j, number(i)), y_n)), [k]), side) for i in range(side)])
            for i, row in enumerate(rows):
                v.store(row, place(b.add(k, number(i)), j))

        def copy_elements(k: Any) -> None:
            source = v.at(y, (k, y_k))
            for i in range(side):
                column = b.add(j, number(i))
                column = b.select(b.icmp_signed("<", column, last), column, last)
                b.store(b.load(v.at(source, (column, y_n))), b.gep(place(k, j), [number(i)]))

        is_whole = b.and_(b.icmp_signed("==", y_k, number(1)), b.icmp_signed("<=", b.add(j, number(side)), columns))
        k = v.each(number(0), b.select(is_whole, depth, number(0)), side, copy_square)
        v.each(k, depth, 1, copy_elements)

    def transpose(rows: list[Any]) -> list[Any]:
        distance = 1
        while distance < side:  # swap the two off-diagonal quarters, in ever larger squares
            upper = [i for i in range(side) if not i & distance]
            for i in upper:
                x, z = rows[i], rows[i + distance]
                rows[i] = v.shuffle(x, z, [k if k in upper else k - distance + side for k in range(side)])
                rows[i + distance] = v.shuffle(x, z, [k + distance if k in upper else k + side for k in range(side)])
            distance *= 2
        return rows

    with b.if_else(b.icmp_signed("==", y_n, number(1))) as (of_rows, of_columns):
        with of_rows:
            v.each(number(0), depth, 1, copy_row)
        with of_columns:
            up = b.add(columns, number(v.lanes - 1))
            v.each(number(0), b.sub(up, b.srem(up, number(v.lanes))), side, copy_columns)


@instructions
def pack_rows(v: Vectors, to: Any, x: Any, x_k: Any, rows: Any, depth: Any) -> None:
    """x, of unit stride along m, as panels of ROWS rows one after the other, each row by row along k; the rest of `rows` is left out."""
    b = v.builder

    def copy_row(k: Any) -> None:
        source = v.at(x, (k, x_k))
        v.each(number(0), rows, ROWS, lambda i: v.store(v.load(b.gep(source, [i]), ROWS), v.at(to, (i, depth), (k, number(ROWS)))))

    v.each(number(0), depth, 1, copy_row)


@instructions
def gather(v: Vectors, to: Any, x: Any, x_m: Any, x_k: Any, rows: Any, depth: Any) -> None:
    """Rows of any strides, one after the other: to[i * depth + k] = x[i, k]."""
    b = v.builder

    def copy_row(i: Any) -> None:
        row, source = v.at(to, (i, depth)), v.at(x, (i, x_m))
        v.each(number(0), depth, 1, lambda k: b.store(b.load(v.at(source, (k, x_k))), b.gep(row, [k])))

    v.each(number(0), rows, 1, copy_row)


@instructions
def prefetch(v: Vectors, out: Any, out_m: Any, rows: Any, columns: Any) -> None:
    """Ask for the cache lines of a panel that will be written."""
    b, (write, keep, data) = v.builder, [ir.Constant(I32, x) for x in (1, 3, 1)]
    kind = ir.FunctionType(ir.VoidType(), [out.type, I32, I32, I32])
    function = cgutils.get_or_insert_function(b.module, kind, "llvm.prefetch.p0")

    def prefetch_row(i: Any) -> None:
        row = v.at(out, (i, out_m))
        v.each(number(0), columns, v.lanes, lambda j: b.call(function, [b.gep(row, [j]), write, keep, data]))

    v.each(number(0), rows, 1, prefetch_row)


@instructions
def store(v: Vectors, out: Any, out_m: Any, out_n: Any, tile: Any, step: Any, rows: Any, columns: Any, adds: Any) -> None:
    """out[i, j] = tile[i * step + j], or += where it `adds`; no element past the rows and columns is touched."""
    b, adds = v.builder, v.builder.trunc(adds, BIT)

    def write(x: Any, load: Callable[[], Any], store: Callable[[Any], None]) -> None:
        with b.if_else(adds) as (then, otherwise):
            with then:
                store(v.add(load(), x))
            with otherwise:
                store(x)

    def store_row(i: Any) -> None:
        to, source = v.at(out, (i, out_m)), v.at(tile, (i, step))

        def store_vector(j: Any) -> None:
            place = b.gep(to, [j])
            write(v.load(b.gep(source, [j])), lambda: v.load(place), lambda x: v.store(x, place))

        j = v.each(number(0), columns, v.lanes, store_vector)
        with b.if_then(b.icmp_signed("<", j, columns)):
            place, mask = b.gep(to, [j]), v.first(b.sub(columns, j))
            x = v.load(b.gep(source, [j]))
            write(x, lambda: v.load_masked(place, mask), lambda x: v.store_masked(x, place, mask))

    def store_column(j: Any) -> None:
        to, source = v.at(out, (j, out_n)), b.gep(tile, [j])

        def store_element(i: Any) -> None:
            place = v.at(to, (i, out_m))
            write(b.load(v.at(source, (i, step))), lambda: b.load(place), lambda x: b.store(x, place))

        v.each(number(0), rows, 1, store_element)

    with b.if_else(b.icmp_signed("==", out_n, number(1))) as (is_unit, otherwise):
        with is_unit:
            v.each(number(0), rows, 1, store_row)
        with otherwise:
            v.each(number(0), columns, 1, store_column)
