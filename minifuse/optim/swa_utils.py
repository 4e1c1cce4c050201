"""Averages of parameters over steps, with PyTorch's names: AveragedModel and SWALR."""

import copy
from collections.abc import Callable
from typing import Any

from ..core.dispatch import no_grad
from ..ir.array_methods import Array
from ..nn.module import Module
from ..tensors.mutation import store
from .lr_formulas import CURVES, LRScheduler, PerGroup, per_group
from .optimizer import Optimizer

AverageFunction = Callable[[Any, Any, Any], Any]  # (average, parameter, number of averaged models) -> average


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that the model has had.

    Parameters
    ----------
    model : Module
        The model. Its copy has the same parameters until the first `update_parameters`.
    device : None
        Without effect.
    avg_fn : callable, optional
        (average, parameter, number of averaged models) -> average. Default: the mean of all.

    Examples
    --------
    >>> import minifuse as mf
    >>> model = mf.nn.Linear(1, 1)
    >>> average = mf.optim.swa_utils.AveragedModel(model, avg_fn=mf.optim.swa_utils.get_ema_avg_fn(0.5))
    >>> for _ in range(2):
    ...     average.update_parameters(model)
    >>> average.n_averaged
    2
    """

    def __init__(self, model: Module, device: None = None, avg_fn: AverageFunction | None = None) -> None:
        self.module, self.n_averaged, self.avg_fn = copy.deepcopy(model), 0, avg_fn or mean

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Call the averaged model."""
        return self.module(*inputs, **named)

    def update_parameters(self, model: Module) -> None:
        """Add the parameters of the model to the average."""
        averages, params = list(self.module.parameters()), list(model.parameters())
        count, avg_fn = len(averages), self.avg_fn if self.n_averaged else latest

        def update(*inputs: Array) -> tuple[Array, ...]:
            *arrays, n = inputs
            return tuple(avg_fn(a, p, n) for a, p in zip(arrays[:count], arrays[count:], strict=True))

        with no_grad():
            store(update, averages, *params, float(self.n_averaged))
        self.n_averaged += 1


def latest(average: Any, parameter: Any, count: Any) -> Any:
    """Return the parameter: the average of one model."""
    return parameter


def mean(average: Any, parameter: Any, count: Any) -> Any:
    """Return the mean of all models."""
    return average + (parameter - average) / (count + 1)


def get_ema_avg_fn(decay: float = 0.999) -> AverageFunction:
    """Return the `avg_fn` of an exponential moving average."""
    if not 0 <= decay <= 1:
        raise ValueError(f"get_ema_avg_fn: got decay={decay}, expected a number from 0 to 1")
    return lambda average, parameter, count: decay * average + (1 - decay) * parameter


class SWALR(LRScheduler):
    """Change the rate from its current value to `swa_lr` over `anneal_epochs` steps, then keep it."""

    is_chainable = False

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: PerGroup,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in CURVES or anneal_epochs < 0:
            raise ValueError(
                f"{self._name}: got {anneal_strategy!r} over {anneal_epochs} steps, expected cos or linear, from 0"
            )
        self.swa_lrs, self.anneal_epochs = per_group(self._name, optimizer, swa_lr), anneal_epochs
        self.curve, self.start_lrs = CURVES[anneal_strategy], [float(group["lr"]) for group in optimizer.param_groups]
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, lr: float, group: int) -> float:
        """Return the rate of a group after `step` steps."""
        t = min(1.0, step / self.anneal_epochs) if self.anneal_epochs else 1.0
        return self.curve(self.start_lrs[group], self.swa_lrs[group], t)
