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

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..core.dispatch import no_grad
from ..core.errors import DistributedError, GradientError, ShapeError
from ..core.even_parts import part_ranges
from ..core.pytree import DynamicDict
from ..core.shards import Shard, flatten, unflatten
from ..functions.joining import cat
from ..ir.placement import placement_of, sharded_axes
from ..optim import LBFGS, Adafactor, Muon, Optimizer
from ..optim.clipping import clip_grad_norm_
from ..tensors.creation import tensor
from ..tensors.shards import set_shard, shard_of
from ..tensors.tensor import Tensor
from .functions import all_gather, reduce_scatter
from .parameter_shards import shard
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
        The optimizer has a state, its rule is not elementwise, or a parameter is divided among all ranks already.

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
    """Parameters of one dtype as one flat array, of which this rank has a part, `own`.

    A parameter that is itself a part has a flat array of its own, so that a checkpoint can name the part of the part. It is
    divided along the other axes of the mesh, and its gradient is averaged as by `average_gradients`.
    """

    def __init__(self, params: Sequence[Tensor], all_ranks: ProcessGroup) -> None:
        held = sharded_axes(params[0])
        held_names = held.names if held else ()
        self.params, self.ranges = params, part_ranges([p.size for p in params])
        self.group = group = ProcessGroup(tuple(name for name in all_ranks.names if name not in held_names))
        self.count = ProcessGroup(tuple(dict.fromkeys((*all_ranks.names, *held_names)))).size
        if group.size == 1:
            raise DistributedError(
                f"shard_optimizer: a parameter is divided along {', '.join(held_names)} already, so that a plain optimizer "
                "keeps the state of its own part only; call average_gradients and the plain optimizer"
            )
        with no_grad():
            whole = params[0] if held else cast(Tensor, cat([p.reshape(-1) for p in params]))
            self.own = shard(whole, None, group)
            self.own.requires_grad = True
        placement = placement_of(self.own)
        assert placement is not None
        self.sizes, self.order = placement.sizes, placement.order
        start = sum(self.sizes[: group.rank])
        overlaps = [[min(max(k, a), b) for k in (start, start + self.own.size)] for a, b in self.ranges]
        self.elements = [slice(low - a, high - a) for (low, high), (a, _) in zip(overlaps, self.ranges, strict=True)]
        self.places = [slice(low - start, high - start) for low, high in overlaps]  # of these elements in the own part

    @property
    def shards(self) -> list[Shard]:
        """The part of each parameter that the own part contains, which may be empty."""
        mark, found = shard_of(self.own), list[Shard]()
        assert mark is not None
        for p, elements in zip(self.params, self.elements, strict=True):
            outer = shard_of(p) or Shard(p.shape, None, 0, p.size)
            found.append(outer.part(elements.start, elements.stop - elements.start, mark.replica, mark.replicas))
        return found

    def read(self) -> None:
        """Copy the parameters, which a program may have changed, to the own part."""
        for p, elements, place in zip(self.params, self.elements, self.places, strict=True):
            if elements.start < elements.stop:
                self.own.detach()[place] = flatten(p.detach(), self.order)[elements]

    def average_gradients(self) -> None:
        """Set the gradient of the own part to the mean over ranks."""
        for p in self.params:
            if p.grad is None:
                raise GradientError(
                    f"shard_optimizer: a parameter of shape {p.shape} has no gradient; call backward first, and leave out "
                    "parameters that the loss does not depend on"
                )
        flat = cast(Tensor, cat([flatten(p.grad, self.order) for p in self.params if p.grad is not None]))
        self.own.grad = reduce_scatter(flat, group=self.group, sizes=self.sizes) / self.count

    def gather(self) -> None:
        """Copy the parts of all ranks to the parameters."""
        flat = all_gather(self.own.detach(), group=self.group, sizes=self.sizes)
        for p, (start, stop) in zip(self.params, self.ranges, strict=True):
            p.detach().copy_(unflatten(flat[start:stop], p.shape, self.order))


class ShardedOptimizer:
    """An optimizer whose state is divided among ranks. Make it by `shard_optimizer`."""

    def __init__(self, optimizer: Optimizer, group: ProcessGroup) -> None:
        self.optimizer = optimizer
        self.parts = list[FlatParameters]()
        self.whole_groups = list[list[Tensor]]()  # the parameters of each group
        for settings in optimizer.param_groups:
            params = settings["params"]
            self.whole_groups.append(params)
            alike = dict[Hashable, list[Tensor]]()
            for p in params:
                alike.setdefault((p.dtype, id(p) if sharded_axes(p) else None), []).append(p)
            parts = [FlatParameters(some, group) for some in alike.values()]
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
        return clip_grad_norm_([part.own for part in self.parts], max_norm)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Average the gradients, update the own parts, and gather the parameters."""
        loss = None if closure is None else closure()
        if any(part.own.grad is None for part in self.parts):
            self.average_gradients()
        with no_grad():
            for part in self.parts:
                part.read()
        self.optimizer.step()
        with no_grad():
            for part in self.parts:
                part.gather()
                part.own.grad = None
        return loss

    @property
    def shards(self) -> list[Shard]:
        """The part of each parameter whose state this rank keeps, which may be empty. Checkpoints need them."""
        shard_by_id = {id(p): mark for part in self.parts for p, mark in zip(part.params, part.shards, strict=True)}
        return [shard_by_id[id(p)] for group in self.whole_groups for p in group]

    def state_dict(self) -> dict[str, Any]:
        """Return the state dict of the optimizer that is not divided, with this rank's part of each tensor.

        The parts are marked, so `mf.save_sharded` joins them, and another number of ranks loads them: see `shards_of`.
        """
        numbers = self._numbers()
        saved: dict[str, Any] = self.optimizer.state_dict()
        state = dict[int, dict[str, Any]]()
        for part in self.parts:
            values = self.state.get(part.own, {})
            for p, place, mark in zip(part.params, part.places, part.shards, strict=True) if values else ():
                state[numbers[id(p)]] = {
                    name: set_shard(x[place], mark) if np.shape(x) == part.own.shape else x for name, x in values.items()
                }
        groups = [
            {**settings, "params": [numbers[id(p)] for p in params]}
            for settings, params in zip(saved["param_groups"], self.whole_groups, strict=True)
        ]
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load settings and state: a state dict with this rank's part of each tensor.

        Raises
        ------
        ShapeError
            The parts are those of other parameters, or of another rank. Nothing has changed.
        """
        numbers, values = self._numbers(), state["state"]
        own_numbers = {id(p): k for k, p in enumerate(p for settings in self.param_groups for p in settings["params"])}
        joined = dict[int, dict[str, Any]]()
        for part in self.parts:
            pieces = [values.get(numbers[id(p)], {}) for p in part.params]
            names = dict.fromkeys(name for piece in pieces for name in piece)
            for name in names:
                try:
                    xs = [piece[name] for piece in pieces]
                    is_divided = np.ndim(xs[0]) > 0
                    x = cat([tensor(x, part.own.dtype, part.own.backend) for x in xs]) if is_divided else xs[0]
                except KeyError:
                    raise ShapeError(f"shard_optimizer: the state has {name} for some parameters only") from None
                joined.setdefault(own_numbers[id(part.own)], {})[name] = x
        groups = [
            {**settings, "params": [own_numbers[id(p)] for p in own["params"]]}
            for settings, own in zip(state["param_groups"], self.param_groups, strict=True)
        ]
        self.optimizer.load_state_dict({"state": joined, "param_groups": groups})

    def _numbers(self) -> dict[int, int]:
        """Return the numbers of the parameters in state dicts, by their ids."""
        return {id(p): k for k, p in enumerate(p for group in self.whole_groups for p in group)}
