"""Wrong solutions of task 2.2, one a cell: `# %% name: the mistake that the check must name`."""


# %% aligned_at_the_first_dim: shapes are aligned at their first dim
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = tuple(a) + (1,) * (rank - len(a)), tuple(b) + (1,) * (rank - len(b))
    if any(m != n and 1 not in (m, n) for m, n in zip(a, b)):
        raise ValueError("these shapes do not fit")
    return tuple(max(m, n) for m, n in zip(a, b))


# %% index_cut_at_its_end: the index is cut at its end
def broadcast_index(index, shape):
    return tuple(0 if size == 1 else i for i, size in zip(index, shape))


# %% index_kept_where_size_is_one: a dim of size 1 keeps the index of the large shape
def broadcast_index(index, shape):
    return tuple(index[len(index) - len(shape) :])


# %% index_error: another error than ValueError is raised
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    for m, n in zip(a, b):
        if m != n and 1 not in (m, n):
            raise IndexError("do not fit")
    return tuple(n if m == 1 else m for m, n in zip(a, b))


# %% larger_size_wins: the larger size wins, whether the shapes fit or not
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    return tuple(max(m, n) for m, n in zip(a, b))


# %% one_over_zero: 1 wins over 0
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    if any(m != n and 1 not in (m, n) for m, n in zip(a, b)):
        raise ValueError("these shapes do not fit")
    return tuple(max(m, n) for m, n in zip(a, b))
