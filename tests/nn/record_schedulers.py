"""Learning rate schedulers: the rates, and the momentum where it changes, that PyTorch sets in each of STEPS steps."""

from types import ModuleType
from typing import Any

import numpy as np

STEPS = 13
# name -> (lr_scheduler, an optimizer with two groups) -> a scheduler; PyTorch's and minifuse's have the same names
CASES: dict[str, Any] = {
    "lambda": lambda s, o: s.LambdaLR(o, [lambda k: 0.9**k, lambda k: 1 / (1 + k)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda k: 1 / k),
    "step": lambda s, o: s.StepLR(o, 3, 0.5),
    "multistep": lambda s, o: s.MultiStepLR(o, [2, 5, 5], 0.5),
    "constant": lambda s, o: s.ConstantLR(o, 0.25, 4),
    "linear": lambda s, o: s.LinearLR(o, 0.2, 0.9, 6),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.8),
    "polynomial": lambda s, o: s.PolynomialLR(o, 7, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "cosine_to_0": lambda s, o: s.CosineAnnealingLR(o, 4),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.1, [0.5, 0.9], 3),
    "cyclic_2": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 2, 4, "triangular2", base_momentum=0.5),
    "cyclic_exp": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 2, mode="exp_range", gamma=0.9, cycle_momentum=False),
    "cyclic_own": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 2, scale_fn=lambda k: 1 / (1 + k), scale_mode="iterations"),
    "one_cycle": lambda s, o: s.OneCycleLR(o, [0.5, 0.1], 13),
    "one_cycle_linear": lambda s, o: s.OneCycleLR(
        o, 0.5, epochs=4, steps_per_epoch=4, anneal_strategy="linear", three_phase=True, final_div_factor=10
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 3), s.ExponentialLR(o, 0.9), s.StepLR(o, 4, 0.5)]),
    "sequential": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.LinearLR(o)], [3, 7]),
    "warmup": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.01, 1.0, 4), s.CosineAnnealingLR(o, 9)], [4]),
    "plateau": lambda s, o: s.ReduceLROnPlateau(o, factor=0.5, patience=1, min_lr=[0.01, 0.02]),
    "plateau_max": lambda s, o: s.ReduceLROnPlateau(o, "max", 0.5, 0, 0.3, "abs", cooldown=2),
    "plateau_rel": lambda s, o: s.ReduceLROnPlateau(o, "max", 0.5, 0, 0.05),
}


def metric(step: int) -> float:
    """The metric of a step, for schedulers that need one: it falls, then rises, then stays."""
    return [3.0, 2.0, 1.5, 1.5, 1.6, 1.7, 1.45, 1.45, 1.45, 1.45, 1.45, 1.0, 1.0][step]


def rows(module: ModuleType | Any, optimizer: Any, make: Any) -> np.ndarray:
    """The rates and momenta of both groups before each step, and after the last."""
    scheduler, found = make(module, optimizer), []
    for step in range(STEPS):
        found.append([x for group in optimizer.param_groups for x in (group["lr"], group["momentum"])])
        optimizer.step()
        scheduler.step(*[metric(step)] if isinstance(scheduler, module.ReduceLROnPlateau) else [])
        assert scheduler.get_last_lr() == [group["lr"] for group in optimizer.param_groups]
    return np.array(found)


def record() -> dict[str, np.ndarray]:
    """All cases."""
    import torch

    def optimizer() -> Any:
        params = [{"params": [torch.ones(1, requires_grad=True)], "lr": lr} for lr in (1.0, 0.1)]
        return torch.optim.SGD(params, momentum=0.9)

    return {name: rows(torch.optim.lr_scheduler, optimizer(), make) for name, make in CASES.items()}
