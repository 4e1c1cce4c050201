"""Build the event columns of a trace from single accesses, which a test lists or Hypothesis draws."""

from typing import NamedTuple

import numpy as np

from minifuse.simt.record import EVENT_DTYPES, LOAD, ArrayInfo, Events, Instruction, count_occurrences


class Access(NamedTuple):
    """One row of the event columns."""

    thread: int
    kind: int = LOAD
    address: int = 256
    nbytes: int = 4
    block: int = 0
    instruction: int = 0
    epoch: int = 0
    warp_epoch: int = 0
    array: int = 0
    value: float = 0.0


def columns(accesses) -> Events:
    """Return the event columns of accesses, in their order."""
    rows = [Access(*access) for access in accesses]
    column = {name: np.array([getattr(row, name) for row in rows], np.int64) for name in Access._fields if name != "value"}
    column["value"] = np.array([row.value for row in rows], np.float64)
    column["occurrence"] = count_occurrences(column["block"], column["thread"], column["instruction"])
    return Events(**{name: column[name].astype(dtype) for name, dtype in zip(Events._fields, EVENT_DTYPES, strict=True)})


def array(name="a", space="global", base=256, shape=(64,), itemsize=4, dtype="float32", strides=None) -> ArrayInfo:
    """Return a row of the table of arrays: row-major unless strides are passed."""
    if strides is None:
        strides = tuple(int(np.prod(shape[d + 1 :], dtype=int)) * itemsize for d in range(len(shape)))
    return ArrayInfo(name, space, base, shape, strides, itemsize, dtype)


def lines(*numbers) -> list[Instruction]:
    """Return a table of instructions, one at each line."""
    return [Instruction("folder/kernel.py", "kernel", line, 4, 2 * index) for index, line in enumerate(numbers)]
