"""Checkpoints: tensors by name in one file, which PyTorch opens too, and which is there whole or not at all.

The format is safetensors [1]_: a header of JSON that says where each tensor lies, then the elements. A file is written
beside its place, forced to the disk, and then moved there in one step: whoever dies in between, or finds the disk full,
leaves the old file as it was. The package `import_safetensors` reads and writes the format; nothing of it is done here.

The metadata of a file has a SHA-256 digest, which finds accidental damage when the file is loaded. It is no signature.

`save_state` and `load_state` keep any nest of dicts, lists, numbers and tensors in such a file: a whole training state.

Stands on tensors; knows no module and no optimizer.

References
----------
.. [1] Hugging Face, "Safetensors": the format, https://github.com/huggingface/safetensors
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..backends.registry import get_backend
from ..core.dtypes import BY_NAME
from ..core.errors import CheckpointError, DTypeError, MissingPartError
from ..runtime.atomic_files import reason, remedy, replace_content
from .checkpoint_digests import DIGEST_KEY, DIGEST_PREFIX, contents_digest, digest_entry, header_digest
from .tensor import Tensor

PathLike = str | os.PathLike[str]

DTYPE_NAMES = {"F32": "float32", "F64": "float64", "I32": "int32", "I64": "int64", "BOOL": "bool"}  # the format's names
STATE_KEY = "minifuse.state"  # the metadata that says how tensors and numbers belong together


def save(tensors: Mapping[str, Tensor], path: PathLike, metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors into a file, by name: the whole file, or nothing.

    Parameters
    ----------
    tensors : mapping of str to Tensor
        Such as `model.state_dict()`; of any layout and backend. Tensors that share memory are written each for itself.
    path : path
        The file, `.safetensors` by custom. A file that is there is replaced.
    metadata : mapping of str to str, optional
        Texts that `load_metadata` gives back.

    Raises
    ------
    CheckpointError
        The file cannot be written: a full disk, a folder that is not there or not open to writing, a folder in the place of
        the file. What was there is there still, and nothing else is left.
    DTypeError
        Something is no tensor, or a name or a text is no str; nothing is written.
    MissingPartError
        The package safetensors is not installed.

    Notes
    -----
    A digest is added to the metadata, which `load` verifies and `load_metadata` leaves out. Other libraries ignore it.

    The file is made in memory, written beside its place under a name that begins with a dot and ends in `.tmp`, forced to
    the disk (`fsync`), and moved to its place in one step. So there is always one whole file, the old one or the new one.
    Only a process that is killed while it writes, or a power cut, leaves a file of the other name; it may be deleted. A
    symbolic link stays, and the file behind it is replaced.

    Examples
    --------
    >>> import minifuse as mf, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> mf.save({"weight": mf.ones(2, 3), "count": mf.tensor(7)}, path, {"epoch": "3"})
    >>> mf.load(path)["weight"].shape, mf.load(path)["count"], mf.load_metadata(path)
    ((2, 3), tensor(7), {'epoch': '3'})
    """
    texts, arrays = dict(metadata or {}), dict[str, npt.NDArray[Any]]()
    if DIGEST_KEY in texts:
        raise DTypeError(f"save: {DIGEST_KEY!r} in the metadata is reserved for the digest; leave it out, it is added")
    for name, text in texts.items():
        if not (is_text(name) and is_text(text)):
            raise DTypeError(f"save: metadata {name!r} is {text!r:.40}, expected str by str; use json.dumps for all else")
    for name, x in tensors.items():
        if not is_text(name) or name == "__metadata__":
            raise DTypeError(f"save: {name!r} cannot be the name of a tensor, expected another str")
        if not isinstance(x, Tensor):
            raise DTypeError(f"save: {name!r} is {type(x).__name__}, expected a tensor; wrap it in mf.tensor")
        array = x.detach().numpy()
        arrays[name] = array if array.flags.c_contiguous else array.copy(order="C")  # of one that is 0-d, it stays so
    names = {dtype: name for name, dtype in DTYPE_NAMES.items()}
    specs = {name: (names[array.dtype.name], list(array.shape)) for name, array in arrays.items()}
    write_file(import_safetensors().numpy.save(arrays, {**texts, DIGEST_KEY: digest_entry(arrays, specs, texts)}), path)


def is_text(x: object) -> bool:
    """Return True for a str that UTF-8 can encode; a lone surrogate has no encoding."""
    return isinstance(x, str) and not any("\ud800" <= character <= "\udfff" for character in x)


def load(path: PathLike, backend: str | None = None) -> dict[str, Tensor]:
    """Read all tensors of a file that `save`, PyTorch or another library has written as safetensors.

    Parameters
    ----------
    path : path
        The file.
    backend : str, optional
        Where the tensors will live; the default backend if left out.

    Returns
    -------
    dict of str to Tensor
        Contiguous, in memory of their own.

    Raises
    ------
    CheckpointError
        The file is not there, cannot be read, is no safetensors file, was cut short, differs from its digest, or has a
        tensor of an element type that minifuse does not have, such as bfloat16.
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
    return read_tensors("load", path, backend)[0]


def read_tensors(call: str, path: PathLike, backend: str | None) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the tensors of a file by name, and its metadata."""
    on = get_backend(backend)
    with open_checkpoint(call, path) as file:
        for name, (dtype, _) in file.specs.items():
            if dtype not in DTYPE_NAMES:
                raise CheckpointError(
                    f"{call}: {name!r} in {path} is {dtype}, and minifuse has {', '.join(BY_NAME)}; convert it where it was "
                    "written, in PyTorch with x.float() or x.long(), and save it again. Nothing was loaded"
                )
        arrays, texts = file.arrays(), file.texts
    return {name: Tensor.from_numpy(np.require(array, requirements="W"), on) for name, array in arrays.items()}, texts


def load_metadata(path: PathLike) -> dict[str, str]:
    """The texts that were saved with the tensors of a file; of the tensors themselves nothing is read.

    Raises
    ------
    CheckpointError, MissingPartError
        As `load`.

    Examples
    --------
    >>> import minifuse as mf, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> mf.save({}, path, {"written by": "minifuse"})
    >>> mf.load_metadata(path)
    {'written by': 'minifuse'}
    """
    with open_checkpoint("load_metadata", path) as file:
        return file.texts


def save_state(state: Any, path: PathLike) -> None:
    """Write a nest of tensors, numbers and texts into one file, such as all that a training run needs to go on.

    Parameters
    ----------
    state
        Dicts (of any keys that may be leaves), lists and tuples of tensors, numbers, texts, True, False and None.
    path : path
        The file. Its tensors have the names of their way through the nest, "model.0.weight": any library reads them.

    Raises
    ------
    DTypeError
        Something in the nest is of another type, or two tensors would have one name; nothing is written.
    CheckpointError, MissingPartError
        As `save`.

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
        tensors, texts = flatten_state(state)
    except RecursionError:
        raise DTypeError("save_state: the state is nested too deeply, or contains itself; make it flatter") from None
    save(tensors, path, texts)


def load_state(path: PathLike, backend: str | None = None) -> Any:
    """Read what `save_state` has written: an equal nest, numbers bit by bit.

    Parameters
    ----------
    path : path
        The file.
    backend : str, optional
        Where the tensors will live; the default backend if left out.

    Raises
    ------
    CheckpointError
        As `load`; also if the file holds tensors alone.
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
    tensors, texts = read_tensors("load_state", path, backend)
    if STATE_KEY not in texts:
        raise CheckpointError(f"load_state: {path} holds tensors, and not how they belong together; use mf.load")
    try:
        return unflatten_state(tensors, texts)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"load_state: {path} says of its tensors what cannot be: {error!r}") from error


# Nests as tensors by name, and a text that says how they belong together.


def flatten_state(tree: Any) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a nest by name, and metadata from which `unflatten_state` makes it again.

    In the text a tensor is {"tensor": name}, a tuple {"tuple": [...]}, a dict {"dict": [[key, value], ...]}; lists, numbers
    and texts are themselves.
    """
    tensors: dict[str, Tensor] = {}

    def flat(x: Any, way: tuple[str, ...]) -> Any:
        if isinstance(x, Tensor):
            name = ".".join(way) or "value"
            if name in tensors:
                raise DTypeError(f"save_state: two tensors would have the name {name!r}; rename a key that has a dot in it")
            tensors[name] = x
            return {"tensor": name}
        if x is None or type(x) in (bool, int, float, str):
            return x
        if type(x) in (list, tuple):
            parts = [flat(y, (*way, str(k))) for k, y in enumerate(x)]
            return parts if type(x) is list else {"tuple": parts}
        if isinstance(x, dict):
            return {"dict": [[flat(key, (*way, "key")), flat(y, (*way, str(key)))] for key, y in x.items()]}
        raise DTypeError(
            f"save_state: {'.'.join(way) or 'the state'} is {type(x).__name__}, expected a tensor, a number, a text, or "
            "dicts, lists and tuples of them; wrap arrays in mf.tensor"
        )

    return tensors, {STATE_KEY: json.dumps(flat(tree, ()))}


def unflatten_state(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Any:
    """The nest that `flatten_state` was given."""

    def nested(x: Any) -> Any:
        if isinstance(x, list):
            return [nested(y) for y in x]
        if not isinstance(x, dict):
            return x
        ((kind, parts),) = x.items()
        if kind == "tensor":
            return tensors[parts]
        if kind == "tuple":
            return tuple(nested(y) for y in parts)
        if kind == "dict":
            return {nested(key): nested(y) for key, y in parts}
        raise ValueError(kind)

    return nested(json.loads(metadata[STATE_KEY]))


# Files.


class CheckpointFile:
    """An open safetensors file whose header is verified.

    Parameters
    ----------
    call : str
        The name of the public function, for errors.
    path : path
    file
        What `safetensors.safe_open` returned.

    Attributes
    ----------
    specs : dict
        Element type, in the format's words, and shape of each tensor, by name.
    texts : dict of str to str
        The metadata without the digest.

    Raises
    ------
    CheckpointError
        The header is not the one that was written.
    """

    def __init__(self, call: str, path: PathLike, file: Any) -> None:
        self._call, self._path, self._file = call, path, file
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # it is no dict
        self.specs = {name: (str(part.get_dtype()), list(part.get_shape())) for name, part in slices.items()}
        self.texts: dict[str, str] = dict(file.metadata() or {})
        signed = [
            text for text in self.texts.values() if text.startswith(DIGEST_PREFIX)
        ]  # under any name: that may be damaged
        found = self.texts.pop(DIGEST_KEY, None)
        self._contents: str | None = None
        if found is None and not signed:
            return  # an older file, or one of another library
        mark, _, digests = (found or "").partition(" ")
        self._contents, _, header = digests.partition(" ")
        if mark != DIGEST_PREFIX or header != header_digest(self.specs, self.texts, self._contents):
            raise self._damaged("its header is not the one that was written")

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Read all tensors.

        Raises
        ------
        CheckpointError
            An element is not the one that was written.
        """
        found = {name: self._file.get_tensor(name) for name in self.specs}
        if self._contents is not None and contents_digest(found) != self._contents:
            raise self._damaged("its elements are not the ones that were written")
        return found

    def _damaged(self, what: str) -> CheckpointError:
        return CheckpointError(
            f"{self._call}: {self._path} is damaged: {what}, since its SHA-256 digest differs; use another copy. If a "
            f"program changed it on purpose, it must remove {DIGEST_KEY!r} from the metadata. Nothing was loaded"
        )


def write_file(data: bytes, path: PathLike) -> None:
    """Replace the content of a file in one step.

    Raises
    ------
    CheckpointError
        The file cannot be written. Nothing has changed, and no other file is left.
    """
    try:
        replace_content(path, data)
    except ValueError as error:
        raise CheckpointError(f"save: {path!r} is no path: {error}; nothing was written") from None
    except OSError as error:
        raise CheckpointError(
            f"save: {path} could not be written: {reason(error)}. What was there before is unchanged; {remedy(error)}"
        ) from error


@contextmanager
def open_checkpoint(call: str, path: PathLike) -> Iterator[CheckpointFile]:
    """Open a safetensors file for reading.

    Raises
    ------
    CheckpointError
        The file cannot be read, or is damaged.
    """
    part = import_safetensors()
    try:
        size = file_size(path)
        with part.safe_open(path, framework="numpy") as file:
            yield CheckpointFile(call, path, file)
    except part.SafetensorError as error:
        said = str(error).removeprefix("Error while deserializing header: ")
        raise CheckpointError(
            f"{call}: {path} ({size:,} bytes) is no whole safetensors file: {said}. It was cut short, or is something "
            "else; use another checkpoint. Nothing was loaded"
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
        There is no such file, it is something else, or it may not be read.
    """
    try:
        status = Path(path).stat()
    except ValueError as error:  # a null character
        raise OSError(str(error)) from None
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is a folder" if stat.S_ISDIR(status.st_mode) else "it is a device or a pipe, not a regular file")
    with Path(path).open("rb"):  # the package calls a file without permission a missing one
        return status.st_size


def import_safetensors() -> Any:
    """The package, imported when it is first needed."""
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise MissingPartError('checkpoints are safetensors files: pip install "minifuse[train]"') from error
    return safetensors
