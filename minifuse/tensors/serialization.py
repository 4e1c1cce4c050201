"""Checkpoints: tensors by name in one safetensors file, which PyTorch can also read. Writing is atomic.

The format is safetensors [1]_: a JSON header with the position of each tensor, followed by the elements. A file is
written under a temporary name, flushed to the disk, and then renamed. If the process dies before the renaming, or the
disk is full, the old file is unchanged. The package `safetensors` reads and writes the format.

The metadata of a file contains a SHA-256 digest, which detects accidental damage when the file is loaded. It is not a
signature.

`save_state` and `load_state` store any tree of dicts, lists, numbers and tensors in such a file, such as a whole
training state.

This module depends on tensors, but not on modules or optimizers.

References
----------
.. [1] Hugging Face, "Safetensors": the format, https://github.com/huggingface/safetensors
"""

import os
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np

from ..backends.registry import get_backend
from ..core.dtypes import BY_NAME, NumpyArray
from ..core.errors import CheckpointError, DTypeError, MissingPartError
from ..core.keywords import refusing
from ..runtime.atomic_files import reason, remedy, replace_content
from .checkpoint_digests import DIGEST_KEY, DIGEST_PREFIX, contents_digest, digest_entry, header_digest
from .checkpoint_trees import ONE_TENSOR, STATE_KEY, flatten_state, unflatten_state
from .tensor import Tensor

PathLike = str | os.PathLike[str]
Target = PathLike | IO[bytes]  # a path, or an open binary file such as io.BytesIO

DTYPE_NAMES = {
    "F32": "float32",
    "F64": "float64",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "BOOL": "bool",
}  # element type in the format -> name of minifuse's dtype


def save(tensors: Tensor | Mapping[str, Tensor], path: Target, metadata: Mapping[str, str] | None = None) -> None:
    """Write a tensor, or tensors by name, to a file. Writing to a path is atomic: the file is complete, or unchanged.

    Parameters
    ----------
    tensors : Tensor, or mapping of str to Tensor
        Tensors of any layout and backend, such as `model.state_dict()`. Each tensor is written in full, even if several
        share memory.
    path : path, or binary file
        The file, by convention with the extension `.safetensors`. An existing file is replaced. To an open file, such as
        io.BytesIO, the contents are written at its position.
    metadata : mapping of str to str, optional
        Strings that `load_metadata` returns.

    Raises
    ------
    CheckpointError
        The file cannot be written: the disk is full, the folder does not exist or is not writable, or the path is a
        folder. An existing file is unchanged, and no other file is left.
    DTypeError
        A value is not a tensor, or a name or a metadata value is not a str. Nothing is written.
    MissingPartError
        The package safetensors is not installed.

    Notes
    -----
    A digest is added to the metadata. `load` verifies it, `load_metadata` omits it, and other libraries ignore it.

    The contents are built in memory, written to a temporary file, flushed to the disk (`fsync`), and renamed. So there is
    always one complete file, the old one or the new one. The temporary file is in the same folder; its name begins with a
    dot and ends in `.tmp`. It is left only if the process is killed while it writes, or the power fails; you may delete
    it. A symbolic link stays, and the file that it points to is replaced.

    Examples
    --------
    >>> import minifuse as mf, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> mf.save({"weight": mf.ones(2, 3), "count": mf.tensor(7)}, path, {"epoch": "3"})
    >>> mf.load(path)["weight"].shape, mf.load(path)["count"], mf.load_metadata(path)
    ((2, 3), tensor(7), {'epoch': '3'})

    A tensor alone, in memory:

    >>> import io
    >>> file = io.BytesIO()
    >>> mf.save(mf.ones(2), file)
    >>> file.seek(0)
    0
    >>> mf.load(file)
    tensor([1., 1.])
    """
    metadata, arrays = dict(metadata or {}), dict[str, NumpyArray]()
    if isinstance(tensors, Tensor):
        tensors, tree = flatten_state(tensors)
        metadata |= tree
    if DIGEST_KEY in metadata:
        raise DTypeError(f"save: the metadata key {DIGEST_KEY!r} is reserved for the digest, which save adds; remove it")
    for name, text in metadata.items():
        if not (is_text(name) and is_text(text)):
            raise DTypeError(
                f"save: metadata {name!r} is {text!r:.40}, expected str keys and values; encode other values with json.dumps"
            )
    check_tensors(tensors)
    for name, x in tensors.items():
        array = x.detach().numpy()
        arrays[name] = array if array.flags.c_contiguous else array.copy(order="C")  # keeps 0-d arrays 0-d
    format_names = {dtype: name for name, dtype in DTYPE_NAMES.items()}
    specs = {name: (format_names[array.dtype.name], list(array.shape)) for name, array in arrays.items()}
    write_file(
        import_safetensors().numpy.save(arrays, {**metadata, DIGEST_KEY: digest_entry(arrays, specs, metadata)}), path
    )


def check_tensors(tensors: object) -> None:
    """Raise DTypeError unless the argument of `save` is a dict of tensors."""
    if not isinstance(tensors, Mapping):
        advice = "x.state_dict()" if hasattr(tensors, "state_dict") else '{"x": mf.tensor(x)}'
        raise DTypeError(f"save: got {type(tensors).__name__}, expected a dict of tensors; write mf.save({advice}, path)")
    for name, x in tensors.items():
        check_tensor_name("save", name)
        if not isinstance(x, Tensor):
            is_state = isinstance(x, Mapping | list | tuple | str | int | float | None)
            advice = (
                "write mf.save_state, which saves nested dicts, and mf.load_state" if is_state else "wrap it in mf.tensor"
            )
            raise DTypeError(f"save: {name!r} is {type(x).__name__}, expected a tensor; {advice}")


def check_tensor_name(call: str, name: object) -> None:
    """Raise DTypeError unless the format allows a name for a tensor."""
    if not is_text(name) or name == "__metadata__":
        raise DTypeError(f"{call}: got {name!r} as the name of a tensor, expected a str other than __metadata__")


def is_text(x: object) -> bool:
    """Return True for a str that UTF-8 can encode; it cannot encode lone surrogates."""
    return isinstance(x, str) and not any("\ud800" <= character <= "\udfff" for character in x)


@refusing(
    {
        "map_location": 'leave it out: tensors are stored on the default backend, or write backend="cuda"',
        **dict.fromkeys(("weights_only", "mmap"), "leave it out: a safetensors file holds no code"),
    }
)
def load(path: Target, backend: str | None = None) -> Any:
    """Read all tensors of a safetensors file, written by `save`, PyTorch or another library.

    Parameters
    ----------
    path : path, or binary file
        The file. An open file is read from its position to its end.
    backend : str, optional
        The backend that stores the tensors. Default: the default backend.

    Returns
    -------
    dict of str to Tensor, or Tensor
        Contiguous tensors; none share memory. The tensor alone, if `save` received one.

    Raises
    ------
    CheckpointError
        The file does not exist, cannot be read, is not a safetensors file, is truncated, does not match its digest, or
        contains a tensor of an unsupported element type, such as bfloat16.
    MissingPartError
        The package safetensors is not installed.

    Examples
    --------
    >>> import minifuse as mf, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> model, other = mf.nn.Linear(3, 2), mf.nn.Linear(3, 2)
    >>> mf.save(model.state_dict(), path)
    >>> other.load_state_dict(mf.load(path))
    LoadResult(missing_keys=[], unexpected_keys=[])
    """
    tensors, metadata = read_tensors("load", path, backend)
    return tensors["value"] if metadata.get(STATE_KEY) == ONE_TENSOR else tensors


def read_tensors(call: str, path: Target, backend: str | None) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the tensors of a file by name, and its metadata."""
    target = get_backend(backend)
    with open_checkpoint(call, path) as file:
        for name, (dtype, _) in file.specs.items():
            if dtype not in DTYPE_NAMES:
                raise CheckpointError(
                    f"{call}: {name!r} in {path} is {dtype}, expected {', '.join(BY_NAME)}; convert it where it was "
                    "written, in PyTorch with x.float() or x.long(), and save it again. Nothing was loaded"
                )
        arrays, metadata = file.arrays(), file.metadata
    tensors = {name: Tensor.from_numpy(np.require(array, requirements="W"), target) for name, array in arrays.items()}
    return tensors, metadata


def load_metadata(path: Target) -> dict[str, str]:
    """Read the metadata of a file that `save` wrote, without reading the tensors.

    Raises
    ------
    CheckpointError, MissingPartError
        See `load`.

    Examples
    --------
    >>> import minifuse as mf, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> mf.save({}, path, {"written by": "minifuse"})
    >>> mf.load_metadata(path)
    {'written by': 'minifuse'}
    """
    with open_checkpoint("load_metadata", path) as file:
        return file.metadata


def save_state(state: object, path: Target) -> None:
    """Write a tree of tensors, numbers and strings to one file, such as the state of a training run.

    Parameters
    ----------
    state
        Dicts (their keys may be any leaves), lists and tuples of tensors, numbers, strings, True, False and None.
    path : path
        The file. Its tensors are named by their paths in the tree, such as "model.0.weight"; any library can read them.

    Raises
    ------
    DTypeError
        A leaf has another type, or two tensors would have one name. Nothing is written.
    CheckpointError, MissingPartError
        See `save`.

    Examples
    --------
    >>> import minifuse as mf, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.safetensors"
    >>> mf.save_state({"step": 3, "rates": (0.1, 0.05), "momenta": {0: mf.ones(2)}, "random": mf.get_rng_state()}, path)
    >>> state = mf.load_state(path)
    >>> state["step"], state["rates"], state["momenta"], list(mf.load(path))
    (3, (0.1, 0.05), {0: tensor([1., 1.])}, ['momenta.0'])
    """
    try:
        tensors, metadata = flatten_state(state)
    except RecursionError:
        raise DTypeError("save_state: the state is nested too deeply, or contains itself; make it flatter") from None
    save(tensors, path, metadata)


def load_state(path: Target, backend: str | None = None) -> Any:
    """Read a file that `save_state` wrote, and return an equal tree. Numbers are equal bit by bit.

    Parameters
    ----------
    path : path
        The file.
    backend : str, optional
        The backend that stores the tensors. Default: the default backend.

    Raises
    ------
    CheckpointError
        See `load`; also if `save_state` did not write the file.
    MissingPartError
        The package safetensors is not installed.

    Examples
    --------
    >>> import minifuse as mf, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.safetensors"
    >>> mf.save_state({"step": 3, "momenta": [mf.ones(2)]}, path)
    >>> mf.load_state(path)
    {'step': 3, 'momenta': [tensor([1., 1.])]}
    """
    tensors, metadata = read_tensors("load_state", path, backend)
    if STATE_KEY not in metadata:
        raise CheckpointError(f"load_state: {path} was not written by save_state; read its tensors with mf.load")
    try:
        return unflatten_state(tensors, metadata)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"load_state: {path} describes a tree that does not match its tensors: {error!r}; use another copy"
        ) from error


# Files.


class CheckpointFile:
    """An open safetensors file whose header is verified.

    Parameters
    ----------
    call : str
        The name of the public function, for errors.
    path : path
    file
        The result of `safetensors.safe_open`.

    Attributes
    ----------
    specs : dict
        Element type, as the format names it, and shape of each tensor, by name.
    metadata : dict of str to str
        The metadata without the digest.

    Raises
    ------
    CheckpointError
        The header does not match its digest.
    """

    def __init__(self, call: str, path: PathLike, file: Any) -> None:
        self._call, self._path, self._file = call, path, file
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # file is not a dict
        self.specs = {name: (str(part.get_dtype()), list(part.get_shape())) for name, part in slices.items()}
        self.metadata: dict[str, str] = dict(file.metadata() or {})
        # Search all keys: the key of the digest may be damaged, too.
        has_digest = any(text.startswith(DIGEST_PREFIX) for text in self.metadata.values())
        digest = self.metadata.pop(DIGEST_KEY, None)
        self._contents_digest: str | None = None
        if digest is None and not has_digest:
            return  # an older file, or one that another library wrote
        prefix, _, digests = (digest or "").partition(" ")
        self._contents_digest, _, header = digests.partition(" ")
        if prefix != DIGEST_PREFIX or header != header_digest(self.specs, self.metadata, self._contents_digest):
            raise self._damaged("its header has changed since it was written")

    def arrays(self) -> dict[str, NumpyArray]:
        """Read all tensors.

        Raises
        ------
        CheckpointError
            The elements do not match their digest.
        """
        arrays = {name: self._file.get_tensor(name) for name in self.specs}
        if self._contents_digest is not None and contents_digest(arrays) != self._contents_digest:
            raise self._damaged("its elements have changed since they were written")
        return arrays

    def _damaged(self, problem: str) -> CheckpointError:
        return CheckpointError(
            f"{self._call}: {self._path} is damaged: {problem}: the SHA-256 digest differs; use another copy. A program "
            f"that changes the file on purpose must remove {DIGEST_KEY!r} from the metadata. Nothing was loaded"
        )


def write_file(data: bytes, path: Target) -> None:
    """Replace the content of a file atomically, or write to an open file.

    Raises
    ------
    CheckpointError
        The file cannot be written. Nothing has changed, and no other file is left.
    """
    try:
        if hasattr(path, "write"):
            path.write(data)
        else:
            replace_content(path, data)
    except ValueError as error:
        raise CheckpointError(f"save: {path!r} is not a valid path: {error}; nothing was written") from None
    except OSError as error:
        raise CheckpointError(
            f"save: {path} could not be written: {reason(error)}. An existing file is unchanged; {remedy(error)}"
        ) from error


@contextmanager
def open_checkpoint(call: str, path: Target) -> Iterator[CheckpointFile]:
    """Open a safetensors file for reading. The rest of an open file is copied to a temporary file, which the package maps.

    Raises
    ------
    CheckpointError
        The file cannot be read, or is damaged.
    """
    if hasattr(path, "read"):
        with tempfile.NamedTemporaryFile() as copy:
            copy.write(path.read())
            copy.flush()
            with open_checkpoint(call, copy.name) as checkpoint:
                yield checkpoint
        return
    package = import_safetensors()
    try:
        size = file_size(path)
        with package.safe_open(path, framework="numpy") as file:
            yield CheckpointFile(call, path, file)
    except package.SafetensorError as error:
        if zipfile.is_zipfile(path):
            raise CheckpointError(
                f"{call}: {path} is a zip file, as torch.save writes, and not a safetensors file; in PyTorch, write "
                "safetensors.torch.save_file(model.state_dict(), path). Nothing was loaded"
            ) from None
        message = str(error).removeprefix("Error while deserializing header: ")
        raise CheckpointError(
            f"{call}: {path} ({size:,} bytes) is not a complete safetensors file: {message}. It is truncated, or of "
            "another format; use another checkpoint. Nothing was loaded"
        ) from error
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"{call}: {path} cannot be read: {reason(error)}") from error


def file_size(path: PathLike) -> int:
    """Return the size of a regular file in bytes.

    Raises
    ------
    OSError
        The file does not exist, is not a regular file, or cannot be read.
    """
    try:
        status = Path(path).stat()
    except ValueError as error:  # a null character
        raise OSError(str(error)) from None
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is a folder" if stat.S_ISDIR(status.st_mode) else "it is a device or a pipe, not a regular file")
    with Path(path).open("rb"):  # the package reports a file without permission as missing
        return status.st_size


def import_safetensors() -> ModuleType:
    """Import the package safetensors when it is first needed."""
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise MissingPartError("checkpoints need the package safetensors: pip install safetensors") from None
    return safetensors
