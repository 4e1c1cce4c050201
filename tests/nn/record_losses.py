"""Losses by PyTorch: what they give, and their gradients."""

from typing import Any

import numpy as np
import torch

from .cases import CLASSES, COMPARED, NUMBERS


def record() -> dict[str, Any]:
    """All cases; a name is the case, a slash, and what it is."""
    random = np.random.default_rng(1)
    found: dict[str, Any] = {}
    for name, (kind, settings, shape) in CLASSES.items():
        x = (2 * random.standard_normal(shape)).astype(np.float32)
        y = random.integers(0, shape[1], (shape[0], *shape[2:]))
        found |= loss_of(name, getattr(torch.nn, kind)(**settings), x, y, random)
    for name, (kind, settings) in NUMBERS.items():
        x, y = random.uniform(-3, 3, COMPARED).astype(np.float32), random.random(COMPARED).astype(np.float32)
        y[0], x[0, :2] = (0, 1, 0, 1, 0), (90, 90)  # certainty, right and wrong
        settings = {key: torch.tensor(v) if isinstance(v, list) else v for key, v in settings.items()}
        found |= loss_of(name, getattr(torch.nn, kind)(**settings), x, y, random)
    return found


def loss_of(name: str, module: Any, x: Any, y: Any, random: np.random.Generator) -> dict[str, Any]:
    """The loss, and the gradient of what the model gave; where there are several losses, of their sum with weights."""
    logits = torch.from_numpy(x).requires_grad_()
    loss = module(logits, torch.from_numpy(y))
    g = random.standard_normal(tuple(loss.shape)).astype(np.float32)
    loss.backward(torch.from_numpy(np.asarray(g)))
    found = {"x": x, "y": y, "loss": loss.detach().numpy(), "g": g, "gx": logits.grad.numpy()}
    return {f"{name}/{key}": value for key, value in found.items()}
