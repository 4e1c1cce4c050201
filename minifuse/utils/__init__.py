"""PyTorch's `torch.utils`: `mf.utils.checkpoint`."""

from typing import NoReturn as _NoReturn

from ..functions import missing_error as _missing_error
from . import checkpoint


def __getattr__(name: str) -> _NoReturn:
    """Raise AttributeError with what to write in place of PyTorch's names."""
    raise _missing_error("module 'mf.utils'", name, "mf.utils.")


__all__ = ["checkpoint"]
