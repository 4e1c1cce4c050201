"""data.loader: complete batches, equal for equal seeds, with and without a thread, interrupted and resumed."""

import gc
import json
import threading
import time
import traceback

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
import minifuse.distributed as dist
from minifuse.core.errors import CheckpointError, DTypeError, ShapeError
from minifuse.data import Loader
from minifuse.data.loader import prefetch_items


def rows(n, *shape, **named):
    """n different rows, the first element of which is their index."""
    array = np.arange(n).reshape(-1, *[1] * len(shape)) + np.zeros((n, *shape))
    return mf.tensor(array, **{"dtype": "float32", **named})


def indices(tensors):
    return [int(i) for x in tensors for i in x.numpy().reshape(len(x), -1)[:, 0]]


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    before = set(threading.enumerate())
    yield
    assert not set(threading.enumerate()) - before


@given(n=st.integers(0, 70), size=st.integers(1, 33), shuffle=st.booleans(), drop_last=st.booleans())
def test_batches_hold_each_example_once(n, size, shuffle, drop_last):
    loader = Loader(rows(n, 2, 3), rows(n, dtype="int32"), batch_size=size, shuffle=shuffle, drop_last=drop_last)
    batches = [(x.clone(), y.clone()) for x, y in loader]
    assert len(batches) == len(loader)
    assert [len(y) for _, y in batches[:-1]] == [size] * (len(batches) - 1)
    assert all(x.shape == (len(y), 2, 3) and x.dtype is mf.float32 and y.dtype is mf.int32 for x, y in batches)
    found = indices(x for x, _ in batches)
    assert found == indices(y for _, y in batches)
    assert len(found) == (n - n % size if drop_last else n)
    assert len(set(found)) == len(found)
    assert shuffle or found == list(range(len(found)))


def test_each_epoch_has_its_own_order_by_seed():
    def epochs(loader, count=3):
        return [indices(x for (x,) in [(x.clone(),) for (x,) in loader]) for _ in range(count)]

    loader = Loader(rows(50), batch_size=8, seed=1)
    first, second, third = epochs(loader)
    assert first != second != third != first
    assert first != list(range(50))
    assert epochs(Loader(rows(50), batch_size=8, seed=1)) == [first, second, third]
    assert epochs(Loader(rows(50), batch_size=5, seed=1), 1) == [first]
    assert epochs(Loader(rows(50), batch_size=8, seed=2), 1) != [first]
    assert loader.epoch == 3
    loader.epoch = 1
    assert epochs(loader, 2) == [second, third]


def test_walks_side_by_side_do_not_disturb_each_other():
    loader = Loader(rows(6), batch_size=2, shuffle=False)
    assert [(indices([a]), indices([b])) for (a,), (b,) in zip(loader, loader, strict=True)] == [
        ([0, 1], [0, 1]),
        ([2, 3], [2, 3]),
        ([4, 5], [4, 5]),
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.T, lambda x: x[::-1, ::2], lambda x: x[:1].expand(5, 5)])
def test_batches_of_any_layout_and_dtype(view, dtype):
    x = view(mf.tensor(np.arange(25).reshape(5, 5) % 7, dtype=dtype))
    (batch,) = next(iter(Loader(x, batch_size=5, seed=3)))
    order = Loader(x, seed=3).order(0)
    np.testing.assert_array_equal(batch.numpy(), x.numpy()[order])
    assert batch.dtype is x.dtype
    assert batch.is_contiguous()


def test_batches_are_copies_that_use_the_same_memory_again():
    gc.collect()
    mf.memory.trim()  # what other tests left would be used too
    x = rows(64, 1000)
    loader = Loader(x, batch_size=8)
    for (batch,) in loader:
        batch *= 0
    assert x.sum().item() == 1000 * 63 * 32
    del batch
    before = mf.memory.stats().new
    addresses = {batch.address for (batch,) in loader}
    assert mf.memory.stats().new == before
    assert len(addresses) <= 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Loader(rows(5), rows(4)), r"Loader: got tensors of shapes \(5,\), \(4,\)"),
        (lambda: Loader(), "shapes none"),
        (lambda: Loader(rows(5), batch_size=0), "got batch_size=0, expected at least 1"),
        (lambda: Loader(rows(5), batch_size=-1), "got batch_size=-1"),
        (lambda: Loader(rows(5), prefetch=-1), "got prefetch=-1, expected a number of batches"),
        (lambda: Loader(rows(5), shard=(4, 4)), "got rank 4 of 4, expected a rank from 0 to 3"),
        (lambda: Loader(rows(5), shard=(-1, 2)), "got rank -1 of 2"),
        (lambda: Loader(rows(5), shard=(0, 0)), "got rank 0 of 0, expected at least one rank"),
    ],
)
def test_sizes_that_do_not_fit(call, words):
    with pytest.raises(ShapeError, match=words):
        call()


def test_data_are_tensors():
    with pytest.raises(DTypeError, match="expected tensors, got ndarray; write mf"):
        Loader(np.ones(3))


def test_batches_go_where_they_are_wanted():
    x = rows(5, 3)
    for (batch,) in Loader(x, batch_size=2, backend="python", shuffle=False):
        assert batch.backend == "python"
        batch *= 2
    assert x.sum().item() == 30


# By a thread


@pytest.mark.parametrize("prefetch", [1, 2, 7, 100])
def test_a_thread_changes_no_number(prefetch):
    def noisy(rng, x, y):
        return x + rng.normal(size=x.shape).astype(np.float32), y

    def walks(prefetch):
        loader = Loader(
            rows(50, 3), rows(50, dtype="int64"), batch_size=8, seed=4, prefetch=prefetch, transform=noisy, drop_last=True
        )
        return [[(x.tolist(), y.tolist()) for x, y in loader] for _ in range(2)]

    assert walks(prefetch) == walks(0)


def test_a_thread_is_so_many_batches_ahead():
    made, went = [], threading.Event()

    def items():
        for k in range(10):
            made.append(k)
            if len(made) == 4:
                went.set()
            yield k

    walk = prefetch_items(items(), 3)
    assert next(walk) == 0
    assert went.wait(30)  # 1, 2 and 3 are made while 0 is in use
    time.sleep(0.05)  # and no more
    walk.close()
    assert made == [0, 1, 2, 3]
    assert list(prefetch_items(iter(range(10)), 3)) == list(range(10))


def test_no_thread_before_the_first_batch():
    before = threading.active_count()
    walk = iter(Loader(rows(50), batch_size=1, prefetch=2))
    assert threading.active_count() == before
    next(walk)
    assert threading.active_count() == before + 1
    walk.close()


@pytest.mark.parametrize("end", ["drop", "close", "break", "error"])
def test_the_thread_ends_with_the_walk(end):
    loader, before = Loader(rows(100), batch_size=1, prefetch=3), threading.active_count()
    if end == "break":
        for _ in loader:
            break
    elif end == "error":
        with pytest.raises(ZeroDivisionError):
            [1 / len(x[1:]) for (x,) in loader]
    else:
        walk = iter(loader)
        next(walk)
        if end == "close":
            walk.close()
        del walk
    assert threading.active_count() == before


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_in_the_thread_is_raised_in_the_loop_where_it_happened(prefetch):
    def fail_at_the_third(rng, x):
        if 4 in x:
            raise ArithmeticError("no batch with a four")
        return (x,)

    loader = Loader(rows(9), batch_size=2, shuffle=False, prefetch=prefetch, transform=fail_at_the_third)
    seen = []
    with pytest.raises(ArithmeticError, match="no batch with a four") as caught:
        seen.extend(x.tolist() for (x,) in loader)
    assert seen == [[0, 1], [2, 3]]
    assert "fail_at_the_third" in [frame.name for frame in traceback.extract_tb(caught.tb)]


def test_batches_of_a_thread_use_the_memory_pool():
    x = rows(64, 1000)
    loader = Loader(x, batch_size=8, prefetch=2)
    for _ in range(3):  # how many are alive at once depends on who waits for whom
        for (batch,) in loader:
            del batch
    assert len({batch.address for (batch,) in loader}) <= 5


# Changed on the way


def test_a_transform_gets_copies_and_a_generator_of_its_place():
    def add(rng, x, y):
        x += 100
        return x, np.full(len(y), rng.integers(1 << 40))

    x, y = rows(6, 2), rows(6, dtype="int64")
    loader = Loader(x, y, batch_size=2, shuffle=False, transform=add)
    first = [(a.tolist(), b.tolist()) for a, b in loader]
    second = [(a.tolist(), b.tolist()) for a, b in loader]
    assert x.tolist() == rows(6, 2).tolist()
    assert (
        [a for a, _ in first]
        == [a for a, _ in second]
        == [[[100] * 2, [101] * 2], [[102] * 2, [103] * 2], [[104] * 2, [105] * 2]]
    )
    assert len({b[0] for _, b in first + second}) == 6
    loader.epoch = 0
    assert [(a.tolist(), b.tolist()) for a, b in loader] == first


def test_a_transform_may_change_shape_and_dtype():
    loader = Loader(rows(4, 6), batch_size=2, transform=lambda rng, x: (x.reshape(-1, 2, 3).astype(np.float64),))
    assert [(x.shape, x.dtype) for (x,) in loader] == [((2, 2, 3), mf.float64)] * 2


@pytest.mark.parametrize(
    ("transform", "words"),
    [
        (lambda rng, x, y: (x,), "returned a tuple of ndarray; expected a tuple of 2 arrays"),
        (lambda rng, x, y: x, "returned ndarray; expected a tuple of 2 arrays"),
        (lambda rng, x, y: None, "returned NoneType; expected a tuple of 2 arrays"),
        (lambda rng, x, y: (x, 3), "returned a tuple of ndarray, int; expected a tuple of 2 arrays"),
        (lambda rng, x, y: (x, y.astype(np.float16)), "got an array of dtype float16"),
    ],
)
def test_a_transform_must_return_arrays(transform, words):
    with pytest.raises(DTypeError, match=words):
        next(iter(Loader(rows(4), rows(4), batch_size=2, transform=transform)))


# Shared by ranks


def noisy(rng, x, y):
    return x + rng.normal(size=x.shape).astype(np.float32), y[:, None] + rng.integers(9)


def parts(n, ranks, **options):
    """Return the parts of all ranks of each batch."""
    loaders = [Loader(rows(n, 2), rows(n, dtype="int64"), shard=(rank, ranks), **options) for rank in range(ranks)]
    assert len({len(loader) for loader in loaders}) == 1
    return list(zip(*([(x.numpy(), y.numpy()) for x, y in loader] for loader in loaders), strict=True))


@given(
    n=st.integers(0, 60),
    size=st.integers(1, 20),
    ranks=st.sampled_from([1, 2, 3, 4, 8]),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
    transform=st.sampled_from([None, noisy]),
)
def test_parts_of_all_ranks_are_the_batches_of_one(n, size, ranks, shuffle, drop_last, transform):
    options = {"batch_size": size, "shuffle": shuffle, "drop_last": drop_last, "transform": transform, "seed": 7}
    wanted, found = parts(n, 1, **options), parts(n, ranks, **options)
    assert len(found) == len(wanted)
    for (whole,), shares in zip(wanted, found, strict=True):
        for x, *own in zip(whole, *shares, strict=True):
            np.testing.assert_array_equal(np.concatenate(own), x)
            assert max(map(len, own)) - min(map(len, own)) <= 1


def test_a_group_is_a_shard():
    def part():
        return [x.tolist() for (x,) in Loader(rows(5), batch_size=4, shuffle=False, shard=dist.group())]

    assert dist.simulate(2, part) == [[[0, 1], [4]], [[2, 3], []]]
    assert part() == [[0, 1, 2, 3], [4]]


def test_parts_of_a_small_batch_may_be_empty():
    batches = list(Loader(rows(5, 2), batch_size=4, shuffle=False, shard=(3, 4)))
    assert [x.tolist() for (x,) in batches] == [[[3, 3]], []]
    assert batches[1][0].shape == (0, 2)
    scaled = Loader(rows(5), rows(5), batch_size=4, shard=(1, 2), transform=lambda rng, x, y: (x, np.array(len(y))))
    assert next(iter(scaled))[1].item() == 4  # without rows, it belongs to all ranks


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (2, 3), (3, 8), (8, 2)])
def test_another_number_of_ranks_continues_in_the_same_order(before, after):
    def make(ranks):
        options = {"batch_size": 7, "seed": 2, "transform": noisy}
        return [Loader(rows(23, 2), rows(23, dtype="int64"), shard=(rank, ranks), **options) for rank in range(ranks)]

    def walk(loader, epochs):
        for _ in range(epochs):
            yield from loader

    def joined(loaders, epochs):
        for shares in zip(*(walk(loader, epochs) for loader in loaders), strict=True):
            yield [np.concatenate([x.numpy() for x in column]).tolist() for column in zip(*shares, strict=True)]

    wanted = list(joined(make(1), 3))
    loaders = make(before)
    going = joined(loaders, 1)
    found = [next(going) for _ in range(2)]  # of four batches
    (state,) = {json.dumps(loader.state_dict()) for loader in loaders}
    others = make(after)
    for loader in others:
        loader.load_state_dict(json.loads(state))
    assert found + list(joined(others, 3)) == wanted


# Broken off and taken up again


@given(
    n=st.integers(1, 30),
    size=st.integers(1, 9),
    steps=st.integers(0, 12),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
    prefetch=st.integers(0, 2),
)
def test_a_loader_goes_on_where_another_stood(n, size, steps, shuffle, drop_last, prefetch):
    def make(seed, prefetch):
        def noisy(rng, x):
            return (x + rng.random(),)

        return Loader(
            rows(n, dtype="float64"),
            batch_size=size,
            seed=seed,
            shuffle=shuffle,
            drop_last=drop_last,
            prefetch=prefetch,
            transform=noisy,
        )

    def walk(loader, epochs):
        for _ in range(epochs):
            for (x,) in loader:
                yield x.tolist()

    loader = make(5, prefetch)
    per_epoch = len(loader)
    epochs = 4
    steps = min(steps, epochs * per_epoch)
    going = walk(loader, epochs)
    for _ in range(steps):
        next(going)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = list(going)
    other = make(0, 2 - prefetch)
    other.load_state_dict(state)
    assert other.state_dict() == state
    going = walk(other, epochs - state["epoch"])
    assert [next(going) for _ in rest[:1]] == rest[:1]
    third = make(0, prefetch)  # broken off twice
    third.load_state_dict(other.state_dict())
    assert list(walk(third, epochs - other.state_dict()["epoch"])) == list(going) == rest[1:]


def test_a_state_resumes_at_the_next_batch():
    loader = Loader(rows(5), batch_size=2, seed=3)

    def place():
        return {key: loader.state_dict()[key] for key in ("seed", "epoch", "position")}

    assert place() == {"seed": 3, "epoch": 0, "position": 0}
    for k, _ in enumerate(loader):
        assert place() == {"seed": 3, "epoch": 0, "position": k + 1}
        assert loader.epoch == 1
    assert place() == {"seed": 3, "epoch": 1, "position": 0}
    for _ in loader:
        break
    assert place() == {"seed": 3, "epoch": 1, "position": 1}  # of the walk that was broken off
    next(iter(loader))
    assert place() == {"seed": 3, "epoch": 2, "position": 1}  # a new walk is a new epoch
    loader.epoch = 7
    assert place() == {"seed": 3, "epoch": 7, "position": 0}


def test_an_epoch_that_is_set_is_complete():
    loader = Loader(rows(6), batch_size=2, shuffle=False)
    loader.load_state_dict({**loader.state_dict(), "epoch": 2, "position": 1})
    loader.epoch = 2
    assert [x.tolist() for (x,) in loader] == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"length": 11}, "got a state with length=11, but this loader has length=10"),
        ({"batch_size": 5}, "a state with batch_size=5, but this loader has batch_size=3"),
        ({"shuffle": 0}, "a state with shuffle=0, but this loader has shuffle=1"),
        ({"drop_last": 1}, "drop_last=1"),
        ({"position": 5}, "at batch 5 of epoch 0, expected 0 to 4"),
        ({"position": -1}, "at batch -1"),
        ({"epoch": -1}, "of epoch -1"),
        ({"place": 1}, "got a state with .*place, expected batch_size, drop_last, epoch"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change, words):
    loader = Loader(rows(10), batch_size=3, seed=1)
    for _ in loader:
        break
    before = loader.state_dict()
    with pytest.raises(CheckpointError, match=words):
        loader.load_state_dict({**before, "seed": 9, "position": 2, **change})
    assert loader.state_dict() == before
    with pytest.raises(CheckpointError, match="got a state with nothing"):
        loader.load_state_dict({})
