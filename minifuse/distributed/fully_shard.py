"""Fully sharded models: each rank holds 1 / n of every parameter, and the whole of one layer only while it is used.

Data parallel training holds equal parameters, gradients and optimizer states on all ranks. Here a parameter is its shard:

    use of a parameter     all_gather of the shards
    its gradient           reduce_scatter, the derivative of all_gather: each rank gets the sum for its shard
    optimizer              updates the shard, with states of its size

Nothing else changes: the training loop is that of data parallel training [1]_. A rank sends 1.5 times the bytes of an
all-reduce of the gradients: the weights for the forward and for the backward pass, and the gradients.

References
----------
.. [1] S. Rajbhandari and others, ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2019,
   arXiv:1910.02054
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar

from ..autograd.checkpoint import checkpoint
from ..core.pytree import tree_map
from ..ir.placement import placement_of
from ..nn.module import Module, Parameter, named_members
from ..nn.parameter_containers import ParameterDict, ParameterList
from .functions import axes_of
from .parameter_shards import gather_part, shard
from .process_groups import ProcessGroup

M = TypeVar("M", bound=Module)


def fully_shard(model: M, group: ProcessGroup | None = None, keep: bool = False) -> M:
    """Replace each parameter of a model by this rank's shard of it, in place, and return the model.

    Parameters
    ----------
    model : Module
        With the same values on all ranks of the group: see `share`. Call `parallelize` before, if at all.
    group : ProcessGroup, optional
        The ranks that share each parameter; they have parts of one batch. Default: all.
    keep : bool
        If True, the backward pass uses the weights that the forward pass has gathered. If False, it gathers them again, and
        computes each layer again from its inputs, so a rank holds the whole of one layer at a time.

    Notes
    -----
    A parameter is flattened, and divided into parts whose sizes differ by at most 1. `module.weight` is the whole parameter,
    gathered on each use. `module.parameters()` returns the shards, for the optimizer, under the names of the parameters.

    The parameters of a `ParameterList` or `ParameterDict` stay whole. Optimizers whose update of an element depends on
    others, such as `Muon`, are not supported.

    In a fused function, a layer is not computed again: a gathered weight is one value, which is stored until its last use.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> def program():
    ...     dist.seed(0)
    ...     layer = dist.fully_shard(mf.nn.Linear(3, 2))
    ...     return [p.shape for p in layer.parameters()], layer.weight.shape
    >>> dist.simulate(2, program)
    [([(3,), (1,)], (2, 3)), ([(3,), (1,)], (2, 3))]
    """
    if axes_of(group) is None:
        return model
    shards = dict[int, tuple[Parameter, Parameter]]()  # by the id of a parameter, which other modules may share

    def replace(x: Any) -> Any:
        if not isinstance(x, Parameter):
            return x
        return shards.setdefault(id(x), (x, shard(x, None, group)))[1]

    for module in list(model.modules()):
        if isinstance(module, ParameterList | ParameterDict):
            continue
        names = tuple(dict.fromkeys(name.partition(".")[0] for name, _ in named_members(module, Parameter)))
        for name in names:
            vars(module)[name] = tree_map(vars(module)[name], replace)
        if names:
            base: Any = type(module)
            module.__class__ = sharded_class(base, names, keep)
    return model


@cache
def sharded_class(base: type[Module], names: tuple[str, ...], keep: bool) -> type[Module]:
    """Return a subclass of a module's class, with attributes that gather the parameters of these names."""

    def forward(self: Any, *inputs: Any, **named: Any) -> Any:
        return checkpoint(partial(base.forward, self), *inputs, **named)

    members: dict[str, Any] = {name: property(gather_attribute(name)) for name in names}
    members |= {"__module__": base.__module__, "__doc__": base.__doc__} | ({} if keep else {"forward": forward})
    return type(f"FullySharded{base.__name__}", (base,), members)


def gather_attribute(name: str) -> Callable[[Any], Any]:
    """Return a function that gathers the parameters in an attribute, which is a parameter or a container."""

    def get(self: Any) -> Any:
        return tree_map(vars(self)[name], gather)

    return get


def gather(x: Any) -> Any:
    """Return the whole of a parameter; anything else unchanged."""
    placement = placement_of(x)
    return x if placement is None else gather_part(x, placement)
