"""Module 4: a data set, batches of it, and numbers of a common size.

A tensor here is a `Strided`: storage, shape, strides, offset. `x.array()` returns its elements as a NumPy array over the
same storage. `sliced(x, k)` of task 2.6 returns x[k], a view.
"""

from random import Random

import numpy as np
from views import sliced

from minifuse.course import Strided, todo

# Task 4.7


class TensorDataset:
    """Examples (x[k], labels[k]), where x[k] is a view of x: a `Strided` over the same storage.

    `dataset[k]` takes ints from -len(dataset) to len(dataset) - 1, and raises IndexError for any other.
    """

    def __init__(self, x, labels):
        # begin 4.7a
        self.x, self.labels = x, labels
        # end

    def __len__(self):
        """Return the number of examples."""
        # begin 4.7b
        return self.x.shape[0]
        # end

    def __getitem__(self, k):
        """Return an example: (x[k], labels[k])."""
        # begin 4.7c
        if not -len(self) <= k < len(self):
            raise IndexError(f"example {k} of {len(self)}")
        return sliced(self.x, k), self.labels[k]
        # end


def collate(examples):
    """Return (rows, labels) of a list of examples (row, label).

    rows is a new `Strided` of shape (number of examples, *shape of a row) in row-major order, labels a list.
    """
    # begin 4.7d
    rows = np.array([row.array() for row, _ in examples])
    strides = tuple(step // rows.itemsize for step in rows.strides)
    return Strided(rows.reshape(-1), rows.shape, strides, 0), [label for _, label in examples]
    # end


class DataLoader:
    """Batches of a data set: each iteration is an epoch, in which each example occurs once.

    With a seed, each epoch has an order of its own, which follows from the seed and the number of the epoch; without one
    (None), examples keep their order. The last batch has fewer examples if they do not divide; `drop_last` leaves it out.
    A batch is `collate` of a list of examples. `dataset[k]` is asked for the examples of a batch when the batch is due.
    """

    def __init__(self, dataset, batch_size, seed=None, drop_last=False, collate=collate):
        # begin 4.7e
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.drop_last, self.collate = drop_last, collate
        self.epoch, self.batch, self.is_loaded = -1, 0, False
        # end

    def __len__(self):
        """Return the number of batches of an epoch."""
        # begin 4.7f
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
        # end

    def __iter__(self):
        """Begin the next epoch, or continue that of a loaded state, and generate its batches."""
        # begin 4.7g
        if self.is_loaded and self.batch < len(self):
            first = self.batch
        else:
            self.epoch, self.batch, first = self.epoch + 1, 0, 0
        self.is_loaded = False
        return self.batches(self.epoch, first)
        # end

    def state_dict(self):
        """Return a few numbers, for `json.dumps`: which batches the iteration that was active last has generated."""
        # begin 4.7h
        return {"epoch": self.epoch, "batch": self.batch}
        # end

    def load_state_dict(self, state):
        """Let the next iteration generate the batches that follow; a new epoch, if the epoch of the state was complete."""
        # begin 4.7i
        self.epoch, self.batch, self.is_loaded = state["epoch"], state["batch"], True
        # end

    def batches(self, epoch, first):
        """Generate the batches of an epoch from number `first` on."""
        # begin 4.7j
        order = list(range(len(self.dataset)))
        if self.seed is not None:
            Random(f"{self.seed} {epoch}").shuffle(order)
        for k in range(first, len(self)):
            some = order[k * self.batch_size : (k + 1) * self.batch_size]
            self.epoch, self.batch = epoch, k + 1
            yield self.collate([self.dataset[i] for i in some])
        # end


def column_statistics(x):
    """Return (means, scales), two lists, of the columns of x, a `Strided` of shape (rows, columns).

    A scale is the standard deviation, the root of the mean of (element - mean) ** 2. If all elements are equal (compare
    them: rounding may give a deviation of 1e-17), it is 1.0.
    """
    # begin 4.7k
    rows = x.array()
    means, scales = rows.mean(0), rows.std(0)
    is_constant = rows.min(0) == rows.max(0)
    return means.tolist(), np.where(is_constant, 1.0, scales).tolist()
    # end


def prepare(train, test):
    """Return train and test, two new `Strided`, with (element - mean) / scale of each column: the statistics of train."""
    # begin 4.7l
    means, scales = column_statistics(train)
    return tuple(scaled(x, means, scales) for x in (train, test))
    # end


def scaled(x, means, scales):
    """Return (x - means) / scales as a new tensor in row-major order."""
    rows = (x.array() - np.array(means)) / np.array(scales)
    return Strided(rows.reshape(-1), rows.shape, (rows.shape[1], 1), 0)
