"""data.files: idx and npz files are read as they were written; a damaged file is an error and executes nothing."""

import gzip
import io
import re
import struct
import tracemalloc
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import minifuse as mf
from minifuse.core.errors import DataError
from minifuse.data import files, read_csv, read_idx, read_npz

CODES = {np.dtype(name).newbyteorder("="): code for code, name in files.IDX_TYPES.items()}
READERS = [read_idx, read_csv, read_npz]


def packed_up(content):
    """A gzip file that says nothing of the time: names of tests hold it."""
    return gzip.compress(content, mtime=0)


def idx(array):
    """The bytes of an array in the idx format."""
    array = np.asarray(array)
    header = bytes([0, 0, CODES[array.dtype], array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def npz(**named):
    stream = io.BytesIO()
    np.savez(stream, **named)
    return stream.getvalue()


@contextmanager
def at_most(nbytes):
    """Fail if more memory than this was in use at any time within."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < nbytes, f"{peak:,} bytes"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("data") / "some file"


def read(reader, path, content):
    """What a reader makes of some bytes; every error names the path."""
    path.write_bytes(content)
    try:
        return reader(path)
    except DataError as error:
        text = str(error)
        if str(path) not in text or reader.__name__ not in text:
            raise AssertionError(f"the message does not say which file and which function: {text}") from None
        raise


# idx


@given(data=st.data(), code=st.sampled_from(sorted(files.IDX_TYPES)), packed=st.booleans())
def test_idx_files_are_read_as_written(data, code, packed, path):
    dtype = np.dtype(files.IDX_TYPES[code]).newbyteorder("=")
    array = data.draw(arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)))
    x = read(read_idx, path, packed_up(idx(array)) if packed else idx(array))
    assert x.dtype.name == (dtype.name if dtype.kind == "f" else "int32")
    assert x.shape == array.shape
    np.testing.assert_array_equal(x.numpy(), array)


def test_images_and_labels_as_one_wants_them(path):
    images = np.arange(2 * 28 * 28).reshape(2, 28, 28).astype(np.uint8)
    path.write_bytes(packed_up(idx(images)))
    x = read_idx(path, "float32", backend="python") / 255
    assert (x.shape, x.dtype, x.backend) == ((2, 28, 28), mf.float32, "python")
    np.testing.assert_allclose(x.numpy() * 255, images, rtol=1e-6)
    path.write_bytes(idx(np.array([7, 255], np.uint8)))
    y = read_idx(path, dtype=mf.int64)
    assert (y.tolist(), y.dtype) == ([7, 255], mf.int64)


def test_idx_larger_than_one_piece(path, monkeypatch):
    monkeypatch.setattr(files, "READ_CHUNK_BYTES", 7)
    array = np.random.default_rng(0).integers(-1000, 1000, (13, 17)).astype(np.int16)
    for content in (idx(array), packed_up(idx(array))):
        np.testing.assert_array_equal(read(read_idx, path, content).numpy(), array)


@pytest.mark.parametrize("packed", [False, True])
def test_idx_cut_anywhere_is_an_error(path, packed):
    content = idx(np.arange(60, dtype=np.int32).reshape(3, 4, 5))
    content = packed_up(content) if packed else content
    assert read(read_idx, path, content).shape == (3, 4, 5)
    for end in range(len(content)):
        with pytest.raises(DataError):
            read(read_idx, path, content[:end])


def test_idx_with_a_wrong_header_is_an_error(path):
    content = idx(np.arange(6, dtype=np.int16).reshape(2, 3))
    for bit in range(8 * 12):  # each of the header, flipped
        wrong = bytearray(content)
        wrong[bit // 8] ^= 1 << bit % 8
        with at_most(1 << 20), pytest.raises(DataError):
            read(read_idx, path, bytes(wrong))


def test_a_gzip_file_with_a_flipped_bit_is_no_other_array(path):
    content = packed_up(idx(np.arange(50, dtype=np.uint8)))
    for place in range(len(content)):
        wrong = bytearray(content)
        wrong[place] ^= 1 << place % 8
        try:
            found = read(read_idx, path, bytes(wrong)).tolist()
        except DataError:
            continue
        assert found == list(range(50))  # the time and the name of the system in the header mean nothing


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            b"",
            r"starts with the bytes \[\], expected 00 00, the code of an element type \(8, 9, 11, 12, 13, 14\), .* idx file",
        ),
        (b"\x89PNG\r\n", r"starts with the bytes \[89 50 4e 47\]"),
        (b"\0\0\x0a\1\0\0\0\0", r"starts with the bytes \[00 00 0a 01\]"),
        (b"\0\0\x08\x41", r"starts with the bytes \[00 00 08 41\]"),
        (b"\0\0\x08\3\0\0\0\1\0", "ends in its header: got 5 of 12 bytes of the sizes"),
        (b"\0\0\x08\1\0\0\0\4ab", r"shape \(4,\) of uint8 in its header needs 4 bytes, but 2 follow; download it again"),
        (b"\0\0\x08\1\0\0\0\4abcde", "is too long: .* 4 bytes, but more follow"),
        (b"\0\0\x0e\3" + b"\xff" * 12, "is truncated or damaged: .* but 0 follow"),
        (packed_up(b"\0\0\x08\1\0\0\0\4ab"), "4 bytes, but 2 follow"),
        (packed_up(b"\0\0\x08\1\0\0\0\4abcde"), "is too long"),
        (packed_up(b"\0\0\x0e\3" + b"\xff" * 12), "but it cannot contain more than"),
        (packed_up(b"\0\0\x08\1\0\0\0\4abcd") + b"some more", "damaged gzip file"),
    ],
)
def test_idx_errors_name_the_damage(content, words, path):
    with at_most(1 << 20), pytest.raises(DataError, match=words):
        read(read_idx, path, content)


# npz


SAVED = {
    "bool": ([True, False], mf.bool_),
    "int8": ([-1, 2], mf.int32),
    "uint8": ([1, 255], mf.int32),
    "int16": ([-5, 6], mf.int32),
    "uint16": ([1, 65535], mf.int32),
    "int32": ([1, 2], mf.int32),
    "uint32": ([1, 2**32 - 1], mf.int64),
    "int64": ([-1, 2**62], mf.int64),
    "uint64": ([1, 2**62], mf.int64),
    "float16": ([0.5, 2], mf.float32),
    "float32": ([0.5, np.inf], mf.float32),
    "float64": ([0.1, np.nan], mf.float64),
    ">f4": ([0.5, 2], mf.float32),
    ">i8": ([1, 2], mf.int64),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_files_are_read_as_saved(save, path):
    saved = {f"a {name}": np.array(values, name) for name, (values, _) in SAVED.items()}
    saved |= {"empty": np.zeros((0, 3)), "number": np.float32(3), "turned": np.arange(12.0).reshape(3, 4).T}
    with path.open("wb") as file:
        save(file, **saved)
    found = read_npz(path, backend="python")
    assert list(found) == list(saved)
    for name, x in found.items():
        assert (x.shape, x.backend) == (saved[name].shape, "python")
        np.testing.assert_array_equal(x.numpy(), saved[name])
    assert [found[f"a {name}"].dtype for name in SAVED] == [dtype for _, dtype in SAVED.values()]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_cut_anywhere_is_an_error(path, save):
    stream = io.BytesIO()
    save(stream, x=np.arange(5, dtype=np.float32), y=np.arange(3))
    content = stream.getvalue()
    for end in range(len(content)):
        with pytest.raises(DataError):
            read(read_npz, path, content[:end])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.filterwarnings("ignore:Reading `.npy`")  # NumPy takes some damaged headers for those of Python 2
def test_npz_with_a_flipped_bit_is_an_error_or_unchanged(path, save):
    stream = io.BytesIO()
    save(stream, x=np.arange(4, dtype=np.int32))
    content, errors = stream.getvalue(), 0
    for place in range(len(content)):
        wrong = bytearray(content)
        wrong[place] ^= 1 << place % 8
        try:
            found = read(read_npz, path, bytes(wrong))
        except DataError:
            errors += 1
            continue
        assert [x.tolist() for x in found.values()] in ([[0, 1, 2, 3]], [])  # times, and other things that mean nothing
    assert errors > len(content) // 3


class Bomb:
    """What a pickle can do."""

    def __reduce__(self):
        return Path.touch, (Path("exploded"),)


def test_nothing_is_unpickled(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"array 'x' has dtype object, expected bool, integers .* never unpickled"):
        read(read_npz, path, npz(x=np.array([Bomb()], object)))
    assert not Path("exploded").exists()


def zipped(content, name="x.npy", method=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def npy(header, body=b""):
    header = header.encode() + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + body


def test_a_header_that_claims_much_takes_no_memory(path):
    claims = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000)}"
    with (
        at_most(1 << 20),
        pytest.raises(
            DataError, match=r"shape \(1000000, 1000000\) of float64 in its header needs 8,000,000,000,000 bytes, but 0"
        ),
    ):
        read(read_npz, path, zipped(npy(claims)))
    content = bytearray(npz(x=np.arange(3)))
    directory = content.rindex(b"PK\1\2")
    content[directory + 24 : directory + 28] = b"\xf0\xff\xff\xff"
    with at_most(1 << 20), pytest.raises(DataError, match="got a size of 4,294,967,280 bytes in a file of"):
        read(read_npz, path, bytes(content))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not an npz file, or truncated .*; write it with numpy.savez"),
        (b"x,y\n1,2\n", "is not an npz file"),
        (zipped(b"hello"), "array 'x' is damaged"),
        (zipped(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", b"12345678")), "12 bytes, but 8 follow"),
        (zipped(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", b"12345678")), "4 bytes, but 8 follow"),
        (zipped(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -2)}", b"12345678")), "damaged"),
        (zipped(npy("{'descr': '<f4', 'shape': (1,)}")), "array 'x' is damaged"),
        (zipped(npy("__import__('os').abort()")), "array 'x' is damaged"),
        (npz(x=np.array(["word"])), "array 'x' has dtype <U4, expected bool"),
        (npz(x=np.array([1j])), "has dtype complex128"),
        (npz(x=np.zeros(2, [("a", "f4")])), "a record|records are kept as one array a field"),
        (npz(x=np.array([2**64 - 1], np.uint64)), "array 'x' has dtype uint64: .* does not fit int64"),
    ],
    ids=lambda x: "" if isinstance(x, bytes) else x,  # contents have the time in them, and all workers must agree on names
)
def test_npz_errors_name_the_damage(content, words, path):
    with pytest.raises(DataError, match=words):
        read(read_npz, path, content)


def test_a_packed_array_that_ends_too_soon(path):
    """The directory and the header agree, the checksum is right, and yet there are fewer bytes."""
    body = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", b"12345678")
    content = bytearray(zipped(body, method=zipfile.ZIP_DEFLATED))
    place = content.rindex(b"PK\1\2") + 24
    content[place : place + 4] = struct.pack("<I", len(body) + 4)
    with pytest.raises(DataError, match="array 'x' is truncated"):
        read(read_npz, path, bytes(content))


def test_bools_are_true_or_false(path):
    body = npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", bytes([0, 1, 7]))
    x = read(read_npz, path, zipped(body))["x"]
    assert x.tolist() == [False, True, True]
    assert x.numpy().view(np.uint8).tolist() == [0, 1, 1]


# What the system says


@pytest.mark.parametrize("reader", READERS)
def test_missing_files_and_folders(reader, tmp_path):
    with pytest.raises(
        DataError, match=rf"{reader.__name__}: .*gone does not exist; .* relative to {re.escape(str(Path.cwd()))}"
    ):
        reader(tmp_path / "gone")
    with pytest.raises(DataError, match="is a folder, expected a file"):
        reader(str(tmp_path))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied"), "is not readable; change its permissions"),
        (OSError(5, "Input/output error"), "cannot be read: Input/output error"),
    ],
)
def test_files_that_may_not_be_read(reader, error, words, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(DataError, match=rf"{reader.__name__}: .*file {words}"):
        reader(tmp_path / "file")


def test_no_file_stays_open(path):
    """A file that is still open when its object goes away is a ResourceWarning, which is an error here."""
    path.write_bytes(idx(np.arange(3, dtype=np.uint8)))
    read_idx(path)
    path.write_bytes(npz(x=np.arange(3)))
    assert read_npz(path)["x"].tolist() == [0, 1, 2]
