"""What minifuse does at the corners that are recorded from PyTorch, under the same names."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import minifuse as mf
from minifuse.nn import functional

from .cases_corners import BINARY

RENAMED: dict[str, Callable[..., Any]] = {
    "pos": lambda x: +x,
    "gelu": functional.gelu,
    "nan_to_num": partial(np.nan_to_num, nan=0.0, posinf=9.0, neginf=-9.0),
    "x+0": lambda x: x + 0,
    "x*0": lambda x: x * 0,
    "0/x": lambda x: 0 / x,
    **{f"x**{p}": lambda x, p=p: x**p for p in (0, 1, 2, 3, 0.5, -1, -0.5, 1.5)},
    **{f"{p}**x": lambda x, p=p: p**x for p in (0, 1, 2)},
    "(-2)**x": lambda x: (-2) ** x,
    "clip(0,1)": lambda x: x.clip(0, 1),
    "clip(0,)": lambda x: x.clip(0),
    "clip(,1)": lambda x: x.clip(None, 1),
    "clip(1,0)": lambda x: x.clip(1, 0),
    "maximum(x,0)": lambda x: mf.maximum(x, 0),
    "minimum(x,0)": lambda x: mf.minimum(x, 0),
    "where(x>0,x,0)": lambda x: mf.where(x > 0, x, 0),
    "leaky_relu": functional.leaky_relu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "softplus": functional.softplus,
    "elu": functional.elu,
    "prod_of_one": lambda x: x.reshape(-1, 1).prod(1),
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "add": lambda x, y: x + y,
    "div": lambda x, y: x / y,
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "pow": lambda x, y: x**y,
    **{name: partial(getattr(functional, name), reduction="none") for name in BINARY if name.endswith("_loss")},
    "bce_with_logits": partial(functional.binary_cross_entropy_with_logits, reduction="none"),
    "where": lambda x, y: mf.where(mf.arange(x.size) % 2 == 0, x, y),
    "clip_low": lambda x, y: x.clip(y),
    "clip_high": lambda x, y: x.clip(None, y),
    "clip": lambda x, low, high: x.clip(low, high),
    "max": lambda x: x.max(0),
    "min": lambda x: x.min(0),
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(0),
    "prod": lambda x: x.prod(0),
    "var": lambda x: x.var(0),
    "var0": lambda x: x.var(0, 0),
    "std": lambda x: x.std(0),
    "std0": lambda x: x.std(0, 0),
    "norm": np.linalg.norm,
    "norm1": lambda x: np.linalg.norm(x, 1),
    "norm3": lambda x: np.linalg.norm(x, 3),
    "norminf": lambda x: np.linalg.norm(x, np.inf),
    "logsumexp": lambda x: x.logsumexp(0),
    "softmax": lambda x: x.softmax(0)[:1].sum(),
    "log_softmax": lambda x: x.log_softmax(0)[:1].sum(),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape)[0],
    "cross_entropy": lambda x: functional.cross_entropy(x[None], mf.zeros(1, dtype="int64")),
    "cross_entropy_smooth": lambda x: functional.cross_entropy(x[None], mf.zeros(1, dtype="int64"), label_smoothing=0.25),
    "max_pool": lambda x: functional.max_pool1d(x[None, None], len(x))[0, 0, 0],
    "avg_pool": lambda x: functional.avg_pool1d(x[None, None], len(x))[0, 0, 0],
    "attention": lambda x: functional.scaled_dot_product_attention(x[None, None, :1], x[None, :, None], x[None, :, None])[
        0, 0, 0
    ],
}


def function_named(name: str) -> Callable[..., Any]:
    """Return the function of a case."""
    found: Callable[..., Any] = RENAMED.get(name) or getattr(mf, name, None) or getattr(np, name)
    return found
