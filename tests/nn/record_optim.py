"""Optimizers, schedules and clipping, step by step: what `torch.optim` makes of parameters whose gradients follow a formula.

Each case takes STEPS steps on parameters of several shapes, all of them float64. The gradient of a parameter p at step k is
`noise(k)` for it plus PULL * p, so that an error would grow; the last parameter has none in every third step.
"""

import json
import math
from typing import Any

import numpy as np

STEPS, HALF, PULL = 20, 10, 0.3
SHAPES = (5, 3), (7,), (), (2, 1, 4)
WARMUP, MINIMUM = 3, 0.1
DECAY = {"lr": 0.05, "weight_decay": 0.1}
MOMENTUM = {"lr": 0.05, "momentum": 0.9}
CASES: dict[str, dict[str, Any]] = {
    "sgd": {"kind": "SGD", "settings": {"lr": 0.1}},
    "sgd_decay": {"kind": "SGD", "settings": DECAY},
    "momentum": {"kind": "SGD", "settings": {**MOMENTUM, "weight_decay": 0.02}},
    "nesterov": {"kind": "SGD", "settings": {**MOMENTUM, "nesterov": True}},
    "adam": {"kind": "Adam", "settings": {"lr": 0.02}},
    "adam_decay": {"kind": "Adam", "settings": {**DECAY, "betas": [0.8, 0.95], "eps": 1e-3}},
    "adamw": {"kind": "AdamW", "settings": {"lr": 0.02}},
    "adamw_decay": {"kind": "AdamW", "settings": {**DECAY, "betas": [0.8, 0.95], "eps": 1e-3}},
    "norm": {"kind": "SGD", "settings": MOMENTUM, "clip": "norm", "limit": 1.5},
    "largest": {"kind": "Adam", "settings": {"lr": 0.02}, "clip": "largest", "limit": 0.4},
    "value": {"kind": "SGD", "settings": MOMENTUM, "clip": "value", "limit": 0.25},
    "cosine": {"kind": "SGD", "settings": MOMENTUM, "schedule": "cosine"},
    "warmup": {"kind": "AdamW", "settings": DECAY, "schedule": "warmup", "clip": "norm", "limit": 1.0},
}


def first(k: int) -> np.ndarray:
    """The first value of parameter k."""
    size = math.prod(SHAPES[k])
    return np.sin(1.7 * np.arange(1, size + 1) ** 1.3 + k).reshape(SHAPES[k])


def noise(k: int, step: int) -> np.ndarray:
    """The part of the gradient of parameter k at a step that does not depend on the parameter."""
    size = math.prod(SHAPES[k])
    return np.cos(2.3 * np.arange(1, size + 1) ** 1.1 + 0.7 * step + k).reshape(SHAPES[k]) * (1 + step % 4)


def has_gradient(k: int, step: int) -> bool:
    """Whether parameter k has a gradient at a step."""
    return k != len(SHAPES) - 1 or step % 3 != 1


def record() -> dict[str, np.ndarray]:
    """Parameters after each step, norms, rates, and the state after HALF of the steps, of all cases."""
    found: dict[str, np.ndarray] = {}
    for name, case in CASES.items():
        found |= {f"{name}/{what}": x for what, x in recorded(case).items()}
    return found


def recorded(case: dict[str, Any]) -> dict[str, np.ndarray]:
    """One case."""
    import torch
    from torch.nn.utils import clip_grad_norm_, clip_grad_value_

    params = [torch.tensor(first(k), requires_grad=True) for k in range(len(SHAPES))]
    optimizer = getattr(torch.optim, case["kind"])(params, **case["settings"])
    schedule = schedule_of(optimizer, case.get("schedule"))
    rows: list[np.ndarray] = []
    norms, rates, found = [], [], dict[str, np.ndarray]()
    for step in range(STEPS):
        for k, p in enumerate(params):
            p.grad = torch.tensor(noise(k, step)) + PULL * p.detach() if has_gradient(k, step) else None
        if case.get("clip") == "value":
            clip_grad_value_(params, case["limit"])
        elif "clip" in case:
            norms.append(clip_grad_norm_(params, case["limit"], math.inf if case["clip"] == "largest" else 2.0).item())
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if schedule is not None:
            schedule.step()
        rows.append(np.concatenate([p.detach().numpy().reshape(-1) for p in params]))
        if step + 1 == HALF:
            state = optimizer.state_dict()
            found["groups"] = np.array(json.dumps(state["param_groups"]))
            for k, values in state["state"].items():
                found |= {f"state/{k}/{what}": x.numpy().copy() for what, x in values.items() if x is not None}
    return found | {"params": np.array(rows), "rates": np.array(rates), "norms": np.array(norms)}


def schedule_of(optimizer: Any, kind: str | None) -> Any:
    """PyTorch's schedules of the same meaning: the cosine, and a product of a ramp and a cosine."""
    from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR

    if kind == "cosine":
        return CosineAnnealingLR(optimizer, STEPS, eta_min=MINIMUM * optimizer.param_groups[0]["lr"])
    if kind == "warmup":  # over before the last step, after which it stays
        last = STEPS - 4
        down = [0.5 * (1 + math.cos(math.pi * k / (last - WARMUP))) for k in range(last - WARMUP + 1)]
        up = [(k + 1) / (WARMUP + 1) for k in range(WARMUP)]
        table = [*up, *[MINIMUM + (1 - MINIMUM) * x for x in down]]
        return LambdaLR(optimizer, lambda k: table[min(k, last)])
    return None
