"""The words of generated kernels besides those that all kernels know."""

from typing import Any

from ..intrinsics import shared_row_cache, vec4, warp_vote
from . import online_exp_sum

WORDS: dict[str, Any] = {**shared_row_cache.WORDS, **vec4.WORDS, **online_exp_sum.WORDS, **warp_vote.WORDS}
