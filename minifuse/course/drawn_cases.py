"""Cases that searches drew in an earlier run, in which all answers to them were right.

A search draws the same cases each time. Drawing takes longer than asking, so a check asks the cases of the last run first.
If all answers are right, the search would find nothing either; else it runs, and finds the smallest case.
"""

import pickle
from collections.abc import Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..runtime import file_trust
from ..runtime.kernel_files import replace_file


class DrawnCases:
    """The cases of a task's searches, stored in a file of the user's cache.

    Parameters
    ----------
    path : Path or None
        The file; None to store nothing.
    key : str
        The digest of all that determines which cases are drawn. A file with another key is replaced.
    """

    def __init__(self, path: Path | None, key: str) -> None:
        self._path, self._key, self._check, self._number, self._is_changed = path, key, "", 0, False
        self._pickles: dict[Hashable, bytes] = {}
        if path and not file_trust.why_distrusted(path.parent):
            with suppress(OSError, EOFError, ValueError, TypeError, pickle.UnpicklingError):
                found_key, pickles = pickle.loads(file_trust.read(path))
                self._pickles = pickles if found_key == key else {}

    def begin(self, check: str) -> None:
        """Begin a check with this name."""
        self._check, self._number = check, 0

    def place(self) -> Hashable:
        """Return the place of the next search of the running check."""
        self._number += 1
        return self._check, self._number

    def cases_at(self, place: Hashable) -> Sequence[Any]:
        """Return the cases of a search; none if they are not known."""
        return pickle.loads(self._pickles[place]) if place in self._pickles else ()

    def keep(self, place: Hashable, cases: Sequence[Any]) -> None:
        """Keep the cases of a search, if they can be pickled."""
        if self._path is None or place in self._pickles:
            return
        with suppress(pickle.PicklingError, TypeError, AttributeError):
            self._pickles[place] = pickle.dumps(list(cases))
            self._is_changed = True

    def save(self) -> None:
        """Write the file if cases were added, and the cache can be written."""
        if self._path is None or not self._is_changed:
            return
        with suppress(OSError):
            if not file_trust.why_distrusted(self._path.parent):
                file_trust.make_private(self._path.parent)
            if not file_trust.why_distrusted(self._path.parent):
                replace_file(self._path, pickle.dumps((self._key, self._pickles)))
