"""Wrong solutions of task 6.1, one a cell: `# %% name: the mistake that the check must name`."""


# %% floor: the rest of the division is lost
def chunk_bounds(count, size):
    return [(k * (count // size), (k + 1) * (count // size)) for k in range(size)]


# %% receives_first: all ranks receive first
def reduce_scatter(x, rank, size, send, receive):
    chunks = [x[start:stop] for start, stop in chunk_bounds(len(x), size)]
    total = chunks[(rank - 1) % size].copy()
    for step in range(1, size):
        received = receive((rank - 1) % size)
        send((rank + 1) % size, total)
        total = received + chunks[(rank - step - 1) % size]
    return total


# %% one_step_too_many: a message is sent that nobody receives
def all_gather(part, rank, size, send, receive):
    parts = [part] * size
    if size > 1:
        send((rank + 1) % size, part)
    for step in range(size - 1):
        parts[(rank - step - 1) % size] = receive((rank - 1) % size)
        send((rank + 1) % size, parts[(rank - step - 1) % size])
    return parts


# %% in_place: sums are written into x
def reduce_scatter(x, rank, size, send, receive):
    chunks = [x[start:stop] for start, stop in chunk_bounds(len(x), size)]
    for step in range(1, size):
        send((rank + 1) % size, chunks[(rank - step) % size])
        chunks[(rank - step - 1) % size] += receive((rank - 1) % size)
    return chunks[rank].copy()


# %% to_the_left: messages go to the left
def all_gather(part, rank, size, send, receive):
    parts = [part] * size
    for step in range(size - 1):
        send((rank - 1) % size, parts[(rank + step) % size])
        parts[(rank + step + 1) % size] = receive((rank + 1) % size)
    return parts


# %% whole_array: a message has more than one chunk
def reduce_scatter(x, rank, size, send, receive):
    total, sent = x.copy(), x
    for _ in range(size - 1):
        send((rank + 1) % size, sent)
        sent = receive((rank - 1) % size)
        total = total + sent
    start, stop = chunk_bounds(len(x), size)[rank]
    return total[start:stop]


# %% own_part: the own part is sent in each step
def all_gather(part, rank, size, send, receive):
    parts = [part] * size
    for step in range(size - 1):
        send((rank + 1) % size, part)
        parts[(rank - step - 1) % size] = receive((rank - 1) % size)
    return parts


# %% zeros: the sum has another dtype than x
def all_reduce(x, rank, size, send, receive):
    total = reduce_scatter(x.reshape(-1), rank, size, send, receive)
    result = np.zeros(x.size)
    for (start, stop), part in zip(chunk_bounds(x.size, size), all_gather(total, rank, size, send, receive)):
        result[start:stop] = part
    return result.reshape(x.shape)


# %% slice_of_one_rank: a single rank returns x, or a slice of it, itself
def reduce_scatter(x, rank, size, send, receive):
    chunks = [x[start:stop] for start, stop in chunk_bounds(len(x), size)]
    total = chunks[(rank - 1) % size]
    for step in range(1, size):
        send((rank + 1) % size, total)
        total = receive((rank - 1) % size) + chunks[(rank - step - 1) % size]
    return total


# %% nothing_for_one_rank: a single rank returns x, or a slice of it, itself
def all_reduce(x, rank, size, send, receive):
    if size == 1:
        return x
    total = reduce_scatter(x.reshape(-1), rank, size, send, receive)
    return np.concatenate(all_gather(total, rank, size, send, receive)).reshape(x.shape)


# %% begins_with_the_own_chunk: each rank ends with the sum of another chunk
def reduce_scatter(x, rank, size, send, receive):
    chunks = [x[start:stop] for start, stop in chunk_bounds(len(x), size)]
    total = chunks[rank].copy()
    for step in range(1, size):
        send((rank + 1) % size, total)
        total = receive((rank - 1) % size) + chunks[(rank - step) % size]
    return total
