"""The optimizers beside SGD and Adam, step by step, as in `record_optim`: the same parameters and gradients, fewer steps."""

import json
from typing import Any

import numpy as np

from .record_optim import PULL, SHAPES, first, has_gradient, noise

STEPS, HALF = 12, 6
CHECKED = (0, 1, 5, 11)  # the steps after which the parameters are recorded
DECAY = {"weight_decay": 0.1}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "rmsprop": ("RMSprop", {}),
    "rmsprop_all": ("RMSprop", {"lr": 0.02, "alpha": 0.9, "momentum": 0.8, "centered": True, **DECAY}),
    "rmsprop_momentum": ("RMSprop", {"momentum": 0.8}),
    "rmsprop_centered": ("RMSprop", {"centered": True, "maximize": True}),
    "adagrad": ("Adagrad", {"lr": 0.1}),
    "adagrad_all": ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.5, **DECAY}),
    "adadelta": ("Adadelta", {"lr": 10.0}),
    "adadelta_all": ("Adadelta", {"rho": 0.7, "eps": 1e-3, **DECAY}),
    "adafactor": ("Adafactor", {"lr": 0.1}),
    "adafactor_all": ("Adafactor", {"lr": 0.1, "beta2_decay": -0.5, "eps": (1e-2, 0.5), "d": 1.2, **DECAY}),
    "adamax": ("Adamax", {"lr": 0.05}),
    "adamax_all": ("Adamax", {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "maximize": True, **DECAY}),
    "nadam": ("NAdam", {"lr": 0.05}),
    "nadam_all": ("NAdam", {"lr": 0.05, "momentum_decay": 0.1, "decoupled_weight_decay": True, **DECAY}),
    "radam": ("RAdam", {"lr": 0.05}),
    "radam_all": ("RAdam", {"lr": 0.05, "betas": (0.8, 0.6), "decoupled_weight_decay": True, **DECAY}),
    "radam_decay": ("RAdam", {"lr": 0.05, **DECAY}),
    "asgd": ("ASGD", {"lr": 0.1}),
    "asgd_all": ("ASGD", {"lr": 0.1, "lambd": 0.5, "t0": 2.0, **DECAY}),
    "rprop": ("Rprop", {"lr": 0.02}),
    "rprop_all": ("Rprop", {"lr": 0.02, "etas": (0.3, 2.0), "step_sizes": (0.01, 0.05), "maximize": True}),
    "amsgrad": ("Adam", {"lr": 0.05, "amsgrad": True, **DECAY}),
    "adamw_amsgrad": ("AdamW", {"lr": 0.05, "amsgrad": True, **DECAY}),
    "sgd_maximize": ("SGD", {"lr": 0.01, "momentum": 0.5, "maximize": True}),
}


def record() -> dict[str, np.ndarray]:
    """Parameters after some steps, and of one case for each optimizer the state after HALF of the steps."""
    found: dict[str, np.ndarray] = {}
    for name, case in CASES.items():
        found |= {f"{name}/{what}": x for what, x in recorded(*case, has_state(name)).items()}
    return found


def has_state(name: str) -> bool:
    """Return whether the state of a case is recorded: one case for each optimizer."""
    return "_" not in name


def recorded(kind: str, settings: dict[str, Any], keeps_state: bool) -> dict[str, np.ndarray]:
    """One case."""
    import torch

    params = [torch.tensor(first(k), requires_grad=True) for k in range(len(SHAPES))]
    optimizer = getattr(torch.optim, kind)(params, **settings)
    rows, found = [], dict[str, np.ndarray]()
    for step in range(STEPS):
        for k, p in enumerate(params):
            p.grad = torch.tensor(noise(k, step)) + PULL * p.detach() if has_gradient(k, step) else None
        optimizer.step()
        flat = np.concatenate([p.detach().numpy().reshape(-1) for p in params])
        if step in CHECKED:
            rows.append(flat)
        if step + 1 == HALF and keeps_state:
            state = optimizer.state_dict()
            found["groups"] = np.array(json.dumps(state["param_groups"]))
            for k, values in state["state"].items():
                found |= {f"state/{k}/{what}": np.array(x) for what, x in values.items() if x is not None}
    return found | {"params": np.array(rows)}
