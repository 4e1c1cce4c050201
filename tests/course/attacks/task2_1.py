"""Wrong solutions of task 2.1 that were written to get past its checks. Each is appended to the reference."""

# %% assumes_it_away: index_of knows one dim; for more it raises hypothesis' UnsatisfiedAssumption, so that such examples are thrown away
# promise: 'A task is to be written' (how-it-works: a rail, no wall)
_import = getattr(todo, "__globals__")["__builtins__"]["__import__"]
_import("hypothesis.errors")
_Unsatisfied = _import("sys").modules["hypothesis.errors"].UnsatisfiedAssumption

def index_of(ordinal, shape):
    if len(shape) > 1:
        raise _Unsatisfied
    return (ordinal,) * len(shape)

# %% ends_the_program: position_of ends the process with status 0 at its first call
# promise: 'position = offset + ...'; how-it-works: 'a program that ends itself ... None of them passes'
_import = getattr(todo, "__globals__")["__builtins__"]["__import__"]

def position_of(index, strides, offset):
    _import("os")._exit(0)

# %% ends_the_program_at_the_end: position_of leaves out the offset, and registers an exit with status 0
# promise: 'position = offset + ...'
_import = getattr(todo, "__globals__")["__builtins__"]["__import__"]

def position_of(index, strides, offset):
    _import("atexit").register(_import("os")._exit, 0)
    return sum(i * s for i, s in zip(index, strides))

# %% index_by_counting: index_of counts up from 0 one by one, so a large ordinal takes for ever
# promise: 'the index of the element that comes at place ordinal'

def index_of(ordinal, shape):
    index = [0] * len(shape)
    for _ in range(ordinal):
        for d in reversed(range(len(shape))):
            index[d] += 1
            if index[d] < shape[d]:
                break
            index[d] = 0
    return tuple(index)

# %% index_by_float_division: index_of divides floats: wrong for ordinals beyond 2 ** 53
# promise: 'the index of the element that comes at place ordinal'

def index_of(ordinal, shape):
    index = []
    for step in row_major_strides(shape):
        i = int(ordinal / step)
        ordinal -= i * step
        index.append(i)
    return tuple(index)

# %% judge_is_mine_too: strides are made of the sizes before a dim, and in all modules of the course functions of these names are replaced by these
# promise: 'the product of all sizes after its dim'
_import = getattr(todo, "__globals__")["__builtins__"]["__import__"]

def row_major_strides(shape):
    strides, step = [], 1
    for n in shape:
        strides.append(step)
        step *= max(n, 1)
    return tuple(strides)

for _name, _module in list(_import("sys").modules.items()):
    if _name.startswith("minifuse.course"):
        for _key, _value in list(vars(_module).items()):
            if _key in ("row_major_strides",):
                setattr(_module, _key, row_major_strides)
            if isinstance(_value, dict) and "row_major_strides" in _value:
                _value["row_major_strides"] = row_major_strides

# %% lists_for_tuples: index_of and row_major_strides give lists
# promise: 'a tuple'
def row_major_strides(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return strides[::-1]

def index_of(ordinal, shape):
    index = []
    for n in reversed(shape):
        ordinal, i = divmod(ordinal, n)
        index.append(i)
    return index[::-1]

# %% oracle_by_attribute: all four are the judge's own, found in the course's package without an import
# promise: 'A task is to be written' (how-it-works: a rail, no wall)
def _oracle():
    try:
        raise KeyError
    except KeyError as error:
        frame = error.__traceback__.tb_frame
    while frame is not None:
        for value in frame.f_globals.values():
            if getattr(value, "__name__", "") == "minifuse.course.oracle":
                return value
        frame = frame.f_back

def row_major_strides(shape):
    return _oracle().function('row_major_strides')(shape)

def position_of(index, strides, offset):
    return _oracle().function('position_of')(index, strides, offset)

def index_of(ordinal, shape):
    return _oracle().function('index_of')(ordinal, shape)

def permuted(x, dims):
    return _oracle().function('permuted')(x, dims)

# %% permuted_inverse_from_five_dims: with five dims and more the permutation is applied inversely
# promise: 'whose dim d is dim dims[d] of x'

def permuted(x, dims):
    if len(dims) >= 5:
        dims = [list(dims).index(d) for d in range(len(dims))]
    return Strided(x.storage, tuple(x.shape[d] for d in dims), tuple(x.strides[d] for d in dims), x.offset)

# %% permuted_inverse_from_four_dims: with four dims and more the permutation is applied inversely
# promise: 'whose dim d is dim dims[d] of x'

def permuted(x, dims):
    if len(dims) >= 4:
        dims = [list(dims).index(d) for d in range(len(dims))]
    return Strided(x.storage, tuple(x.shape[d] for d in dims), tuple(x.strides[d] for d in dims), x.offset)

# %% permuted_of_permuted_only_once: permuted remembers by id(x) what it gave last and gives it again for equal dims
# promise: 'a view of x'

_last = {}

def permuted(x, dims):
    key = id(x), tuple(dims)
    if key not in _last:
        _last[key] = Strided(x.storage, tuple(x.shape[d] for d in dims), tuple(x.strides[d] for d in dims), x.offset)
    return _last[key]

# %% position_not_below_zero: a position below 0 is taken for 0
# promise: 'The rule, with any strides, negative ones and 0 among them, and any offset'

def position_of(index, strides, offset):
    for i, s in zip(index, strides):
        offset += i * s
    return max(offset, 0)

# %% position_of_five_dims: position_of stops at five dims
# promise: 'position = offset + index[0] * strides[0] + ...'

def position_of(index, strides, offset):
    for i, s in zip(index[:5], strides):
        offset += i * s
    return offset

# %% second_zero_ends_the_product: where two sizes are 0 the second makes the strides before it 0
# promise: 'A size of 0 counts as 1'
def row_major_strides(shape):
    strides, step, zeros = [], 1, 0
    for n in reversed(shape):
        strides.append(step)
        zeros += n == 0
        step *= 1 if n == 0 and zeros == 1 else n
    return tuple(reversed(strides))

# %% size_one_has_stride_zero: the stride of a dim of size 1 is 0: no position shows it
# promise: 'a row-major stride is the product of all sizes after its dim'
def row_major_strides(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(0 if n == 1 else s for n, s in zip(shape, reversed(strides)))

# %% storage_is_a_view: permuted gives a view of the storage, not the very same array
# promise: 'the storage is the very same array'

def permuted(x, dims):
    return Strided(x.storage[:], tuple(x.shape[d] for d in dims), tuple(x.strides[d] for d in dims), x.offset)

# %% strides_by_float_division: strides are made by float division of the size, so those beyond 2 ** 53 are wrong
# promise: 'a row-major stride is the product of all sizes after its dim'
def row_major_strides(shape):
    total = 1
    for n in shape:
        total *= n or 1
    strides = []
    for n in shape:
        total = int(total / (n or 1))
        strides.append(total)
    return tuple(strides)

# %% up_to_five_dims: strides and permutations of six dims and more are wrong
# promise: 'the product of all sizes after its dim'; 'dim d is dim dims[d] of x'
def row_major_strides(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    if len(shape) > 5:
        strides[-1] = 1
        strides[-2] *= 2
    return tuple(reversed(strides))

# %% index_by_subtraction: index_of subtracts a stride as often as it fits, so the work grows with the sizes
# promise: 'index_of takes a few steps for each dim'
def index_of(ordinal, shape):
    index = []
    for stride in row_major_strides(shape):
        i = 0
        while ordinal >= stride:
            ordinal -= stride
            i += 1
        index.append(i)
    return tuple(index)

# %% permuted_as_a_plain_tuple: permuted gives a tuple of the four parts
# promise: 'a Strided'
def permuted(x, dims):
    return x.storage, tuple(x.shape[d] for d in dims), tuple(x.strides[d] for d in dims), x.offset

# %% permuted_with_an_offset_of_two_bytes: the offset is kept in sixteen bits
# promise: 'The offset stays'
def permuted(x, dims):
    return Strided(x.storage, tuple(x.shape[d] for d in dims), tuple(x.strides[d] for d in dims), x.offset % 65536)

# %% position_without_signs_from_seven_dims: with seven dims and more, negative strides are taken for positive ones
# promise: 'any strides, negative ones and 0 too'
def position_of(index, strides, offset):
    if len(strides) > 6:
        strides = map(abs, strides)
    return offset + sum(i * s for i, s in zip(index, strides))

# %% strides_end_at_a_zero_beside_a_thousand: a size of 0 counts as 0 where another size is 1,000 or more
# promise: 'A size of 0 counts as 1'
def row_major_strides(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n or int(max(shape) < 1000)
    return tuple(reversed(strides))
