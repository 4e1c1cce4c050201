"""Wrong solutions of task 3.5, one a cell: `# %% name: the mistake that the check must name`."""


# %% down_the_columns: the sums go down the columns, from row to row
def fast_column_sums(out, a):
    for column in prange(a.shape[1]):
        total = 0.0
        for row in range(a.shape[0]):
            total += a[row, column]
        out[column] = total


# %% down_the_columns_of_b: the product walks down the columns of b
def fast_matmul(out, a, b):
    for row in prange(a.shape[0]):
        for column in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[row, k] * b[k, column]
            out[row, column] = total


# %% hypot: a call inside the chain computes one element at a time
from math import hypot


def fast_chain(out, a, b):
    for i in prange(len(out)):
        out[i] = hypot(a[i], b[i]) * 0.5 + a[i]


# %% k_shared_out: the loop over k is shared out, though all k add to the same products
def fast_matmul(out, a, b):
    for row in prange(a.shape[0]):
        for column in range(b.shape[1]):
            out[row, column] = 0.0
    for k in prange(a.shape[1]):
        for row in range(a.shape[0]):
            for column in range(b.shape[1]):
                out[row, column] += a[row, k] * b[k, column]


# %% one_core: one of the loops runs on one core
def fast_chain(out, a, b):
    for i in range(len(out)):
        out[i] = sqrt(a[i] * a[i] + b[i] * b[i]) * 0.5 + a[i]


# %% pass_for_each_step: each step of the chain is a pass of its own
def fast_chain(out, a, b):
    squares = np.empty(len(a))
    for i in prange(len(out)):
        squares[i] = a[i] * a[i] + b[i] * b[i]
    for i in prange(len(out)):
        out[i] = sqrt(squares[i]) * 0.5 + a[i]


# %% passes_in_out: each step of the chain is a pass of its own
def fast_chain(out, a, b):
    for i in prange(len(out)):
        out[i] = a[i] * a[i] + b[i] * b[i]
    for i in prange(len(out)):
        out[i] = sqrt(out[i]) * 0.5 + a[i]


# %% range_from_first: an index might be below 0, for all that Numba knows
def fast_column_sums(out, a):
    rows, columns = a.shape
    for task in prange((columns + 63) // 64):
        first = np.int64(task) * 64
        last = min(first + 64, columns)
        for column in range(first, last):
            out[column] = 0.0
        for row in range(rows):
            for column in range(first, last):
                out[column] += a[row, column]


# %% rows_shared_out: the rows are shared out, though all rows add to the same sums
def fast_column_sums(out, a):
    for column in range(a.shape[1]):
        out[column] = 0.0
    for row in prange(a.shape[0]):
        for column in range(a.shape[1]):
            out[column] += a[row, column]
