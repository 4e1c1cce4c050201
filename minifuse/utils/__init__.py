"""PyTorch's `torch.utils`: `mf.utils.checkpoint`."""

from . import checkpoint

__all__ = ["checkpoint"]
