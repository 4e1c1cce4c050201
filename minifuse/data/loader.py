"""Batches of examples: at random, yet the same for the same seed, prepared by a thread if wanted, and resumed anywhere.

What a batch holds follows from seed, epoch and position alone; whether a thread prepares it, and whether the walk was broken
off and taken up again in another process, changes nothing. Examples lie in memory; not here: files, several processes.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from queue import SimpleQueue
from threading import Event, Semaphore, Thread
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..backends.registry import get_backend
from ..core.errors import CheckpointError, DTypeError, ShapeError
from ..tensors.tensor import Tensor
from .split import Indices, common_length, gather

Arrays = tuple[npt.NDArray[Any], ...]
Transform = Callable[..., Arrays]
T = TypeVar("T")


class Loader:
    """Batches of examples, in a new random order each time that it is walked.

    Parameters
    ----------
    tensors : Tensor (N, ...)
        One row an example; rows of the same index stay together.
    batch_size : int
        Examples in a batch; the last batch may have fewer.
    shuffle : bool
        Whether the order is random; else it is that of the tensors.
    seed : int
        The order of epoch e follows from (seed, e) alone.
    drop_last : bool
        Whether a last batch of fewer examples is left out.
    prefetch : int
        How many batches a thread prepares ahead of the loop; 0 for no thread.
    transform : callable, optional
        `transform(rng, x, y)` gets the arrays of a batch, which are copies and may be written to, and returns the arrays to
        use instead, as a tuple: noise, flips, normalisation. Draw from `rng`, a numpy.random.Generator that follows from
        seed, epoch and position. With a prefetch it runs in the thread.
    backend : str, optional
        Where batches go; if left out, to the backend of their tensor.

    Attributes
    ----------
    epoch : int
        How often it was walked; set it to repeat an epoch.

    Raises
    ------
    ShapeError
        Lengths differ, `batch_size` is not at least 1, or `prefetch` is below 0.

    Notes
    -----
    A batch is copied, row by row, into memory of the pool: when the one before is let go, the next lies in its place.

    Prefetching helps where the thread has something to do that lets go of Python's lock, as NumPy's copies and arithmetic
    do, and a core to do it on. The thread ends with the walk, be it at its end, by `break`, or by an error. What goes wrong
    in it is raised in the loop.

    Walks side by side do not disturb each other; `state_dict` speaks of the one that gave the last batch.

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
    """

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
    ) -> None:
        if batch_size < 1:
            raise ShapeError(f"Loader: batch_size is {batch_size}, expected at least 1 example")
        if prefetch < 0:
            raise ShapeError(f"Loader: prefetch is {prefetch}, expected 0, for no thread, or a number of batches")
        self.length = common_length("Loader", tensors)
        self.tensors, self.batch_size, self.shuffle, self.seed = tensors, batch_size, shuffle, seed
        self.drop_last, self.prefetch, self.transform = drop_last, prefetch, transform
        self.backend = None if backend is None else get_backend(backend)
        self.epoch = 0

    @property
    def epoch(self) -> int:
        """How often it was walked, which is the epoch that the next walk gives."""
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._epoch = epoch
        self._next = epoch, 0  # epoch and position of the batch to come

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        whole, rest = divmod(self.length, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Generator[tuple[Tensor, ...], None, None]:
        epoch = self._epoch
        begin = self._next[1] if self._next[0] == epoch else 0  # within the epoch only after load_state_dict
        self._epoch, self._next = epoch + 1, (epoch, begin)
        batches = self.batches(epoch, begin)
        with closing(ahead(batches, self.prefetch) if self.prefetch else batches) as arrays:
            for position, batch in enumerate(arrays, begin + 1):
                self._next = epoch, position
                yield self.placed(batch)
        self._next = epoch + 1, 0

    def batches(self, epoch: int, begin: int) -> Generator[Arrays, None, None]:
        """The arrays of an epoch's batches, from one on."""
        order, arrays = self.order(epoch), [x.numpy() for x in self.tensors]
        for k in range(begin, len(self)):
            rows = order[k * self.batch_size : (k + 1) * self.batch_size]
            batch = tuple(gather(array, rows) for array in arrays)
            if self.transform is not None:
                batch = self.transform(np.random.default_rng([self.seed, epoch, k + 1]), *batch)
            yield batch

    def placed(self, batch: Arrays) -> tuple[Tensor, ...]:
        """The arrays of a batch as tensors where they are wanted."""
        kinds = [type(array).__name__ for array in batch] if isinstance(batch, tuple) else type(batch).__name__
        if kinds != ["ndarray"] * len(self.tensors):
            got = f"a tuple of {', '.join(kinds)}" if isinstance(kinds, list) else kinds
            raise DTypeError(f"Loader: transform returned {got}; expected a tuple of {len(self.tensors)} arrays")
        return tuple(
            Tensor.from_numpy(array, self.backend or x.spec.backend) for array, x in zip(batch, self.tensors, strict=True)
        )

    def order(self, epoch: int) -> Indices:
        """The indices of all examples as they come in an epoch."""
        if not self.shuffle:
            return np.arange(self.length)
        return np.random.default_rng([self.seed, epoch]).permutation(self.length)

    def state_dict(self) -> dict[str, int]:
        """Where the loader stands: what the next batch follows from, and what must be equal where it is loaded.

        Returns
        -------
        dict of str to int
            seed; epoch and position of the batch to come; length, batch_size, shuffle, drop_last. JSON can keep it.

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
        epoch, position = self._next
        return {"seed": self.seed, "epoch": epoch, "position": position, **self.fixed()}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on where another loader of the same examples stood: the next walk gives what was left of its epoch.

        Parameters
        ----------
        state : mapping of str to int
            What `state_dict` gave. The seed is taken over.

        Raises
        ------
        CheckpointError
            It is the state of a loader of more or fewer examples, of other batches, or none at all. Nothing is changed.
        """
        expected = {"seed", "epoch", "position", *self.fixed()}
        if set(state) != expected:
            raise CheckpointError(
                f"Loader: got a state with {', '.join(map(str, state)) or 'nothing'}, expected {', '.join(sorted(expected))}"
                "; pass what state_dict() gave"
            )
        for name, value in self.fixed().items():
            if state[name] != value:
                raise CheckpointError(
                    f"Loader: the state has {name}={state[name]}, this loader {name}={value}; make it with the same settings"
                )
        seed, epoch, position = state["seed"], state["epoch"], state["position"]
        if epoch < 0 or not 0 <= position <= len(self):
            raise CheckpointError(f"Loader: the state is at batch {position} of epoch {epoch}, expected 0 to {len(self)}")
        self.seed, self._epoch, self._next = seed, epoch, (epoch, position)

    def fixed(self) -> dict[str, int]:
        """What decides which examples make a batch, besides the seed."""
        return {
            "length": self.length,
            "batch_size": self.batch_size,
            "shuffle": int(self.shuffle),
            "drop_last": int(self.drop_last),
        }


class Failed(NamedTuple):
    """What went wrong in a thread, on its way to the loop."""

    error: BaseException


def ahead(items: Iterator[T], count: int) -> Generator[T, None, None]:
    """The items of an iterator, of which a thread prepares up to `count` before they are asked for."""
    ready: SimpleQueue[T | Failed | None] = SimpleQueue()
    room, is_over = Semaphore(count), Event()

    def prepare() -> None:
        try:
            room.acquire()
            for item in items:
                ready.put(item)
                room.acquire()
                if is_over.is_set():
                    return
        except BaseException as error:
            ready.put(Failed(error))
        else:
            ready.put(None)

    thread = Thread(target=prepare, name="minifuse loader", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, Failed):
                raise item.error
            room.release()
            yield item
    finally:
        is_over.set()
        room.release()
        thread.join()
