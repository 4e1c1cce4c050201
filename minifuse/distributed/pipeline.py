"""Pipelines: the layers of a model are cut into stages, one a rank, and a batch into micro-batches.

A stage receives the activations of a micro-batch, computes, and sends its own to the next stage; gradients come back the
other way. While a stage computes with one micro-batch, its neighbors compute with others. `engines.schedules` has the order
of passes, and says how long stages are idle.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.dispatch import no_grad
from ..core.errors import DistributedError, ShapeError
from ..engines.base import Engine, RankGroup
from ..engines.messages import Array
from ..engines.schedules import SCHEDULES, run_stage
from ..engines.world import current_world
from ..jit.fuse import fuse
from ..nn.containers import Sequential
from ..nn.module import Module
from ..optim.clipping import clip_grads_with_norm_, norm_over_shards
from ..tensors.creation import tensor
from ..tensors.tensor import Tensor
from .functions import all_reduce, broadcast
from .process_groups import ProcessGroup
from .process_groups import group as group_of

SHAPE_DTYPE = np.dtype("int64")  # of the messages with shapes, which the first step sends


class Pipeline:
    """Train a model whose stages are on different ranks.

    Parameters
    ----------
    stages : sequence of Module
        One for each rank of the group, with one input and one output of floats. A rank keeps its own only. One rank keeps
        all of them.
    micro_batches : int
        The number of parts of a batch.
    loss : callable
        Called with the output of the last stage and the targets, for each micro-batch; it returns their mean.
    schedule : {"1f1b", "gpipe"}
        Both have the same idle time; "1f1b" keeps the activations of fewer micro-batches.
    group : ProcessGroup, optional
        Default: all ranks. In a mesh with an axis for data, each group along the other axis is a pipeline of its own; then
        call `average_gradients(pipeline.stage, dist.group("data"))` after `step`.
    fused : bool
        Whether the stage is a fused function.
    seconds : pair of float
        The times of a forward and of a backward pass, for the trace of the simulated engine.

    Attributes
    ----------
    stage : Module
        The stage of this rank, whose parameters its optimizer updates.

    Raises
    ------
    DistributedError
        The schedule is unknown, or there is not one stage for each rank.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> def program():
    ...     dist.seed(0)
    ...     stages = [mf.nn.Linear(3, 8), mf.nn.Linear(8, 1)]
    ...     pipeline = dist.Pipeline(stages, 2, mf.nn.functional.mse_loss)
    ...     loss = pipeline.step(mf.ones(4, 3), mf.zeros(4, 1))
    ...     return loss.shape, pipeline.stage.weight.grad.shape
    >>> dist.simulate(2, program)
    [((), (8, 3)), ((), (1, 8))]
    """

    def __init__(
        self,
        stages: Sequence[Module],
        micro_batches: int,
        loss: Callable[[Any, Any], Any],
        schedule: str = "1f1b",
        group: ProcessGroup | None = None,
        fused: bool = True,
        seconds: tuple[float, float] = (0, 0),
    ) -> None:
        self.group = group or group_of()
        self.rank, self.size = self.group.rank, self.group.size
        if schedule not in SCHEDULES:
            raise DistributedError(f"Pipeline: got schedule {schedule!r}, expected one of {', '.join(map(repr, SCHEDULES))}")
        if self.size not in (1, len(stages)):
            raise DistributedError(f"Pipeline: got {len(stages)} stages for {self.size} ranks, expected one a rank")
        self.stage = stages[self.rank] if self.size > 1 else Sequential(*stages)
        self.is_last, self.micro_batches, self.seconds = self.rank == self.size - 1, micro_batches, seconds
        self.order = SCHEDULES[schedule](self.rank, self.size, micro_batches)

        def run(x: Any, *targets: Any) -> Any:
            return loss(self.stage(x), *targets) / micro_batches if self.is_last else self.stage(x)

        self.run = fuse(run) if fused else run
        self.shapes = dict[tuple[int, ...], tuple[int, ...]]()  # of a batch -> of the input of this stage

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        """Add the gradients of a batch to those of the parameters, and return the mean loss, on all ranks.

        All ranks pass the batch; only the first stage reads x, and only the last one y.

        Raises
        ------
        ShapeError
            The size of the batch is not a multiple of the number of micro-batches.
        """
        world, count = current_world(), len(x) // self.micro_batches
        if len(x) % self.micro_batches:
            raise ShapeError(f"Pipeline: got a batch of {len(x)}, expected a multiple of {self.micro_batches} micro-batches")
        engine = world.engine.host if world else Engine()
        dtype = next((p.dtype.numpy for p in self.stage.parameters()), np.dtype("float32"))
        ranks = world.group(self.group.names) if world else RankGroup((0,), 0)
        is_new, total = x.shape not in self.shapes, tensor(0.0, dtype.name, x.backend)
        if is_new:
            self.shapes[x.shape] = tuple(engine.recv(ranks.ranks[self.rank - 1], SHAPE_DTYPE)) if self.rank else ()
        kept = dict[int, tuple[Tensor, Tensor]]()  # micro-batch -> the input of the stage, and its output

        def forward(k: int, received: Array | None) -> Array:
            nonlocal is_new, total
            part = slice(k * count, (k + 1) * count)
            h = x[part] if received is None else tensor(received.reshape(self.shapes[x.shape]), backend=x.backend)
            h.requires_grad = received is not None
            out = self.run(h, y[part]) if self.is_last else self.run(h)
            kept[k] = h, out
            if self.is_last:
                total = total + out.detach()
            elif is_new:
                engine.send(ranks.ranks[self.rank + 1], np.array(out.shape, SHAPE_DTYPE))
                is_new = False
            return np.ascontiguousarray(out.detach().numpy()).reshape(-1)

        def backward(k: int, received: Array | None) -> Array:
            h, out = kept.pop(k)
            out.backward(None if received is None else tensor(received.reshape(out.shape), backend=x.backend))
            return np.empty(0) if h.grad is None else np.ascontiguousarray(h.grad.numpy()).reshape(-1)

        engine.exchange(run_stage(self.rank, self.size, self.order, forward, backward, self.seconds), ranks, dtype)
        return broadcast(total, self.size - 1, self.group)

    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """Scale the gradients of all stages, so that their norm is at most `max_norm`, and return the norm."""
        params = list(self.stage.parameters())
        with no_grad():
            norm = all_reduce(norm_over_shards(params) ** 2, group=self.group) ** 0.5
            clip_grads_with_norm_(params, max_norm, norm)
        return norm
