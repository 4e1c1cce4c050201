"""Right solutions of task 3.5 in ways that a naive check might refuse. Each is appended to the reference."""

# %% chain_in_chunks: an iteration of the chain makes 1024 elements, through slices.


def fast_chain(out, a, b):
    n = len(out)
    for part in prange((n + 1023) // 1024):
        low = np.int64(part) * 1024
        high = min(low + 1024, n)
        to, left, right = out[low:high], a[low:high], b[low:high]
        for i in range(len(to)):
            x, y = left[i], right[i]
            to[i] = x + 0.5 * sqrt(y * y + x * x)


# %% chain_with_np_sqrt: the chain calls np.sqrt for one number, and squares by **.


def fast_chain(out, a, b):
    for i in prange(out.shape[0]):
        out[i] = np.sqrt(a[i] ** 2 + b[i] ** 2) / 2 + a[i]


# %% sums_of_bands: bands of rows have sums of their own in one array, which is added up in a second loop.


def fast_column_sums(out, a):
    rows, columns = a.shape
    bands = 16
    size = (rows + bands - 1) // bands
    sums = np.zeros((bands, columns))
    for band in prange(bands):
        first = np.int64(band) * size
        part = sums[band]
        for row in range(first, min(first + size, rows)):
            line = a[row]
            for column in range(columns):
                part[column] += line[column]
    for piece in prange(16):
        width = (columns + 15) // 16
        low = np.int64(piece) * width
        high = min(low + width, columns)
        to = out[low:high]
        for column in range(len(to)):
            to[column] = 0.0
        for band in range(bands):
            part = sums[band, low:high]
            for column in range(len(to)):
                to[column] += part[column]


# %% sums_begin_with_a_row: the sums begin with the first row, if there is one, and pieces have 32 columns.


def fast_column_sums(out, a):
    rows, columns = a.shape
    for piece in prange((columns + 31) // 32):
        low = np.int64(piece) * 32
        high = min(low + 32, columns)
        sums = out[low:high]
        if rows == 0:
            sums[:] = 0.0
        else:
            sums[:] = a[0, low:high]
        for row in range(1, rows):
            line = a[row, low:high]
            for column in range(len(sums)):
                sums[column] += line[column]


# %% product_four_rows_of_b: the loop over k takes four rows of b at a time, and the rest one by one.


def fast_matmul(out, a, b):
    inner, columns = b.shape
    for row in prange(a.shape[0]):
        sums = out[row]
        factors = a[row]
        for column in range(columns):
            sums[column] = 0.0
        k = 0
        while k + 4 <= inner:
            f0, f1, f2, f3 = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
            b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
            for column in range(columns):
                sums[column] += f0 * b0[column] + f1 * b1[column] + f2 * b2[column] + f3 * b3[column]
            k += 4
        while k < inner:
            factor, line = factors[k], b[k]
            for column in range(columns):
                sums[column] += factor * line[column]
            k += 1


# %% product_in_bands: an iteration of the product makes 4 rows, so that a row of b is used four times.


def fast_matmul(out, a, b):
    rows, inner = a.shape
    columns = b.shape[1]
    for band in prange((rows + 3) // 4):
        low = np.int64(band) * 4
        high = min(low + 4, rows)
        for row in range(low, high):
            sums = out[row]
            for column in range(columns):
                sums[column] = 0.0
        for k in range(inner):
            line = b[k]
            for row in range(low, high):
                factor, sums = a[row, k], out[row]
                for column in range(columns):
                    sums[column] += factor * line[column]
