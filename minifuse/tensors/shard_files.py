"""The files of a sharded checkpoint: one safetensors file for each rank, and an index that all ranks read.

    step-200.0.rank-0-of-2.safetensors    ranges of tensors that rank 0 has written, and a description in the metadata
    step-200.0.rank-1-of-2.safetensors
    index.json                            written last: numbers and strings, and where each range of each tensor is stored

A stored range is a range of the elements of a tensor, flattened in row-major order after the divided dim is moved to the
front. So whatever ranges were written, the part of any rank is found in contiguous pieces. Each range is cut into segments
with a digest each. A reader verifies each segment that it needs. Most segments end where an even division of the tensor
among up to 8 ranks does, so these ranks read no byte twice.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b, sha256
from io import RawIOBase
from math import prod
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from ..core.dtypes import NumpyArray
from ..core.errors import CheckpointError
from ..core.even_parts import even_range
from ..core.indexing import Shape
from ..core.shards import Shard, flatten, unflatten
from ..runtime.atomic_files import reason, replace_content, replacement
from .serialization import DTYPE_NAMES
from .tensor import Tensor

INDEX = "index.json"
FORMAT = 1
DESCRIPTION_KEY = "minifuse.shards"  # key of the metadata of a rank's file
RANK_FILE = re.compile(r".+\.\d+\.rank-(\d+)-of-\d+\.safetensors(?:\.[0-9a-f]+\.tmp)?")  # or its temporary file
MAX_EVEN_RANKS = 8  # even divisions among so many ranks end at ends of segments
MAX_SEGMENT_BYTES = 1 << 20  # what a reader of a part of a segment reads at most in addition
PAGE_BYTES = 4096  # a disk reads whole pages, so smaller ranges are neither cut into segments nor divided among replicas
DIGEST_BYTES = 8
FORMAT_NAMES = {dtype: name for name, dtype in DTYPE_NAMES.items()}
PENDING_DIGEST = "0" * 2 * DIGEST_BYTES  # in the header of a file until its elements are written


class Segment(NamedTuple):
    """A piece of a stored range: where it ends in the flattened tensor, and the digest of its bytes."""

    stop: int
    digest: str


class StoredRange(NamedTuple):
    """Elements of a tensor in a file: number of the file, position there in bytes, first element, and segments."""

    file: int
    position: int
    start: int
    segments: list[Segment]


class StoredTensor(NamedTuple):
    """A tensor in a checkpoint: element type as the format names it, shape, the dim that is stored first, and ranges."""

    dtype: str
    shape: Shape
    order: int
    ranges: list[StoredRange]

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type."""
        return np.dtype(DTYPE_NAMES[self.dtype])

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)


class StoredFile(NamedTuple):
    """A file of a checkpoint: name, and size in bytes."""

    name: str
    nbytes: int


class WrittenRange(NamedTuple):
    """The elements of a tensor that this rank writes: the first of them, and where segments end. None of them if empty."""

    tensor: Tensor
    shard: Shard
    start: int
    stops: list[int]


def rank_file(version: str, rank: int, size: int) -> str:
    """Return the name of the file of a rank."""
    return f"{version}.rank-{rank}-of-{size}.safetensors"


def byte_view(flat: NumpyArray) -> NumpyArray:
    """Return the bytes of a contiguous 1-d array."""
    return flat.view(np.uint8)


def segment_digest(data: NumpyArray) -> str:
    """Return the digest of the bytes of a segment."""
    return blake2b(data.data, digest_size=DIGEST_BYTES).hexdigest()


def segment_stops(shape: Shape, order: int, start: int, stop: int, itemsize: int) -> list[int]:
    """Choose where the segments of a range end; an empty range has none."""
    if start == stop:
        return []
    if not shape or (stop - start) * itemsize <= PAGE_BYTES:
        return [stop]
    rows, per_segment = shape[order], MAX_SEGMENT_BYTES // itemsize
    size = prod(shape)
    stops = {stop, *range(start - start % per_segment, stop, per_segment)}
    for ranks in range(2, MAX_EVEN_RANKS + 1):
        for rank in range(1, ranks):
            stops.add(size // rows * even_range(rows, rank, ranks)[0])
            if order == 0:  # a flattened tensor may be divided anywhere
                stops.add(even_range(size, rank, ranks)[0])
    return sorted(x for x in stops if start < x <= stop)


# Writing.


def safetensors_header(specs: Mapping[str, tuple[str, Shape]], metadata: Mapping[str, str]) -> bytes:
    """Return the header of a safetensors file whose tensors are stored in the order of `specs`."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    position = 0
    for name, (dtype, shape) in specs.items():
        end = position + prod(shape) * np.dtype(DTYPE_NAMES[dtype]).itemsize
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def aligned_order(dtypes: Mapping[str, str]) -> list[str]:
    """Order tensors so that each is stored at a multiple of the size of its elements: large elements first."""
    return sorted(dtypes, key=lambda name: (-np.dtype(DTYPE_NAMES[dtypes[name]]).itemsize, name))


def written_range(name: str, x: Tensor, shard: Shard) -> WrittenRange:
    """Choose the elements of a tensor that this rank writes: of a part that several ranks hold, an even part of it."""
    start, stop = shard.span
    if (stop - start) * x.dtype.itemsize > PAGE_BYTES:
        low, high = even_range(stop - start, shard.replica, shard.replicas)
        start, stop = start + low, start + high
    elif crc32(name.encode()) % shard.replicas != shard.replica:
        stop = start
    return WrittenRange(x, shard, start, segment_stops(shard.shape, shard.order, start, stop, x.dtype.itemsize))


def write_rank_file(path: Path, ranges: Mapping[str, WrittenRange], facts: Mapping[str, object]) -> None:
    """Write ranges of tensors, and a description of them in the metadata."""
    dtypes = {name: FORMAT_NAMES[written.tensor.dtype.name] for name, written in ranges.items()}
    order = aligned_order({name: dtype for name, dtype in dtypes.items() if ranges[name].stops})
    specs = {name: (dtypes[name], (ranges[name].stops[-1] - ranges[name].start,)) for name in order}
    segments = {name: [Segment(stop, PENDING_DIGEST) for stop in written.stops] for name, written in ranges.items()}

    def header() -> bytes:
        tensors = {
            name: (dtypes[name], written.shard.shape, written.shard.order, written.start, segments[name])
            for name, written in ranges.items()
        }
        return safetensors_header(specs, {DESCRIPTION_KEY: json.dumps({**facts, "tensors": tensors})})

    with replacement(path) as file:
        file.write(header())
        for name in order:
            x, shard, start, stops = ranges[name]
            flat, first = flatten(x.detach().numpy(), shard.dim or 0), shard.span[0]
            for k, stop in enumerate(stops):
                data = byte_view(np.ascontiguousarray(flat[start - first : stop - first]))
                file.write(data.data)
                segments[name][k] = Segment(stop, segment_digest(data))
                start = stop
            del flat
        file.seek(0)
        file.write(header())  # of the same length, since all digests have the same length


# Reading.


class FileDescription(NamedTuple):
    """The header of a rank's file: its description, where its elements begin, positions of tensors, and the file's size."""

    facts: dict[str, Any]
    begin: int
    tensors: dict[str, Any]
    nbytes: int


def read_description(path: Path) -> FileDescription:
    """Read the header of a rank's file.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError, KeyError
        The header is damaged.
    """
    with path.open("rb") as file:
        nbytes = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if length > nbytes:
            raise ValueError("the header is longer than the file")
        tensors = json.loads(file.read(length))
    return FileDescription(json.loads(tensors.pop("__metadata__")[DESCRIPTION_KEY]), 8 + length, tensors, nbytes)


def read_bytes(file: RawIOBase, position: int, target: NumpyArray) -> None:
    """Fill an array of bytes from a position of a file.

    Raises
    ------
    EOFError
        The file ends before.
    """
    file.seek(position)
    view = target.data
    while view.nbytes:
        count = file.readinto(view)
        if not count:
            raise EOFError
        view = view[count:]


@dataclass(frozen=True)
class ShardIndex(Mapping[str, NumpyArray]):
    """The index of a complete checkpoint, and a mapping from names to whole arrays, which are read when they are asked for.

    Attributes
    ----------
    call : str
        The name of the public function, for errors.
    folder : Path
    version : str
        The name of the save.
    files : list of StoredFile
        By rank.
    state : str
        The tree of numbers, strings and names of tensors, as JSON.
    tensors : dict of str to StoredTensor
    """

    call: str
    folder: Path
    version: str
    files: list[StoredFile]
    state: str
    tensors: dict[str, StoredTensor]

    def write(self) -> None:
        """Replace the index in the folder atomically. From now on, the folder contains this checkpoint."""
        content = {
            "format": FORMAT,
            "version": self.version,
            "files": self.files,
            "state": self.state,
            "tensors": self.tensors,
        }
        replace_content(self.folder / INDEX, json.dumps({"digest": text_digest(content), **content}, separators=(",", ":")))

    @classmethod
    def read(cls, call: str, folder: Path) -> "ShardIndex | None":
        """Read the index in a folder; None if there is none.

        Raises
        ------
        CheckpointError
            The index cannot be read, or is damaged.
        """
        path = folder / INDEX
        try:
            content = json.loads(path.read_bytes())
            if content.pop("digest") != text_digest(content):
                raise ValueError("the SHA-256 digest differs")
            if content["format"] != FORMAT:
                raise CheckpointError(
                    f"{call}: {path} has format {content['format']}, expected {FORMAT}; load it with a newer minifuse"
                )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CheckpointError(f"{call}: {path} cannot be read: {reason(error)}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{call}: {path} is damaged, or was not written by save_sharded: {error}; use another checkpoint. Nothing "
                "was loaded"
            ) from error
        tensors = {
            name: StoredTensor(dtype, tuple(shape), order, [as_range(*x) for x in ranges])
            for name, (dtype, shape, order, ranges) in content["tensors"].items()
        }
        return cls(call, folder, content["version"], [StoredFile(*x) for x in content["files"]], content["state"], tensors)

    def check_files(self) -> None:
        """Raise CheckpointError unless all files are there, with their sizes."""
        count, sizes = len(self.files), {file.name: file_nbytes(self.folder / file.name) for file in self.files}
        if missing := [name for name, nbytes in sizes.items() if nbytes is None]:
            raise CheckpointError(
                f"{self.call}: {self.folder} is incomplete: {len(missing)} of {count} files are missing: "
                f"{', '.join(missing)}; copy all files, or use another checkpoint. Nothing was loaded"
            )
        for name, nbytes in self.files:
            if sizes[name] != nbytes:
                raise self.damaged(name, f"it has {sizes[name]:,} bytes instead of {nbytes:,}")

    def damaged(self, file: str, problem: str) -> CheckpointError:
        """Return the error for a file that is not what the index describes: of another save, or damaged."""
        try:
            version = read_description(self.folder / file).facts["version"]
        except (AttributeError, KeyError, OSError, TypeError, ValueError):
            version = self.version
        if version != self.version:
            problem = f"{file} belongs to the save {version}, and {INDEX} to {self.version}: files of two saves are mixed"
        else:
            problem = f"{file} is damaged: {problem}"
        return CheckpointError(f"{self.call}: {self.folder}: {problem}; use another checkpoint. Nothing was loaded")

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __getitem__(self, name: str) -> NumpyArray:
        stored = self.tensors[name]
        return np.require(unflatten(self.read_range(name, 0, stored.size), stored.shape, stored.order), requirements="C")

    def read_part(self, name: str, shard: Shard) -> NumpyArray:
        """Read the part of a tensor as a contiguous array.

        A part along another dim than the stored one is cut from the whole tensor.

        Raises
        ------
        CheckpointError
            A file cannot be read, is damaged or of another save.
        """
        if shard.order == self.tensors[name].order:
            flat = self.read_range(name, *shard.span)
            array = flat if shard.dim is None else unflatten(flat, shard.local_shape, shard.order)
            return np.require(array, requirements="C")
        whole = self[name]
        return whole if shard.local_shape == whole.shape else np.array(shard.select(whole), order="C")

    def read_range(self, name: str, start: int, stop: int) -> NumpyArray:
        """Read elements of a tensor in the order in which they are stored."""
        stored = self.tensors[name]
        result = np.empty(stop - start, stored.numpy_dtype)
        for part in stored.ranges:
            if part.start >= stop or part.segments[-1].stop <= start:
                continue
            file = self.files[part.file].name
            try:
                with (self.folder / file).open("rb", buffering=0) as opened:
                    self.read_segments(opened, part, start, result)
            except (EOFError, ValueError):
                raise self.damaged(file, f"the bytes of {name!r} differ from their digest") from None
            except OSError as error:
                raise CheckpointError(f"{self.call}: {self.folder / file} cannot be read: {reason(error)}") from error
        return result

    @staticmethod
    def read_segments(file: RawIOBase, part: StoredRange, start: int, result: NumpyArray) -> None:
        """Copy what a stored range contains of a result that begins at element `start`. If damaged, raise ValueError."""
        begin, stop, itemsize = part.start, start + len(result), result.itemsize
        for end, digest in part.segments:
            if begin < stop and end > start:
                is_inside = start <= begin and end <= stop
                target = result[begin - start : end - start] if is_inside else np.empty(end - begin, result.dtype)
                read_bytes(file, part.position + (begin - part.start) * itemsize, byte_view(target))
                if segment_digest(byte_view(target)) != digest:
                    raise ValueError
                if not is_inside:
                    low, high = max(begin, start), min(end, stop)
                    result[low - start : high - start] = target[low - begin : high - begin]
            begin = end


def as_range(file: int, position: int, start: int, segments: Iterable[Any]) -> StoredRange:
    """Return a stored range from its JSON."""
    return StoredRange(file, position, start, [Segment(*x) for x in segments])


def text_digest(content: object) -> str:
    """Return the SHA-256 of a tree of numbers and strings."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def file_nbytes(path: Path) -> int | None:
    """Return the size of a file, or None if there is no such file."""
    try:
        return path.stat().st_size
    except OSError:
        return None
