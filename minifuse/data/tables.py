"""Tables of numbers in text files: CSV, with any delimiter.

The file is read once, row by row, and every error names the line and the column. Only numbers are supported: for columns of
words, dates or missing values use pandas, and pass its arrays to `mf.tensor`.
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
from .files import StrPath, open_file


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
    """Read a table of numbers from a text file, one row in each line; optionally separate a target column.

    Parameters
    ----------
    path : path
        UTF-8 text. Entries may be in double quotes; empty lines are skipped.
    target : str or int, optional
        The column to predict: its name in the header, or its number from 0; negative numbers count from the end.
    delimiter : str
        The character between two entries.
    header : bool, optional
        If True, the first line contains names. Default: True if one of its entries is not a number.
    backend : str, optional
        The backend of the tensors. Default: the default backend.

    Returns
    -------
    x : Tensor of float32 (N, columns)
        All columns, or all except the target.
    y : Tensor of int64 or float32 (N,)
        Only with a target: int64 (classes) if each entry is written as a whole number, else float32.

    Raises
    ------
    DataError
        The file is missing, unreadable or empty; a row has another length than the first; an entry is not a number, or too
        large for float32. The message gives line and column, counted from 1.

    Notes
    -----
    "nan" and "inf" are numbers. Reads about five million entries per second, a third of the speed of `numpy.loadtxt`.

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
        raise DataError(f"read_csv: got delimiter={delimiter!r}, expected one character, not a quote or a newline")
    with open_file(path, "read_csv") as (file, _):
        table = CsvTable(path, csv_rows(path, file, delimiter), header, target)
    x, y = table.arrays()
    return from_numpy(x, backend) if y is None else (from_numpy(x, backend), from_numpy(y, backend))


def csv_rows(path: StrPath, file: IO[bytes], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the rows that are not empty, each with the number of its last line."""
    rows = csv.reader(text_lines(path, file), delimiter=delimiter, strict=True)
    try:
        for row in rows:
            if row:
                yield rows.line_num, row
    except csv.Error as error:
        raise DataError(f"read_csv: {path}, line {rows.line_num}: {error}; expected one row in each line") from None


def text_lines(path: StrPath, file: IO[bytes]) -> Iterator[str]:
    """Iterate over the lines of a UTF-8 file."""
    for k, line in enumerate(file):
        try:
            yield line.decode("utf-8" if k else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(
                f"read_csv: {path}, line {k + 1}: {error.reason} at byte {error.start} of the line; expected text in UTF-8"
            ) from None


class CsvTable:
    """The rows of a file as numbers, with their line numbers and column names for messages.

    Parameters
    ----------
    path : path
        Used in messages.
    rows : iterator of (int, list of str)
        Line number and entries of each row.
    header : bool, optional
        If True, the first row contains names; None to detect it.
    target : str or int, optional
        The column to separate.
    """

    def __init__(
        self, path: StrPath, rows: Iterator[tuple[int, list[str]]], header: bool | None, target: str | int | None
    ) -> None:
        self.path, self.names = path, list[str]()
        self.numbers, self.line_numbers = array("d"), array("q")
        self.integers: array[int] | None = array("q")  # the entries of the target; None once an entry is not a whole number
        first_row = next(rows, None)
        if first_row is None:
            raise DataError(f"read_csv: {path} is empty, expected rows of numbers; is it the right file?")
        line, row = first_row
        self.width = len(row)
        has_names = parse_numbers(row) is None if header is None else header
        if has_names:
            self.names = [name.strip() for name in row]
        self.target = self.find_column(target)
        if not has_names:
            self.add_row(line, row)
        for line, row in rows:
            self.add_row(line, row)
        if not self.line_numbers:
            raise DataError(f"read_csv: {path} has a header and no rows, expected rows of numbers; is it truncated?")

    def add_row(self, line: int, row: list[str]) -> None:
        """Append a row."""
        if len(row) != self.width:
            raise DataError(
                f"read_csv: {self.path}, line {line}: got {len(row)} entries, expected {self.width} as in the first row; "
                "correct the line, or pass another delimiter=..."
            )
        numbers = parse_numbers(row)
        if numbers is None:
            k = next(k for k, entry in enumerate(row) if parse_numbers([entry]) is None)
            raise DataError(
                f"read_csv: {self.path}, line {line}, column {self.format_column(k)}: got {row[k]!r:.60}, expected a "
                "number; correct the entry, or remove the column"
            )
        self.numbers.extend(numbers)
        self.line_numbers.append(line)
        if self.integers is not None and self.target is not None:
            try:
                self.integers.append(int(row[self.target]))
            except (ValueError, OverflowError):
                self.integers = None

    def find_column(self, target: str | int | None) -> int | None:
        """Return the index of the target column."""
        if target is None:
            return None
        if isinstance(target, str):
            if self.names.count(target) == 1:
                return self.names.index(target)
            expected = f"one of {', '.join(self.names)}" if self.names else "a number, since the file has no header"
            raise DataError(f"read_csv: {self.path} does not have exactly one column {target!r}, expected {expected}")
        if not -self.width <= target < self.width:
            raise DataError(
                f"read_csv: {self.path} has {self.width} columns, got target={target}; expected {-self.width} to "
                f"{self.width - 1}, or a name"
            )
        return target % self.width

    def format_column(self, column: int) -> str:
        """Return the number of a column, from 1, and its name, for messages."""
        return f"{column + 1} ({self.names[column]})" if self.names else str(column + 1)

    def arrays(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32] | npt.NDArray[np.int64] | None]:
        """Return the columns except the target (N, columns), and the target (N,)."""
        numbers = np.frombuffer(self.numbers, np.float64).reshape(-1, self.width)
        with np.errstate(over="ignore"):
            rounded = numbers.astype(np.float32)
        is_too_large = np.isinf(rounded) & np.isfinite(numbers)
        if is_too_large.any():
            row, k = (int(i) for i in np.argwhere(is_too_large)[0])
            raise DataError(
                f"read_csv: {self.path}, line {self.line_numbers[row]}, column {self.format_column(k)}: got "
                f"{numbers[row, k]}, expected at most 3.4e38, the largest float32; use another unit"
            )
        if self.target is None:
            return rounded, None
        classes = None if self.integers is None else np.array(self.integers, np.int64)
        return np.delete(rounded, self.target, 1), rounded[:, self.target].copy() if classes is None else classes


def parse_numbers(row: list[str]) -> list[float] | None:
    """Convert entries to numbers; return None if one is not a number. Python's notation 1_000 is not accepted."""
    try:
        return None if "_" in "".join(row) else list(map(float, row))
    except ValueError:
        return None
