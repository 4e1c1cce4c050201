"""Batches of examples, shuffled by a seed, optionally prepared by a thread, and resumable at any batch.

The content of a batch depends only on seed, epoch and position, not on whether a thread prepares it, or whether the
iteration was interrupted and resumed in another process. All examples are in memory. Not here: files, multiple processes.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from queue import SimpleQueue
from threading import Event, Semaphore, Thread
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from ..backends.registry import get_backend
from ..core.errors import CheckpointError, DTypeError, ShapeError
from ..core.even_parts import check_rank, even_range
from ..core.keywords import refusing
from ..tensors.tensor import Tensor
from .split import Indices, common_length, gather

Arrays = tuple[np.ndarray, ...]
Transform = Callable[..., Arrays]
T = TypeVar("T")


@runtime_checkable  # a group may be a tuple, too
class RankInGroup(Protocol):
    """Ranks that work together: this one, and how many they are."""

    @property
    def rank(self) -> int: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102


RankAndSize = tuple[int, int] | RankInGroup


KEYWORDS = {  # PyTorch's, and what to write instead
    "num_workers": "write prefetch=2: a thread prepares so many batches in advance",
    **dict.fromkeys(("pin_memory", "persistent_workers", "prefetch_factor", "timeout"), "leave it out, or write prefetch=2"),
    "collate_fn": "write transform=f, which gets the tensors of a batch",
    **dict.fromkeys(("sampler", "batch_sampler"), "pass the tensors with their examples in order, and shuffle=False"),
    "generator": "write seed=0",
}


class Loader:
    """Iterate over batches of examples, in a new random order in each epoch.

    Parameters
    ----------
    tensors : Tensor (N, ...)
        One row for each example. Rows of the same index belong together.
    batch_size : int
        Number of examples in a batch; the last batch may have fewer.
    shuffle : bool
        If True, shuffle. If False, use the order of the tensors.
    seed : int
        The order in epoch e depends on (seed, e) only.
    drop_last : bool
        If True, skip a last batch with fewer examples.
    prefetch : int
        Number of batches that a thread prepares in advance; 0 for no thread.
    transform : callable, optional
        `transform(rng, x, y)` gets the arrays of a batch, which are copies and may be modified, and returns a tuple of
        arrays to use instead: noise, flips, normalization. Use random numbers of `rng`, a numpy.random.Generator that
        depends on seed, epoch and position only. With `prefetch` it runs in the thread.
    backend : str, optional
        The backend of the batches. Default: the backend of each tensor.
    shard : (int, int), or an object with `rank` and `size`, such as a process group
        Rank and number of ranks. Each rank gets its part of each batch: an even part, in order, so the parts of all ranks
        in the order of ranks are the batch. If a batch has fewer examples than there are ranks, some parts are empty.

    Attributes
    ----------
    epoch : int
        The number of completed epochs; set it to repeat an epoch.

    Raises
    ------
    ShapeError
        The lengths differ, `batch_size` is less than 1, `prefetch` is negative, or the rank of `shard` is not below its
        number of ranks.

    Notes
    -----
    A batch is copied row by row into memory of the pool: when a batch is freed, the next one reuses its memory.

    Prefetching helps if the thread does work that releases Python's global lock, as NumPy's copies and arithmetic do, and if
    it has a core to run on. The thread ends with the iteration, also after `break` or an error. The loop raises an
    error of the thread.

    `batch_size`, `len` and `state_dict` describe batches of all ranks. So another number of ranks can load the state, and
    the examples and their order stay the same. A `transform` gets the whole batch on each rank, since its random numbers
    must not depend on the number of ranks.

    Several iterations at the same time are independent; `state_dict` describes the one that returned the last batch.

    Examples
    --------
    >>> import minifuse as mf
    >>> loader = mf.data.Loader(mf.arange(5), mf.arange(5) * 10, batch_size=2, shuffle=False)
    >>> len(loader)
    3
    >>> for x, y in loader:
    ...     print(x.tolist(), y.tolist())
    [0, 1] [0, 10]
    [2, 3] [20, 30]
    [4] [40]
    >>> for rank in range(2):
    ...     part = mf.data.Loader(mf.arange(5), batch_size=3, shuffle=False, shard=(rank, 2))
    ...     print([x.tolist() for (x,) in part])
    [[0, 1], [3]]
    [[2], [4]]
    """

    @refusing(KEYWORDS)
    def __init__(
        self,
        *tensors: Tensor,
        batch_size: int = 64,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        prefetch: int = 0,
        transform: Transform | None = None,
        backend: str | None = None,
        shard: RankAndSize = (0, 1),
    ) -> None:
        if batch_size < 1:
            raise ShapeError(f"Loader: got batch_size={batch_size}, expected at least 1")
        if prefetch < 0:
            raise ShapeError(f"Loader: got prefetch={prefetch}, expected a number of batches, or 0 for no thread")
        check_fields(tensors)
        self.length = common_length("Loader", tensors)
        self.tensors, self.batch_size, self.shuffle, self.seed = tensors, batch_size, shuffle, seed
        self.drop_last, self.prefetch, self.transform = drop_last, prefetch, transform
        self.backend = None if backend is None else get_backend(backend)
        self.shard = (shard.rank, shard.size) if isinstance(shard, RankInGroup) else shard
        check_rank("Loader", *self.shard)
        self.epoch = 0

    @property
    def epoch(self) -> int:
        """The number of completed epochs, which is the number of the next epoch."""
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._epoch = epoch
        self._next_batch = epoch, 0  # epoch and position of the next batch

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        full_batches, rest = divmod(self.length, self.batch_size)
        return full_batches + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Generator[tuple[Tensor, ...], None, None]:
        epoch = self._epoch
        begin = self._next_batch[1] if self._next_batch[0] == epoch else 0  # not 0 after load_state_dict
        self._epoch, self._next_batch = epoch + 1, (epoch, begin)
        batches = self.batches(epoch, begin)
        with closing(prefetch_items(batches, self.prefetch) if self.prefetch else batches) as arrays:
            for position, batch in enumerate(arrays, begin + 1):
                self._next_batch = epoch, position
                yield self.to_tensors(batch)
        self._next_batch = epoch + 1, 0

    def batches(self, epoch: int, begin: int) -> Generator[Arrays, None, None]:
        """Iterate over the arrays of this rank's parts of an epoch's batches, starting at a position."""
        order, arrays = self.order(epoch), [x.numpy() for x in self.tensors]
        for k in range(begin, len(self)):
            rows = order[k * self.batch_size : (k + 1) * self.batch_size]
            if self.transform is None:
                own = rows[self.part(len(rows))]
                yield tuple(gather(array, own) for array in arrays)
                continue
            batch = tuple(gather(array, rows) for array in arrays)
            batch = self.transform(np.random.default_rng([self.seed, epoch, k + 1]), *batch)
            self.check_arrays(batch)
            yield tuple(x[self.part(len(x))] if x.ndim else x for x in batch)

    def part(self, length: int) -> slice:
        """Return this rank's part of the rows of a batch."""
        return slice(*even_range(length, *self.shard))

    def to_tensors(self, batch: Arrays) -> tuple[Tensor, ...]:
        """Convert the arrays of a batch to tensors on their backend."""
        return tuple(
            Tensor.from_numpy(array, self.backend or x.meta.backend) for array, x in zip(batch, self.tensors, strict=True)
        )

    def check_arrays(self, batch: object) -> None:
        """Raise DTypeError unless a transform returned one array for each tensor."""
        type_names = [type(array).__name__ for array in batch] if isinstance(batch, tuple) else type(batch).__name__
        if type_names != ["ndarray"] * len(self.tensors):
            got = f"a tuple of {', '.join(type_names)}" if isinstance(type_names, list) else type_names
            raise DTypeError(f"Loader: transform returned {got}; expected a tuple of {len(self.tensors)} arrays")

    def order(self, epoch: int) -> Indices:
        """Return the indices of all examples in the order of an epoch."""
        if not self.shuffle:
            return np.arange(self.length)
        return np.random.default_rng([self.seed, epoch]).permutation(self.length)

    def state_dict(self) -> dict[str, int]:
        """Return the position of the loader, and the settings that must match when it is loaded.

        Returns
        -------
        dict of str to int
            seed; epoch and position of the next batch; length, batch_size, shuffle, drop_last. Can be stored as JSON.

        Examples
        --------
        >>> import minifuse as mf
        >>> loader = mf.data.Loader(mf.arange(10), batch_size=2)
        >>> for k, (batch,) in enumerate(loader):
        ...     if k == 1:
        ...         state = loader.state_dict()  # two batches are done
        ...     if k == 2:
        ...         print(batch.tolist())
        [3, 5]
        >>> other = mf.data.Loader(mf.arange(10), batch_size=2)
        >>> other.load_state_dict(state)
        >>> next(iter(other))[0].tolist()
        [3, 5]
        """
        epoch, position = self._next_batch
        return {"seed": self.seed, "epoch": epoch, "position": position, **self.batch_settings()}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Continue at the position of another loader of the same examples: the next iteration returns the rest of its epoch.

        Parameters
        ----------
        state : mapping of str to int
            The result of `state_dict`. The seed is loaded, too.

        Raises
        ------
        CheckpointError
            The state has another form, or belongs to a loader of another length or batch size. Nothing is changed.
        """
        names = {"seed", "epoch", "position", *self.batch_settings()}
        if set(state) != names:
            raise CheckpointError(
                f"Loader: got a state with {', '.join(map(str, state)) or 'nothing'}, expected {', '.join(sorted(names))}"
                "; pass the result of state_dict()"
            )
        for name, value in self.batch_settings().items():
            if state[name] != value:
                raise CheckpointError(
                    f"Loader: got a state with {name}={state[name]}, but this loader has {name}={value}; create it with "
                    "the same settings"
                )
        seed, epoch, position = state["seed"], state["epoch"], state["position"]
        if epoch < 0 or not 0 <= position <= len(self):
            raise CheckpointError(f"Loader: got a state at batch {position} of epoch {epoch}, expected 0 to {len(self)}")
        self.seed, self._epoch, self._next_batch = seed, epoch, (epoch, position)

    def batch_settings(self) -> dict[str, int]:
        """Return the settings that determine the batches, besides the seed."""
        return {
            "length": self.length,
            "batch_size": self.batch_size,
            "shuffle": int(self.shuffle),
            "drop_last": int(self.drop_last),
        }


def check_fields(fields: Sequence[object]) -> None:
    """Raise DTypeError if one of the tensors is a tuple of them, or a data set of PyTorch: a sequence of examples."""
    for x in fields:
        if hasattr(x, "__getitem__") and not isinstance(x, Tensor | np.ndarray):
            raise DTypeError(
                f"Loader: got {type(x).__name__}, expected one tensor for each field; write Loader(x, y, ...). Examples are "
                "joined by mf.stack([x for x, y in examples])"
            )


class WorkerFailure(NamedTuple):
    """An exception raised in the prefetching thread."""

    error: BaseException


def prefetch_items(items: Iterator[T], count: int) -> Generator[T, None, None]:
    """Iterate over items of which a thread prepares up to `count` in advance."""
    ready: SimpleQueue[T | WorkerFailure | None] = SimpleQueue()
    free_slots, is_closed = Semaphore(count), Event()

    def prepare() -> None:
        try:
            free_slots.acquire()
            for item in items:
                ready.put(item)
                free_slots.acquire()
                if is_closed.is_set():
                    return
        except BaseException as error:
            ready.put(WorkerFailure(error))
        else:
            ready.put(None)

    thread = Thread(target=prepare, name="minifuse loader", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, WorkerFailure):
                raise item.error
            free_slots.release()
            yield item
    finally:
        is_closed.set()
        free_slots.release()
        thread.join()
