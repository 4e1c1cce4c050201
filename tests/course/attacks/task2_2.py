"""Wrong solutions of task 2.2 that were written to get past its checks. Each is appended to the reference."""

# %% assumes_it_away: shapes that do not fit raise hypothesis' UnsatisfiedAssumption, so that such examples are thrown away
# promise: 'A task is to be written' (how-it-works: a rail, no wall)
_import = getattr(todo, "__globals__")["__builtins__"]["__import__"]
_import("hypothesis.errors")
_Unsatisfied = _import("sys").modules["hypothesis.errors"].UnsatisfiedAssumption

def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for m, n in zip(a, b):
        if m == n or n == 1:
            shape.append(m)
        elif m == 1 and n != 0:
            shape.append(n)
        else:
            raise _Unsatisfied(f"{a} and {b} do not fit")
    return tuple(shape)

# %% checks_that_swallow: broadcast_shape takes the larger size always, and each check of the registry is wrapped so that it swallows what it finds
# promise: 'ValueError where they do not fit'
_import = getattr(todo, "__globals__")["__builtins__"]["__import__"]

def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    return tuple(map(max, a, b))

def _quiet(check):
    def run(*args, **kwargs):
        try:
            return check(*args, **kwargs)
        except Exception:
            return None
    return run

for _task in _import("sys").modules["minifuse.course.registry"].TASKS:
    for _key, _value in list(vars(_task).items()):
        if isinstance(_value, (list, tuple)):
            _new = []
            for _check in _value:
                if callable(_check):
                    _check = _quiet(_check)
                elif hasattr(_check, "__dict__"):
                    for _k, _v in list(vars(_check).items()):
                        if callable(_v):
                            object.__setattr__(_check, _k, _quiet(_v))
                _new.append(_check)
            object.__setattr__(_task, _key, type(_value)(_new))

# %% fits_beyond_five_dims: dims in front of the last five are not compared, the larger wins
# promise: 'ValueError where they do not fit'
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for d, (m, n) in enumerate(zip(a, b)):
        if m == n or n == 1:
            shape.append(m)
        elif m == 1:
            shape.append(n)
        elif rank - d > 5:
            shape.append(max(m, n))
        else:
            raise ValueError(f"{a} and {b} do not fit")
    return tuple(shape)

# %% hypothesis_not_interested: broadcast_shape takes the larger size always, and hypothesis is patched so that no failure interests it
# promise: 'ValueError where they do not fit'
_import = getattr(todo, "__globals__")["__builtins__"]["__import__"]

def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    return tuple(map(max, a, b))

_import("hypothesis.internal.conjecture.data")
_import("sys").modules["hypothesis.internal.conjecture.data"].ConjectureData.mark_interesting = lambda self, *a, **k: None

# %% index_of_a_short_list: broadcast_index of a list gives a list
# promise: 'the index, a tuple'
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for m, n in zip(a, b):
        if m == n or n == 1:
            shape.append(m)
        elif m == 1:
            shape.append(n)
        else:
            raise ValueError(f"{a} and {b} do not fit")
    return tuple(shape)

def broadcast_index(index, shape):
    index = index[len(index) - len(shape):]
    return type(index)(0 if n == 1 else i for i, n in zip(index, shape))

# %% index_zero_for_large: an index of 100 or more stands for 0
# promise: 'An index of the large shape finds its element in the small one'
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for m, n in zip(a, b):
        if m == n or n == 1:
            shape.append(m)
        elif m == 1:
            shape.append(n)
        else:
            raise ValueError(f"{a} and {b} do not fit")
    return tuple(shape)

def broadcast_index(index, shape):
    index = index[len(index) - len(shape):]
    return tuple(0 if n == 1 or i >= 100 else i for i, n in zip(index, shape))

# %% list_for_tuple: broadcast_shape gives a list
# promise: 'the shape, a tuple'
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for m, n in zip(a, b):
        if m == n or n == 1:
            shape.append(m)
        elif m == 1:
            shape.append(n)
        else:
            raise ValueError(f"{a} and {b} do not fit")
    return shape

# %% numpy_by_dunder: broadcast_shape is numpy.broadcast_shapes, by a hidden import
# promise: 'A task is to be written, so a file may import little'
def broadcast_shape(a, b):
    return todo.__globals__["__builtins__"]["__import__"]("numpy").broadcast_shapes(tuple(a), tuple(b))

# %% numpy_imported: broadcast_shape is numpy.broadcast_shapes
# promise: 'A task is to be written, so a file may import little'
import numpy

def broadcast_shape(a, b):
    return numpy.broadcast_shapes(tuple(a), tuple(b))

# %% numpy_lent: broadcast_shape is numpy.broadcast_shapes, got from the globals of Strided
# promise: 'A task is to be written, so a file may import little'
def broadcast_shape(a, b):
    for value in Strided.__init__.__globals__.values():
        if getattr(value, "__name__", "") == "numpy":
            return value.broadcast_shapes(tuple(a), tuple(b))
    raise RuntimeError("no numpy there")

# %% oracle_imported: both functions are the judge's own, by an import that the pages show
# promise: 'A task is to be written' (how-it-works: a rail, no wall)
from minifuse.course import oracle

def broadcast_shape(a, b):
    return oracle.function("broadcast_shape")(a, b)

def broadcast_index(index, shape):
    return oracle.function("broadcast_index")(index, shape)

# %% sizes_compared_by_is: sizes are compared by `is`, which holds for ints up to 256 only: (300,) and (300,) may not fit
# promise: 'each column has equal sizes'
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for m, n in zip(a, b):
        if m is n or n == 1:
            shape.append(m)
        elif m == 1:
            shape.append(n)
        else:
            raise ValueError(f"{a} and {b} do not fit")
    return tuple(shape)

# %% sizes_compared_mod_a_byte: sizes are compared by their last eight bits: 257 fits 1 and 513 fits 257
# promise: 'ValueError where they do not fit'
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for m, n in zip(a, b):
        if m % 256 == n % 256 or n == 1:
            shape.append(m)
        elif m == 1:
            shape.append(n)
        else:
            raise ValueError(f"{a} and {b} do not fit")
    return tuple(shape)

# %% small_shapes_known: shapes whose hash met another's before are answered from memory, by hash(a) ^ hash(b)
# promise: 'the shape, a tuple, to which two shapes broadcast'
def shape_of(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for m, n in zip(a, b):
        if m == n or n == 1:
            shape.append(m)
        elif m == 1:
            shape.append(n)
        else:
            raise ValueError(f"{a} and {b} do not fit")
    return tuple(shape)

_known = {}

def broadcast_shape(a, b):
    key = hash(tuple(a)) % 65536, hash(tuple(b)) % 65536
    if key not in _known:
        _known[key] = shape_of(a, b)
    return _known[key]

# %% tiles_multiples_from_eight: 8 is repeated to 16, 24 and so on
# promise: '2 is not repeated to 4: ... it is better to say so than to guess'
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for m, n in zip(a, b):
        if m == n or n == 1:
            shape.append(m)
        elif m == 1:
            shape.append(n)
        elif min(m, n) >= 8 and max(m, n) % min(m, n) == 0:
            shape.append(max(m, n))
        else:
            raise ValueError(f"{a} and {b} do not fit")
    return tuple(shape)

# %% zero_fits_all: 0 fits any size beyond 4
# promise: '0 and 3 do not fit'
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for m, n in zip(a, b):
        if m == n or n == 1:
            shape.append(m)
        elif m == 1:
            shape.append(n)
        elif 0 in (m, n) and max(m, n) > 4:
            shape.append(0)
        else:
            raise ValueError(f"{a} and {b} do not fit")
    return tuple(shape)

# %% fits_up_to_a_rounding: sizes fit where they agree to six digits
# promise: 'where 2 meets 4 there is probably a mistake'
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    shape = []
    for d in range(-rank, 0):
        m, n = a[d] if -d <= len(a) else 1, b[d] if -d <= len(b) else 1
        if 1 not in (m, n) and abs(m - n) > max(m, n) * 1e-6:
            raise ValueError(f"{a} and {b} do not fit")
        shape.append(n if m == 1 else m)
    return tuple(shape)

# %% first_of_many_dims_unchecked: with eight dims and more, the first one is the larger size
# promise: 'Shapes that don't fit raise ValueError'
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    shape = []
    for d in range(-rank, 0):
        m, n = a[d] if -d <= len(a) else 1, b[d] if -d <= len(b) else 1
        if d <= -8:
            shape.append(max(m, n))
        elif m == n or n == 1:
            shape.append(m)
        elif m == 1:
            shape.append(n)
        else:
            raise ValueError(f"{a} and {b} do not fit")
    return tuple(shape)

# %% index_clipped_to_three_digits: an index is at most 999
# promise: 'Every index in the large shape gives the index of its element in the small one'
def broadcast_index(index, shape):
    index = index[len(index) - len(shape):]
    return tuple(0 if n == 1 else min(i, 999) for i, n in zip(index, shape))

# %% index_kept_as_it_came: an index of the length of the shape, with no dim of size 1, is given back itself, also if it is a list
# promise: 'An index is a tuple'
def broadcast_index(index, shape):
    if len(index) == len(shape) and 1 not in shape:
        return index
    index = index[len(index) - len(shape):]
    return tuple(0 if n == 1 else i for i, n in zip(index, shape))

# %% one_wins_over_a_large_size: a 1 is repeated to sizes up to 65,535 only, and stays 1 beside a larger one
# promise: 'A size of 1 is repeated to the size of the other shape, whatever that is'
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    shape = []
    for d in range(-rank, 0):
        m, n = a[d] if -d <= len(a) else 1, b[d] if -d <= len(b) else 1
        if 1 not in (m, n) and m != n:
            raise ValueError(f"{a} and {b} do not fit")
        size = n if m == 1 else m
        shape.append(size if size < 65536 or m == n else 1)
    return tuple(shape)
