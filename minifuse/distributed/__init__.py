"""Many devices: collectives as functions with gradients, data parallel training, and shards of models."""

from .data_parallel import average_gradients, share, weigh_part
from .fully_shard import fully_shard
from .functions import all_gather, all_reduce, all_to_all, barrier, broadcast, reduce, reduce_scatter, same, shift
from .parameter_shards import full_tensor, shards_of
from .pipeline import Pipeline
from .process_groups import Mesh, ProcessGroup, group, mesh, rank, size
from .seeds import seed
from .sequence_parallel import RingAttention, ring_attention
from .shard_optimizer import ShardedOptimizer, shard_optimizer
from .simulation import simulate
from .start import init
from .tensor_parallel import (
    ColumnParallelLinear,
    HeadParallelAttention,
    RowParallelLinear,
    copy_to_shards,
    parallelize,
    sum_of_shards,
)

__all__ = [
    "ColumnParallelLinear",
    "HeadParallelAttention",
    "Mesh",
    "Pipeline",
    "ProcessGroup",
    "RingAttention",
    "RowParallelLinear",
    "ShardedOptimizer",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "average_gradients",
    "barrier",
    "broadcast",
    "copy_to_shards",
    "full_tensor",
    "fully_shard",
    "group",
    "init",
    "mesh",
    "parallelize",
    "rank",
    "reduce",
    "reduce_scatter",
    "ring_attention",
    "same",
    "seed",
    "shard_optimizer",
    "shards_of",
    "share",
    "shift",
    "simulate",
    "size",
    "sum_of_shards",
    "weigh_part",
]
