"""The innermost loops of matmuls, emitted as LLVM vector instructions.

The loops of `gemm` iterate over tiles, blocks and panels, and call these functions inside. Three micro-kernels compute a
panel of sums of products: `multiply_outer` with vectors along n, `multiply_dot` with vectors along k, `multiply_row` for a
single row. The other functions copy elements.

If these functions were Numba loops, they would take three times as long to compile, and LLVM might vectorize another loop.
The element type is that of the pointers. Numbers are multiplied and added (integers wrap around), bools are combined by
`and` and `or`. A sum has exactly the terms of the matmul and no padding, so NaN and infinity only affect sums of which they
are a term.

References
----------
K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34 (2008).
F. G. Van Zee and R. van de Geijn, BLIS: A Framework for Rapidly Instantiating BLAS Functionality, ACM TOMS 41 (2015).
"""

from collections.abc import Callable, Sequence

from llvmlite import ir
from llvmlite.ir import Value
from numba.core import types
from numba.core.base import BaseContext
from numba.core.typing.context import Context
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from .gemm_config import DOT_COLUMNS, DOT_ROWS, ROW_STEP, ROWS, VECTORS
from .vector_emitter import Lowering, VectorEmitter, const_i64, emitted_function

MAX_SQUARE = 16  # side of the largest square that is transposed in registers
PREFETCH_VECTORS = 16  # how far `multiply_dot` prefetches; the processor's prefetcher stops at the end of a page


@intrinsic
def pointer(typing: Context, address: types.Type, element: "types.NumberClass[types.Type]") -> tuple[Signature, Lowering]:
    """Return a pointer to elements of a type at an address."""
    kind = types.CPointer(element.dtype)

    def emit(context: BaseContext, builder: ir.IRBuilder, _: Signature, values: Sequence[Value]) -> Value:
        return builder.inttoptr(values[0], context.get_value_type(kind))

    return kind(address, element), emit


@intrinsic
def shift(typing: Context, base: types.Type, count: types.Type) -> tuple[Signature, Lowering]:
    """Return the pointer plus `count` elements."""
    return base(base, types.int64), lambda context, builder, _, values: builder.gep(values[0], [values[1]])


@intrinsic(prefer_literal=True)
def scratch(typing: Context, like: types.Type, nbytes: types.IntegerLiteral) -> tuple[Signature, Lowering]:
    """Return `nbytes` of stack memory, aligned to a cache line, valid until the kernel returns. `like` has its type."""

    def emit(context: BaseContext, builder: ir.IRBuilder, _: Signature, values: Sequence[Value]) -> Value:
        with builder.goto_entry_block():
            memory = builder.alloca(ir.ArrayType(ir.IntType(8), nbytes.literal_value))
            memory.align = 64
            return builder.bitcast(memory, values[0].type)

    return like(like, nbytes), emit


@emitted_function
def multiply_outer(
    v: VectorEmitter,
    vectors: Value,
    out: Value,
    step: Value,
    x: Value,
    x_m: Value,
    x_k: Value,
    rows: Value,
    y: Value,
    y_k: Value,
    depth: Value,
) -> None:
    """Compute out[i * step + j] = sum over k of x[i, k] * y[k, j], for ROWS rows and 1 to VECTORS vectors of columns.

    All sums stay in registers. x has any strides and is read element by element. y has unit stride along n. If x has fewer
    rows, its last row is repeated.
    """
    b = v.builder

    def multiply(width: int) -> None:
        rows_of_x, columns = v.row_pointers(x, x_m, rows, ROWS), [const_i64(j * v.lanes) for j in range(width)]

        def add_outer_product(k: Value, totals: list[Value]) -> list[Value]:
            row_of_y = v.advance(y, (k, y_k))
            ys = [v.load(b.gep(row_of_y, [j])) for j in columns]
            xs = [v.broadcast(b.load(v.advance(row, (k, x_k)))) for row in rows_of_x]
            return v.add_products(totals, xs, ys)

        _, totals = v.loop(const_i64(0), depth, const_i64(1), [v.zeros] * (ROWS * width), add_outer_product)
        for n, total in enumerate(totals):
            v.store(total, b.gep(v.advance(out, (const_i64(n // width), step)), [columns[n % width]]))

    for width in range(VECTORS, 0, -1):
        with b.if_then(b.icmp_signed("==", vectors, const_i64(width))):
            multiply(width)


@emitted_function
def multiply_dot(
    v: VectorEmitter,
    out: Value,
    step: Value,
    x: Value,
    x_m: Value,
    rows: Value,
    y: Value,
    y_n: Value,
    columns: Value,
    depth: Value,
) -> None:
    """Compute the sums of `multiply_outer` with vectors along k, for 1 or DOT_ROWS rows and DOT_COLUMNS columns.

    x and y have unit stride along k. Each lane sums every n-th product, where n is the number of lanes. Then the lanes are
    added. The order of additions depends only on the depth.
    """
    b = v.builder

    def multiply(height: int) -> None:
        rows_of_x, columns_of_y = v.row_pointers(x, x_m, rows, height), v.row_pointers(y, y_n, columns, DOT_COLUMNS)

        def add_products(k: Value, totals: list[Value], mask: Value | None = None) -> list[Value]:
            xs, ys = ([v.load(b.gep(line, [k]), mask) for line in lines] for lines in (rows_of_x, columns_of_y))
            if height == 1 and mask is None:  # each element of y is read once, from memory
                for line in columns_of_y:
                    v.prefetch(b.gep(line, [b.add(k, const_i64(PREFETCH_VECTORS * v.lanes))]))
            return v.add_products(totals, xs, ys)

        k, totals = v.loop(const_i64(0), depth, const_i64(v.lanes), [v.zeros] * (height * DOT_COLUMNS), add_products)
        for n, total in enumerate(v.sum_lanes(add_products(k, totals, v.first_lanes(b.sub(depth, k))))):
            b.store(total, b.gep(v.advance(out, (const_i64(n // DOT_COLUMNS), step)), [const_i64(n % DOT_COLUMNS)]))

    with b.if_else(b.icmp_signed("==", rows, const_i64(1))) as (is_single, otherwise):
        with is_single:
            multiply(1)
        with otherwise:
            multiply(DOT_ROWS)


@emitted_function
def multiply_row(
    v: VectorEmitter, out: Value, x: Value, x_k: Value, y: Value, y_k: Value, columns: Value, depth: Value
) -> None:
    """Compute the sums of `multiply_outer` for a single row.

    y has unit stride along n, and is read once in order, ROW_STEP rows at a time.
    """
    b = v.builder

    def add_rows(k: Value, count: int) -> None:
        ks = [b.add(k, const_i64(i)) for i in range(count)]
        factors, rows = [v.broadcast(b.load(v.advance(x, (i, x_k)))) for i in ks], [v.advance(y, (i, y_k)) for i in ks]

        def add_vector(j: Value, mask: Value | None) -> None:
            total = v.load(b.gep(out, [j]), mask)
            for factor, row in zip(factors, rows, strict=True):
                total = v.add_product(total, factor, v.load(b.gep(row, [j]), mask))
            v.store(total, b.gep(out, [j]), mask)

        v.for_each_vector(columns, add_vector)

    v.for_each_vector(columns, lambda j, mask: v.store(v.zeros, b.gep(out, [j]), mask))
    k = v.for_each(const_i64(0), depth, const_i64(ROW_STEP), lambda k: add_rows(k, ROW_STEP))
    v.for_each(k, depth, const_i64(1), lambda k: add_rows(k, 1))


@emitted_function
def multiply_windows(
    v: VectorEmitter,
    vectors: Value,
    out: Value,
    step: Value,
    x: Value,
    x_m: Value,
    x_k: Value,
    rows: Value,
    z: Value,
    z_c: Value,
    taps: Value,
    window: Value,
    depth: Value,
    columns: Value,
    bias: Value,
    bias_m: Value,
) -> None:
    """Compute out[i * step + j] = bias[i] + sum over c, t of x[i, c * window + t] * z[c * z_c + taps[t] + j].

    There are ROWS rows or one row, and 1 to VECTORS vectors of columns. If the last vector is not full, z is not read past
    its end. All sums stay in registers. If x has fewer rows, its last row is repeated.
    """
    b = v.builder

    def multiply(height: int, width: int) -> None:
        rows_of_x, begins = v.row_pointers(x, x_m, rows, height), v.row_pointers(bias, bias_m, rows, height)
        places = [const_i64(j * v.lanes) for j in range(width)]
        masks = [None] * (width - 1) + [v.first_lanes(b.sub(columns, places[-1]))]

        def add_channel(k: Value, totals: list[Value]) -> list[Value]:
            channel = v.advance(z, (b.sdiv(k, window), z_c))

            def add_element(t: Value, totals: list[Value]) -> list[Value]:
                row = b.gep(channel, [b.load(b.gep(taps, [t]))])
                ys = [v.load(b.gep(row, [j]), mask) for j, mask in zip(places, masks, strict=True)]
                xs = [v.broadcast(b.load(v.advance(line, (b.add(k, t), x_k)))) for line in rows_of_x]
                return v.add_products(totals, xs, ys)

            return v.loop(const_i64(0), window, const_i64(1), totals, add_element)[1]

        totals = [v.broadcast(b.load(begin)) for begin in begins for _ in places]
        _, totals = v.loop(const_i64(0), depth, window, totals, add_channel)
        for n, total in enumerate(totals):
            v.store(total, b.gep(v.advance(out, (const_i64(n // width), step)), [places[n % width]]))

    for height in (ROWS, 1):
        fits = b.icmp_signed(">" if height > 1 else "==", rows, const_i64(1))
        for width in range(VECTORS, 0, -1):
            with b.if_then(b.and_(fits, b.icmp_signed("==", vectors, const_i64(width)))):
                multiply(height, width)


@emitted_function
def pack(
    v: VectorEmitter, out: Value, width: Value, y: Value, y_k: Value, y_n: Value, columns: Value, depth: Value, height: Value
) -> None:
    """Pack y, of any strides, into consecutive panels of `width` columns and `height` rows. `depth` rows are copied.

    If the last vector of a row is not full, it ends with zeros or with copies of the last column.
    """
    b, side, last = v.builder, min(v.lanes, MAX_SQUARE), v.builder.sub(columns, const_i64(1))

    def copy_row(k: Value) -> None:
        def copy_panel(p: Value) -> None:
            row, source, rest = (
                v.advance(out, (p, height), (k, width)),
                b.gep(v.advance(y, (k, y_k)), [p]),
                b.sub(columns, p),
            )

            def copy_vector(j: Value) -> None:
                v.store(v.load(b.gep(source, [j]), v.first_lanes(b.sub(rest, j))), b.gep(row, [j]))

            v.for_range(v.minimum(rest, width), const_i64(v.lanes), copy_vector)

        v.for_range(columns, width, copy_panel)

    def copy_columns(j: Value) -> None:
        column_in_panel = b.srem(j, width)
        panel = b.gep(v.advance(out, (b.sub(j, column_in_panel), height)), [column_in_panel])

        def copy_square(k: Value) -> None:
            columns_of_y = [v.load(b.gep(v.advance(y, (b.add(j, const_i64(i)), y_n)), [k]), lanes=side) for i in range(side)]
            for i, row in enumerate(v.transpose(columns_of_y)):
                v.store(row, v.advance(panel, (b.add(k, const_i64(i)), width)))

        def copy_elements(k: Value) -> None:
            for i in range(side):
                column = v.minimum(b.add(j, const_i64(i)), last)
                b.store(b.load(v.advance(y, (k, y_k), (column, y_n))), b.gep(v.advance(panel, (k, width)), [const_i64(i)]))

        is_square = b.and_(b.icmp_signed("==", y_k, const_i64(1)), b.icmp_signed("<=", b.add(j, const_i64(side)), columns))
        k = v.for_each(const_i64(0), b.select(is_square, depth, const_i64(0)), const_i64(side), copy_square)
        v.for_each(k, depth, const_i64(1), copy_elements)

    with b.if_else(b.icmp_signed("==", y_n, const_i64(1))) as (is_unit, otherwise):
        with is_unit:
            v.for_range(depth, const_i64(1), copy_row)
        with otherwise:
            v.for_range(columns, const_i64(side), copy_columns)


@emitted_function
def pack_rows(v: VectorEmitter, out: Value, x: Value, x_k: Value, rows: Value, depth: Value) -> None:
    """Pack x, of unit stride along m, into consecutive panels of ROWS rows, each in column-major order.

    Rows that do not fill a panel are not packed.
    """
    b = v.builder

    def copy_column(k: Value) -> None:
        def copy_panel(i: Value) -> None:
            v.store(v.load(b.gep(v.advance(x, (k, x_k)), [i]), lanes=ROWS), v.advance(out, (i, depth), (k, const_i64(ROWS))))

        v.for_each(const_i64(0), rows, const_i64(ROWS), copy_panel)

    v.for_range(depth, const_i64(1), copy_column)


@emitted_function
def gather(v: VectorEmitter, out: Value, x: Value, x_m: Value, x_k: Value, rows: Value, depth: Value) -> None:
    """Copy rows of any strides to contiguous rows: out[i * depth + k] = x[i, k]."""
    b = v.builder

    def copy_row(i: Value) -> None:
        row, source = v.advance(out, (i, depth)), v.advance(x, (i, x_m))
        v.for_range(depth, const_i64(1), lambda k: b.store(b.load(v.advance(source, (k, x_k))), b.gep(row, [k])))

    v.for_range(rows, const_i64(1), copy_row)


@emitted_function
def prefetch(v: VectorEmitter, out: Value, out_m: Value, rows: Value, columns: Value) -> None:
    """Prefetch the cache lines of a panel, of unit stride along n, that will be written."""

    def prefetch_row(i: Value) -> None:
        row = v.advance(out, (i, out_m))
        v.for_range(columns, const_i64(v.lanes), lambda j: v.prefetch(v.builder.gep(row, [j]), is_written=True))

    v.for_range(rows, const_i64(1), prefetch_row)


@emitted_function
def store(
    v: VectorEmitter,
    out: Value,
    out_m: Value,
    out_n: Value,
    tile: Value,
    step: Value,
    rows: Value,
    columns: Value,
    adds: Value,
) -> None:
    """Store out[i, j] = tile[i * step + j], or += if `adds`. Memory past the rows and columns is not accessed."""
    b = v.builder

    def write(x: Value, target: Value, load: Callable[[Value], Value], store: Callable[[Value, Value], None]) -> None:
        with b.if_else(b.trunc(adds, ir.IntType(1))) as (then, otherwise):
            with then:
                store(v.add(load(target), x), target)
            with otherwise:
                store(x, target)

    def store_row(i: Value) -> None:
        row, source = v.advance(out, (i, out_m)), v.advance(tile, (i, step))

        def store_vector(j: Value, mask: Value | None) -> None:
            x, target = v.load(b.gep(source, [j])), b.gep(row, [j])
            write(x, target, lambda target: v.load(target, mask), lambda x, target: v.store(x, target, mask))

        v.for_each_vector(columns, store_vector)

    def store_column(j: Value) -> None:
        def store_element(i: Value) -> None:
            x, target = b.load(b.gep(v.advance(tile, (i, step)), [j])), v.advance(out, (i, out_m), (j, out_n))
            write(x, target, b.load, b.store)

        v.for_range(rows, const_i64(1), store_element)

    with b.if_else(b.icmp_signed("==", out_n, const_i64(1))) as (is_unit, otherwise):
        with is_unit:
            v.for_range(rows, const_i64(1), store_row)
        with otherwise:
            v.for_range(columns, const_i64(1), store_column)


@emitted_function
def turn(v: VectorEmitter, out: Value, step: Value, x: Value, x_step: Value, rows: Value, columns: Value) -> None:
    """Copy out[i * step + j] = x[j * x_step + i], for at most as many rows i and columns j as a vector has lanes.

    Memory past the last element is not accessed. Rows past the last one are stored at the address of the last row, which
    overwrites them.
    """
    copy_square(v, out, step, x, x_step, rows, columns)


@emitted_function
def turn_tile(v: VectorEmitter, out: Value, step: Value, x: Value, x_step: Value, rows: Value, columns: Value) -> None:
    """Copy out[i * step + j] = x[j * x_step + i] for all rows i and columns j, one square after the other."""
    b, side = v.builder, const_i64(v.lanes)

    def copy_squares(j: Value) -> None:
        def copy_next(i: Value) -> None:
            target, source = b.gep(v.advance(out, (i, step)), [j]), b.gep(v.advance(x, (j, x_step)), [i])
            copy_square(v, target, step, source, x_step, b.sub(rows, i), b.sub(columns, j))

        v.for_range(rows, side, copy_next)

    v.for_range(columns, side, copy_squares)


def copy_square(v: VectorEmitter, out: Value, step: Value, x: Value, x_step: Value, rows: Value, columns: Value) -> None:
    """Emit the transposing copy of a square of at most as many rows and columns as a vector has lanes."""
    loaded, stored = v.first_lanes(rows), v.first_lanes(columns)
    square = [v.load(line, loaded) for line in v.row_pointers(x, x_step, columns, v.lanes)]
    for row, line in reversed([*zip(v.transpose(square), v.row_pointers(out, step, rows, v.lanes), strict=True)]):
        v.store(row, line, stored)
