"""Examples from files of arrays: MNIST's idx, and NumPy's npz.

What a file says of itself is held against its length before memory is asked for, nothing in it is ever run (NumPy's pickles
are refused), and whatever is wrong is a `DataError` with the path, what was found there and what was expected. Text is read
in tables.py; not here: downloads, pictures.
"""

import gzip
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ..core.dtypes import BY_NUMPY, as_dtype
from ..core.errors import DataError, DTypeError
from ..tensors.creation import DTypeLike, from_numpy, tensor
from ..tensors.tensor import Tensor

StrPath = str | os.PathLike[str]

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MOST_DIMS = 64  # of an array of NumPy
GZIP = b"\x1f\x8b"
INFLATION = 1032  # bytes that a byte of DEFLATE stands for at most
SLACK = 1 << 16  # bytes: so little is never refused as too much
PIECE = 1 << 20  # bytes read at a time
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
# What zipfile and NumPy's parser of headers raise at bytes that are not what they should be.
UNPARSED = (zipfile.BadZipFile, struct.error, ValueError, TypeError, RuntimeError, OverflowError, SyntaxError)
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_idx(path: StrPath, dtype: DTypeLike = None, backend: str | None = None) -> Tensor:
    """An array from a file in the idx format, in which MNIST and its like are kept; gzip is undone.

    Parameters
    ----------
    path : path
        "train-images-idx3-ubyte" or "train-labels-idx1-ubyte.gz"; the name means nothing, the content does.
    dtype : DType, str or type, optional
        The element type: float32 for pixels, int64 for classes. If left out, integers of up to 32 bits become int32,
        floats stay as they are.
    backend : str, optional
        Where the tensor lives; the default backend if left out.

    Returns
    -------
    Tensor
        Of the shape that the file says: (60000, 28, 28) for images, (60000,) for labels. Pixels go from 0 to 255.

    Raises
    ------
    DataError
        The file is missing or unreadable, is no idx file, or is longer or shorter than its header says.

    Notes
    -----
    The header is two zero bytes, the code of the element type (8: uint8, 9: int8, 11: int16, 12: int32, 13: float32,
    14: float64), the number of dims, and the size of each in four bytes; then come the elements; all big-endian.

    References
    ----------
    Y. LeCun, C. Cortes, C. Burges, The MNIST Database of Handwritten Digits, 1998, section "File formats"

    Examples
    --------
    >>> import minifuse as mf, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "labels-idx1-ubyte")
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))  # uint8, one dim, of size 3
    >>> mf.data.read_idx(path, dtype="int64")
    tensor([7, 2, 1])
    """
    wanted = None if dtype is None else as_dtype(dtype)
    with opened(path, "read_idx") as (file, nbytes):
        is_packed = file.read(2) == GZIP
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if is_packed else file
        try:
            data, shape = idx_elements(path, stream, nbytes * INFLATION + SLACK if is_packed else nbytes, is_packed)
        except DAMAGED as error:
            raise DataError(f"read_idx: {path} is a damaged gzip file ({error}); fetch it again") from None
    if wanted is None:
        wanted = BY_NUMPY.get(data.dtype.newbyteorder("=")) or as_dtype("int32")
    return tensor(data.reshape(shape), dtype=wanted, backend=backend)


def idx_elements(path: StrPath, stream: Any, most: int, is_packed: bool) -> tuple[npt.NDArray[Any], tuple[int, ...]]:
    """The elements of an idx file and their shape; `most` bytes could be there, if it were all the file holds."""
    start = stream.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in IDX_TYPES or start[3] > MOST_DIMS:
        codes = ", ".join(str(code) for code in IDX_TYPES)
        raise DataError(
            f"read_idx: {path} starts with the bytes [{start.hex(' ')}], expected 00 00, a code of an element type "
            f"({codes}), and the number of dims (0 to {MOST_DIMS}); is it an idx file?"
        )
    element, ndim = np.dtype(IDX_TYPES[start[2]]), start[3]
    sizes = stream.read(4 * ndim)
    if len(sizes) < 4 * ndim:
        raise DataError(
            f"read_idx: {path} ends in its header: {len(sizes)} of {4 * ndim} bytes of the sizes are there; fetch it again"
        )
    shape = struct.unpack(f">{ndim}I", sizes)
    expected, header = math.prod(shape) * element.itemsize, 4 + 4 * ndim
    says = f"its header says shape {shape} of {element.newbyteorder('=').name}, {expected:,} bytes"
    if header + expected > most:
        there = f"it cannot hold more than {most - header:,}" if is_packed else f"{most - header:,} follow"
        raise DataError(f"read_idx: {path} is cut short or damaged: {says}, and {there}; fetch it again")
    data = np.empty(expected, np.uint8)
    found = filled(stream, data.data)
    if found < expected:
        raise DataError(f"read_idx: {path} is cut short: {says}, and {found:,} follow; fetch it again")
    if stream.read(1):
        raise DataError(f"read_idx: {path} goes on after its last element: {says}, and more follow; is it damaged?")
    return data.view(element), shape


def filled(stream: Any, memory: memoryview) -> int:
    """Read until memory is full or the stream ends; the bytes that came."""
    found = 0
    while found < len(memory):
        count = stream.readinto(memory[found : found + PIECE])
        if not count:
            break
        found += count
    return found


def read_npz(path: StrPath, backend: str | None = None) -> dict[str, Tensor]:
    """The arrays of a file that `numpy.savez` or `numpy.savez_compressed` wrote.

    Parameters
    ----------
    path : path
        The file.
    backend : str, optional
        Where the tensors live; the default backend if left out.

    Returns
    -------
    dict of str to Tensor
        By name. Smaller integers become int32, float16 becomes float32; all other dtypes must be minifuse's.

    Raises
    ------
    DataError
        The file is missing, unreadable or damaged, or an array holds something else than numbers. Pickled objects, which
        could run any code, are never loaded.

    Examples
    --------
    >>> import minifuse as mf, numpy as np, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "points.npz")
    >>> np.savez(path, x=np.zeros((3, 2), np.float32), y=np.arange(3))
    >>> {name: (x.shape, x.dtype) for name, x in mf.data.read_npz(path).items()}
    {'x': ((3, 2), float32), 'y': ((3,), int64)}
    """
    with opened(path, "read_npz") as (file, nbytes):
        try:
            archive = zipfile.ZipFile(file)
            members = archive.infolist()
        except (*UNPARSED, *DAMAGED) as error:
            raise DataError(f"read_npz: {path} is no npz file, or cut short ({error}); write it with numpy.savez") from None
        return {info.filename.removesuffix(".npy"): member(path, archive, info, nbytes, backend) for info in members}


def member(path: StrPath, archive: zipfile.ZipFile, info: zipfile.ZipInfo, nbytes: int, backend: str | None) -> Tensor:
    """One array of an npz file of so many bytes."""
    name = f"read_npz: {path}, array {info.filename.removesuffix('.npy')!r}"
    if info.compress_type not in METHODS:
        raise DataError(f"{name} is packed by method {info.compress_type}, expected that of numpy.savez; it is damaged")
    if info.file_size > nbytes * INFLATION + SLACK:
        raise DataError(f"{name}: {info.file_size:,} bytes are said to lie in a file of {nbytes:,}; it is damaged")
    try:
        with archive.open(info) as stream:
            data = npy_elements(name, stream, info.file_size)
    except DataError:
        raise
    except (*UNPARSED, *DAMAGED) as error:
        raise DataError(f"{name} is damaged ({error}); write the file again with numpy.savez") from None
    narrow = {"i": "int32", "u": "int32" if data.dtype.itemsize < 4 else "int64", "f": "float32"}
    dtype = BY_NUMPY.get(data.dtype.newbyteorder("=")) or as_dtype(narrow[data.dtype.kind])
    if data.dtype == dtype.numpy and data.flags.c_contiguous:
        return from_numpy(data, backend)
    try:
        return tensor(data, dtype=dtype, backend=backend)
    except DTypeError as error:
        raise DataError(f"{name} is of {data.dtype}: {error}") from None


def npy_elements(name: str, stream: IO[bytes], nbytes: int) -> npt.NDArray[Any]:
    """The array of a stream of so many bytes in NumPy's npy format."""
    version = np.lib.format.read_magic(stream)
    if version not in {(1, 0), (2, 0)}:
        raise DataError(f"{name} is in version {version} of NumPy's format, expected 1.0 or 2.0; are its names plain?")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read(stream)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise DataError(
            f"{name} is of dtype {dtype}, expected bool, integers or floats of up to 64 bits; objects are never unpickled, "
            "and records are kept as one array a field"
        )
    count = math.prod(shape)
    there = nbytes - stream.tell()
    if min(shape, default=0) < 0 or count * dtype.itemsize != there:
        raise DataError(
            f"{name}: its header says shape {shape} of {dtype}, {count * dtype.itemsize:,} bytes, and {there:,} follow; "
            "it is damaged, write the file again with numpy.savez"
        )
    memory = np.empty(there, np.uint8)
    if filled(stream, memory.data) < there:  # at the last byte, zipfile compares the checksum
        raise DataError(f"{name} is cut short; write the file again with numpy.savez")
    data = memory.view(dtype)
    if data.dtype == np.bool_:
        data = data.view(np.uint8) != 0  # any other byte than 0 and 1 would be a third truth
    return data.reshape(shape, order="F" if is_fortran else "C")


@contextmanager
def opened(path: StrPath, caller: str) -> Iterator[tuple[IO[bytes], int]]:
    """A file to read and its length in bytes; what the system reports while it is read is said in our words."""
    try:
        with Path(path).open("rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise DataError(f"{caller}: there is no file {path}; is the path right, from {Path.cwd()}?") from None
    except IsADirectoryError:
        raise DataError(f"{caller}: {path} is a folder, expected a file; name the file in it") from None
    except PermissionError:
        raise DataError(f"{caller}: {path} may not be read by this user; change its permissions") from None
    except OSError as error:
        raise DataError(f"{caller}: {path} cannot be read: {error.strerror or error}") from None
