"""Convolutions, poolings and a small network of both by PyTorch: what they give, their gradients, and steps of training."""

from typing import Any

import numpy as np
import torch

from .cases_convolution import CONVOLUTIONS, POOLINGS

STEPS, LEARNING_RATE = 4, 0.05


def record() -> dict[str, Any]:
    """All cases; a name is the case, a slash, and what it is."""
    random = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for k, (name, (x_shape, weight_shape, settings)) in enumerate(CONVOLUTIONS.items()):
        shapes = {"x": x_shape, "weight": weight_shape} | ({"bias": weight_shape[:1]} if k % 2 == 0 else {})
        inputs = {key: eighths(random, shape) for key, shape in shapes.items()}
        function = getattr(torch.nn.functional, f"conv{len(x_shape) - 2}d")
        found |= {f"{name}/{key}": value for key, value in differentiated(function, inputs, settings, random).items()}
    for name, (function, shape, settings) in POOLINGS.items():
        inputs = {"x": np.round(2 * random.standard_normal(shape))}
        found |= {
            f"{name}/{key}": value
            for key, value in differentiated(getattr(torch.nn.functional, function), inputs, settings, random).items()
        }
    return found | {f"training/{key}": value for key, value in trained(random).items()}


def eighths(random: np.random.Generator, shape: Any) -> Any:
    """Numbers of few digits: sums of products of them are exact, and files small."""
    return np.round(8 * random.standard_normal(shape)) / 8


def differentiated(function: Any, inputs: Any, settings: Any, random: np.random.Generator) -> dict[str, Any]:
    """Inputs, the result y, what it receives, g, and what each input receives, "g" and its name."""
    leaves = {key: torch.tensor(value, requires_grad=True) for key, value in inputs.items()}
    y = function(*leaves.values(), **settings)
    g = eighths(random, y.shape)
    y.backward(torch.tensor(g))
    return inputs | {"y": y.detach().numpy(), "g": g} | {f"g{key}": leaf.grad.numpy() for key, leaf in leaves.items()}


def trained(random: np.random.Generator) -> dict[str, Any]:
    """A small LeNet in float32: its first parameters, examples, the losses of some steps, and its last parameters."""
    layers = torch.nn
    model = layers.Sequential(
        layers.Conv2d(1, 4, 3, padding=1),
        layers.ReLU(),
        layers.MaxPool2d(2),
        layers.Conv2d(4, 6, 3),
        layers.ReLU(),
        layers.AvgPool2d(2),
        layers.Flatten(),
        layers.Linear(6, 5),
    )
    found = {f"before {key}": p.detach().numpy().copy() for key, p in model.named_parameters()}
    x, t = random.standard_normal((3, 1, 8, 8)).astype(np.float32), random.integers(0, 5, 3)
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9), []
    for _ in range(STEPS):
        loss = layers.functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(t))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found |= {f"after {key}": p.detach().numpy() for key, p in model.named_parameters()}
    return found | {"x": x, "t": t, "losses": np.array(losses)}
