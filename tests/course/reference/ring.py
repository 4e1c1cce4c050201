"""Module 6: the sum of an array over all ranks, by messages around a ring.

All ranks run the same program, each with its own array. A rank knows its number `rank`, from 0 to size - 1, and two
functions: `send(to, array)` sends an array to rank `to` and does not wait; `receive(source)` waits for the next array from
rank `source`.
"""

import numpy as np

from minifuse.course import todo

# Task 6.1


def chunk_bounds(count, size):
    """Return a list of `size` pairs (start, stop) that cut range(count) into chunks, in order.

    The numbers of elements of two chunks differ by at most one. Some chunks are empty if count < size.
    """
    # begin 6.1a
    return [(k * count // size, (k + 1) * count // size) for k in range(size)]
    # end


def reduce_scatter(x, rank, size, send, receive):
    """Return the sum over all ranks of chunk number `rank` of x, an array with one dim, as a new array.

    In size - 1 steps, each rank sends one chunk to its right neighbor, (rank + 1) % size, and receives one from the left.
    """
    # begin 6.1b
    chunks = [x[start:stop] for start, stop in chunk_bounds(len(x), size)]
    total = chunks[(rank - 1) % size].copy()
    for step in range(1, size):
        send((rank + 1) % size, total)
        total = receive((rank - 1) % size) + chunks[(rank - step - 1) % size]
    return total
    # end


def all_gather(part, rank, size, send, receive):
    """Return the list of the parts of all ranks, in the order of ranks. Parts are arrays, and may differ in size.

    In size - 1 steps, each rank sends one part to its right neighbor, and receives one from its left one.
    """
    # begin 6.1c
    parts = [part] * size
    for step in range(size - 1):
        send((rank + 1) % size, parts[(rank - step) % size])
        parts[(rank - step - 1) % size] = receive((rank - 1) % size)
    return parts
    # end


def all_reduce(x, rank, size, send, receive):
    """Return the sum of x over all ranks: a new array of the shape and dtype of x, with the same bits on all ranks.

    It has any number of dims. 2 * (size - 1) steps, each with a message of at most one chunk.
    """
    # begin 6.1d
    total = reduce_scatter(x.reshape(-1), rank, size, send, receive)
    parts = all_gather(total, rank, size, send, receive)
    return np.concatenate(parts).reshape(x.shape)
    # end
