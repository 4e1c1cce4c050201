"""Checkpoints: tensors by name in one file, which PyTorch opens too, and which is there whole or not at all.

The format is safetensors [1]_: a header of JSON that says where each tensor lies, then the elements. A file is written
beside its place, forced to the disk, and then moved there in one step: whoever dies in between, or finds the disk full,
leaves the old file as it was. The package `safetensors` reads and writes the format; nothing of it is done here.

`save_state` and `load_state` keep any nest of dicts, lists, numbers and tensors in such a file: a whole training state.

Stands on tensors; knows no module and no optimizer.

References
----------
.. [1] Hugging Face, "Safetensors": the format, https://github.com/huggingface/safetensors
"""

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .backends.registry import backend_named
from .dtypes import BY_NAME
from .errors import CheckpointError, DTypeError, MissingPartError
from .tensor import Tensor

PathLike = str | os.PathLike[str]

DTYPES = {"F32": "float32", "F64": "float64", "I32": "int32", "I64": "int64", "BOOL": "bool"}  # the format's names
STATE = "minifuse.state"  # the metadata that says how tensors and numbers belong together


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
    for name, text in texts.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise DTypeError(f"save: metadata {name!r} is {text!r:.40}, expected str by str; use json.dumps for all else")
    for name, x in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise DTypeError(f"save: {name!r} cannot be the name of a tensor, expected another str")
        if not isinstance(x, Tensor):
            raise DTypeError(f"save: {name!r} is {type(x).__name__}, expected a tensor; wrap it in mf.tensor")
        array = x.detach().numpy()
        arrays[name] = array if array.flags.c_contiguous else array.copy(order="C")  # of one that is 0-d, it stays so
    write(safetensors().numpy.save(arrays, texts or None), path)


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
        The file is not there, cannot be read, is no safetensors file, was cut short, or has a tensor of an element type that
        minifuse does not have, such as bfloat16.
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
    found, on = {}, backend_named(backend)
    with opened("load", path) as file:
        dtypes = {name: str(file.get_slice(name).get_dtype()) for name in file.keys()}  # noqa: SIM118  # it is no dict
        for name, dtype in dtypes.items():
            if dtype not in DTYPES:
                raise CheckpointError(
                    f"load: {name!r} in {path} is {dtype}, and minifuse has {', '.join(BY_NAME)}; convert it where it was "
                    "written, in PyTorch with x.float() or x.long(), and save it again. Nothing was loaded"
                )
        arrays = {name: file.get_tensor(name) for name in dtypes}
    for name, array in arrays.items():
        found[name] = Tensor.from_numpy(np.require(array, requirements="W"), on)
    return found


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
    with opened("load_metadata", path) as file:
        return dict(file.metadata() or {})


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
    tensors, texts = flattened(state)
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
    texts = load_metadata(path)
    if STATE not in texts:
        raise CheckpointError(f"load_state: {path} holds tensors, and not how they belong together; use mf.load")
    try:
        return unflattened(load(path, backend), texts)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"load_state: {path} says of its tensors what cannot be: {error!r}") from error


# Nests as tensors by name, and a text that says how they belong together.


def flattened(tree: Any) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a nest by name, and metadata from which `unflattened` makes it again.

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

    return tensors, {STATE: json.dumps(flat(tree, ()))}


def unflattened(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Any:
    """The nest that `flattened` was given."""

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

    return nested(json.loads(metadata[STATE]))


# Files.


def write(data: bytes, path: PathLike) -> None:
    """Replace a file in one step: either all of the data is there, and on the disk, or what was there before.

    Raises
    ------
    CheckpointError
        It could not be written; nothing has changed, and nothing else is left.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise IsADirectoryError("it is a folder")
        with replacement(target) as file:
            file.write(data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CheckpointError(
            f"save: {path} could not be written: {reason}. What was there before is unchanged; free some space, or choose "
            "another place"
        ) from error
    with suppress(OSError):  # that the file has a new name; not all systems can be asked for it
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def replacement(target: Path) -> Iterator[Any]:
    """A new file in the same folder, which takes the place of the target when the block ends well, and else is gone."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
        with suppress(FileNotFoundError):
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


@contextmanager
def opened(name: str, path: PathLike) -> Iterator[Any]:
    """A file, open for reading; what is wrong with it in words."""
    part = safetensors()
    try:
        size = Path(path).stat().st_size
        if Path(path).is_dir():
            raise IsADirectoryError("it is a folder")
        with part.safe_open(path, framework="numpy") as file:
            yield file
    except part.SafetensorError as error:
        reason = str(error).removeprefix("Error while deserializing header: ")
        raise CheckpointError(
            f"{name}: {path} ({size:,} bytes) is no whole safetensors file: {reason}. It was cut short, or is something "
            "else; use another checkpoint. Nothing was loaded"
        ) from error
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"{name}: {path} cannot be read: {error.strerror or error}") from error


def safetensors() -> Any:
    """The package, imported when it is first needed."""
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise MissingPartError('checkpoints are safetensors files: pip install "minifuse[train]"') from error
    return safetensors
