"""Run as a rank: compare the collectives of the engine with NumPy, bit for bit. Arguments: none."""

import os
import time
import warnings
from functools import reduce
from itertools import pairwise

import numpy as np

from minifuse.engines.base import RankGroup
from minifuse.engines.connect import connect
from minifuse.engines.environment import Place
from minifuse.runtime.memory_pool import allocate

warnings.simplefilter("error")
engine = connect(Place.read())
rank, size = engine.rank, engine.size
world = RankGroup(tuple(range(size)), rank)


def inputs(n, dtype=np.float32, ranks=world.ranks):
    return [np.random.default_rng((k, n)).standard_normal(n).astype(dtype) for k in ranks]


def same(x, y):
    assert x.dtype == y.dtype
    np.testing.assert_array_equal(x, y)


def check_all_reduce(n, dtype=np.float32, group=world, combine=np.add):
    xs = inputs(n, dtype, group.ranks)
    want, x = reduce(combine, xs), xs[group.rank]
    out = np.full(n, -1, dtype)
    engine.all_reduce(group, [out], [x], combine)
    same(out, want)
    cuts = [0, n // 3, n // 3, n // 2, n]  # a bucket, with an empty array
    pairs = list(pairwise(cuts))
    bucket = [x[a:b].copy() for a, b in pairs]
    engine.all_reduce(group, bucket, bucket, combine)  # in place
    same(np.concatenate(bucket), want)
    shared_x, shared_out = (np.asarray(allocate(max(64, x.nbytes)))[: x.nbytes].view(dtype) for _ in range(2))
    shared_x[...] = x  # in memory of the host's pool, as tensors are
    engine.all_reduce(group, [shared_out], [shared_x], combine)
    same(shared_x, x)
    same(shared_out, want)
    engine.all_reduce(group, np.split(shared_x, cuts), np.split(shared_x, cuts), combine)
    same(shared_x, want)


for n in (0, 1, 5, 4096, 4097, 65_536, 65_537, 200_003):
    check_all_reduce(n)
check_all_reduce(70_001, np.float64, combine=np.maximum)
check_all_reduce(70_001, np.float16, combine=np.minimum)
huge = np.full(3, 3e38, np.float32)
engine.all_reduce(world, [huge], [huge.copy()], np.add)
assert np.isinf(huge).all()  # without a warning
mixed = [np.ones(5000, np.float32), np.ones(5000, np.float64), np.ones(3, np.int32)]
engine.all_reduce(world, mixed, mixed, np.add)
assert all((x == size).all() for x in mixed)

if rank < 2:  # a group of some ranks
    check_all_reduce(9000, group=RankGroup((0, 1), rank))
if rank > 0:
    check_all_reduce(100_000, group=RankGroup(tuple(range(1, size)), rank - 1))

for n in (3, 50_000):
    xs = inputs(n)
    parts = [np.empty(n, np.float32) for _ in xs]
    engine.all_gather(world, parts, xs[rank])
    for part, x in zip(parts, xs, strict=True):
        same(part, x)
    rows = [np.full(n + k, rank + 1, np.float32) for k in range(size)]  # uneven
    out = np.empty(n + rank, np.float32)
    engine.reduce_scatter(world, out, rows, np.add)
    same(out, np.full(n + rank, size * (size + 1) // 2, np.float32))
    engine.broadcast(world, out := np.empty(n, np.float32), xs[rank], size - 1)
    same(out, xs[-1])
    engine.shift(world, out, xs[rank], 1)
    same(out, xs[(rank - 1) % size])

to, source = (rank + 1) % size, (rank - 1) % size
for k in range(40):  # all send before they receive; the sender may write to an array that it has sent
    data = np.full(1 + 3000 * (k % 5), 100 * rank + k, np.int64)
    engine.send(to, data)
    data[:] = -1
for k in range(40):
    same(engine.recv(source, np.dtype(np.int64)), np.full(1 + 3000 * (k % 5), 100 * source + k, np.int64))

engine.barrier(world)
if rank == 0:
    time.sleep(1.0)
used, start = time.process_time(), time.perf_counter()
engine.barrier(world)
if rank == 1:
    share = (time.process_time() - used) / (time.perf_counter() - start)
    assert share < 0.1, f"waiting uses {share:.0%} of a core"
if rank == 0:
    print("all right", engine.name, os.environ.get("MINIFUSE_THREADS"))
