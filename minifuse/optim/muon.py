"""Muon: steps along the nearest orthogonal matrix of a running mean, for weight matrices of hidden layers."""

from collections.abc import Mapping, Sequence
from functools import cache
from math import sqrt
from typing import Any

from ..core.errors import ShapeError
from ..core.operators import maximum
from ..core.pytree import DynamicDict
from ..ir.array_methods import Array
from ..tensors.tensor import Tensor
from .optimizer import Optimizer, Params, UpdateRule

Coefficients = tuple[float, float, float]

RATES = {  # adjust_lr_fn -> factor of the learning rate of a matrix, by its numbers of rows and columns
    "original": lambda rows, columns: sqrt(max(1, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * sqrt(max(rows, columns)),
}


class Muon(Optimizer):
    """Muon: the running mean of the gradient, made orthogonal by Newton-Schulz iterations; as `torch.optim.Muon`.

    Parameters
    ----------
    params : matrices, or dicts of groups
        The parameters to update. Update biases, embeddings and other parameters by another optimizer, such as AdamW.
    lr : float
        The learning rate.
    weight_decay : float
        Each step multiplies the parameter by 1 - lr * weight_decay.
    momentum : float
        Decay of the running mean of the gradient.
    nesterov : bool
        If True, the step mixes the mean with the gradient once more.
    ns_coefficients : (float, float, float)
        Coefficients of x, x^3 and x^5 in the polynomial that each iteration applies to the singular values.
    eps : float
        The smallest norm that a matrix is divided by.
    ns_steps : int
        Number of iterations.
    adjust_lr_fn : {"original", "match_rms_adamw"}, optional
        "original" multiplies the rate by the root of max(1, rows / columns), and "match_rms_adamw" by 0.2 times the root of
        max(rows, columns), which suits the rates of AdamW. Default: "original".
    flags
        `maximize`, and others, as for `Optimizer`.

    Raises
    ------
    ShapeError
        A parameter is not a matrix.
    ValueError
        A setting is out of its range.

    Notes
    -----
    The iterations map the singular values of the mean to about 1 [1]_. They round each product to the precision of bfloat16,
    as PyTorch does, and compute in float32.

    References
    ----------
    .. [1] K. Jordan et al., Muon: An optimizer for hidden layers in neural networks, 2024

    Examples
    --------
    >>> import minifuse as mf
    >>> p = mf.tensor([[3.0, 0.0], [0.0, 4.0]], requires_grad=True)
    >>> optimizer = mf.optim.Muon([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p[0, 0] < 3, p[1, 1] < 4
    (tensor(True), tensor(True))
    """

    counts_steps = False

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: Coefficients = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        **flags: object,
    ) -> None:
        super().__init__(
            params, flags, lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
            ns_coefficients=tuple(ns_coefficients), eps=eps, ns_steps=ns_steps, adjust_lr_fn=adjust_lr_fn or "original",
        )  # fmt: skip

    def _validate_param(self, p: object, k: int, known_ids: set[int]) -> None:
        super()._validate_param(p, k, known_ids)
        if isinstance(p, Tensor) and p.ndim != 2:
            raise ShapeError(
                f"{self._name}: parameter {k} has shape {p.shape}, expected a matrix; pass the others to mf.optim.AdamW"
            )

    def check(self, settings: DynamicDict) -> None:
        """Raise ValueError if a setting is out of its range."""
        super().check(settings)
        if settings["adjust_lr_fn"] not in RATES:
            raise ValueError(f"{self._name}: got adjust_lr_fn={settings['adjust_lr_fn']!r}, expected {' or '.join(RATES)}")
        if not 0 <= settings["ns_steps"] < 100 or len(settings["ns_coefficients"]) != 3:
            raise ValueError(
                f"{self._name}: got ns_steps={settings['ns_steps']} and ns_coefficients={settings['ns_coefficients']}, "
                "expected less than 100 steps and 3 coefficients"
            )

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule and its state."""
        coefficients, steps = settings["ns_coefficients"], int(settings["ns_steps"])
        return muon_step(coefficients, steps, settings["nesterov"], settings["adjust_lr_fn"]), {"momentum_buffer": 0.0}

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the settings."""
        lr, decay = self.number(settings, "lr"), self.number(settings, "weight_decay")
        return lr, 1 - lr * decay, self.number(settings, "momentum"), self.number(settings, "eps")


@cache
def muon_step(coefficients: Coefficients, steps: int, nesterov: bool, adjust: str) -> UpdateRule:
    """Return the update rule for some settings; one object for equal settings, so that plans are found again."""

    def step(p: Array, mean: Array, g: Array, lr: Array, shrink: Array, momentum: Array, eps: Array) -> tuple[Array, ...]:
        mean = mean + (1 - momentum) * (g - mean)
        update = g + momentum * (mean - g) if nesterov else mean
        return shrink * p - lr * RATES[adjust](*p.shape) * orthogonalize(update, coefficients, steps, eps), mean

    return step


def orthogonalize(x: Array, coefficients: Coefficients, steps: int, eps: Array | float) -> Array:
    """Return about U @ V.T for the matrix x = U @ S @ V.T, by Newton-Schulz iterations.

    Each iteration maps a singular value s to a * s + b * s^3 + c * s^5.
    """
    a, b, c = coefficients
    is_tall = x.shape[0] > x.shape[1]  # the product of the shorter side is smaller
    y = round_to_bfloat16(x.T if is_tall else x)
    y = round_to_bfloat16(y / maximum(round_to_bfloat16((y * y).sum().sqrt()), eps))
    for _ in range(steps):
        gram = round_to_bfloat16(y @ y.T)
        polynomial = round_to_bfloat16(b * gram + c * (gram @ gram))
        y = round_to_bfloat16(a * y + polynomial @ y)
    return y.T if is_tall else y


def round_to_bfloat16(x: Array) -> Array:
    """Round to 8 significant bits: adding and subtracting a multiple of x cancels the lower bits (Veltkamp)."""
    shifted = x * (2.0**16 + 1 if x.dtype.itemsize == 4 else 2.0**45 + 1)
    return shifted - (shifted - x)
