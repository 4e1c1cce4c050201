"""Schedulers that change the rate in cycles, and the momentum against it: CyclicLR and OneCycleLR."""

from collections.abc import Callable, Sequence

from .lr_formulas import CURVES, LRScheduler, PerGroup, per_group
from .optimizer import Optimizer


class MomentumScheduler(LRScheduler):
    """Base class of schedulers that change the momentum of the groups as well: `momentum`, or the first of `betas`."""

    is_chainable = False
    cycle_momentum: bool

    def momentum(self, step: int, group: int) -> float:
        """Return the momentum of a group after `step` steps."""
        raise NotImplementedError

    def check_momentum(self, optimizer: Optimizer) -> None:
        """Raise ValueError if the optimizer has no momentum."""
        if self.cycle_momentum and not {"momentum", "betas"} & optimizer.defaults.keys():
            raise ValueError(f"{self._name}: the optimizer has no momentum; write cycle_momentum=False")

    def _set_rates(self, is_absolute: bool = False) -> None:
        super()._set_rates(is_absolute)
        if self.cycle_momentum:
            for k, group in enumerate(self.optimizer.param_groups):
                momentum = self.momentum(self.last_step, k)
                group |= {"betas": (momentum, *group["betas"][1:])} if "betas" in group else {"momentum": momentum}


class CyclicLR(MomentumScheduler):
    """Let the rate rise and fall between two bounds, and the momentum fall and rise.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose rates the scheduler sets.
    base_lr, max_lr : float, or one for each group
        The bounds of the rate.
    step_size_up, step_size_down : int
        The number of steps of the rise and of the fall; by default they are equal.
    mode : {"triangular", "triangular2", "exp_range"}
        Whether the height stays, halves in each cycle, or is multiplied by `gamma` in each step.
    gamma : float
        For "exp_range".
    scale_fn : callable, optional
        The factor of the height, in place of a mode.
    scale_mode : {"cycle", "iterations"}
        Whether `scale_fn` gets the number of the cycle, from 1, or of the step.
    cycle_momentum : bool
        Whether the momentum changes, between `base_momentum` and `max_momentum`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: PerGroup,
        max_lr: PerGroup,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: PerGroup = 0.8,
        max_momentum: PerGroup = 0.9,
        last_epoch: int = -1,
    ) -> None:
        scales: dict[str, tuple[str, Callable[[float], float]]] = {
            "triangular": ("cycle", lambda cycle: 1.0),
            "triangular2": ("cycle", lambda cycle: 2.0 ** (1 - cycle)),
            "exp_range": ("iterations", lambda step: gamma**step),
        }
        if scale_fn is None and mode not in scales:
            raise ValueError(f"{self._name}: got mode={mode!r}, expected one of {', '.join(scales)}, or a scale_fn")
        self.scale_mode, self.scale = (scale_mode, scale_fn) if scale_fn else scales[mode]
        self.up, self.down = step_size_up, step_size_up if step_size_down is None else step_size_down
        bounds: list[list[float]] = [
            per_group(self._name, optimizer, x) for x in (base_lr, max_lr, base_momentum, max_momentum)
        ]
        self.lows, self.highs, self.low_momenta, self.high_momenta = bounds
        self.cycle_momentum = cycle_momentum
        self.check_momentum(optimizer)
        for group, lr in zip(optimizer.param_groups, self.lows, strict=True):
            group["initial_lr"] = lr
        super().__init__(optimizer, last_epoch)

    def height(self, step: int) -> float:
        """Return the height of the rate between its bounds, from 0 to 1."""
        cycle, position = divmod(step, self.up + self.down)
        height = position / self.up if position <= self.up else (self.up + self.down - position) / self.down
        return height * self.scale(cycle + 1 if self.scale_mode == "cycle" else step)

    def rate(self, step: int, lr: float, group: int) -> float:
        """Return the rate of a group after `step` steps."""
        return self.lows[group] + (self.highs[group] - self.lows[group]) * self.height(step)

    def momentum(self, step: int, group: int) -> float:
        """Return the momentum of a group after `step` steps."""
        return self.high_momenta[group] - (self.high_momenta[group] - self.low_momenta[group]) * self.height(step)


class OneCycleLR(MomentumScheduler):
    """Let the rate rise to `max_lr` and fall far below its start, once, while the momentum falls and rises.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose rates the scheduler sets.
    max_lr : float, or one for each group
        The largest rate.
    total_steps : int, optional
        The number of steps; or pass `epochs` and `steps_per_epoch`.
    pct_start : float
        The share of the steps in which the rate rises.
    anneal_strategy : {"cos", "linear"}
        The form of the rise and the fall.
    cycle_momentum : bool
        Whether the momentum changes, between `max_momentum` and `base_momentum`.
    div_factor : float
        The first rate is max_lr / div_factor.
    final_div_factor : float
        The last rate is the first one / final_div_factor.
    three_phase : bool
        Whether the rate falls to its start in as many steps as it rose, and to its end in the remaining ones.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: PerGroup,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: PerGroup = 0.85,
        max_momentum: PerGroup = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError(f"{self._name}: expected total_steps, or both epochs and steps_per_epoch")
        if anneal_strategy not in CURVES:
            raise ValueError(f"{self._name}: got anneal_strategy={anneal_strategy!r}, expected cos or linear")
        self.total_steps = total_steps if total_steps is not None else (epochs or 0) * (steps_per_epoch or 0)
        self.curve = CURVES[anneal_strategy]
        self.highs, low, high = (per_group(self._name, optimizer, x) for x in (max_lr, base_momentum, max_momentum))
        self.cycle_momentum = cycle_momentum
        self.check_momentum(optimizer)
        rise, last = float(pct_start * self.total_steps) - 1, self.total_steps - 1
        self.ends = [rise, 2 * rise, last] if three_phase else [rise, last]
        self.corners = [0, 1, 0, 2] if three_phase else [0, 1, 2]  # of the first, the largest and the last rate
        self.momenta = [[h, x, *[h] * three_phase, h] for x, h in zip(low, high, strict=True)]
        self.final_div_factor = final_div_factor
        for group, lr in zip(optimizer.param_groups, self.highs, strict=True):
            group["initial_lr"] = lr / div_factor
        super().__init__(optimizer, last_epoch)

    def between(self, step: int, values: Sequence[float]) -> float:
        """Return the value after `step` steps on the curve through values at the ends of the phases."""
        if step > self.total_steps:
            raise ValueError(f"{self._name}: step {step} is after the last one, total_steps={self.total_steps}")
        start = 0.0
        for k, end in enumerate(self.ends):
            if step <= end or k == len(self.ends) - 1:
                return self.curve(values[k], values[k + 1], (step - start) / (end - start))
            start = end
        raise AssertionError("there is a phase")

    def rate(self, step: int, lr: float, group: int) -> float:
        """Return the rate of a group after `step` steps."""
        rates = lr, self.highs[group], lr / self.final_div_factor
        return self.between(step, [rates[k] for k in self.corners])

    def momentum(self, step: int, group: int) -> float:
        """Return the momentum of a group after `step` steps."""
        return self.between(step, self.momenta[group])
