"""Gradients of PyTorch at the corners of operators, folds, losses and layers."""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from .cases_corners import CORNERS, FOLDS, RECEIVED, grid, rows_of

RENAMED: dict[str, Any] = {
    "pos": torch.positive,
    "erf": torch.erf,
    "relu": functional.relu,
    "gelu": functional.gelu,
    "rint": torch.round,
    "radians": torch.deg2rad,
    "degrees": torch.rad2deg,
    "nan_to_num": partial(torch.nan_to_num, nan=0.0, posinf=9.0, neginf=-9.0),
    "x+0": lambda x: x + 0,
    "x*0": lambda x: x * 0,
    "0/x": lambda x: 0 / x,
    **{f"x**{p}": lambda x, p=p: x**p for p in (0, 1, 2, 3, 0.5, -1, -0.5, 1.5)},
    **{f"{p}**x": lambda x, p=p: p**x for p in (0, 1, 2)},
    "(-2)**x": lambda x: (-2) ** x,
    "clip(0,1)": lambda x: x.clip(0, 1),
    "clip(0,)": lambda x: x.clip(min=0),
    "clip(,1)": lambda x: x.clip(max=1),
    "clip(1,0)": lambda x: x.clip(1, 0),
    "maximum(x,0)": lambda x: torch.maximum(x, torch.zeros((), dtype=x.dtype)),
    "minimum(x,0)": lambda x: torch.minimum(x, torch.zeros((), dtype=x.dtype)),
    "where(x>0,x,0)": lambda x: torch.where(x > 0, x, 0),
    "leaky_relu": functional.leaky_relu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "softplus": functional.softplus,
    "elu": functional.elu,
    "prod_of_one": lambda x: x.reshape(-1, 1).prod(1),
    "floordiv": lambda x, y: torch.floor_divide(x.detach(), y.detach()),
    "heaviside": lambda x, y: torch.heaviside(x.detach(), y.detach()),
    "mod": torch.remainder,
    "mse_loss": lambda x, y: functional.mse_loss(x, y, reduction="none"),
    "l1_loss": lambda x, y: functional.l1_loss(x, y, reduction="none"),
    "huber_loss": lambda x, y: functional.huber_loss(x, y, reduction="none"),
    "smooth_l1_loss": lambda x, y: functional.smooth_l1_loss(x, y, reduction="none"),
    "bce_with_logits": lambda x, y: functional.binary_cross_entropy_with_logits(x, y, reduction="none"),
    "where": lambda x, y: torch.where(torch.arange(x.numel()) % 2 == 0, x, y),
    "clip_low": lambda x, y: x.clip(min=y),
    "clip_high": lambda x, y: x.clip(max=y),
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(0),
    "prod": lambda x: x.prod(0),
    "var": lambda x: x.var(0),
    "var0": lambda x: x.var(0, correction=0),
    "std": lambda x: x.std(0),
    "std0": lambda x: x.std(0, correction=0),
    "norm": lambda x: torch.linalg.vector_norm(x),
    "norm1": lambda x: torch.linalg.vector_norm(x, 1),
    "norm3": lambda x: torch.linalg.vector_norm(x, 3),
    "norminf": lambda x: torch.linalg.vector_norm(x, torch.inf),
    "logsumexp": lambda x: x.logsumexp(0),
    "softmax": lambda x: x.softmax(0)[:1].sum(),
    "log_softmax": lambda x: x.log_softmax(0)[:1].sum(),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape)[0],
    "cross_entropy": lambda x: functional.cross_entropy(x[None], torch.tensor([0])),
    "cross_entropy_smooth": lambda x: functional.cross_entropy(x[None], torch.tensor([0]), label_smoothing=0.25),
    "max_pool": lambda x: functional.max_pool1d(x[None, None], len(x))[0, 0, 0],
    "avg_pool": lambda x: functional.avg_pool1d(x[None, None], len(x))[0, 0, 0],
    "attention": lambda x: functional.scaled_dot_product_attention(x[None, :1], x[:, None], x[:, None])[0, 0],
}


def record() -> dict[str, Any]:
    """Values, and the gradients of each operand for each gradient that the result receives."""
    found: dict[str, Any] = {}
    for name, axes in CORNERS.items():
        found |= case(name, RENAMED.get(name) or getattr(torch, name), [np.array(column) for column in grid(*axes)])
    for name in FOLDS:
        for row, numbers in rows_of(name).items():
            found |= case(f"{name}/{row}", RENAMED[name], [np.array(numbers, np.float64)])
    return found


def case(name: str, function: Any, inputs: list[Any]) -> dict[str, Any]:
    """The value of a function, and what each input receives, a row for each incoming gradient; None is recorded as 0."""
    leaves = [torch.tensor(x, requires_grad=True) for x in inputs]
    y = function(*leaves)
    found = {f"{name}/y": y.detach().numpy()}
    rows: list[list[Any]] = [[] for _ in leaves]
    for g in RECEIVED:
        received: Any = [None] * len(leaves)
        if y.requires_grad:
            received = torch.autograd.grad(y, leaves, torch.full_like(y, g), retain_graph=True, allow_unused=True)
        for row, x, gx in zip(rows, leaves, received, strict=True):
            row.append(np.zeros_like(x.detach().numpy()) if gx is None else gx.numpy())
    return found | {f"{name}/g": np.array(rows)}
