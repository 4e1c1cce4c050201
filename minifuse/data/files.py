"""Readers of array files: the idx format of MNIST, and NumPy's npz.

Sizes in a header are compared with the length of the file before memory is allocated, and nothing in a file is executed
(NumPy pickles are refused). Every error is a `DataError` with the path, the content that was read, and what was expected.
Text files are read in tables.py. Not here: downloads, image formats.
"""

import gzip
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from ..core.dtypes import BY_NUMPY, DType, as_dtype
from ..core.errors import DataError, DTypeError
from ..tensors.creation import DTypeLike, from_numpy, tensor
from ..tensors.tensor import Tensor

StrPath = str | os.PathLike[str]

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MAX_DIMS = 64  # NumPy's limit
GZIP_MAGIC = b"\x1f\x8b"
MAX_COMPRESSION_RATIO = 1032  # the largest ratio that DEFLATE reaches
MIN_SIZE_LIMIT = 1 << 16  # bytes: arrays up to this size are always read
READ_CHUNK_BYTES = 1 << 20
DECOMPRESSION_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)
# Raised by zipfile and NumPy's header parser for malformed bytes.
PARSE_ERRORS = (zipfile.BadZipFile, struct.error, ValueError, TypeError, RuntimeError, OverflowError, SyntaxError)
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_idx(path: StrPath, dtype: DTypeLike = None, backend: str | None = None) -> Tensor:
    """Read an array from a file in the idx format of MNIST, which may be compressed by gzip.

    Parameters
    ----------
    path : path
        "train-images-idx3-ubyte" or "train-labels-idx1-ubyte.gz". The format is detected from the content, not the name.
    dtype : DType, str or type, optional
        The dtype of the result: float32 for pixels, int64 for classes. Default: int32 for integers of up to 32 bits, and
        the dtype of the file for floats.
    backend : str, optional
        The backend of the tensor. Default: the default backend.

    Returns
    -------
    Tensor
        The shape given in the file: (60000, 28, 28) for images, (60000,) for labels. Pixels are from 0 to 255.

    Raises
    ------
    DataError
        The file is missing or unreadable, is not an idx file, or its length does not match its header.

    Notes
    -----
    The header is two zero bytes, the code of the element type (8: uint8, 9: int8, 11: int16, 12: int32, 13: float32,
    14: float64), the number of dims, and the size of each dim in four bytes. The elements follow. Numbers are big-endian.

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
    target_dtype = None if dtype is None else as_dtype(dtype)
    with open_file(path, "read_idx") as (file, nbytes):
        is_packed = file.read(2) == GZIP_MAGIC
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if is_packed else file
        try:
            data, shape = read_idx_elements(
                path, stream, nbytes * MAX_COMPRESSION_RATIO + MIN_SIZE_LIMIT if is_packed else nbytes, is_packed
            )
        except DECOMPRESSION_ERRORS as error:
            raise DataError(f"read_idx: {path} is a damaged gzip file ({error}); download it again") from None
    if target_dtype is None:
        target_dtype = dtype_in_memory(data.dtype)
    return tensor(data.reshape(shape), dtype=target_dtype, backend=backend)


def read_idx_elements(
    path: StrPath, stream: BufferedIOBase, max_nbytes: int, is_packed: bool
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the elements of an idx file and their shape. The file contains at most `max_nbytes` bytes, decompressed."""
    first_bytes = stream.read(4)
    if len(first_bytes) < 4 or first_bytes[:2] != b"\0\0" or first_bytes[2] not in IDX_TYPES or first_bytes[3] > MAX_DIMS:
        codes = ", ".join(str(code) for code in IDX_TYPES)
        raise DataError(
            f"read_idx: {path} starts with the bytes [{first_bytes.hex(' ')}], expected 00 00, the code of an element type "
            f"({codes}), and the number of dims (0 to {MAX_DIMS}); is it an idx file?"
        )
    element_dtype, ndim = np.dtype(IDX_TYPES[first_bytes[2]]), first_bytes[3]
    size_bytes = stream.read(4 * ndim)
    if len(size_bytes) < 4 * ndim:
        raise DataError(
            f"read_idx: {path} ends in its header: got {len(size_bytes)} of {4 * ndim} bytes of the sizes; download it again"
        )
    shape = struct.unpack(f">{ndim}I", size_bytes)
    expected_nbytes, header_nbytes = math.prod(shape) * element_dtype.itemsize, 4 + 4 * ndim
    size_text = f"shape {shape} of {element_dtype.newbyteorder('=').name} in its header needs {expected_nbytes:,} bytes"
    if header_nbytes + expected_nbytes > max_nbytes:
        got = (
            f"it cannot contain more than {max_nbytes - header_nbytes:,}"
            if is_packed
            else f"{max_nbytes - header_nbytes:,} follow"
        )
        raise DataError(f"read_idx: {path} is truncated or damaged: {size_text}, but {got}; download it again")
    data = np.empty(expected_nbytes, np.uint8)
    count = read_into(stream, data.data)
    if count < expected_nbytes:
        raise DataError(f"read_idx: {path} is truncated: {size_text}, but {count:,} follow; download it again")
    if stream.read(1):
        raise DataError(f"read_idx: {path} is too long: {size_text}, but more follow; is it damaged?")
    return data.view(element_dtype), shape


def read_into(stream: BufferedIOBase, memory: memoryview) -> int:
    """Read until the memory is full or the stream ends, and return the number of bytes read."""
    total = 0
    while total < len(memory):
        count = stream.readinto(memory[total : total + READ_CHUNK_BYTES])
        if not count:
            break
        total += count
    return total


def read_npz(path: StrPath, backend: str | None = None) -> dict[str, Tensor]:
    """Read the arrays of a file written by `numpy.savez` or `numpy.savez_compressed`.

    Parameters
    ----------
    path : path
        The file.
    backend : str, optional
        The backend of the tensors. Default: the default backend.

    Returns
    -------
    dict of str to Tensor
        The arrays by name. Smaller integers become int32, float16 becomes float32; other dtypes must be supported by
        minifuse.

    Raises
    ------
    DataError
        The file is missing, unreadable or damaged, or an array contains anything but numbers. Pickled objects, which could
        run any code, are never loaded.

    Examples
    --------
    >>> import minifuse as mf, numpy as np, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "points.npz")
    >>> np.savez(path, x=np.zeros((3, 2), np.float32), y=np.arange(3))
    >>> {name: (x.shape, x.dtype) for name, x in mf.data.read_npz(path).items()}
    {'x': ((3, 2), float32), 'y': ((3,), int64)}
    """
    with open_file(path, "read_npz") as (file, nbytes):
        try:
            archive = zipfile.ZipFile(file)
            members = archive.infolist()
        except (*PARSE_ERRORS, *DECOMPRESSION_ERRORS) as error:
            raise DataError(
                f"read_npz: {path} is not an npz file, or truncated ({error}); write it with numpy.savez"
            ) from None
        return {info.filename.removesuffix(".npy"): read_member(path, archive, info, nbytes, backend) for info in members}


def read_member(path: StrPath, archive: zipfile.ZipFile, info: zipfile.ZipInfo, nbytes: int, backend: str | None) -> Tensor:
    """Read one array of an npz file of the given size."""
    name = f"read_npz: {path}, array {info.filename.removesuffix('.npy')!r}"
    if info.compress_type not in ZIP_METHODS:
        raise DataError(
            f"{name}: got compression method {info.compress_type}, expected a method of numpy.savez; it is damaged"
        )
    if info.file_size > nbytes * MAX_COMPRESSION_RATIO + MIN_SIZE_LIMIT:
        raise DataError(f"{name}: got a size of {info.file_size:,} bytes in a file of {nbytes:,}; it is damaged")
    try:
        with archive.open(info) as stream:
            assert isinstance(stream, BufferedIOBase)
            data = read_npy_elements(name, stream, info.file_size)
    except DataError:
        raise
    except (*PARSE_ERRORS, *DECOMPRESSION_ERRORS) as error:
        raise DataError(f"{name} is damaged ({error}); write the file again with numpy.savez") from None
    dtype = dtype_in_memory(data.dtype)
    if data.dtype == dtype.numpy and data.flags.c_contiguous:
        return from_numpy(data, backend)
    try:
        return tensor(data, dtype=dtype, backend=backend)
    except DTypeError as error:
        raise DataError(f"{name} has dtype {data.dtype}: {error}") from None


def dtype_in_memory(stored: np.dtype[Any]) -> DType:
    """Return the dtype of a tensor of elements in a file. Small integers become int32, so that labels are indices."""
    dtype = BY_NUMPY.get(stored.newbyteorder("="))
    if dtype is not None and not dtype.is_small:
        return dtype
    return as_dtype({"i": "int32", "u": "int32" if stored.itemsize < 4 else "int64", "f": "float32"}[stored.kind])


def read_npy_elements(name: str, stream: BufferedIOBase, nbytes: int) -> np.ndarray:
    """Read an array from a stream of the given size in NumPy's npy format."""
    version = np.lib.format.read_magic(stream)
    if version not in {(1, 0), (2, 0)}:
        raise DataError(f"{name} has version {version} of NumPy's format, expected 1.0 or 2.0; write it without field names")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read_header(stream)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise DataError(
            f"{name} has dtype {dtype}, expected bool, integers or floats of up to 64 bits; objects are never unpickled; "
            "save the fields of a record as separate arrays"
        )
    count = math.prod(shape)
    remaining = nbytes - stream.tell()
    if min(shape, default=0) < 0 or count * dtype.itemsize != remaining:
        raise DataError(
            f"{name}: shape {shape} of {dtype} in its header needs {count * dtype.itemsize:,} bytes, but {remaining:,} "
            "follow; it is damaged, write the file again with numpy.savez"
        )
    memory = np.empty(remaining, np.uint8)
    if read_into(stream, memory.data) < remaining:  # at the last byte, zipfile compares the checksum
        raise DataError(f"{name} is truncated; write the file again with numpy.savez")
    data = memory.view(dtype)
    if data.dtype == np.bool_:
        data = data.view(np.uint8) != 0  # a bool array must only contain the bytes 0 and 1
    return data.reshape(shape, order="F" if is_fortran else "C")


@contextmanager
def open_file(path: StrPath, caller: str) -> Iterator[tuple[BufferedReader, int]]:
    """Open a file and return it with its size in bytes; convert errors of the system to `DataError`."""
    try:
        with Path(path).open("rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise DataError(f"{caller}: {path} does not exist; is the path right, relative to {Path.cwd()}?") from None
    except IsADirectoryError:
        raise DataError(f"{caller}: {path} is a folder, expected a file; write the path of a file in it") from None
    except PermissionError:
        raise DataError(f"{caller}: {path} is not readable; change its permissions") from None
    except OSError as error:
        raise DataError(f"{caller}: {path} cannot be read: {error.strerror or error}") from None
