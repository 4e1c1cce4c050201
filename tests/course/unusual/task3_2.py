"""Right solutions of task 3.2 in ways that a naive check might refuse. Each is appended to the reference."""

# %% an_element_a_time: the prange goes over the elements of out, in row-major order.


def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, tos = out.shape, out.strides
    dims = len(shape)
    wide, tall = shape.copy(), shape.copy()
    wide[dims - 1] = tall[dims - 2] = a.shape[-1]
    los, ros = broadcast_strides(a.shape, a.strides, wide), broadcast_strides(b.shape, b.strides, tall)
    inner, along, down = a.shape[-1], los[dims - 1], ros[dims - 2]
    los[dims - 1] = ros[dims - 2] = 0
    first, lo, ro = out.offset, a.offset, b.offset
    for i in prange(size_of(shape)):
        place, other = place_of(i, shape, los, lo), place_of(i, shape, ros, ro)
        total = 0.0
        for k in range(inner):
            total += left[place + k * along] * right[other + k * down]
        to[place_of(i, shape, tos, first)] = total


# %% two_sums: the even and the odd products have a sum each.


@njit
def dot(left, place, along, right, other, down, inner):
    even = odd = 0.0
    k = 0
    while k + 1 < inner:
        even += left[place] * right[other]
        odd += left[place + along] * right[other + down]
        place += 2 * along
        other += 2 * down
        k += 2
    if k < inner:
        even += left[place] * right[other]
    return even + odd


def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, dims = out.shape, len(out.shape)
    batch = shape[: dims - 2]
    m, n, inner = shape[dims - 2], shape[dims - 1], a.shape[len(a.shape) - 1]
    tos = out.strides
    los = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    ros = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row, along = a.strides[-2], a.strides[-1]
    down, column = b.strides[-2], b.strides[-1]
    out_row, out_column = tos[-2], tos[-1]
    first, lo, ro = out.offset, a.offset, b.offset
    bos = tos[: dims - 2]
    for i in prange(size_of(batch) * m):
        k = np.int64(i)
        z, y = k // m, k % m
        place = place_of(z, batch, los, lo) + y * row
        other = place_of(z, batch, ros, ro)
        where = place_of(z, batch, bos, first) + y * out_row
        for x in range(n):
            to[where + x * out_column] = dot(left, place, along, right, other + x * column, down, inner)


# %% from_the_last_product: each sum begins with the last product, and columns are made from the right.


def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, dims = out.shape, len(out.shape)
    batch = shape[: dims - 2]
    m, n, inner = shape[dims - 2], shape[dims - 1], a.shape[-1]
    tos, bos = out.strides, out.strides[: dims - 2]
    los = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    ros = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row, along, down, column = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    out_row, out_column = tos[-2], tos[-1]
    first, lo, ro = out.offset, a.offset, b.offset
    for i in prange(size_of(batch) * m):
        k = np.int64(i)
        z = k // m
        y = k - z * m
        place = place_of(z, batch, los, lo) + y * row
        other = place_of(z, batch, ros, ro)
        where = place_of(z, batch, bos, first) + y * out_row
        for x in range(n - 1, -1, -1):
            total = 0.0
            for j in range(inner - 1, -1, -1):
                total = left[place + j * along] * right[other + j * down + x * column] + total
            to[where + x * out_column] = total


# %% pieces_of_rows: each iteration makes 8 columns of a row, and the positions are computed for each piece.


def parallel_matmul(out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    shape, dims = out.shape, len(out.shape)
    batch = shape[: dims - 2]
    m, n, inner = shape[dims - 2], shape[dims - 1], a.shape[-1]
    bos = out.strides[: dims - 2]
    los = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    ros = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row, along, down, column = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    out_row, out_column = out.strides[-2], out.strides[-1]
    first, lo, ro = out.offset, a.offset, b.offset
    pieces = (n + 7) // 8
    for i in prange(size_of(batch) * m * pieces):
        k = np.int64(i)
        piece = k % pieces
        k = k // pieces
        z, y = k // m, k % m
        place = place_of(z, batch, los, lo) + y * row
        other = place_of(z, batch, ros, ro)
        where = place_of(z, batch, bos, first) + y * out_row
        for x in range(8 * piece, min(8 * piece + 8, n)):
            total = 0.0
            for j in range(inner):
                total += left[place + j * along] * right[other + j * down + x * column]
            to[where + x * out_column] = total
