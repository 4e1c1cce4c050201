"""Activations and normalizations by PyTorch: what they give, their gradients, running statistics over several steps."""

from typing import Any

import numpy as np
import torch

from .cases import ACTIVATED, ACTIVATIONS, NORMALIZATIONS, STEPS


def record() -> dict[str, Any]:
    """All cases; a name is the case, a slash, and what it is."""
    random = np.random.default_rng(0)
    found: dict[str, Any] = {}
    x = (3 * random.standard_normal(ACTIVATED)).astype(np.float32)
    x[0, :4] = 0, -40, 60, -1e-4  # a kink, where exponentials vanish, overflow, and are nearly 1
    g = random.standard_normal(ACTIVATED).astype(np.float32)
    found |= {"activations/x": x, "activations/g": g}
    for name, (kind, settings) in ACTIVATIONS.items():
        y, gx = forward_backward(getattr(torch.nn, kind)(**settings), x, g)
        found |= {f"{name}/y": y, f"{name}/gx": gx}
    for name, (kind, arguments, settings, shape) in NORMALIZATIONS.items():
        found |= {f"{name}/{key}": value for key, value in normalized(kind, arguments, settings, shape, random).items()}
    return found


def normalized(kind: str, arguments: Any, settings: Any, shape: Any, random: np.random.Generator) -> dict[str, Any]:
    """Some steps in training, then one in use."""
    module = getattr(torch.nn, kind)(*arguments, **settings)
    found: dict[str, Any] = {}
    with torch.no_grad():
        for key, p in module.named_parameters():
            found[key] = random.uniform(0.5, 1.5, tuple(p.shape)).astype(np.float32)
            p.copy_(torch.from_numpy(found[key]))
    for step in range(STEPS + 1):
        module.train(step < STEPS)
        module.zero_grad()
        x, g = random.normal(1, 2, shape).astype(np.float32), random.standard_normal(shape).astype(np.float32)
        y, gx = forward_backward(module, x, g)
        found |= {f"{step}/x": x, f"{step}/g": g, f"{step}/y": y, f"{step}/gx": gx}
        found |= {f"{step}/g {key}": p.grad.numpy().copy() for key, p in module.named_parameters()}
        found |= {f"{step}/{key}": b.numpy().copy() for key, b in module.named_buffers()}
    return found


def forward_backward(module: Any, x: Any, g: Any) -> tuple[Any, Any]:
    """What a module gives, and the gradient of its input."""
    x = torch.from_numpy(x).requires_grad_()
    y = module(x)
    y.backward(torch.from_numpy(g))
    return y.detach().numpy(), x.grad.numpy()
