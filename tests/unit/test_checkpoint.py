"""tensors.serialization: a file is written whole or not at all, and a damaged file is an error that names the damage."""

import errno
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import CheckpointError, DTypeError, MissingPartError
from minifuse.tensors import serialization
from minifuse.tensors.serialization import load_state, save_state
from tests.nn.recorded import load

pytest.importorskip("safetensors", reason="safetensors is not installed")

NUMBERS = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def samples():
    """Tensors of all kinds: element types, layouts, sizes."""
    x = mf.tensor(NUMBERS)
    return {
        "plain": x,
        "across": x.permute(2, 0, 1),
        "flipped": x[::-1, :, 1::2],
        "expanded": mf.tensor([[1.0], [2.0]]).expand(2, 5),
        "row": x[1, 2],
        "number": mf.tensor(3.5),
        "element": x[0, 1, 2],
        "empty": mf.zeros(0, 3),
        "empty view": x[2:],
        "float64": mf.tensor([np.pi, np.nan, -np.inf, -0.0], dtype="float64"),
        "int32": mf.tensor([-(2**31), 2**31 - 1], dtype="int32"),
        "int64": mf.tensor([-(2**63), 2**63 - 1]),
        "bool": mf.tensor([True, False, True]),
        "learned": mf.tensor([1.0], requires_grad=True),
        'a name: ü ∑ "quotes"': mf.ones(1),
        "": mf.zeros(1),
    }


def same(found, wanted):
    """Names, element types, shapes and bits."""
    assert found.keys() == wanted.keys()
    for name, x in wanted.items():
        y = found[name]
        assert (y.dtype, y.shape, y.requires_grad) == (x.dtype, x.shape, False), name
        assert y.is_contiguous(), name
        assert y.numpy().tobytes() == x.detach().numpy().tobytes(), name


def test_tensors_of_every_dtype_and_layout_are_restored(tmp_path):
    mf.save(samples(), tmp_path / "a")
    same(mf.load(tmp_path / "a"), samples())
    assert names(tmp_path) == ["a"]


def test_views_of_one_array_are_restored_as_separate_arrays(tmp_path):
    x = mf.zeros(4)
    mf.save({"x": x, "y": x[1:3]}, tmp_path / "a")
    found = mf.load(tmp_path / "a")
    found["x"] += 1
    assert found["y"].tolist() == [0, 0]


def test_loaded_tensors_can_be_changed_and_trained(tmp_path):
    mf.save({"x": mf.ones(3)}, tmp_path / "a")
    x = mf.load(tmp_path / "a")["x"].requires_grad_()
    (x * x).sum().backward()
    with mf.no_grad():
        x -= x.grad
    assert x.tolist() == [-1, -1, -1]
    assert mf.load(tmp_path / "a")["x"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
def test_any_backend_writes_and_reads(tmp_path, backend):
    x = mf.tensor(NUMBERS, backend=backend).permute(1, 2, 0)
    mf.save({"x": x}, tmp_path / "a")
    same(mf.load(tmp_path / "a"), {"x": mf.tensor(NUMBERS).permute(1, 2, 0)})
    found = mf.load(tmp_path / "a", backend)["x"]
    assert found.backend == backend
    assert found.tolist() == x.tolist()


def test_metadata(tmp_path):
    texts = {"epoch": "3", "ü": json.dumps({"a": [1.5, None]})}
    mf.save({"x": mf.ones(1)}, tmp_path / "a", texts)
    assert mf.load_metadata(tmp_path / "a") == texts
    mf.save({}, str(tmp_path / "b"))
    assert mf.load_metadata(tmp_path / "b") == {}
    assert mf.load(tmp_path / "b") == {}


@pytest.mark.parametrize(
    ("tensors", "metadata", "words"),
    [
        ({"x": NUMBERS}, None, "'x' is ndarray, expected a tensor; wrap it in mf.tensor"),
        ({"x": 1.0}, None, "'x' is float, expected a tensor; write mf.save_state, which saves nested dicts"),
        (
            {"model": {"x": mf.ones(1)}},
            None,
            "'model' is dict, .* write mf.save_state, which saves nested dicts, and mf.load_state",
        ),
        (mf.nn.Linear(1, 1), None, r"got Linear, expected a dict of tensors; write mf.save\(x.state_dict\(\), path\)"),
        ([mf.ones(1)], None, "got list, expected a dict of tensors; write mf.save"),
        ({3: mf.ones(1)}, None, "got 3 as the name of a tensor"),
        ({"__metadata__": mf.ones(1)}, None, "got '__metadata__' as the name"),
        ({}, {"epoch": 3}, "metadata 'epoch' is 3, expected str keys and values; encode other values with json.dumps"),
        ({}, {3: "epoch"}, "metadata 3 is 'epoch'"),
    ],
)
def test_unsupported_values_are_errors(tmp_path, tensors, metadata, words):
    with pytest.raises(DTypeError, match=words):
        mf.save(tensors, tmp_path / "a", metadata)
    assert names(tmp_path) == []


def test_no_tensor_of_a_capture_is_saved(tmp_path):
    with pytest.raises(mf.FuseError, match="elements of a tensor"):
        mf.fuse(lambda x: mf.save({"x": x * 2}, tmp_path / "a"))(mf.ones(3))
    assert names(tmp_path) == []


# PyTorch


def test_pytorch_opens_our_files(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import load_file

    wanted = samples()
    mf.save(wanted, tmp_path / "a")
    for name, y in load_file(tmp_path / "a").items():
        x = wanted[name].detach().numpy()
        assert isinstance(y, torch.Tensor)
        assert (y.numpy().dtype, y.numpy().tobytes()) == (x.dtype, x.tobytes()), name


def test_we_open_pytorchs_files(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import save_file

    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 2))
    save_file(model.state_dict(), tmp_path / "a", {"format": "pt"})
    ours = mf.nn.Sequential(mf.nn.Linear(5, 7), mf.nn.ReLU(), mf.nn.Linear(7, 2))
    ours.load_state_dict(mf.load(tmp_path / "a"))
    x = NUMBERS.reshape(-1)[:20].reshape(4, 5)
    np.testing.assert_allclose(
        ours(mf.tensor(x)).detach().numpy(), model(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    assert mf.load_metadata(tmp_path / "a") == {"format": "pt"}


def test_a_recorded_file_of_pytorch(tmp_path):
    table = load("checkpoint")
    (tmp_path / "a").write_bytes(table["bytes"].tobytes())
    found = mf.load(tmp_path / "a")
    assert mf.load_metadata(tmp_path / "a") == {"format": "pt"}
    assert len(found) == len(table) - 1 == 12
    for name, x in found.items():
        wanted = table[f"tensor/{name}"]
        assert (x.numpy().dtype, x.shape, x.numpy().tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes()), name


def recorded(dtype, size, data):
    """A file as any library writes it: the length of the header, the header, the elements."""
    header = json.dumps({"w": {"dtype": dtype, "shape": [size], "data_offsets": [0, len(data)]}}).encode()
    return len(header).to_bytes(8, "little") + header + data


def test_a_file_written_by_the_letter_of_the_format(tmp_path):
    (tmp_path / "a").write_bytes(recorded("F32", 2, np.array([1.5, -2], "<f4").tobytes()))
    assert mf.load(tmp_path / "a")["w"].tolist() == [1.5, -2]


@pytest.mark.parametrize("dtype", ["F16", "BF16", "C64", "F8_E4M3"])
def test_element_types_that_we_do_not_have(tmp_path, dtype):
    nbytes = {"F16": 2, "BF16": 2, "I16": 2, "C64": 8}.get(dtype, 1)
    (tmp_path / "a").write_bytes(recorded(dtype, 3, bytes(3 * nbytes)))
    with pytest.raises(CheckpointError, match=rf"load: 'w' in .* is {dtype}, expected float32, .*x\.float\(\)"):
        mf.load(tmp_path / "a")


# Files that are not what they should be


def test_a_file_of_torch_save_names_what_to_write_in_pytorch(tmp_path):
    with zipfile.ZipFile(tmp_path / "a", "w") as file:
        file.writestr("data.pkl", "")
    for read in (mf.load, mf.load_metadata, load_state):
        with pytest.raises(CheckpointError, match=r"zip file, as torch.save writes.*safetensors.torch.save_file\(model"):
            read(tmp_path / "a")


def test_a_file_that_was_cut_short_anywhere(tmp_path):
    mf.save({"w": mf.tensor(NUMBERS), "b": mf.ones(3)}, tmp_path / "a", {"epoch": "1"})
    data = (tmp_path / "a").read_bytes()
    for n in [*range(0, 24), *range(24, len(data), 7), len(data) - 1]:
        (tmp_path / "b").write_bytes(data[:n])
        for read in (mf.load, mf.load_metadata, load_state):
            with pytest.raises(CheckpointError, match=rf"\({n} bytes\) is not a complete safetensors file: .*truncated"):
                read(tmp_path / "b")


@pytest.mark.parametrize(
    "data",
    [
        b"garbage, and more of it",
        b"\xff" * 200,
        (1 << 40).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (2).to_bytes(8, "little") + b"{}" + b"more",
        recorded("F32", 2, bytes(8)) + b"x",
        recorded("F32", 3, bytes(8)),
        recorded("F33", 2, bytes(8)),
        b"\x80\x02}q\x00.",  # a pickle
    ],
)
def test_files_that_are_no_checkpoint_are_errors(tmp_path, data):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(CheckpointError, match="is not a complete safetensors file"):
        mf.load(tmp_path / "a")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(CheckpointError, match=r"load: .*/a cannot be read: No such file or directory"):
        mf.load(tmp_path / "a")
    with pytest.raises(CheckpointError, match=r"load_metadata: .* cannot be read: it is a folder"):
        mf.load_metadata(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="cannot be read: Not a directory"):
        mf.load(tmp_path / "file" / "a")
    with pytest.raises(OSError, match="cannot be read"):  # as Python's own open would say it
        mf.load(tmp_path / "a")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_files_and_folders_without_permission(tmp_path):
    mf.save({}, tmp_path / "a")
    (tmp_path / "a").chmod(0)
    with pytest.raises(CheckpointError, match="Permission denied"):
        mf.load(tmp_path / "a")
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="Permission denied"):
        mf.save({}, tmp_path / "b")


# Writing that fails


@pytest.fixture
def old(tmp_path):
    """A checkpoint that must outlive what a test does."""
    path = tmp_path / "model.safetensors"
    mf.save({"w": mf.tensor(NUMBERS)}, path)
    data = path.read_bytes()
    yield path
    assert path.read_bytes() == data
    assert names(tmp_path) == [path.name]


LARGE = {"w": mf.zeros(50_000)}


@pytest.mark.parametrize("call", ["write", "flush", "fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()])
def test_a_failure_at_any_point_leaves_the_old_file_unchanged(old, monkeypatch, call, error):
    def fail(*_):
        raise error

    if call in ("write", "flush"):
        fdopen = os.fdopen

        def half(*inputs):
            file = fdopen(*inputs)
            raw = type("Full", (), {"__enter__": lambda s: s, "__exit__": lambda s, *_: file.close(), "flush": fail})()
            raw.write = fail if call == "write" else lambda data: file.write(data[: len(data) // 2])
            return raw

        monkeypatch.setattr(os, "fdopen", half)
    elif call == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, call, fail)
    expected = CheckpointError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as caught:
        mf.save(LARGE, old)
    if expected is CheckpointError:
        assert "could not be written: No space left on device. An existing file is unchanged" in str(caught.value)


def test_a_full_disk(old):
    """The system refuses what is larger than a limit, as it refuses what does not fit a disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(CheckpointError, match=r"model\.safetensors could not be written: File too large"):
            mf.save(LARGE, old)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_folder_in_the_place_of_the_file(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(CheckpointError, match="a could not be written: it is a folder"):
        mf.save(LARGE, tmp_path / "a")
    assert names(tmp_path) == ["a"]
    with pytest.raises(CheckpointError, match="could not be written: No such file or directory"):
        mf.save(LARGE, tmp_path / "nowhere" / "a")


WRITER = """
import sys
import minifuse as mf
k = 0
while True:
    mf.save({"w": mf.full((300_000,), k % 100, "float32")}, sys.argv[1], {"k": str(k)})
    k += 1
    print(k, flush=True)
"""


def test_a_process_that_is_killed_while_it_writes(tmp_path):
    """There is a whole file whenever the end comes."""
    path, seen = tmp_path / "a", set()
    for k in range(4):
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(3 + k):
                assert process.stdout.readline()
            time.sleep(0.0007 * k)  # into the middle of a write
            process.send_signal(signal.SIGKILL)
        number = int(mf.load_metadata(path)["k"])
        assert mf.load(path)["w"].tolist() == [number % 100] * 300_000
        seen.add(number)
    left = [name for name in names(tmp_path) if name != "a"]
    assert all(name.startswith(".a.") and name.endswith(".tmp") for name in left)
    assert seen
    assert max(seen) >= 5


def test_rights_and_links_stay(tmp_path):
    path, link = tmp_path / "real", tmp_path / "latest"
    mf.save({"w": mf.zeros(1)}, path)
    umask = os.umask(0o022)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    path.chmod(0o640)
    link.symlink_to(path)
    mf.save({"w": mf.ones(1)}, link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert mf.load(path)["w"].item() == 1


def test_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mf.save({"w": mf.ones(1)}, "a")
    assert mf.load("a")["w"].item() == 1
    assert names(tmp_path) == ["a"]


def test_a_missing_package_is_one_error_with_its_command(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    for attempt in (lambda: mf.save({}, tmp_path / "a"), lambda: mf.load(tmp_path / "a")):
        with pytest.raises(MissingPartError, match="need the package safetensors: pip install safetensors") as found:
            attempt()
        assert found.value.__suppress_context__
    assert names(tmp_path) == []


# Digests


DAMAGED = {"w": mf.tensor(NUMBERS.reshape(-1)[:4]), "n": mf.tensor([3, 4])}


def flips(data):
    """Copies of some bytes, each with one other bit changed."""
    for place in range(len(data)):
        yield place, data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]


def test_a_flipped_bit_anywhere_is_found(tmp_path):
    mf.save(DAMAGED, tmp_path / "a", {"epoch": "3"})
    data = (tmp_path / "a").read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    for place, damaged in flips(data):
        (tmp_path / "b").write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"is damaged|not a complete safetensors file"):
            mf.load(tmp_path / "b")
        if place < header:
            with pytest.raises(CheckpointError, match=r"is damaged|not a complete safetensors file"):
                mf.load_metadata(tmp_path / "b")


def test_a_flipped_bit_in_a_state_is_found(tmp_path):
    save_state({"step": 3, "w": mf.ones(2), "rng": mf.get_rng_state()}, tmp_path / "a")
    for place, damaged in flips((tmp_path / "a").read_bytes()):
        if place % 3 == 0:
            (tmp_path / "b").write_bytes(damaged)
            with pytest.raises(CheckpointError, match=r"is damaged|not a complete safetensors file"):
                load_state(tmp_path / "b")


def test_the_error_of_a_damaged_file_names_a_remedy(tmp_path):
    mf.save(DAMAGED, tmp_path / "a")
    data = bytearray((tmp_path / "a").read_bytes())
    data[-1] ^= 1
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(
        CheckpointError, match=r"load: .*a is damaged: its elements have changed .*another copy.*Nothing was"
    ):
        mf.load(tmp_path / "a")
    assert mf.load_metadata(tmp_path / "a") == {}  # the header is whole


def test_an_old_file_without_a_digest_is_loaded(tmp_path):
    from safetensors.numpy import save_file

    save_file({"w": NUMBERS}, tmp_path / "a", {"epoch": "3"})
    assert mf.load(tmp_path / "a")["w"].tolist() == NUMBERS.tolist()
    assert mf.load_metadata(tmp_path / "a") == {"epoch": "3"}


def test_a_file_with_a_digest_is_opened_by_safetensors(tmp_path):
    from safetensors import safe_open

    mf.save(DAMAGED, tmp_path / "a", {"epoch": "3"})
    with safe_open(tmp_path / "a", framework="numpy") as file:
        assert file.get_tensor("n").tolist() == [3, 4]
        texts = file.metadata()
    assert texts.pop("epoch") == "3"
    (text,) = texts.values()
    assert text.startswith("minifuse-sha256 ")


@pytest.mark.parametrize("order", [("w", "n"), ("n", "w")])
def test_a_digest_does_not_depend_on_the_order_of_tensors(tmp_path, order):
    from safetensors import safe_open
    from safetensors.numpy import save_file

    mf.save(DAMAGED, tmp_path / "a", {"epoch": "3"})
    with safe_open(tmp_path / "a", framework="numpy") as file:
        arrays, texts = {name: file.get_tensor(name) for name in order}, file.metadata()
    save_file(arrays, tmp_path / "b", texts)
    same(mf.load(tmp_path / "b"), DAMAGED)
    save_file({"w": arrays["n"], "n": arrays["w"]}, tmp_path / "b", texts)  # as another program might change it
    with pytest.raises(CheckpointError, match=r"must remove 'minifuse\.digest' from the metadata"):
        mf.load(tmp_path / "b")


def test_the_name_of_the_digest_is_reserved(tmp_path):
    with pytest.raises(DTypeError, match=r"the metadata key 'minifuse\.digest' is reserved"):
        mf.save({}, tmp_path / "a", {"minifuse.digest": "x"})
    assert names(tmp_path) == []


# Paths and names that cannot be


@pytest.mark.parametrize(("call", "path"), [("save", "a\0b"), ("load", "a\0b"), ("save", os.devnull), ("load", os.devnull)])
def test_an_impossible_path_is_an_error(call, path):
    with pytest.raises(CheckpointError, match=r"null (byte|character)|a device or a pipe"):
        mf.save({}, path) if call == "save" else mf.load(path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for attempt in (lambda: mf.load(tmp_path / "pipe"), lambda: mf.save({}, tmp_path / "pipe")):
        with pytest.raises(CheckpointError, match="a device or a pipe, not a regular file"):
            attempt()


def test_text_without_a_utf8_encoding_is_an_error(tmp_path):
    with pytest.raises(DTypeError, match=r"got '\\ud800' as the name"):
        mf.save({"\ud800": mf.ones(1)}, tmp_path / "a")
    with pytest.raises(DTypeError, match=r"metadata 'a' is '\\udcff', expected str keys and values"):
        mf.save({}, tmp_path / "a", {"a": "\udcff"})
    assert names(tmp_path) == []


def test_a_state_that_contains_itself_is_an_error(tmp_path):
    state = []
    state.append(state)
    with pytest.raises(DTypeError, match="nested too deeply, or contains itself"):
        save_state(state, tmp_path / "a")


def test_a_state_is_read_from_one_file_while_another_replaces_it(tmp_path, monkeypatch):
    save_state({"step": 1, "w": mf.ones(2)}, tmp_path / "a")
    unflattened = serialization.unflatten_state

    def replaced(*found):
        save_state({"step": 2, "v": mf.zeros(1)}, tmp_path / "a")
        return unflattened(*found)

    monkeypatch.setattr(serialization, "unflatten_state", replaced)
    assert repr(load_state(tmp_path / "a")) == repr({"step": 1, "w": mf.ones(2)})


# Whole states


def test_a_state_is_restored_unchanged(tmp_path):
    state = {
        "none": None,
        "flags": [True, False],
        "numbers": (1, -2.5, 1e-300, 2**100, float("inf"), 0.1 + 0.2),
        "texts": ["", "ü", '{"tensor": "x"}'],
        "nested": {0: {"w": mf.ones(2)}, (1, "a"): [mf.zeros(3), ({"b": mf.tensor(7)},)]},
        1: {},
        "empty": [(), []],
    }
    save_state(state, tmp_path / "a")
    found = load_state(tmp_path / "a")
    assert repr(found) == repr(state)
    assert type(found["flags"][0]) is bool
    assert type(found["numbers"][0]) is int
    assert set(mf.load(tmp_path / "a")) == {"nested.0.w", "nested.(1, 'a').0", "nested.(1, 'a').1.0.b"}
    save_state(mf.ones(2), tmp_path / "b")
    assert load_state(tmp_path / "b", "python").backend == "python"


def test_numbers_are_restored_bit_by_bit(tmp_path):
    numbers = np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.arange(-300, 300).repeat(2)[:1000]
    save_state([*map(float, numbers), float("nan")], tmp_path / "a")
    *found, last = load_state(tmp_path / "a")
    assert found == numbers.tolist()
    assert last != last  # NaN


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"x": NUMBERS}, "x is ndarray, expected a tensor, a number"),
        ({"a": [1, {2}]}, "a.1 is set"),
        (lambda: 1, "the state is function"),
        ({"a": {"b": mf.ones(1)}, "a.b": mf.ones(1)}, "two tensors would have the name 'a.b'"),
        ({"x": np.float32(1)}, "x is float32"),
    ],
)
def test_unsupported_states_are_errors(tmp_path, state, words):
    with pytest.raises(DTypeError, match=words):
        save_state(state, tmp_path / "a")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        '{"tensor": "gone"}',
        '{"list": []}',
        '{"tuple": 3}',
        "[",
        '{"dict": [[1]]}',
        '{"a": 1, "b": 2}',
        '{"dict": [[[], 1]]}',
    ],
)
def test_a_state_that_does_not_fit_its_tensors(tmp_path, text):
    mf.save({"x": mf.ones(1)}, tmp_path / "a", {serialization.STATE_KEY: text})
    with pytest.raises(CheckpointError, match="describes a tree that does not match its tensors"):
        load_state(tmp_path / "a")


def test_tensors_alone_are_no_state(tmp_path):
    mf.save({"x": mf.ones(1)}, tmp_path / "a")
    with pytest.raises(CheckpointError, match=r"was not written by save_state; read its tensors with mf\.load"):
        load_state(tmp_path / "a")


def world():
    """A network that learns from random numbers: all of its state."""
    mf.manual_seed(5)
    model = mf.nn.Sequential(mf.nn.Linear(3, 4), mf.nn.ReLU(), mf.nn.Linear(4, 2))
    optimizer = mf.optim.AdamW(model.parameters(), lr=0.1)
    schedule = mf.optim.CosineSchedule(optimizer, steps=10, warmup=2)
    loader = mf.data.Loader(mf.arange(12).reshape(4, 3).to("float32"), batch_size=2, seed=3)
    return model, optimizer, schedule, loader


def epoch(model, optimizer, schedule, loader):
    for (x,) in loader:
        loss = (model(x + mf.randn(*x.shape)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        mf.optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return loss.item()


def test_a_training_run_goes_on_as_if_it_had_never_stopped(tmp_path):
    model, optimizer, schedule, loader = whole = world()
    losses = [epoch(*whole) for _ in range(4)]
    whole = model, optimizer, schedule, loader = world()
    first = [epoch(*whole) for _ in range(2)]
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
    state = {name: part.state_dict() for name, part in parts.items()} | {"epoch": loader.epoch}
    save_state({**state, "random": mf.get_rng_state()}, tmp_path / "run")
    mf.randn(3)
    model, optimizer, schedule, loader = whole = world()
    state = load_state(tmp_path / "run")
    for name, part in {"model": model, "optimizer": optimizer, "schedule": schedule}.items():
        part.load_state_dict(state[name])
    loader.epoch = state["epoch"]
    mf.set_rng_state(state["random"])
    assert first + [epoch(*whole) for _ in range(2)] == losses


def test_a_tensor_alone_is_restored_as_a_tensor(tmp_path):
    mf.save(mf.tensor(NUMBERS), tmp_path / "a")
    assert mf.load(tmp_path / "a", "python").tolist() == NUMBERS.tolist()
    assert load_state(tmp_path / "a").tolist() == NUMBERS.tolist()


def test_tensors_are_written_to_an_open_file_and_read_at_its_position():
    file = io.BytesIO()
    file.write(b"before")
    mf.save(samples(), file, {"epoch": "1"})
    for read, expected in ((mf.load, samples()), (mf.load_metadata, {"epoch": "1"})):
        file.seek(len(b"before"))
        found = read(file)
        same(found, expected) if read is mf.load else None
        assert found.keys() == expected.keys()
    file.seek(0)
    with pytest.raises(CheckpointError, match="not a complete safetensors file"):
        mf.load(file)


def test_a_state_is_stored_in_memory():
    file = io.BytesIO()
    save_state({"step": 3}, file)
    file.seek(0)
    assert load_state(file) == {"step": 3}
