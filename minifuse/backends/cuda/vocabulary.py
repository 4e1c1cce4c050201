"""The words of generated kernels besides those that all kernels know."""

from typing import Any

from . import groups, held, votes

WORDS: dict[str, Any] = {**held.WORDS, **groups.WORDS, **votes.WORDS}
