"""Store columns and tables in one file: arrays in a .npz, everything else as JSON. There are no pickles, so loading runs no
code.

The file is written under a temporary name and renamed, so no reader sees a partial file. Equal contents result in equal
bytes.
"""

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..core.errors import SimtError
from ..runtime.atomic_files import replacement

FORMAT: Final = "minifuse trace"
VERSION: Final = 1
TABLES: Final = "tables.json"  # name of the array that contains the JSON, as bytes


def write(path: str | os.PathLike[str], columns: Mapping[str, np.ndarray], tables: Mapping[str, object]) -> None:
    """Write arrays, and tables that JSON can represent, to a file that `read` reads.

    Raises
    ------
    ValueError
        An array contains Python objects, which would need a pickle.
    OSError
        The file cannot be written.
    """
    text = json.dumps({"format": FORMAT, "version": VERSION, **tables}, default=_plain)
    with replacement(path, is_durable=False) as unfinished, zipfile.ZipFile(unfinished, "w") as file:
        for name, column in {TABLES: np.frombuffer(text.encode(), np.uint8), **columns}.items():
            member = zipfile.ZipInfo(f"{name}.npy")  # dated 1980 by default, so that equal contents are equal bytes
            member.compress_type = zipfile.ZIP_DEFLATED
            with file.open(member, "w", force_zip64=True) as content:
                np.lib.format.write_array(content, np.asanyarray(column), allow_pickle=False)


def _plain(value: np.generic) -> object:
    """Convert a NumPy number to a Python number."""
    return value.item()


def read(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the tables of a file.

    Raises
    ------
    SimtError
        The file is not a trace, has another version, or is damaged.
    OSError
        The file does not exist or cannot be read.
    """
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            columns = {name: archive[name] for name in archive.files}
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
        raise SimtError(f"{path} is not a trace, or is damaged ({error}); write a new one with trace.save(path)") from error
    if name != FORMAT or version != VERSION:
        raise SimtError(
            f"{path} is a {name!r} of version {version}; this version of minifuse reads {FORMAT!r} of version {VERSION}"
        )
    return columns, tables
