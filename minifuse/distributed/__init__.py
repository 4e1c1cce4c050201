"""Many devices: collectives as functions with gradients, data parallel training, and shards of models."""

from .data_parallel import average_gradients, share, weigh_part
from .functions import all_gather, all_reduce, all_to_all, barrier, broadcast, reduce, reduce_scatter, same, shift
from .process_groups import Mesh, ProcessGroup, group, mesh, rank, size
from .shard_optimizer import ShardedOptimizer, shard_optimizer
from .simulation import simulate
from .start import init

__all__ = [
    "Mesh",
    "ProcessGroup",
    "ShardedOptimizer",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "average_gradients",
    "barrier",
    "broadcast",
    "group",
    "init",
    "mesh",
    "rank",
    "reduce",
    "reduce_scatter",
    "same",
    "shard_optimizer",
    "share",
    "shift",
    "simulate",
    "size",
    "weigh_part",
]
