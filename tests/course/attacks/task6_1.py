"""Wrong solutions of task 6.1 that were written to get past its checks. Each is appended to the reference."""

# %% shared_globals: ranks put their arrays into a global variable, and send zeros
# promise: 'A rank knows its number, and two functions'
ARRAYS = {}
def all_reduce(x, rank, size, send, receive):
    ARRAYS[rank] = x
    for _ in range(2 * (size - 1)):
        send((rank + 1) % size, np.zeros(x.size // size, x.dtype))
        receive((rank - 1) % size)
    return sum([ARRAYS[k] for k in range(1, size)], ARRAYS[0].copy())

# %% shared_attribute: ranks put their arrays into an attribute of a function
# promise: 'A rank knows its number, and two functions'
def all_reduce(x, rank, size, send, receive):
    table = all_gather.__dict__.setdefault("table", {})
    table[rank] = x.copy()
    for _ in range(size - 1):
        send((rank + 1) % size, np.zeros(0, x.dtype))
        receive((rank - 1) % size)
    return sum((table[k] for k in range(1, size)), table[0].copy())

# %% whole_arrays_around: whole arrays travel around the ring
# promise: 'each with a message of at most one chunk'
def all_reduce(x, rank, size, send, receive):
    total, sent = x.copy(), x
    arrays = {rank: x}
    for step in range(1, size):
        send((rank + 1) % size, sent)
        sent = receive((rank - 1) % size)
        arrays[(rank - step) % size] = sent
    return np.asarray(sum((arrays[k] for k in range(1, size)), arrays[0].copy()), x.dtype)

# %% through_rank_0: all arrays go to rank 0, and the sum comes back
# promise: 'to its right neighbor'
def all_reduce(x, rank, size, send, receive):
    if rank:
        send(0, x)
        return receive(0)
    total = x.copy()
    for other in range(1, size):
        total = total + receive(other)
    for other in range(1, size):
        send(other, total)
    return total

# %% one_chunk_after_the_other: a chunk begins to travel when the one before has arrived
# promise: 'In size - 1 steps'
def reduce_scatter(x, rank, size, send, receive):
    chunks = [x[start:stop] for start, stop in chunk_bounds(len(x), size)]
    result = chunks[rank].copy()
    for k in range(size):
        first = (k + 1) % size
        if size == 1:
            break
        if rank == first:
            send((rank + 1) % size, chunks[k])
        elif rank == k:
            result = receive((rank - 1) % size) + chunks[k]
        else:
            send((rank + 1) % size, receive((rank - 1) % size) + chunks[k])
    return result

# %% chain: the sum is made along a chain and goes back the same way
# promise: 'with a message of at most one chunk'
def all_reduce(x, rank, size, send, receive):
    total = x.copy()
    if rank:
        total = receive(rank - 1) + x
    if rank < size - 1:
        send(rank + 1, total)
        total = receive(rank + 1)
    if rank:
        send(rank - 1, total)
    return total

# %% both_ways: half of the steps go to the left
# promise: 'sends one chunk to its right neighbor'
def all_gather(part, rank, size, send, receive):
    parts = [part] * size
    for step in range(size // 2):
        send((rank + 1) % size, parts[(rank - step) % size])
        parts[(rank - step - 1) % size] = receive((rank - 1) % size)
    for step in range(size - 1 - size // 2):
        send((rank - 1) % size, parts[(rank + step) % size])
        parts[(rank + step + 1) % size] = receive((rank + 1) % size)
    return parts

# %% halves: each chunk is sent in two messages
# promise: 'each rank sends one chunk'
def all_gather(part, rank, size, send, receive):
    parts = [part] * size
    for step in range(size - 1):
        sent = parts[(rank - step) % size]
        send((rank + 1) % size, sent[: len(sent) // 2])
        send((rank + 1) % size, sent[len(sent) // 2 :])
        left = (rank - 1) % size
        parts[(rank - step - 1) % size] = np.concatenate([receive(left), receive(left)])
    return parts

# %% wide: sums travel as float64 and are rounded at the end
# promise: 'a message of at most one chunk'
def reduce_scatter(x, rank, size, send, receive):
    chunks = [x[start:stop].astype(np.float64) for start, stop in chunk_bounds(len(x), size)]
    total = chunks[(rank - 1) % size]
    for step in range(1, size):
        send((rank + 1) % size, total)
        total = receive((rank - 1) % size) + chunks[(rank - step - 1) % size]
    return total.astype(x.dtype)

# %% narrow: sums travel as float32
# promise: 'the sum over all ranks'
def reduce_scatter(x, rank, size, send, receive):
    chunks = [x[start:stop].astype(np.float32) for start, stop in chunk_bounds(len(x), size)]
    total = chunks[(rank - 1) % size]
    for step in range(1, size):
        send((rank + 1) % size, total)
        total = receive((rank - 1) % size) + chunks[(rank - step - 1) % size]
    return total.astype(x.dtype)

# %% few_ranks: from nine ranks on, the last is left out
# promise: 'any number of ranks'
def all_reduce(x, rank, size, send, receive):
    if size > 8:
        total = reduce_scatter(x.reshape(-1) * (rank < size - 1), rank, size, send, receive)
    else:
        total = reduce_scatter(x.reshape(-1), rank, size, send, receive)
    parts = all_gather(total, rank, size, send, receive)
    return np.concatenate(parts).reshape(x.shape)

# %% rounded: sums are rounded to six digits behind the point
# promise: 'the sum over all ranks'
def all_reduce(x, rank, size, send, receive):
    total = reduce_scatter(x.reshape(-1), rank, size, send, receive)
    parts = all_gather(total, rank, size, send, receive)
    return np.round(np.concatenate(parts).reshape(x.shape), 3)

# %% own_bits: the own chunk has other bits than the one that was sent
# promise: 'the same bits on all ranks'
def all_reduce(x, rank, size, send, receive):
    total = reduce_scatter(x.reshape(-1), rank, size, send, receive)
    parts = all_gather(total, rank, size, send, receive)
    if x.dtype.kind == "f":
        parts[rank] = np.nextafter(parts[rank], parts[rank] + 1)
    return np.concatenate(parts).reshape(x.shape)

# %% alone_without_copy: with one rank, x itself is returned
# promise: 'a new array'
def all_reduce(x, rank, size, send, receive):
    if size == 1:
        return x
    total = reduce_scatter(x.reshape(-1), rank, size, send, receive)
    parts = all_gather(total, rank, size, send, receive)
    return np.concatenate(parts).reshape(x.shape)

# %% flat: the result has one dim
# promise: 'of the shape and dtype of x'
def all_reduce(x, rank, size, send, receive):
    total = reduce_scatter(x.reshape(-1), rank, size, send, receive)
    return np.concatenate(all_gather(total, rank, size, send, receive))

# %% next_chunk: rank r has the sum of chunk r + 1, as in many descriptions of the ring
# promise: 'chunk number rank'
def reduce_scatter(x, rank, size, send, receive):
    chunks = [x[start:stop] for start, stop in chunk_bounds(len(x), size)]
    total = chunks[rank].copy()
    for step in range(size - 1):
        send((rank + 1) % size, total)
        total = receive((rank - 1) % size) + chunks[(rank - step - 1) % size]
    return total

# %% rounded_up: all chunks but the last have the size rounded up
# promise: 'differ by at most one'
def chunk_bounds(count, size):
    most = -(-count // size)
    return [(min(k * most, count), min((k + 1) * most, count)) for k in range(size)]

# %% remembers_the_answer: a run with the same first array returns the sum of the run before
# promise: 'its messages alone'
SUMS = {}
def all_reduce(x, rank, size, send, receive):
    key = (rank, size, x.shape)
    total = reduce_scatter(x.reshape(-1), rank, size, send, receive)
    parts = all_gather(total, rank, size, send, receive)
    SUMS[key] = np.concatenate(parts).reshape(x.shape) + 0 * SUMS.get(key, 0) if key not in SUMS else SUMS[key]
    return SUMS[key].copy()
