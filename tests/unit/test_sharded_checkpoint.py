"""tensors.sharded_checkpoint: parts by rank, read by any other number of ranks, whole or not at all."""

import json
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise, product
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
import minifuse.distributed as dist
from minifuse.cli import merge as merge_command
from minifuse.core.errors import CheckpointError, DTypeError, ShapeError
from minifuse.core.even_parts import even_range
from minifuse.core.shards import Shard
from minifuse.tensors import shard_files
from minifuse.tensors.shards import set_shard, shard_of

pytest.importorskip("safetensors", reason="safetensors is not installed")

RANKS = (1, 2, 3, 4, 8)
NUMBERS = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
DIMS = {"rows": 0, "few": 0, "columns": 1, "last": 2, "flat": None, "bytes": 0}  # the others are replicated


def whole(step=5):
    """A state of training: tensors of several types, numbers, and scalars of an optimizer."""
    return {
        "rows": mf.tensor(NUMBERS[: 67 * 331].reshape(67, 331)) + step,
        "few": mf.tensor(NUMBERS[:6000].reshape(3, 2000)),  # fewer rows than ranks
        "columns": mf.tensor(NUMBERS[: 50 * 1001].reshape(50, 1001)),
        "last": mf.tensor(NUMBERS[: 3 * 5 * 701].reshape(3, 5, 701)),
        "flat": mf.tensor(NUMBERS[:11_003].reshape(1, 11_003)),
        "bytes": mf.tensor(NUMBERS[:40_001] > 0),
        "replicated": mf.tensor(NUMBERS[:9001]),
        "empty": mf.zeros(0, 3),
        "optimizer": {0: {"step": step, "beta": (0.9, 0.999), "scalar": mf.tensor(step, dtype="int64")}},
        "schedule": None,
    }


def part(state, rank, size, dims=None):
    """The state of a rank."""
    parts = dict(state)
    for name, dim in (DIMS if dims is None else dims).items():
        shard = Shard.even(state[name].shape, rank, size, dim)
        parts[name] = set_shard(mf.tensor(shard.select(state[name].numpy()).copy()), shard)
    return parts


def save(state, folder, size, **options):
    return [mf.save_sharded(part(state, rank, size), folder, rank=rank, size=size, **options) for rank in range(size)]


def leaves(tree):
    """Everything in a tree, tensors as their types, shapes and bytes."""
    if isinstance(tree, mf.Tensor):
        return str(tree.dtype), tree.shape, tree.numpy().tobytes()
    if isinstance(tree, dict):
        return {key: leaves(x) for key, x in tree.items()}
    return tree


@pytest.fixture
def reads(monkeypatch):
    """The ranges of files that were read: (name, start, stop)."""
    ranges, read_bytes = [], shard_files.read_bytes

    def counted(file, position, target):
        ranges.append((Path(file.name).name, position, position + target.nbytes))
        read_bytes(file, position, target)

    monkeypatch.setattr(shard_files, "read_bytes", counted)
    return ranges


@pytest.mark.parametrize("saved", RANKS)
def test_any_number_of_ranks_loads_what_any_other_saved(tmp_path, saved):
    state = whole()
    assert save(state, tmp_path, saved) == [False] * (saved - 1) + [True]
    assert leaves(mf.load_sharded(tmp_path)) == leaves(state)
    for size in RANKS:
        for rank in range(size):
            wanted = part(state, rank, size)
            found = mf.load_sharded(tmp_path, wanted)
            assert leaves(found) == leaves(wanted)
            assert all(shard_of(found[name]) == shard_of(wanted[name]) for name in DIMS)
            assert shard_of(found["replicated"]) is None


@pytest.mark.parametrize(("saved", "loaded"), [*product(RANKS, RANKS), (5, 7)])
def test_every_byte_is_read_once(tmp_path, reads, saved, loaded):
    """Of tensors that are divided. Where one is divided by 7, ranges do not end where those of the digests do."""
    names = ("rows", "columns", "flat", "bytes")
    state, dims = {name: whole()[name] for name in names}, {name: DIMS[name] for name in names}
    for rank in range(saved):
        mf.save_sharded(part(state, rank, saved, dims), tmp_path, rank=rank, size=saved)
    for rank in range(loaded):
        mf.load_sharded(tmp_path, lambda name, shape, rank=rank: Shard.even(shape, rank, loaded, dims[name]))
    nbytes = sum(x.numpy().nbytes for x in state.values())
    assert len({*reads}) == len(reads) or loaded == 7
    if loaded == 7:
        assert sum(stop - start for _, start, stop in reads) < 1.5 * nbytes
        return
    reads.sort()
    assert all(x[2] <= y[1] for x, y in pairwise(reads) if x[0] == y[0])
    assert sum(stop - start for _, start, stop in reads) == nbytes


@given(
    shape=st.lists(st.integers(0, 7), max_size=3).map(tuple),
    dtype=st.sampled_from(["float32", "int64", "bool"]),
    cuts=st.tuples(*[st.lists(st.integers(0, 400), max_size=5)] * 2),
    dims=st.tuples(*[st.sampled_from([None, 0, 1, 2])] * 2),
    orders=st.tuples(*[st.integers(0, 2)] * 2),
    page=st.sampled_from([0, 4096]),
)
def test_uneven_parts_along_any_dims(tmp_path_factory, shape, dtype, cuts, dims, orders, page):
    """With every range cut into segments, or none."""
    folder, x = tmp_path_factory.mktemp("x"), (np.arange(np.prod(shape, dtype=int)) % 251).reshape(shape).astype(dtype)

    def shards(dim, cuts, order):
        order = order if dim is None and order < len(shape) else 0
        dim = dim if dim is None or dim < len(shape) else 0 if shape else None
        length = Shard(shape, dim, 0, 0).length
        ends = sorted({0, length, *(cut % (length + 1) for cut in cuts)})
        return [Shard(shape, dim, start, stop - start, order=order) for start, stop in zip([0, *ends], ends, strict=False)]

    saved, loaded = map(shards, dims, cuts, orders)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard_files, "PAGE_BYTES", page)
        patch.setattr(shard_files, "MAX_SEGMENT_BYTES", 64)
        for rank, shard in enumerate(saved):
            own = set_shard(mf.tensor(shard.select(x).copy()), shard)
            mf.save_sharded({"x": own}, folder, rank=rank, size=len(saved))
    for shard in [*loaded, Shard.whole(shape)]:
        found, wanted = mf.load_sharded(folder, {"x": shard})["x"].numpy(), shard.select(x)
        assert (found.shape, found.dtype, found.tobytes()) == (wanted.shape, wanted.dtype, wanted.tobytes())


def test_writing_is_balanced_and_replicas_share_it(tmp_path):
    """Two ranks hold each half of x, and all four hold y."""
    x, y = NUMBERS[:80_000].reshape(40, 2000), NUMBERS[:90_000]
    for rank in range(4):
        shard = Shard(x.shape, 0, 20 * (rank // 2), 20, rank % 2, 2)
        state = {"x": set_shard(mf.tensor(shard.select(x)), shard), "y": mf.tensor(y)}
        mf.save_sharded(state, tmp_path, rank=rank, size=4)
    sizes = [path.stat().st_size for path in tmp_path.glob("*.safetensors")]
    assert sum(sizes) < (x.nbytes + y.nbytes) * 1.02
    assert max(sizes) - min(sizes) < 1000
    found = mf.load_sharded(tmp_path)
    assert (found["x"].numpy() == x).all()
    assert (found["y"].numpy() == y).all()


@pytest.mark.parametrize("dim", [0, 1])
def test_memory_is_the_own_part_and_one_tensor(tmp_path, dim):
    """Also if the parts that are loaded lie across those that were saved."""
    shape, count, size = (512, 512), 8, 4
    arrays = {str(k): NUMBERS[k] + np.zeros(shape, np.float32) for k in range(count)}
    tensor_nbytes = arrays["0"].nbytes
    own = count * tensor_nbytes // size
    for rank in range(size):
        shard = Shard.even(shape, rank, size)
        state = {name: set_shard(mf.tensor(shard.select(x)), shard) for name, x in arrays.items()}
        tracemalloc.start()
        mf.save_sharded(state, tmp_path, rank=rank, size=size)
        assert tracemalloc.get_traced_memory()[1] < tensor_nbytes
        tracemalloc.stop()
    mf.load_sharded(tmp_path)  # imports
    tracemalloc.start()
    found = mf.load_sharded(tmp_path, lambda name, shape: Shard.even(shape, 1, size, dim))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(x.numpy().nbytes for x in found.values()) == own
    assert peak < own + 1.3 * tensor_nbytes
    tracemalloc.start()
    mf.merge_shards(tmp_path, tmp_path / "merged")
    assert tracemalloc.get_traced_memory()[1] < 1.3 * tensor_nbytes
    tracemalloc.stop()


def test_ranks_may_have_entries_of_their_own(tmp_path):
    """As in a pipeline: each rank has its layers, which it marks as its own; and numbers by rank."""
    for rank in range(2):
        w = set_shard(mf.full((2,), rank, "float32"), Shard.whole((2,)))
        mf.save_sharded({"model": {f"{rank}.w": w}, "seeds": {rank: rank + 7}}, tmp_path, rank=rank, size=2)
    found = mf.load_sharded(tmp_path, lambda name, shape: Shard(shape, 0, 0, 0) if "0.w" in name else None)
    assert found["seeds"] == {0: 7, 1: 8}
    assert leaves(found["model"]) == leaves({"0.w": mf.zeros(0), "1.w": mf.ones(2)})


def test_modules_and_optimizers_keep_the_marks_of_parts(tmp_path):
    def make(rank):
        model, whole_model = mf.nn.Linear(3, 2), Shard.even((4, 3), rank, 2)
        set_shard(model.weight, whole_model)
        optimizer = mf.optim.Adam(model.parameters(), lr=0.1)
        return model, optimizer

    for rank in range(2):
        model, optimizer = make(rank)
        with mf.no_grad():
            model.weight.copy_(mf.arange(12, dtype="float32").reshape(4, 3)[2 * rank : 2 * rank + 2])
            model.bias.copy_(mf.ones(2))
        model(mf.ones(1, 3)).sum().backward()
        optimizer.step()
        for moments in optimizer.state.values():
            for x in moments.values():
                if isinstance(x, mf.Tensor) and x.shape == (2, 3):
                    set_shard(x, shard_of(model.weight))
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        mf.save_sharded(state, tmp_path, rank=rank, size=2)
    assert mf.load_sharded(tmp_path)["model"]["weight"].shape == (4, 3)
    model, optimizer = make(1)
    found = mf.load_sharded(tmp_path, lambda name, shape: Shard.even(shape, 1, 2) if shape == (4, 3) else None)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    np.testing.assert_allclose(model.weight.detach().numpy(), np.arange(6, 12).reshape(2, 3) - 0.1, rtol=1e-5)
    assert found["optimizer"]["state"][0]["step"] == 1


# One file


def test_a_merged_file_is_read_by_everything(tmp_path):
    from safetensors.numpy import load_file

    state = whole()
    save(state, tmp_path / "a", 3)
    mf.merge_shards(tmp_path / "a", tmp_path / "merged")
    mf.save_state(state, tmp_path / "wanted")
    wanted = mf.load(tmp_path / "wanted")
    assert leaves(mf.load(tmp_path / "merged")) == leaves(wanted)
    assert leaves(mf.load_state(tmp_path / "merged")) == leaves(state)
    assert {name: x.tobytes() for name, x in load_file(tmp_path / "merged").items()} == {
        name: x.numpy().tobytes() for name, x in wanted.items()
    }
    stored = [load_file(path) for path in rank_files(tmp_path / "a")]
    assert np.concatenate([x["replicated"] for x in stored]).tobytes() == state["replicated"].numpy().tobytes()
    data = bytearray((tmp_path / "merged").read_bytes())
    data[-1] ^= 1
    (tmp_path / "merged").write_bytes(data)
    with pytest.raises(CheckpointError, match="its elements have changed"):
        mf.load(tmp_path / "merged")


def test_pytorch_reads_a_merged_file(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import load_file

    state = whole()
    save(state, tmp_path / "a", 2)
    mf.merge_shards(tmp_path / "a", tmp_path / "merged")
    found = load_file(tmp_path / "merged")
    assert found["columns"].numpy().tobytes() == state["columns"].numpy().tobytes()
    assert found["optimizer.0.scalar"].item() == 5


def test_a_command_merges(tmp_path, capsys):
    save(whole(), tmp_path / "a", 2, version=7)
    assert merge_command.run(tmp_path / "a", tmp_path / "merged", False) == 0
    assert "merged: 9 tensors, " in capsys.readouterr().out
    assert merge_command.run(tmp_path / "a", tmp_path / "merged", True) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["version"], facts["ranks"], facts["tensors"]) == ("7.0", 2, 9)
    assert merge_command.run(tmp_path / "b", tmp_path / "merged", False) == 1
    assert "contains no checkpoint: index.json is missing" in capsys.readouterr().err


# Old or new


class CrashError(Exception):
    """The end of a process."""


@pytest.mark.parametrize("version", [None, 6])
def test_a_crash_at_any_point_leaves_the_old_or_the_new_state(tmp_path, monkeypatch, version):
    """Each file is put in place by `replace`, and removed by `unlink`."""
    old, new, size = {"x": mf.zeros(3000), "step": 5}, {"x": mf.ones(3000), "step": 6}, 2
    options = {} if version is None else {"version": version}

    def save_all(state, folder, **options):
        for rank in range(size):
            mf.save_sharded(state, folder, rank=rank, size=size, **options)

    outcomes = []
    for k in range(20):
        folder, calls = tmp_path / str(k), []
        save_all(old, folder, version=5)

        def crash(method, k=k, calls=calls):
            def call(path, *inputs, **named):
                calls.append(path)
                if len(calls) == k + 1:
                    raise CrashError
                return method(path, *inputs, **named)

            return call

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", crash(Path.replace))
            patch.setattr(Path, "unlink", crash(Path.unlink))
            try:
                save_all(new, folder, **options)
            except CrashError:
                pass
            else:
                break
        outcomes.append(mf.load_sharded(folder)["step"])
        assert leaves(mf.load_sharded(folder)) in (leaves(old), leaves(new))
        save_all(new, folder, **options)
        assert leaves(mf.load_sharded(folder)) == leaves(new)
        save_all(new, folder, version=7)
        assert len([*folder.iterdir()]) == size + 1  # nothing is left over
    assert outcomes[0] == 5
    assert outcomes[-1] == 6
    assert outcomes == sorted(outcomes)


def test_ranks_that_wait_for_each_other_ignore_what_was_left(tmp_path):
    """In threads, several times, after a save of the same version that only rank 2, the slowest, has ended."""
    size = 4
    mf.save_sharded({"x": mf.zeros(9000), "step": -1}, tmp_path, rank=2, size=size)
    barrier = Barrier(size, timeout=60)

    def run(rank):
        def wait():
            barrier.wait()
            time.sleep(0.02 * (rank == 2))

        states = [{"x": mf.full((9000,), step, "float32"), "step": step} for step in range(5)]
        return [mf.save_sharded(state, tmp_path, rank=rank, size=size, barrier=wait) for state in states]

    with ThreadPoolExecutor(size) as pool:
        completed = list(pool.map(run, range(size)))
    assert all(map(any, zip(*completed, strict=True)))
    assert leaves(mf.load_sharded(tmp_path)) == leaves({"x": mf.full((9000,), 4, "float32"), "step": 4})
    assert len([*tmp_path.iterdir()]) == size + 1


def test_ranks_of_an_engine_save_and_load(tmp_path):
    """With its barrier, the same version may be saved again."""

    def save_twice():
        ranks = {"rank": dist.rank(), "size": dist.size(), "barrier": dist.barrier}
        return [mf.save_sharded({"x": mf.full((9000,), k, "int32")}, tmp_path, **ranks) for k in range(2)]

    def load():
        found = mf.load_sharded(tmp_path, lambda name, shape: Shard.even(shape, dist.rank(), dist.size()))
        return len(found["x"]), found["x"].sum().item()

    assert all(map(any, zip(*dist.simulate(3, save_twice), strict=True)))
    assert dist.simulate(2, load) == [(4500, 4500)] * 2


def test_a_save_by_fewer_ranks_removes_the_files_of_more(tmp_path):
    state = {"x": mf.tensor(NUMBERS), "step": 1}
    for rank in range(3):  # of four: interrupted
        mf.save_sharded(state, tmp_path, rank=rank, size=4, version=1)
    for rank in (1, 0):
        mf.save_sharded(state, tmp_path, rank=rank, size=2, version=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "1.0.rank-0-of-2.safetensors",
        "1.0.rank-1-of-2.safetensors",
        "index.json",
    ]
    (tmp_path / "notes.txt").touch()
    mf.save_sharded(state, tmp_path, version=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.1.rank-0-of-1.safetensors", "index.json", "notes.txt"]


def test_a_disk_that_is_full_is_an_error_that_keeps_the_old_state(tmp_path, monkeypatch):
    state = {"x": mf.zeros(3)}
    mf.save_sharded(state, tmp_path)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(CheckpointError, match=r"could not be written: No space .* is unchanged; free some space"):
        mf.save_sharded({"x": mf.ones(3)}, tmp_path)
    monkeypatch.undo()
    assert leaves(mf.load_sharded(tmp_path)) == leaves(state)


# Checkpoints that are not what they should be


def rank_files(folder):
    return sorted(folder.glob("*.safetensors"))


def test_an_incomplete_checkpoint(tmp_path):
    with pytest.raises(CheckpointError, match=r"contains no checkpoint: index\.json is missing"):
        mf.load_sharded(tmp_path)
    mf.save_sharded({"x": mf.ones(3)}, tmp_path, rank=1, size=2)
    with pytest.raises(CheckpointError, match=r"never completed: .* only state\.0\.rank-1-of-2\.safetensors are there"):
        mf.load_sharded(tmp_path)
    mf.save_sharded({"x": mf.ones(3)}, tmp_path, rank=0, size=2)
    rank_files(tmp_path)[1].unlink()
    with pytest.raises(CheckpointError, match=r"1 of 2 files are missing: state\.0\.rank-1-of-2\.safetensors; copy all"):
        mf.load_sharded(tmp_path)


def test_files_of_two_saves(tmp_path):
    for k in range(2):
        for rank in range(2):
            mf.save_sharded({"x": mf.full((9000,), k + 0.5, "float32")}, tmp_path / str(k), rank=rank, size=2, version=k)
    rank_files(tmp_path / "1")[1].replace(rank_files(tmp_path / "0")[1])
    with pytest.raises(CheckpointError, match=r"belongs to the save 1\.0, and index\.json to 0\.0: .* two saves are mixed"):
        mf.load_sharded(tmp_path / "0")


def test_a_file_that_is_cut_short(tmp_path):
    save(whole(), tmp_path, 2)
    path = rank_files(tmp_path)[1]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"rank-1-of-2\.safetensors is damaged: it has .* bytes instead of"):
        mf.load_sharded(tmp_path)


def test_a_flipped_bit_anywhere_is_found_by_whom_it_concerns(tmp_path):
    state = {"x": mf.tensor(NUMBERS[:6000].reshape(30, 200))}
    for rank in range(2):
        mf.save_sharded(state, tmp_path, rank=rank, size=2)
    found = 0
    for path in rank_files(tmp_path):
        data = path.read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        for position in range(begin, len(data), 997):
            path.write_bytes(data[:position] + bytes([data[position] ^ 4]) + data[position + 1 :])
            failed = 0
            for shard in (Shard.even((30, 200), rank, 3) for rank in range(3)):
                with suppress(CheckpointError):
                    assert leaves(mf.load_sharded(tmp_path, {"x": shard})["x"]) == leaves(shard.select(state["x"]))
                    continue
                failed += 1
            assert failed == 1
            found += 1
        path.write_bytes(data)
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(CheckpointError, match=r"is damaged: the bytes of 'x' differ from their digest"):
            mf.load_sharded(tmp_path)
        path.write_bytes(data)
    assert found > 20


def test_a_damaged_index(tmp_path):
    save({**whole(), "text": "abc"}, tmp_path, 1)
    path = tmp_path / "index.json"
    data = path.read_bytes()
    for change in (
        data.replace(b"abc", b"abd"),
        data[:-5],
        b"",
        b"[]",
        b"{}",
        b"\xff",
        data.replace(b'"format":1', b'"format":2'),
    ):
        path.write_bytes(change)
        with pytest.raises(CheckpointError, match=r"index\.json is damaged, or was not written by save_sharded"):
            mf.load_sharded(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(CheckpointError, match=r"index\.json cannot be read: Is a directory"):
        mf.load_sharded(tmp_path)


@pytest.mark.parametrize(
    ("shards", "words"),
    [
        (
            [(0, 2), (3, 2)],
            r"elements 6 to 9 of 'x' are written by no rank; expected parts that cover the shape \(5, 3\) once",
        ),
        ([(0, 2), (2, 2)], "elements 12 to 15 of 'x' are written by no rank"),
        ([(0, 3), (2, 3)], "elements 6 to 9 of 'x' are written twice, also by rank 1"),
    ],
)
def test_parts_must_cover_a_tensor_once(tmp_path, shards, words):
    mf.save_sharded({"x": mf.ones(1)}, tmp_path)
    states = [{"x": set_shard(mf.zeros(size, 3), Shard((5, 3), 0, start, size))} for start, size in shards]
    mf.save_sharded(states[0], tmp_path, rank=0, size=2)
    with pytest.raises(CheckpointError, match=words):
        mf.save_sharded(states[1], tmp_path, rank=1, size=2)
    assert mf.load_sharded(tmp_path)["x"].tolist() == [1]


@pytest.mark.parametrize("size", [3, 3000])
def test_a_tensor_of_one_rank_needs_a_mark(tmp_path, size):
    """Unmarked, it is a tensor of all ranks, each of which writes a part of it, or one of them a small tensor."""
    states = [{"a": mf.ones(size), "b": mf.ones(size)}, {"c": mf.ones(size)}]
    mf.save_sharded(states[0], tmp_path, rank=0, size=2)
    with pytest.raises(CheckpointError, match=rf"elements \d+ to {size} of '[ab]' are written by no rank"):
        mf.save_sharded(states[1], tmp_path, rank=1, size=2)


def test_numbers_must_be_equal_on_all_ranks(tmp_path):
    mf.save_sharded({"a": {"rates": [0.5, float("nan")]}}, tmp_path, rank=0, size=2)
    with pytest.raises(CheckpointError, match=r"a\.rates\.0 is 0\.25 on rank 1, and 0\.5 on a rank before it"):
        mf.save_sharded({"a": {"rates": [0.25, float("nan")]}}, tmp_path, rank=1, size=2)
    assert mf.save_sharded({"a": {"rates": [0.5, float("nan")]}}, tmp_path, rank=1, size=2)


def test_tensors_must_be_equal_on_all_ranks(tmp_path):
    mf.save_sharded({"x": set_shard(mf.zeros(2, 3), Shard((4, 3), 0, 0, 2))}, tmp_path, rank=0, size=2)
    with pytest.raises(
        CheckpointError, match=r"'x' is F32 \(4, 4\) divided along dim 1 on rank 1, and F32 \(4, 3\) along dim 0"
    ):
        mf.save_sharded({"x": set_shard(mf.zeros(4, 2), Shard((4, 4), 1, 2, 2))}, tmp_path, rank=1, size=2)


def test_what_is_wanted_must_be_there(tmp_path):
    mf.save_sharded({"x": mf.ones(4, 3)}, tmp_path)
    for like, words in (
        ({"y": mf.ones(2)}, "has no tensor 'y', which `like` asks for; its tensors are x"),
        ({"x": mf.ones(2, 3)}, r"'x' has shape \(4, 3\) in .*, but `like` asks for \(a part of\) shape \(2, 3\)"),
        ({"x": Shard.even((4, 4), 0, 2)}, r"shape \(4, 4\)"),
        (lambda name, shape: Shard.even((9,), 0, 2), r"shape \(9,\)"),
    ):
        with pytest.raises(CheckpointError, match=words):
            mf.load_sharded(tmp_path, like)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda f: mf.save_sharded({}, f, rank=2, size=2),
            ShapeError,
            "save_sharded: got rank 2 of 2, expected a rank from 0",
        ),
        (lambda f: mf.save_sharded({"x": NUMBERS}, f), DTypeError, "save_sharded: x is ndarray, expected a tensor"),
        (lambda f: mf.save_sharded({"__metadata__": mf.ones(1)}, f), DTypeError, "got '__metadata__' as the name"),
        (lambda f: mf.save_sharded({}, f, version="a/b"), CheckpointError, "got version 'a/b', expected a name"),
        (lambda f: mf.save_sharded({}, f / "file" / "a"), CheckpointError, "could not be written: Not a directory"),
        (lambda f: mf.save_sharded({}, "\0"), CheckpointError, "could not be written: .*null"),
        (
            lambda f: set_shard(mf.ones(3), Shard((4,), 0, 0, 2)),
            ShapeError,
            r"got a tensor of shape \(3,\), expected \(2,\)",
        ),
        (lambda f: Shard((4, 3), 2, 0, 0), ShapeError, r"got dim=2, expected None or a dim of the shape \(4, 3\)"),
        (lambda f: Shard((4, 3), 1, 2, 2), ShapeError, "got 2 indices from 2 on along dim 1"),
        (lambda f: Shard((), 0, 0, 0), ShapeError, r"got 0 indices from 0 on along dim 0 of the shape \(\)"),
        (lambda f: Shard((4,), 0, 0, 2, replica=3, replicas=3), ShapeError, "got rank 3 of 3"),
        (lambda f: Shard.even((4,), 4, 4), ShapeError, "got rank 4 of 4"),
    ],
)
def test_wrong_calls(tmp_path, call, error, words):
    (tmp_path / "file").touch()
    with pytest.raises(error, match=words):
        call(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@given(length=st.integers(0, 100), size=st.integers(1, 20))
def test_even_ranges_cover_a_length(length, size):
    ranges = [even_range(length, rank, size) for rank in range(size)]
    assert [x for start, stop in ranges for x in range(start, stop)] == [*range(length)]
    sizes = [stop - start for start, stop in ranges]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1
