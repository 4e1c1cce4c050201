"""Questions of task 4.7: examples, batches, epochs, what is read, and a state that is loaded."""

import json
from typing import Any, NamedTuple

import numpy as np

from ..strided import Array, Strided
from ..student import Student
from ..verdicts import Wrong

FIRST = 1000
"""The example with index 0; example k is FIRST + k."""


class Loading(NamedTuple):
    """The arguments of a loader, and how many epochs are generated."""

    examples: int
    size: int
    seed: int | None
    drops_last: bool
    epochs: int = 2
    batches: int = 0
    """Batches of the last epoch before the state is saved, or the iteration is given up."""


Rows = tuple[Strided, list[int]]
"""(tensor, labels)."""
Columns = tuple[Strided, Strided]
"""(training rows, test rows)."""


class CountingDataset:
    """Examples that are numbers, and the indices that were asked for."""

    def __init__(self, count: int) -> None:
        self.count, self.asked = count, list[int]()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, k: int) -> int:
        if not isinstance(k, int | np.integer) or isinstance(k, bool):
            raise TypeError(f"dataset[{k!r}]; a data set takes one int at a time")
        if not 0 <= k < self.count:
            raise IndexError(k)
        self.asked.append(int(k))
        return FIRST + int(k)


def make_loader(student: Student, case: Loading) -> tuple[Any, CountingDataset]:
    """Return a loader of the student's, and its data set."""
    dataset = CountingDataset(case.examples)
    return student.DataLoader(dataset, case.size, case.seed, case.drops_last, list), dataset


def ask_examples(student: Student, case: Rows) -> object:
    """Return the number of examples, and the layout and label of each, from both ends; raise `Wrong` for copies."""
    x, labels = case
    dataset = student.TensorDataset(x, labels)
    found = []
    for k in [*range(len(labels)), -1, -len(labels)]:
        row, label = dataset[k]
        if isinstance(row, Strided) and row.storage is not x.storage:
            raise Wrong(f"dataset[{k}] is a copy; a row is a view of x", kind="storage")
        found.append((row.shape, np.array(row.array()), label))
    return len(dataset), found


def ask_ends(student: Student, case: Rows) -> list[str]:
    """Return the names of the errors for indices that are out of range; "no error" if there is none."""
    dataset = student.TensorDataset(*case)
    found = []
    for k in (len(case[1]), -len(case[1]) - 1, len(case[1]) + 7):
        try:
            dataset[k]
        except Exception as error:
            found.append(type(error).__name__)
        else:
            found.append("no error")
    return found


def ask_collated(student: Student, case: Rows) -> object:
    """Return the rows and labels of a batch; raise `Wrong` if it is not a tensor of its own in row-major order."""
    x, labels = case
    examples = [
        (Strided(x.storage, x.shape[1:], x.strides[1:], x.offset + k * x.strides[0]), labels[k]) for k in range(len(labels))
    ]
    rows, found = student.collate(examples)
    if isinstance(rows, Strided) and (rows.storage is x.storage or np.shares_memory(rows.storage, x.storage)):
        raise Wrong("collate returns a view of the data set; a batch has a storage of its own", kind="view")
    return tuple(rows[1:]), np.array(rows.array()), found


def ask_epochs(student: Student, case: Loading) -> object:
    """Return len(loader), and the batches of each epoch."""
    loader, _ = make_loader(student, case)
    return len(loader), [[list(batch) for batch in loader] for _ in range(case.epochs)]


def ask_reads(student: Student, case: Loading) -> object:
    """Return how many examples were read: by the constructor and `len`, by `iter`, after each batch, and in the end."""
    loader, dataset = make_loader(student, case)
    found = [len(loader) * 0 + len(dataset.asked)]
    batches = iter(loader)
    found.append(len(dataset.asked))
    found += [len(dataset.asked) for _ in batches]
    return [*found, len(dataset.asked)]


def ask_given_up(student: Student, case: Loading) -> object:
    """Return the epoch that follows one that was given up, and two epochs that are generated in turns."""
    loader, _ = make_loader(student, case)
    first = iter(loader)
    for _ in range(case.batches):
        next(first)
    after = [list(batch) for batch in loader]
    pairs = [(list(a), list(b)) for a, b in zip(loader, loader, strict=True)]
    return after, [a for a, _ in pairs], [b for _, b in pairs]


def ask_orders(student: Student, case: tuple[int, list[int], int]) -> object:
    """Return the order of each epoch of a loader for each seed, as an array (seeds, epochs, count)."""
    count, seeds, epochs = case
    found = []
    for seed in seeds:
        loader, _ = make_loader(student, Loading(count, count, seed, False))
        found.append([[k - FIRST for batch in loader for k in batch] for _ in range(epochs)])
    return found


def ask_resumed(student: Student, case: Loading) -> object:
    """Return what a loaded state leads to.

    It is (length of the state as JSON, batches that follow, those of a new loader with the state, number of examples that it
    read, the epoch after that, the epoch of another loader with the state whose first iteration was given up). Two loaders
    load the state one after the other.
    """
    loader, _ = make_loader(student, case)
    for _ in range(case.epochs - 1):
        for _ in loader:
            pass
    batches = iter(loader)
    for _ in range(case.batches):
        next(batches)
    state = loader.state_dict()
    epochs = [[list(batch) for batch in part] for part in (batches, loader, loader)]
    epochs = epochs if epochs[0] else epochs[1:]  # a state of a complete epoch is followed by the next one
    try:
        text = json.dumps(state)
    except (TypeError, ValueError) as error:
        raise Wrong(f"json.dumps(state_dict()) raises {type(error).__name__}: {error}", kind="state") from None
    found, stored = [], json.loads(text)
    for _ in range(2):
        other, dataset = make_loader(student, case)
        other.load_state_dict(stored)
        found = [list(batch) for batch in other]
    given_up = make_loader(student, case)[0]
    given_up.load_state_dict(stored)
    next(iter(given_up), None)
    return len(text), epochs[0], found, len(dataset.asked), epochs[1], [list(batch) for batch in given_up]


def ask_statistics(student: Student, x: Strided) -> object:
    """Return the student's means and scales."""
    return student.column_statistics(x)


def ask_prepared(student: Student, case: Columns) -> tuple[Array, ...]:
    """Return the prepared rows; the case must stay as it is."""
    return tuple(np.array(x.array()) for x in student.prepare(*case))
