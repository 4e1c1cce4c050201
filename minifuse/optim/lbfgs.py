"""LBFGS: steps along an approximation of the inverse Hessian times the gradient, from the last changes of both."""

from collections import deque
from collections.abc import Callable
from typing import Any

from ..core.dispatch import active_tracer, enable_grad, no_grad
from ..core.errors import FuseError
from ..functions.joining import cat
from ..tensors.creation import zeros_like
from .optimizer import Optimizer, Params


class LBFGS(Optimizer):
    """Limited-memory BFGS, as `torch.optim.LBFGS` without a line search. For one group, whole data sets and few parameters.

    Parameters
    ----------
    params : tensors
        The parameters to update.
    lr : float
        Factor of each step.
    max_iter, max_eval : int
        The number of iterations, and of calls of the closure, in a step. Default of `max_eval`: 5 / 4 of `max_iter`.
    tolerance_grad, tolerance_change : float
        Stop if all gradients, or the changes of parameters or of the loss, are at most this large.
    history_size : int
        Number of changes that are kept.
    line_search_fn : None
        "strong_wolfe" is not supported.

    Notes
    -----
    `step(closure)` calls the closure several times; it computes the loss and its gradients. Steps read values, so they are
    outside of fused functions. State dicts do not have the history of changes [1]_.

    References
    ----------
    .. [1] J. Nocedal, Updating Quasi-Newton Matrices with Limited Storage, 1980

    Examples
    --------
    >>> import minifuse as mf
    >>> p = mf.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = mf.optim.LBFGS([p], max_iter=10)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((p - mf.tensor([3.0, 4.0])) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    40.0
    >>> p
    tensor([3., 4.], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn is not None:
            raise ValueError(f"LBFGS: got line_search_fn={line_search_fn!r}, expected None; use a smaller lr instead")
        super().__init__(params, lr=lr, tolerance_grad=tolerance_grad, tolerance_change=tolerance_change)
        if len(self.param_groups) > 1:
            raise ValueError("LBFGS: got several parameter groups, expected one; use one optimizer for each")
        self.max_iter, self.max_eval = max_iter, max_iter * 5 // 4 if max_eval is None else max_eval
        self.changes: deque[tuple[Any, Any, float]] = deque(maxlen=history_size)  # of gradient and parameters; 1 / product
        self.scale = 1.0  # of the inverse Hessian without changes
        self.last_step: Any = None
        self.last_grad: Any = None

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take up to `max_iter` iterations, and return the loss before them."""
        if closure is None:
            raise TypeError("LBFGS.step: expected a closure that computes the loss and its gradients; write step(closure)")
        if active_tracer() is not None:
            raise FuseError("LBFGS.step: it reads values, which do not exist while tracing; use it outside of @mf.fuse")
        (group,) = self.param_groups
        evaluate = enable_grad()(closure)
        first = evaluate()
        with no_grad():
            loss, g, evaluations = float(first), self.gradient(), 1
            for iteration in range(1, self.max_iter + 1):
                if float(g.abs().max()) <= group["tolerance_grad"]:
                    break
                is_first = self.last_grad is None
                d = self.direction(g)
                rate = float(group["lr"]) * (min(1.0, 1 / float(g.abs().sum())) if is_first else 1.0)
                if float((g * d).sum()) > -group["tolerance_change"]:
                    break
                self.last_step, self.last_grad = rate * d, g
                self.move(self.last_step)
                if iteration == self.max_iter:
                    break
                before, loss = loss, float(evaluate())
                g, evaluations = self.gradient(), evaluations + 1
                change = min(float(self.last_step.abs().max()), abs(loss - before))
                if evaluations >= self.max_eval or change <= group["tolerance_change"]:
                    break
        return first

    def direction(self, g: Any) -> Any:
        """Return minus the approximate inverse Hessian times the gradient, by the two loops of the algorithm."""
        if self.last_grad is None:
            return -g
        y, s = g - self.last_grad, self.last_step
        product = float((y * s).sum())
        if product > 1e-10:
            self.changes.append((y, s, 1 / product))
            self.scale = product / float((y * y).sum())
        d, factors = -g, list[float]()
        for y, s, r in reversed(self.changes):
            factors.append(float((s * d).sum()) * r)
            d = d - factors[-1] * y
        d = self.scale * d
        for (y, s, r), factor in zip(self.changes, reversed(factors), strict=True):
            d = d + (factor - float((y * d).sum()) * r) * s
        return d

    def gradient(self) -> Any:
        """Return all gradients as one vector."""
        params = self.param_groups[0]["params"]
        return cat([(zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in params])

    def move(self, step: Any) -> None:
        """Add a vector to the parameters."""
        start = 0
        for p in self.param_groups[0]["params"]:
            p += step[start : start + p.size].reshape(p.shape)
            start += p.size
