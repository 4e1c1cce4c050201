"""Optimizers that divide by the size of past gradients: RMSprop, Adagrad, Adadelta and Adafactor."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import DTypeError
from ..core.indexing import Shape
from ..core.operators import maximum, minimum, sqrt
from ..core.pytree import DynamicDict
from ..ir.array_methods import Array
from ..tensors.tensor import Tensor
from .optimizer import Optimizer, Params, UpdateRule


class RMSprop(Optimizer):
    """RMSprop: divide the gradient by its running root mean square; as `torch.optim.RMSprop`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update.
    lr : float
        The learning rate.
    alpha : float
        Decay of the running means in each step.
    eps : float
        Added to the denominator.
    weight_decay : float
        L2 penalty.
    momentum : float
        Factor of the previous update that is added to each step; 0 for none.
    centered : bool
        Whether to divide by the standard deviation: the square of the running mean is subtracted.
    flags
        `maximize`, and others, as for `Optimizer`.

    Notes
    -----
    d = grad + weight_decay * p;  v = alpha * v + (1 - alpha) * d * d;  b = momentum * b + d / (sqrt(v) + eps);
    p = p - lr * b [1]_.

    References
    ----------
    .. [1] G. Hinton, Neural Networks for Machine Learning, 2012, lecture 6e
    """

    counts_steps = False

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        **flags: object,
    ) -> None:
        settings = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, flags, **settings, centered=centered)

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule, by whether there is a momentum and whether it is centered."""
        has_momentum, is_centered = bool(settings["momentum"]), settings["centered"]
        names = ["square_avg", *["momentum_buffer"] * has_momentum, *["grad_avg"] * is_centered]
        return RMSPROP_STEPS[has_momentum, is_centered], dict.fromkeys(names, 0.0)

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the settings."""
        return [self.number(settings, name) for name in ("lr", "alpha", "eps", "weight_decay", "momentum")]


class Adagrad(Optimizer):
    """Adagrad: divide the gradient by the root of the sum of all its squares; as `torch.optim.Adagrad`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update.
    lr : float
        The learning rate.
    lr_decay : float
        The rate of step t, counted from 1, is lr / (1 + (t - 1) * lr_decay).
    weight_decay : float
        L2 penalty.
    initial_accumulator_value : float
        The first value of the sum.
    eps : float
        Added to the denominator.
    flags
        `maximize`, and others, as for `Optimizer`.

    Notes
    -----
    d = grad + weight_decay * p;  s = s + d * d;  p = p - rate * d / (sqrt(s) + eps) [1]_.

    References
    ----------
    .. [1] J. Duchi, E. Hazan, Y. Singer, Adaptive Subgradient Methods for Online Learning and Stochastic Optimization, 2011
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        **flags: object,
    ) -> None:
        settings = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps}
        super().__init__(params, flags, **settings, initial_accumulator_value=initial_accumulator_value)

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule and its state."""
        return adagrad_step, {"sum": "initial_accumulator_value"}

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the rate of step t, and the settings."""
        lr, lr_decay, decay, eps = (self.number(settings, name) for name in ("lr", "lr_decay", "weight_decay", "eps"))
        return lr / (1 + (t - 1) * lr_decay), decay, eps


class Adadelta(Optimizer):
    """Adadelta: scale the gradient by the ratio of the sizes of steps and gradients; as `torch.optim.Adadelta`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update.
    lr : float
        The learning rate, usually 1.
    rho : float
        Decay of the running mean squares in each step.
    eps : float
        Added to both mean squares.
    weight_decay : float
        L2 penalty.
    flags
        `maximize`, and others, as for `Optimizer`.

    Notes
    -----
    d = grad + weight_decay * p;  v = rho * v + (1 - rho) * d * d;  s = sqrt(u + eps) / sqrt(v + eps) * d;
    u = rho * u + (1 - rho) * s * s;  p = p - lr * s [1]_.

    References
    ----------
    .. [1] M. Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012, arXiv:1212.5701
    """

    counts_steps = False

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        **flags: object,
    ) -> None:
        super().__init__(params, flags, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule and its states."""
        return adadelta_step, {"square_avg": 0.0, "acc_delta": 0.0}

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the settings."""
        return [self.number(settings, name) for name in ("lr", "rho", "eps", "weight_decay")]


class Adafactor(Optimizer):
    """Adafactor: mean squares of a matrix from those of its rows and columns; as `torch.optim.Adafactor`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update.
    lr : float
        The largest relative step.
    beta2_decay : float
        The mean squares get t ** beta2_decay of the new squares in step t.
    eps : (float or None, float)
        The smallest root of a mean square, by default the resolution of the dtype; the smallest size of a parameter.
    d : float
        The largest root mean square of an update.
    weight_decay : float
        Each step multiplies the parameter by 1 - lr * weight_decay.
    flags
        `maximize`, and others, as for `Optimizer`.

    Notes
    -----
    The size of a step is min(lr, 1 / sqrt(t)) times the root mean square of the parameter [1]_. The state of a matrix of n
    rows and m columns has n + m numbers.

    References
    ----------
    .. [1] N. Shazeer, M. Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, 2018, arXiv:1804.04235
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        **flags: object,
    ) -> None:
        settings = {"lr": lr, "beta2_decay": beta2_decay, "eps": tuple(eps), "d": d, "weight_decay": weight_decay}
        super().__init__(params, flags, **settings)

    def check(self, settings: DynamicDict) -> None:
        """Raise ValueError if a setting is out of its range."""
        super().check(settings)
        if settings["beta2_decay"] > 0:
            raise ValueError(f"{self._name}: got beta2_decay={settings['beta2_decay']}, expected at most 0")

    def update(self, params: list[Tensor], settings: DynamicDict) -> None:
        """Update matrices, which have a factored state, and vectors, for each dtype."""
        groups: dict[object, list[Tensor]] = {}
        for p in params:
            groups.setdefault((p.ndim > 1, p.dtype), []).append(p)
        for group in groups.values():
            super().update(group, DynamicDict({**settings, "eps": self.eps_for(group[0], settings)}))

    def eps_for(self, p: Tensor, settings: DynamicDict) -> tuple[float, float]:
        """Return both eps; the default of the first depends on the dtype."""
        first, second = settings["eps"]
        if first is None:
            first = {4: 2.0**-23, 8: 2.0**-52}.get(p.dtype.itemsize)
            if first is None:
                raise DTypeError(f"{self._name}: no default of eps for {p.dtype}; write eps=(1e-7, 1e-3)")
        return float(first), float(second)

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule and its states, for matrices or for vectors."""
        if params[0].ndim > 1:
            return adafactor_matrix_step, {"row_var": 0.0, "col_var": 0.0}
        return adafactor_vector_step, {"variance": 0.0}

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the share of the new squares, 1 / sqrt(t), and the settings."""
        lr, decay, d = (self.number(settings, name) for name in ("lr", "weight_decay", "d"))
        return t ** self.number(settings, "beta2_decay"), t**-0.5, *settings["eps"], lr, 1 - lr * decay, d

    def state_shape(self, name: str, p: Tensor) -> Shape:
        """Return the shape of a state tensor: one number for each row or column."""
        shapes = {"row_var": (*p.shape[:-1], 1), "col_var": (*p.shape[:-2], 1, *p.shape[-1:])}
        return shapes.get(name) or super().state_shape(name, p)


# Update rules: (parameter, its state tensors, its gradient, numbers) -> (new parameter, new state tensors).


def rmsprop_step(p: Array, v: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter and the mean square after a step."""
    lr, alpha, eps, decay, _ = numbers
    d = g + decay * p
    v = alpha * v + (1 - alpha) * (d * d)
    return p - lr * (d / (sqrt(v) + eps)), v


def rmsprop_momentum_step(p: Array, v: Array, b: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter, mean square and momentum after a step."""
    lr, alpha, eps, decay, momentum = numbers
    d = g + decay * p
    v = alpha * v + (1 - alpha) * (d * d)
    b = momentum * b + d / (sqrt(v) + eps)
    return p - lr * b, v, b


def rmsprop_centered_step(p: Array, v: Array, a: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter, mean square and mean after a step."""
    lr, alpha, eps, decay, _ = numbers
    d = g + decay * p
    v = alpha * v + (1 - alpha) * (d * d)
    a = a + (1 - alpha) * (d - a)
    return p - lr * (d / (sqrt(v - a * a) + eps)), v, a


def rmsprop_centered_momentum_step(p: Array, v: Array, b: Array, a: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter, mean square, momentum and mean after a step."""
    lr, alpha, eps, decay, momentum = numbers
    d = g + decay * p
    v = alpha * v + (1 - alpha) * (d * d)
    a = a + (1 - alpha) * (d - a)
    b = momentum * b + d / (sqrt(v - a * a) + eps)
    return p - lr * b, v, b, a


RMSPROP_STEPS: dict[tuple[bool, bool], UpdateRule] = {  # by (has a momentum, is centered)
    (False, False): rmsprop_step,
    (True, False): rmsprop_momentum_step,
    (False, True): rmsprop_centered_step,
    (True, True): rmsprop_centered_momentum_step,
}


def adagrad_step(p: Array, s: Array, g: Array, rate: Array, decay: Array, eps: Array) -> tuple[Array, ...]:
    """Return the parameter and the sum of squares after a step."""
    d = g + decay * p
    s = s + d * d
    return p - rate * d / (sqrt(s) + eps), s


def adadelta_step(p: Array, v: Array, u: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter, and the mean squares of gradients and of steps, after a step."""
    lr, rho, eps, decay = numbers
    d = g + decay * p
    v = rho * v + (1 - rho) * (d * d)
    s = sqrt(u + eps) / sqrt(v + eps) * d
    return p - lr * s, v, rho * u + (1 - rho) * (s * s)


def adafactor_matrix_step(p: Array, rows: Array, columns: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter and the means of rows and columns after a step."""
    share, _, eps1, *_ = numbers
    squares = g * g
    rows = rows + share * (squares.mean(-1, keepdim=True) - rows)
    columns = columns + share * (squares.mean(-2, keepdim=True) - columns)
    variance = rows * columns / maximum(rows.mean(-2, keepdim=True), eps1)
    return adafactor_update(p, variance, g, *numbers), rows, columns


def adafactor_vector_step(p: Array, v: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter and the mean square after a step."""
    v = v + numbers[0] * (g * g - v)
    return adafactor_update(p, v, g, *numbers), v


def adafactor_update(p: Array, variance: Array, g: Array, *numbers: Array) -> Array:
    """Return the parameter after a step, given the mean square of each element."""
    _, inverse_root, eps1, eps2, lr, shrink, d = numbers
    size = maximum(root_mean_square(p), eps2) * minimum(lr, inverse_root)
    update = g / sqrt(maximum(variance, eps1 * eps1))
    return shrink * p - size / maximum(root_mean_square(update) / d, 1.0) * update


def root_mean_square(x: Array) -> Array:
    """Return the root of the mean of the squares of all elements."""
    return sqrt((x * x).mean())
