"""Columns and tables in one file: a .npz of arrays, and JSON for all that is no array. No pickle: a file runs no code.

The file is written under another name and renamed, so that nobody finds half a file. Equal contents give equal bytes.
"""

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import SimtError
from ..runtime.atomic_files import replacement

FORMAT: Final = "minifuse trace"
VERSION: Final = 1
TABLES: Final = "tables.json"  # the name of the array that holds the JSON, as bytes


def write(path: str | os.PathLike[str], columns: Mapping[str, NDArray[Any]], tables: Mapping[str, Any]) -> None:
    """Write arrays, and tables of what JSON knows, to a file that `read` understands.

    Raises
    ------
    ValueError
        An array of Python objects, which only a pickle could hold.
    OSError
        The file cannot be written.
    """
    text = json.dumps({"format": FORMAT, "version": VERSION, **tables}, default=_plain)
    with replacement(path, is_durable=False) as unfinished, zipfile.ZipFile(unfinished, "w") as file:
        for name, column in {TABLES: np.frombuffer(text.encode(), np.uint8), **columns}.items():
            member = zipfile.ZipInfo(f"{name}.npy")  # its date is always 1980, so that equal contents are equal bytes
            member.compress_type = zipfile.ZIP_DEFLATED
            with file.open(member, "w", force_zip64=True) as content:
                np.lib.format.write_array(content, np.asanyarray(column), allow_pickle=False)


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item()


def read(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the tables of a file.

    Raises
    ------
    SimtError
        The file is not one of ours, of another version, or damaged.
    OSError
        There is no such file, or it cannot be read.
    """
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as found:
            columns = {name: found[name] for name in found.files}
        tables = json.loads(columns.pop(TABLES).tobytes())
        name, version = tables.pop("format"), tables.pop("version")
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        ValueError,
        KeyError,
        AttributeError,
        TypeError,
        NotImplementedError,
    ) as error:
        raise SimtError(f"{path} is no trace, or a damaged one ({error}); make a new one with trace.save(path)") from error
    if name != FORMAT or version != VERSION:
        raise SimtError(f"{path} is a {name!r} of version {version}; this minifuse reads {FORMAT!r} of version {VERSION}")
    return columns, tables
