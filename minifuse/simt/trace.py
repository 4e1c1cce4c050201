"""A trace: the record of one launch of a kernel in the interpreter.

The machine records it. Requests and races are computed when they are first used. A trace loaded from a file equals the one
that was saved.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from ..core import errors
from ..core.errors import SimtError
from . import trace_file
from .diagnostics import EventLabels, find_race_errors, find_unwritten_errors
from .metrics import Divergence, Requests, Reuse, divergence, requests, reuse
from .races import Race, races
from .record import EVENT_DTYPES, ArrayInfo, Barrier, Collective, Events, Instruction
from .summary import summarize
from .trace_html import trace_html

TABLES = {"instructions": Instruction, "arrays": ArrayInfo, "barriers": Barrier, "collectives": Collective}


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The record of one launch, and its analyses.

    Attributes
    ----------
    kernel, file, line : str, str, int
        The name of the kernel, and the location of its definition.
    grid, block : tuple of three ints
        Blocks and threads along x, y and z.
    shared : int
        Bytes of dynamic shared memory.
    seed : int
        The seed of the order of warps and blocks.
    arguments : list of (name, value)
        The arguments that are not arrays.
    outputs : dict of ndarray
        The arrays among the arguments that the kernel wrote, by name.
    events : Events
        Every access to global, shared and constant memory, in the order of execution.
    instructions, arrays, barriers, collectives : list
        The tables that the columns of `events` refer to, and the synchronizations of the threads.
    findings : list of SimtError
        Hazards found while the kernel ran. `hazards()` returns these and all others.
    is_complete : bool
        Whether every thread ran to its end. If not, the last finding is the reason.
    fresh : tuple of str
        The arrays among the arguments that were uninitialized when the launch began.

    Examples
    --------
    >>> from minifuse import simt
    >>> def copy(out, a):
    ...     i = simt.cuda.grid(1)
    ...     out[i] = a[2 * i]
    >>> trace = simt.trace(copy, 2, 32, np.zeros(64, np.float32), np.zeros(128, np.float32))
    >>> trace
    <Trace of copy, grid (2, 1, 1), block (32, 1, 1), seed 0: 128 events, complete>
    >>> trace.requests().sectors.tolist()
    [8, 4, 8, 4]
    >>> trace.reuse("a")
    Reuse(loads=64, distinct=64, minimum=1, maximum=1, mean=1.0)
    >>> trace.hazards()
    []
    """

    kernel: str
    file: str
    line: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    seed: int
    arguments: list[tuple[str, object]]
    outputs: Mapping[str, np.ndarray]
    events: Events
    instructions: list[Instruction]
    arrays: list[ArrayInfo]
    barriers: list[Barrier]
    collectives: list[Collective]
    findings: list[SimtError]
    is_complete: bool
    fresh: tuple[str, ...] = ()

    @property
    def threads(self) -> int:
        """Threads per block."""
        x, y, z = self.block
        return x * y * z

    def requests(self) -> Requests:
        """Group the accesses into warp requests, with the sectors, cache lines and wavefronts of each."""
        return self._requests

    def divergence(self) -> Divergence:
        """Count the lanes that take part in the requests of each instruction."""
        return divergence(self._requests, self.threads)

    def reuse(self, array: str) -> Reuse:
        """Count the loads of the elements of an array, given by its name.

        Raises
        ------
        SimtError
            The launch has no array with this name.
        """
        for row, info in enumerate(self.arrays):
            if info.name == array:
                return reuse(self.events, row, info)
        names = ", ".join(repr(info.name) for info in self.arrays) or "none at all"
        raise SimtError(f"trace.reuse: the launch of {self.kernel} has no array {array!r}; it has {names}")

    def races(self) -> list[Race]:
        """Return the races, as rows of the event columns."""
        return self._races

    def hazards(self) -> list[SimtError]:
        """Return all hazards: findings of the machine, then races, then outputs that were written in part.

        Notes
        -----
        If the launch did not complete, unwritten outputs are expected, and are omitted.
        """
        unwritten = find_unwritten_errors(self.fresh, self.labels) if self.is_complete else []
        return [*self.findings, *find_race_errors(self._races, self.labels), *unwritten]

    def summary(self) -> dict[str, Any]:
        """Return the metrics as plain numbers under labels, ready for JSON: see `summary.summarize`."""
        launch = {name: getattr(self, name) for name in ("kernel", "file", "line", "shared", "seed", "is_complete")}
        divergence, hazards = self.divergence(), self.hazards()
        return launch | summarize(self.labels, self._requests, divergence, self.barriers, self.collectives, hazards)

    @property
    def labels(self) -> EventLabels:
        """Readable labels of the rows of the event columns."""
        return EventLabels(self.events, self.instructions, self.arrays, self.grid, self.block)

    @cached_property
    def _requests(self) -> Requests:
        return requests(self.events, self.arrays)

    @cached_property
    def _races(self) -> list[Race]:
        return races(self.events, self.arrays, self.instructions, self.barriers, self.collectives)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a .npz file of columns and tables, without pickles. Equal traces result in equal bytes."""
        columns, tables = self._parts()
        trace_file.write(path, columns, tables)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Trace":
        """Load a trace from a file. It equals the one that was saved.

        Raises
        ------
        SimtError
            The file is not a trace, has another version, or is damaged.
        OSError
            The file does not exist or cannot be read.
        """
        columns, tables = trace_file.read(path)
        try:
            return cls(**_trace_attributes(columns, tables))
        except (KeyError, TypeError, ValueError) as error:
            raise SimtError(f"{path} lacks a part of a trace ({error}); write a new one with trace.save(path)") from error

    def _parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the arrays as columns, and everything else in types that JSON can represent."""
        tables = {field.name: getattr(self, field.name) for field in fields(self)}
        events, outputs = tables.pop("events"), tables.pop("outputs")
        columns = {f"event.{name}": column for name, column in events._asdict().items()}
        columns |= {f"output.{index}": np.asarray(output) for index, output in enumerate(outputs.values())}
        tables["findings"] = [_error_as_dict(error) for error in self.findings]
        return columns, {**tables, "outputs": list(outputs)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        columns, tables = self._parts()
        other_columns, other_tables = other._parts()
        return (
            tables == other_tables
            and columns.keys() == other_columns.keys()
            and all(_is_bitwise_equal(column, other_columns[name]) for name, column in columns.items())
        )

    __hash__ = None  # type: ignore[assignment]  # it contains arrays

    def __repr__(self) -> str:
        state = "complete" if self.is_complete else "cut short"
        return (
            f"<Trace of {self.kernel}, grid {tuple(self.grid)}, block {tuple(self.block)}, seed {self.seed}: "
            f"{len(self.events.block)} events, {state}>"
        )

    def _repr_html_(self) -> str:
        return trace_html(self)


load = Trace.load  # as `simt.load(path)`


def _is_bitwise_equal(left: np.ndarray, right: np.ndarray) -> bool:
    """Return whether two arrays have equal bits."""
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def _error_as_dict(error: SimtError) -> dict[str, object]:
    """Convert an error to types that JSON can represent."""
    attributes = {name: getattr(error, name) for name in ("lines", "array", "element", "block", "threads", "epoch")}
    return {"type": type(error).__name__, "message": str(error), **attributes}


def _error_from_dict(record: dict[str, Any]) -> SimtError:
    """Convert the dict of an error back to the error."""
    kind = getattr(errors, record.pop("type"), SimtError)
    return kind(record.pop("message"), **{name: _as_tuple(value) for name, value in record.items()})


def _as_tuple(value: object) -> Any:
    """Convert lists to tuples: JSON has only lists, tables have only tuples."""
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def _trace_attributes(columns: dict[str, np.ndarray], tables: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a trace, given its columns and tables."""
    values = {name: _as_tuple(value) for name, value in tables.items()}
    values["events"] = events = Events(**{name: columns[f"event.{name}"] for name in Events._fields})
    for (name, column), dtype in zip(events._asdict().items(), EVENT_DTYPES, strict=True):
        if column.dtype != dtype or column.shape != (len(events.block),):
            raise ValueError(f"the column {name} has dtype {column.dtype} and shape {column.shape}")
    values["outputs"] = {name: columns[f"output.{index}"] for index, name in enumerate(tables["outputs"])}
    values |= {name: [row(*_as_tuple(entry)) for entry in tables[name]] for name, row in TABLES.items()}
    values["arguments"] = [_as_tuple(pair) for pair in tables["arguments"]]
    values["findings"] = [_error_from_dict(dict(record)) for record in tables["findings"]]
    return values
