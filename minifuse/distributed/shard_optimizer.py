"""ZeRO-1: each rank keeps the optimizer's state for its part of the parameters only, and updates only that part [1]_.

The parameters of a group lie one after the other in a flat array, which the ranks share evenly. A step has three parts:

    own gradient  = reduce_scatter of all gradients
    own part      = update rule(own part, own gradient, own state)
    parameters    = all_gather of the own parts

Together, the first and the last send as many bytes as the all-reduce that they replace. In a fused step, the gradients are
computed in the flat array, so nothing is copied.

References
----------
.. [1] S. Rajbhandari, J. Rasley, O. Ruwase, Y. He, ZeRO: Memory Optimizations Toward Training Trillion Parameter Models,
   2020, arXiv:1910.02054
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from ..core.dispatch import no_grad
from ..core.errors import DistributedError, GradientError
from ..core.even_parts import even_range, even_sizes, part_ranges
from ..core.pytree import DynamicDict
from ..functions.joining import cat
from ..optim import LBFGS, Adafactor, Muon, Optimizer
from ..tensors.tensor import Tensor
from .data_parallel import clip_over_ranks
from .functions import all_gather, reduce_scatter
from .process_groups import ProcessGroup
from .process_groups import group as group_of

NOT_ELEMENTWISE = LBFGS, Adafactor, Muon  # their rules read whole parameters


def shard_optimizer(optimizer: Optimizer, group: ProcessGroup | None = None) -> "Optimizer | ShardedOptimizer":
    """Divide the state of an optimizer among ranks, which hold equal parameters (ZeRO-1).

    Parameters
    ----------
    optimizer : Optimizer
        Before its first step. Its rule must compute each element from elements: not Muon, Adafactor or LBFGS.
    group : ProcessGroup, optional
        The ranks that hold parts of one batch. Default: all.

    Returns
    -------
    ShardedOptimizer
        With the methods of an optimizer. Its `step` averages the gradients, too, so a program calls no
        `average_gradients`; and its `clip_grad_norm_` clips by the norm over all ranks. With one rank, the optimizer.

    Raises
    ------
    DistributedError
        The optimizer has a state, or its rule is not elementwise.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> def program():
    ...     w = mf.ones(3, requires_grad=True)
    ...     optimizer = dist.shard_optimizer(mf.optim.SGD([w], lr=1.0, momentum=0.9))
    ...     (w * dist.rank()).sum().backward()
    ...     optimizer.step()
    ...     return w.tolist(), [x["momentum_buffer"].size for x in optimizer.state.values()]
    >>> dist.simulate(2, program)
    [([0.5, 0.5, 0.5], [2]), ([0.5, 0.5, 0.5], [1])]
    """
    group = group or group_of()
    if group.size == 1:
        return optimizer
    name = type(optimizer).__name__
    if isinstance(optimizer, NOT_ELEMENTWISE):
        raise DistributedError(f"shard_optimizer: {name} reads whole parameters; use Adam, SGD or another elementwise rule")
    if optimizer.state:
        raise DistributedError(f"shard_optimizer: {name} has a state already; call it before the first step")
    return ShardedOptimizer(optimizer, group)


class FlatParameters:
    """Parameters of one dtype as one flat array, of which this rank has a part, `own`."""

    def __init__(self, params: Sequence[Tensor], group: ProcessGroup) -> None:
        self.params, self.group = params, group
        self.sizes = even_sizes(sum(p.size for p in params), group.size)
        self.ranges = part_ranges([p.size for p in params])
        start, stop = even_range(sum(self.sizes), group.rank, group.size)
        with no_grad():
            self.own = cast(Tensor, cat([p.reshape(-1) for p in params])[start:stop]).clone()
        self.own.requires_grad = True

    def average_gradients(self) -> None:
        """Set the gradient of the own part to the mean over ranks."""
        for p in self.params:
            if p.grad is None:
                raise GradientError(
                    f"shard_optimizer: a parameter of shape {p.shape} has no gradient; call backward first, and leave out "
                    "parameters that the loss does not depend on"
                )
        flat = cast(Tensor, cat([p.grad.reshape(-1) for p in self.params if p.grad is not None]))
        self.own.grad = reduce_scatter(flat, op="mean", group=self.group, sizes=self.sizes)

    def gather(self) -> None:
        """Copy the parts of all ranks to the parameters."""
        flat = all_gather(self.own.detach(), group=self.group, sizes=self.sizes)
        for p, (start, stop) in zip(self.params, self.ranges, strict=True):
            p.detach().copy_(flat[start:stop].reshape(p.shape))


class ShardedOptimizer:
    """An optimizer whose state is divided among ranks. Make it by `shard_optimizer`."""

    def __init__(self, optimizer: Optimizer, group: ProcessGroup) -> None:
        self.optimizer, self.group = optimizer, group
        self.parts = list[FlatParameters]()
        for settings in optimizer.param_groups:
            params = settings["params"]
            dtypes = dict.fromkeys(p.dtype for p in params)
            parts = [FlatParameters([p for p in params if p.dtype is dtype], group) for dtype in dtypes]
            settings["params"] = [part.own for part in parts]
            self.parts += parts

    @property
    def param_groups(self) -> list[DynamicDict]:
        """The groups of the optimizer: settings, and the own parts of the parameters."""
        return self.optimizer.param_groups

    @property
    def state(self) -> dict[Tensor, dict[str, Any]]:
        """The state of the own parts."""
        return self.optimizer.state

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set `grad` of all parameters to None, or to zeros."""
        for part in self.parts:
            part.own.grad = None
            for p in part.params:
                p.grad = None if set_to_none or p.grad is None else p.grad * 0

    def average_gradients(self) -> None:
        """Set the gradients of the own parts to the means over ranks. `step` does it, unless it is done before."""
        for part in self.parts:
            part.average_gradients()

    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """Average the gradients, and scale them so that the norm of all, over all ranks, is at most `max_norm`."""
        self.average_gradients()
        return clip_over_ranks([part.own for part in self.parts], max_norm, self.group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Average the gradients, update the own parts, and gather the parameters."""
        loss = None if closure is None else closure()
        if any(part.own.grad is None for part in self.parts):
            self.average_gradients()
        self.optimizer.step()
        with no_grad():
            for part in self.parts:
                part.gather()
                part.own.grad = None
        return loss

    def state_dict(self) -> dict[str, object]:
        """Return the settings, and the state of the own parts."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the settings, and the state of the own parts."""
        self.optimizer.load_state_dict(state)
