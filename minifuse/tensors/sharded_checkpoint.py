"""Sharded checkpoints: each rank writes its parts of the tensors, and any other number of ranks reads them.

No communication: the last rank that has written its file finds the files of all others, and completes the checkpoint by
writing an index. Until then the folder contains the checkpoint before. `shard_files` has the format.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..backends.registry import get_backend
from ..core.errors import CheckpointError, DTypeError, MinifuseError
from ..core.even_parts import check_rank
from ..core.indexing import Shape
from ..core.shards import Shard
from ..runtime.atomic_files import reason, remedy, replacement
from .checkpoint_digests import DIGEST_KEY, digest_entry
from .checkpoint_trees import STATE_KEY, flatten_state, unflatten_state
from .serialization import PathLike, check_tensor_name
from .shard_files import (
    INDEX,
    RANK_FILE,
    ShardIndex,
    StoredFile,
    StoredTensor,
    aligned_order,
    as_range,
    byte_view,
    rank_file,
    read_description,
    safetensors_header,
    write_rank_file,
    written_range,
)
from .shards import set_shard, shard_of
from .tensor import Tensor

Like = Callable[[str, Shape], Shard | None] | Tensor | Shard | Mapping[Any, Any] | list[Any] | tuple[Any, ...] | None
UNCHANGED = "The checkpoint that was in the folder is unchanged"


def save_sharded(
    state: object,
    folder: PathLike,
    *,
    rank: int = 0,
    size: int = 1,
    version: str | int = "state",
    barrier: Callable[[], object] | None = None,
) -> bool:
    """Write this rank's parts of a tree of tensors, numbers and strings. The last rank completes the checkpoint.

    Parameters
    ----------
    state
        What `save_state` takes, with parts of tensors in place of tensors. Unmarked tensors are the same on all ranks, and
        each rank writes a part of them. Numbers and strings must be equal on all ranks; dicts may have keys of their own.
    folder : path
        The folder of the checkpoint, which is created if it does not exist. All ranks must see the same folder.
    rank, size : int
        The number of this rank, and of all ranks.
    version : str or int
        A name of this save, equal on all ranks, such as the training step. Without `barrier` it must be another one for each
        save, since it separates the files of a save that was interrupted from those of the next one.
    barrier : function, optional
        Waits until all ranks have called it, such as the barrier of a process group. It is called twice, before writing.

    Returns
    -------
    bool
        True if this call found the files of all ranks, and completed the checkpoint.

    Raises
    ------
    CheckpointError
        A file cannot be written, or the ranks have written parts that do not fit together. The checkpoint that was in the
        folder is unchanged.
    DTypeError
        See `save_state`. Nothing is written.
    ShapeError
        `rank` is not one of `size` ranks.

    Notes
    -----
    Each file is written as `save` does. The index is replaced after the last of them. So if any process dies at any moment,
    the folder contains the old checkpoint or the new one, and `load_sharded` ignores files of unfinished saves, which the
    next save removes. Ranks may write at the same time, in any order. Without `barrier`, they must wait for each other
    between two saves, as they do in training steps, which sum gradients over ranks.

    Examples
    --------
    >>> import minifuse as mf, tempfile
    >>> folder, w = tempfile.mkdtemp(), mf.arange(6)
    >>> [mf.save_sharded({"step": 3, "w": w}, folder, rank=rank, size=2, version=3) for rank in range(2)]
    [False, True]
    >>> mf.load_sharded(folder, lambda name, shape: mf.Shard.even(shape, rank=1, size=3))
    {'step': 3, 'w': tensor([2, 3])}
    """
    check_rank("save_sharded", rank, size)
    name = str(version)
    if not name or set(name) & set('/\\:*?"<>|\0'):
        raise CheckpointError(f"save_sharded: got version {name!r}, expected a name that is possible in file names")
    try:
        tensors, metadata = flatten_state(state, "save_sharded")
    except RecursionError:
        raise DTypeError("save_sharded: the state is nested too deeply, or contains itself; make it flatter") from None
    for key in tensors:
        check_tensor_name("save_sharded", key)
    target = Path(folder)
    with translate_write_errors("save_sharded", target, UNCHANGED):
        target.mkdir(parents=True, exist_ok=True)
        wait = barrier or (lambda: None)
        wait()  # until all ranks have ended the save before this one
        remove_leftovers(target, rank, size)
        wait()
        previous = completed_index(target)
        name = next_version(name, previous)
        path = target / rank_file(name, rank, size)
        ranges = {key: written_range(key, x, shard_of(x) or Shard.whole(x.shape, rank, size)) for key, x in tensors.items()}
        write_rank_file(path, ranges, {"version": name, "rank": rank, "size": size, "state": metadata[STATE_KEY]})
        index = join_files(target, name, size)
        if index is None:
            return False
        index.write()
        for file in previous.files if previous else ():
            (target / file.name).unlink(missing_ok=True)  # another rank may complete the checkpoint at the same time
    return True


def load_sharded(folder: PathLike, like: Like = None, backend: str | None = None) -> Any:
    """Read this rank's parts of the tensors of a checkpoint, which any number of ranks wrote.

    Parameters
    ----------
    folder : path
        The folder that `save_sharded` wrote.
    like : tree of tensors and Shards, or function
        The parts that are wanted. A tensor or `Shard` at the place of a saved tensor asks for a part like it; tensors that
        the tree lacks are read whole. A function `like(name, shape)` gets the name of each saved tensor, such as
        "model.0.weight", and its whole shape, and returns a `Shard`, or None for the whole tensor. Default: whole tensors.
    backend : str, optional
        The backend that stores the tensors. Default: the default backend.

    Returns
    -------
    The tree that was saved, with the wanted parts as new tensors. Numbers are equal bit by bit.

    Raises
    ------
    CheckpointError
        The folder contains no complete checkpoint; files are missing, damaged, or of two saves; or `like` has a tensor that
        the checkpoint lacks, or that has another shape in it.

    Notes
    -----
    Only the wanted bytes are read, each once, if the tensors are divided along the dim along which they were divided when
    they were saved, evenly among up to 8 ranks. For other parts, up to 1 MiB more is read at each end of a part, since a
    digest verifies it. Tensors that were divided along another dim are read whole, one at a time. The memory needed is that
    of the result and one tensor.

    Examples
    --------
    >>> import minifuse as mf, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> mf.save_sharded({"w": mf.arange(6).reshape(3, 2)}, folder)
    True
    >>> mf.load_sharded(folder, {"w": mf.Shard((3, 2), dim=1, start=1, size=1)})
    {'w': tensor([[1],
            [3],
            [5]])}
    """
    index, target = open_index("load_sharded", folder), get_backend(backend)
    shard_for = choose_shards(index, like)
    tensors = dict[str, Tensor]()
    for name, stored in index.tensors.items():
        shard = shard_for(name, stored.shape)
        check_shape(index, name, stored.shape if shard is None else shard.shape)
        array = index[name] if shard is None else index.read_part(name, shard)
        tensors[name] = set_shard(Tensor.from_numpy(array, target), shard)
    return unflatten_state(tensors, {STATE_KEY: index.state})


def merge_shards(folder: PathLike, path: PathLike) -> None:
    """Merge the files of a sharded checkpoint into one safetensors file, which `load`, `load_state` and PyTorch read.

    Parameters
    ----------
    folder : path
        The folder that `save_sharded` wrote. It is not changed.
    path : path
        The file, which is written as `save` does. Its tensors have the names that `save_state` would give them.

    Raises
    ------
    CheckpointError
        See `load_sharded`; or the file cannot be written.

    Notes
    -----
    Every digest is verified. All tensors are read twice, since the digest of the file is written before them; the memory
    needed is that of the largest tensor.

    Examples
    --------
    >>> import minifuse as mf, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> [mf.save_sharded({"step": 3, "w": mf.ones(2)}, folder / "run", rank=rank, size=2) for rank in range(2)]
    [False, True]
    >>> mf.merge_shards(folder / "run", folder / "run.safetensors")
    >>> mf.load(folder / "run.safetensors"), mf.load_state(folder / "run.safetensors")
    ({'w': tensor([1., 1.])}, {'step': 3, 'w': tensor([1., 1.])})
    """
    merge_files("merge_shards", folder, path)


def merge_files(call: str, folder: PathLike, path: PathLike) -> ShardIndex:
    """Merge a checkpoint into one file, and return its index."""
    index = open_index(call, folder)
    metadata = {STATE_KEY: index.state}
    specs = {name: (stored.dtype, list(stored.shape)) for name, stored in index.tensors.items()}
    metadata[DIGEST_KEY] = digest_entry(index, specs, metadata)
    order = aligned_order({name: dtype for name, (dtype, _) in specs.items()})
    with translate_write_errors(call, path, "An existing file is unchanged"), replacement(path) as file:
        file.write(safetensors_header({name: (specs[name][0], tuple(specs[name][1])) for name in order}, metadata))
        for name in order:
            file.write(byte_view(index[name].reshape(-1)).data)
    return index


# Writing.


def completed_index(folder: Path) -> ShardIndex | None:
    """Read the index of the checkpoint in a folder; None if there is none, or if it is damaged."""
    with suppress(CheckpointError):
        return ShardIndex.read("save_sharded", folder)
    return None


def next_version(name: str, previous: ShardIndex | None) -> str:
    """Return the name of a save with a number, so that its files never have the names of those of the previous one."""
    last_name, _, number = previous.version.rpartition(".") if previous else ("", "", "")
    return f"{name}.{int(number) + 1 if last_name == name else 0}"


def remove_leftovers(folder: Path, rank: int, size: int) -> None:
    """Remove the files that this rank, or a rank that no longer exists, left in saves that were interrupted."""
    index = completed_index(folder)
    completed = {file.name for file in index.files} if index else set()
    for path in list(folder.iterdir()):
        match = RANK_FILE.fullmatch(path.name)
        if match and int(match[1]) % size == rank and path.name not in completed:
            path.unlink(missing_ok=True)


def join_files(folder: Path, version: str, size: int) -> ShardIndex | None:
    """Return the index of the files of all ranks, or None if some are not written yet.

    Raises
    ------
    CheckpointError
        The files do not fit together, or one of them is damaged.
    """
    names = [rank_file(version, rank, size) for rank in range(size)]
    if not all((folder / name).exists() for name in names):
        return None
    files, state, tensors = list[StoredFile](), None, dict[str, StoredTensor]()
    for rank, name in enumerate(names):
        try:
            facts, begin, headers, nbytes = read_description(folder / name)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"save_sharded: {folder / name} is damaged: {error!r}; save again. {UNCHANGED}") from error
        files.append(StoredFile(name, nbytes))
        tree = json.loads(facts["state"])
        state = tree if rank == 0 else merge_trees(state, tree, rank)
        for key, (dtype, shape, order, start, segments) in facts["tensors"].items():
            new = StoredTensor(dtype, tuple(shape), order, [])
            known = tensors.setdefault(key, new)
            if known[:3] != new[:3]:
                raise CheckpointError(
                    f"save_sharded: {key!r} is {dtype} {new.shape} divided along dim {order} on rank {rank}, and "
                    f"{known.dtype} {known.shape} along dim {known.order} on another; expected equal tensors. {UNCHANGED}"
                )
            if segments:
                known.ranges.append(as_range(rank, begin + headers[key]["data_offsets"][0], start, segments))
    for key, stored in tensors.items():
        check_ranges(key, stored)
    return ShardIndex("save_sharded", folder, version, files, json.dumps(state), tensors)


def merge_trees(tree: Any, other: Any, rank: int, keys: tuple[str, ...] = ()) -> Any:
    """Return the union of the dicts of two trees, as `flatten_state` encodes them.

    Raises
    ------
    CheckpointError
        A number or string differs.
    """
    kinds = [[*x] if isinstance(x, dict) else type(x) for x in (tree, other)]
    if kinds == [["dict"]] * 2:
        merged = {json.dumps(key): [key, value] for key, value in tree["dict"]}
        for key, value in other["dict"]:
            entry = merged.setdefault(json.dumps(key), [key, value])
            entry[1] = merge_trees(entry[1], value, rank, (*keys, str(key)))
        return {"dict": [*merged.values()]}
    if kinds == [["tuple"]] * 2:
        return {"tuple": merge_trees(tree["tuple"], other["tuple"], rank, keys)}
    if kinds == [list] * 2 and len(tree) == len(other):
        return [merge_trees(x, y, rank, (*keys, str(k))) for k, (x, y) in enumerate(zip(tree, other, strict=True))]
    if json.dumps(tree) != json.dumps(other):  # NaN equals NaN
        raise CheckpointError(
            f"save_sharded: {'.'.join(keys) or 'the state'} is {json.dumps(other):.40} on rank {rank}, and "
            f"{json.dumps(tree):.40} on a rank before it; expected equal numbers and strings on all ranks. Store values of "
            "single ranks in a dict by rank. If a save was interrupted before, its file may be left: name each save by "
            f"version=. {UNCHANGED}"
        )
    return tree


def check_ranges(name: str, stored: StoredTensor) -> None:
    """Raise CheckpointError unless the ranges of a tensor contain each element once. Sort them."""
    stored.ranges.sort(key=lambda part: (part.start, part.segments[-1].stop))
    end = 0
    for part in [*stored.ranges, None]:
        start = stored.size if part is None else part.start
        if start != end:
            fault = "are written by no rank" if start > end else f"are written twice, also by rank {part and part.file}"
            raise CheckpointError(
                f"save_sharded: elements {min(start, end)} to {max(start, end)} of {name!r} {fault}; expected parts that "
                f"cover the shape {stored.shape} once, with replica= and replicas= where several ranks hold one. {UNCHANGED}"
            )
        end = end if part is None else part.segments[-1].stop


@contextmanager
def translate_write_errors(call: str, path: PathLike, outcome: str) -> Iterator[None]:
    """Convert an OSError of the block to a CheckpointError."""
    try:
        yield
    except MinifuseError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a null character in a path
        cause = error if isinstance(error, OSError) else OSError(str(error))
        raise CheckpointError(f"{call}: {path} could not be written: {reason(cause)}. {outcome}; {remedy(cause)}") from error


# Reading.


def open_index(call: str, folder: PathLike) -> ShardIndex:
    """Read the index of a complete checkpoint.

    Raises
    ------
    CheckpointError
        The folder contains none, or files are missing.
    """
    path = Path(folder)
    index = ShardIndex.read(call, path)
    if index is None:
        names = sorted(x.name for x in path.iterdir() if RANK_FILE.fullmatch(x.name)) if path.is_dir() else []
        problem = (
            f"contains a checkpoint that was never completed: {INDEX} is missing, and only {', '.join(names)} are there"
            if names
            else f"contains no checkpoint: {INDEX} is missing"
        )
        raise CheckpointError(
            f"{call}: {folder} {problem}; use a folder that save_sharded has completed. Nothing was loaded"
        )
    index.check_files()
    return index


def choose_shards(index: ShardIndex, like: Like) -> Callable[[str, Shape], Shard | None]:
    """Return a function from the name and shape of a saved tensor to the wanted part."""
    if callable(like):
        return like
    wanted = dict[str, Shard | None]()
    for name, x in named_leaves(like):
        if name not in index.tensors:
            raise CheckpointError(
                f"load_sharded: {index.folder} has no tensor {name!r}, which `like` asks for; its tensors are "
                f"{', '.join([*index.tensors][:8])}{', ...' if len(index.tensors) > 8 else ''}. Nothing was loaded"
            )
        wanted[name] = x if isinstance(x, Shard) else shard_of(x)
        if isinstance(x, Tensor) and wanted[name] is None:
            check_shape(index, name, x.shape)
    return lambda name, shape: wanted.get(name)


def check_shape(index: ShardIndex, name: str, expected: Shape) -> None:
    """Raise CheckpointError if a tensor of the checkpoint has another shape."""
    shape = index.tensors[name].shape
    if shape != expected:
        raise CheckpointError(
            f"load_sharded: {name!r} has shape {shape} in {index.folder}, but `like` asks for (a part of) shape {expected}; "
            "load it into the model that was saved. Nothing was loaded"
        )


def named_leaves(tree: object, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, Tensor | Shard]]:
    """Iterate over the tensors and Shards of a tree, by the names that `flatten_state` gives them."""
    if isinstance(tree, Tensor | Shard):
        yield ".".join(keys) or "value", tree
    elif isinstance(tree, Mapping | list | tuple):
        for key, x in tree.items() if isinstance(tree, Mapping) else enumerate(tree):
            yield from named_leaves(x, (*keys, str(key)))
