"""Examples from tables in text files: CSV, and whatever else stands between the numbers.

The file is read once, row by row, and every complaint names the line and the column. Numbers only: columns of words, dates
and gaps are work for a library made for tables, whose arrays `mf.tensor` takes.
"""

import csv
from array import array
from collections.abc import Iterator
from typing import IO, overload

import numpy as np
import numpy.typing as npt

from ..core.errors import DataError
from ..tensors.creation import from_numpy
from ..tensors.tensor import Tensor
from .files import StrPath, opened


@overload
def read_csv(
    path: StrPath, target: None = None, delimiter: str = ",", header: bool | None = None, backend: str | None = None
) -> Tensor: ...
@overload
def read_csv(
    path: StrPath, target: str | int, delimiter: str = ",", header: bool | None = None, backend: str | None = None
) -> tuple[Tensor, Tensor]: ...
def read_csv(
    path: StrPath,
    target: str | int | None = None,
    delimiter: str = ",",
    header: bool | None = None,
    backend: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """A table of numbers from a text file, a row a line; one column may be what is to be learned.

    Parameters
    ----------
    path : path
        Text in UTF-8. Entries may stand in double quotes; empty lines are passed over.
    target : str or int, optional
        The column that is to be told from the others: its name in the header, or its number from 0, from -1 backwards.
    delimiter : str
        What stands between two entries: one character.
    header : bool, optional
        Whether the first line holds names. If left out, it does where an entry of it is no number.
    backend : str, optional
        Where the tensors live; the default backend if left out.

    Returns
    -------
    x : Tensor of float32 (N, columns)
        All columns, or all but the target.
    y : Tensor of int64 or float32 (N,)
        With a target only: int64, for classes, where each entry is written as a whole number, and float32 otherwise.

    Raises
    ------
    DataError
        The file is missing, unreadable or empty; a row is of another length than the first; an entry is no number, or
        beyond float32. The message gives line and column, each from 1.

    Notes
    -----
    "nan" and "inf" are numbers. About five million entries a second, a third of what
    `numpy.loadtxt` reads.

    Examples
    --------
    >>> import minifuse as mf, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "houses.csv")
    >>> _ = path.write_text("rooms,area,price\\n3,71.5,310\\n5,124,480\\n")
    >>> x, y = mf.data.read_csv(path, target="price")
    >>> x, y
    (tensor([[  3. ,  71.5],
            [  5. , 124. ]]), tensor([310, 480]))
    """
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise DataError(f"read_csv: the delimiter is {delimiter!r}, expected one character, no quote and no end of a line")
    with opened(path, "read_csv") as (file, _):
        table = Table(path, csv_rows(path, file, delimiter), header, target)
    x, y = table.arrays()
    return from_numpy(x, backend) if y is None else (from_numpy(x, backend), from_numpy(y, backend))


def csv_rows(path: StrPath, file: IO[bytes], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the line on which it ends."""
    rows = csv.reader(text_lines(path, file), delimiter=delimiter, strict=True)
    try:
        for row in rows:
            if row:
                yield rows.line_num, row
    except csv.Error as error:
        raise DataError(f"read_csv: {path}, line {rows.line_num}: {error}; expected a row a line") from None


def text_lines(path: StrPath, file: IO[bytes]) -> Iterator[str]:
    """The lines of a file in UTF-8."""
    for k, line in enumerate(file):
        try:
            yield line.decode("utf-8" if k else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(
                f"read_csv: {path}, line {k + 1}: {error.reason} at byte {error.start} of the line; expected text in UTF-8"
            ) from None


class Table:
    """The rows of a file as numbers, and what messages need to know of them.

    Parameters
    ----------
    path : path
        For messages.
    rows : iterator of (int, list of str)
        Lines, and the entries of each row.
    header : bool, optional
        Whether the first row holds names; if None, see whether it is all numbers.
    target : str or int, optional
        The column to set apart.
    """

    def __init__(
        self, path: StrPath, rows: Iterator[tuple[int, list[str]]], header: bool | None, target: str | int | None
    ) -> None:
        self.path, self.names = path, list[str]()
        self.numbers, self.lines = array("d"), array("q")
        self.integers: array[int] | None = array("q")  # the target's, as long as all are written as such
        first = next(rows, None)
        if first is None:
            raise DataError(f"read_csv: {path} is empty, expected rows of numbers; is it the right file?")
        line, row = first
        self.width = len(row)
        has_names = numbers_of(row) is None if header is None else header
        if has_names:
            self.names = [name.strip() for name in row]
        self.target = self.column(target)
        if not has_names:
            self.take(line, row)
        for line, row in rows:
            self.take(line, row)
        if not self.lines:
            raise DataError(f"read_csv: {path} has a header and no row below it, expected rows of numbers; is it cut short?")

    def take(self, line: int, row: list[str]) -> None:
        """Add a row."""
        if len(row) != self.width:
            raise DataError(
                f"read_csv: {self.path}, line {line}: got {len(row)} entries, expected {self.width} as in the first row; "
                "correct the line, or give another delimiter="
            )
        found = numbers_of(row)
        if found is None:
            k = next(k for k, entry in enumerate(row) if numbers_of([entry]) is None)
            raise DataError(
                f"read_csv: {self.path}, line {line}, column {self.called(k)}: got {row[k]!r:.60}, expected a number; "
                "correct the entry, or leave the column out"
            )
        self.numbers.extend(found)
        self.lines.append(line)
        if self.integers is not None and self.target is not None:
            try:
                self.integers.append(int(row[self.target]))
            except (ValueError, OverflowError):
                self.integers = None

    def column(self, target: str | int | None) -> int | None:
        """The number of the target's column."""
        if target is None:
            return None
        if isinstance(target, str):
            if self.names.count(target) == 1:
                return self.names.index(target)
            known = f"one of its header: {', '.join(self.names)}" if self.names else "a number, as there are no names"
            raise DataError(f"read_csv: {self.path} has no one column {target!r}, expected {known}")
        if not -self.width <= target < self.width:
            raise DataError(
                f"read_csv: {self.path} has {self.width} columns, got target={target}; expected {-self.width} to "
                f"{self.width - 1}, or a name"
            )
        return target % self.width

    def called(self, column: int) -> str:
        """A column in messages: its number from 1, and its name if it has one."""
        return f"{column + 1} ({self.names[column]})" if self.names else str(column + 1)

    def arrays(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32] | npt.NDArray[np.int64] | None]:
        """The columns but the target's (N, columns), and the target (N,)."""
        numbers = np.frombuffer(self.numbers, np.float64).reshape(-1, self.width)
        with np.errstate(over="ignore"):
            narrow = numbers.astype(np.float32)
        beyond = np.isinf(narrow) & np.isfinite(numbers)
        if beyond.any():
            row, k = (int(i) for i in np.argwhere(beyond)[0])
            raise DataError(
                f"read_csv: {self.path}, line {self.lines[row]}, column {self.called(k)}: got {numbers[row, k]}, "
                "expected at most 3.4e38, the largest float32; choose another unit"
            )
        if self.target is None:
            return narrow, None
        whole = None if self.integers is None else np.array(self.integers, np.int64)
        return np.delete(narrow, self.target, 1), narrow[:, self.target].copy() if whole is None else whole


def numbers_of(row: list[str]) -> list[float] | None:
    """The entries as numbers; None where one is not. Python's 1_000 is no number of a table."""
    try:
        return None if "_" in "".join(row) else list(map(float, row))
    except ValueError:
        return None
