"""Base class of engines whose ranks are processes: they post each collective on the board of the launcher."""

from contextlib import suppress
from typing import Any

import numpy as np

from ..core.errors import users_frame
from .base import Engine, RankGroup, Request
from .board import Board, join
from .environment import Place
from .messages import RankProgram


class ProcessEngine(Engine):
    """An engine whose ranks are processes.

    Attributes
    ----------
    board : Board or None
        The board of `minifuse launch`; None if something else started the ranks, or on another host.
    """

    def __init__(self, place: Place) -> None:
        self.rank, self.size = place.rank, place.size
        self.board: Board | None = None
        with suppress(FileNotFoundError):  # on another host than the launcher
            self.board = join(place.board, place.rank) if place.board else None

    def announce(self, group: RankGroup, request: Request) -> None:
        """Post a collective on the board, where the launcher compares it with those of other ranks."""
        if self.board is not None:
            self.board.post(request, group.ranks, users_frame())

    def exchange(self, program: RankProgram[Any], group: RankGroup, dtype: np.dtype[Any]) -> Any:
        """Run a program of this rank to its end, and post that the collective is over."""
        with np.errstate(all="ignore"):  # inf and nan are results, as in kernels
            result = super().exchange(program, group, dtype)
        self.note_end()
        return result

    def note_end(self) -> None:
        """Post that the collective is over."""
        if self.board is not None:
            self.board.done()
