"""The words of generated kernels besides those that all kernels know."""

from typing import Any

from . import groups, held, online, votes

WORDS: dict[str, Any] = {**held.WORDS, **groups.WORDS, **online.WORDS, **votes.WORDS}
