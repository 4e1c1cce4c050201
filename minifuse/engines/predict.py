"""Predict the time of a training step of a GPT on many devices, on paper: which parallelism is best for which size?

The model has four parts. A device computes with a part of its peak FLOP/s, and moves activations through its memory.
Collectives cost what `cost.py` says, with one link within a node and another one between nodes. Gradients of a layer are
sent while the layers before it compute. A pipeline has its bubble. Everything else is left out: launches, data loading,
stragglers, messages that share a link. So small models are slower than predicted, and a ranking means more than a time.

References
----------
.. [1] D. Narayanan and others, Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021,
   arXiv:2104.04473 (FLOPs of a step, order of the ranks, tensor parallel layers within a node)
.. [2] S. Rajbhandari and others, ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2019,
   arXiv:1910.02054 (16 bytes a parameter, and what each stage shards)
.. [3] V. Korthikanti and others, Reducing Activation Recomputation in Large Transformer Models, 2022, arXiv:2205.05198
   (34 bytes of activations for each token, layer and unit of width)
.. [4] NVIDIA H100 Tensor Core GPU datasheet, and DGX H100 user guide, 2023
.. [5] NVIDIA A100 Tensor Core GPU datasheet, and DGX A100 user guide, 2021
.. [6] NVIDIA NCCL, src/graph/tuning.cc (latencies of its cost model: a collective, a step over NVLink, one over a network)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from .cost import COSTS, Link

BYTES_PER_PARAMETER = 16  # weight, gradient and the state of Adam, in float32 or in mixed precision [2]
SAVED_VALUES = 17  # activations that a block keeps for its backward pass, for each token and unit of width [3]
FORWARD_PASSES, BACKWARD_PASSES = 2, 4  # over the saved values: written and read; read, their gradients written and read
OPTIMIZER_BYTES = 30  # that an update reads and writes for a parameter: all 16, and all but the gradient in float16
BUCKET_BYTES = 25e6
USABLE_MEMORY = 0.9


@dataclass(frozen=True)
class Hardware:
    """A device and its links.

    `flops` and `bandwidth` are peaks, of matrix products and of memory; `efficiency` is the share of the FLOP/s that large
    products reach. `node` is the link between devices of a node, `network` the one of a device to another node.
    """

    name: str
    flops: float
    memory: float
    bandwidth: float
    node: Link
    network: Link
    startup: float = 8.4e-6
    """Seconds of a collective in addition to its messages [6]."""
    devices_per_node: int = 8
    efficiency: float = 0.6
    """Fitted to the ten models of [1]; the only number here that is."""


# NVLink: 450 GB/s a direction, of which an all-reduce of two GPUs reached 330. Network: a 400 Gb/s adapter for each GPU.
H100 = Hardware("H100", 989.4e12, 80e9, 3.35e12, Link(3.4e-6, 1 / 330e9), Link(14e-6, 1 / 50e9))  # dense bfloat16 [4]
# NVLink: 300 GB/s a direction, of which the same share is assumed. Network: a 200 Gb/s adapter for each GPU.
A100 = Hardware("A100", 312e12, 80e9, 2.04e12, Link(3.4e-6, 1 / 220e9), Link(14e-6, 1 / 25e9))  # dense float16 [5]


@dataclass(frozen=True)
class GPTShape:
    """The sizes of a GPT as in `recipes/gpt.py`, and of the batch of a step."""

    layers: int
    width: int
    heads: int
    context: int = 1024
    vocabulary: int = 64
    batch: int = 1024
    """Sequences of a step, over all devices."""
    itemsize: int = 2
    """Bytes of an activation, a weight and a gradient."""
    is_tied: bool = False
    """Whether the head uses the weights of the embedding."""

    @property
    def parameters(self) -> int:
        """The number of parameters: 12 width^2 + 13 width for a block."""
        ends = (self.vocabulary * (1 if self.is_tied else 2) + self.context + 2) * self.width
        return self.layers * (12 * self.width**2 + 13 * self.width) + ends

    @property
    def flops_per_token(self) -> float:
        """FLOPs of the forward and the backward pass for a token, without recomputation [1].

        Six for each weight, and the products of attention as if it was not causal.
        """
        products = 12 * self.layers * self.width**2 + self.vocabulary * self.width
        return 6 * products + 12 * self.layers * self.width * self.context


@dataclass(frozen=True)
class Strategy:
    """How a step is divided: the sizes of the groups, and what the ranks of the data-parallel group share."""

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    shards: str = "nothing"
    """`nothing`, `optimizer` (ZeRO-1) or `everything` (ZeRO-3, fully sharded)."""
    micro_batch: int = 1
    """Sequences of one forward pass."""
    recomputes: bool = False
    """Whether the backward pass of a block computes its activations again."""

    @property
    def devices(self) -> int:
        """The number of devices."""
        return self.data * self.tensor * self.pipeline

    def __str__(self) -> str:
        sizes = {"data": self.data, "tensor": self.tensor, "pipeline": self.pipeline}
        parts = [" x ".join(f"{name} {n}" for name, n in sizes.items() if n > 1) or "one device"]
        names = {"optimizer": "ZeRO-1", "everything": "fully sharded"}
        parts += [names[self.shards]] if self.shards in names else []
        return ", ".join(parts + ["recomputing"] * self.recomputes)


@dataclass(frozen=True)
class Prediction:
    """The predicted time of a step, its parts in seconds, and the memory of a device in bytes."""

    strategy: Strategy
    compute: float
    bubble: float
    """Time in which stages of a pipeline wait for each other."""
    tensor: float
    """All-reduces of activations."""
    data: float
    """Collectives of gradients and parameters, as far as they are not hidden."""
    update: float
    memory: float
    utilization: float
    """FLOPs of the model, without recomputation, divided by what the devices could do at their peak (MFU)."""

    @property
    def seconds(self) -> float:
        """The time of a step."""
        return self.compute + self.bubble + self.tensor + self.data + self.update


@dataclass(frozen=True)
class Spread:
    """Where the ranks of a group are: `local` in each of `nodes` nodes."""

    local: int
    nodes: int
    hardware: Hardware

    def scatter(self, nbytes: float) -> float:
        """Return the seconds of a reduce-scatter, or of an all-gather: in the node, then between nodes with a part."""
        ring, hardware = COSTS["reduce_scatter"]["ring"], self.hardware
        between = ring.seconds(self.nodes, nbytes / self.local, hardware.network)
        return self.startup + ring.seconds(self.local, nbytes, hardware.node) + between

    def all_reduce(self, nbytes: float) -> float:
        """Return the seconds of an all-reduce; between nodes by the better of ring and tree."""
        within = 2 * COSTS["reduce_scatter"]["ring"].seconds(self.local, nbytes, self.hardware.node)
        algorithms = (COSTS["all_reduce"][name] for name in ("ring", "tree"))
        between = min(rounds.seconds(self.nodes, nbytes / self.local, self.hardware.network) for rounds in algorithms)
        return self.startup + within + between

    @property
    def startup(self) -> float:
        """The seconds of a collective in addition to its messages."""
        return self.hardware.startup if self.local * self.nodes > 1 else 0.0


def place_data_ranks(strategy: Strategy, hardware: Hardware) -> Spread:
    """Place the ranks of a data-parallel group: tensor-parallel ranks are neighbors, then data, then pipeline [1]."""
    local = min(strategy.data, max(hardware.devices_per_node // strategy.tensor, 1))
    return Spread(local, strategy.data // local, hardware)


def exposed(ready: Sequence[float], seconds: Sequence[float]) -> float:
    """Return how long collectives run on after the last of the times at which their arrays are ready.

    >>> exposed(ready=[1.0, 2.0, 3.0], seconds=[0.5, 0.5, 0.5]), exposed([1.0, 2.0, 3.0], [2.0, 2.0, 2.0])
    (0.5, 4.0)
    """
    end = 0.0
    for start, duration in zip(ready, seconds, strict=True):
        end = max(end, start) + duration
    return end - ready[-1]


def predict(shape: GPTShape, strategy: Strategy, hardware: Hardware = H100) -> Prediction:
    """Predict a step. `why_not` says whether the strategy is possible at all."""
    tokens = strategy.micro_batch * shape.context
    micro_batches = shape.batch // (strategy.data * strategy.micro_batch)
    layers = shape.layers / strategy.pipeline
    activation = tokens * shape.width * shape.itemsize / strategy.tensor
    parameters = shape.parameters / (strategy.tensor * strategy.pipeline)
    group = place_data_ranks(strategy, hardware)

    # One layer of one micro-batch, forward and backward; the head is spread over the layers.
    flops = tokens * shape.flops_per_token / (3 * shape.layers * strategy.tensor) / (hardware.flops * hardware.efficiency)
    move = SAVED_VALUES * activation / hardware.bandwidth
    forward, backward = flops + FORWARD_PASSES * move, 2 * flops + BACKWARD_PASSES * move
    if strategy.recomputes:
        backward += forward
    reduced = Spread(strategy.tensor, 1, hardware).all_reduce(activation * strategy.tensor)
    tensor = (6 if strategy.recomputes else 4) * reduced
    step = forward + backward + tensor

    data, gradients = 0.0, parameters * shape.itemsize
    if strategy.shards == "everything":  # each pass gathers a layer while the one before computes
        gather = group.scatter(gradients / layers)
        passes = max(forward + tensor / 2, gather) + max(backward + tensor / 2, 2 * gather)
        data = micro_batches * layers * (passes - step) + 2 * gather  # the first layer's, and its gradients at the end
    elif strategy.data > 1:
        collective = group.scatter if strategy.shards == "optimizer" else group.all_reduce
        count = max(min(int(layers), round(gradients / BUCKET_BYTES)), 1)
        ready = [layers * (backward + tensor / 2) * (k + 1) / count for k in range(count)]
        data = exposed(ready, [collective(gradients / count)] * count)
        data += group.scatter(gradients) if strategy.shards == "optimizer" else 0.0  # the new weights

    crosses = strategy.tensor * strategy.data >= hardware.devices_per_node
    hop = (hardware.network if crosses else hardware.node).seconds(activation)
    bubble = (strategy.pipeline - 1) * (layers * step + 2 * hop)
    own = parameters / (1 if strategy.shards == "nothing" else strategy.data)
    update = own * OPTIMIZER_BYTES / hardware.bandwidth
    prediction = Prediction(
        strategy,
        compute=micro_batches * layers * (forward + backward),
        bubble=bubble,
        tensor=micro_batches * layers * tensor,
        data=data,
        update=update,
        memory=memory(shape, strategy),
        utilization=0.0,
    )
    useful = shape.batch * shape.context * shape.flops_per_token / (strategy.devices * hardware.flops)
    return replace(prediction, utilization=useful / prediction.seconds)


def state_bytes(parameters: float, itemsize: int, shards: str, ranks: int) -> float:
    """Return the bytes of weights, gradients and optimizer state that each of `ranks` data-parallel ranks keeps [2].

    >>> [f"{state_bytes(7.5e9, 2, shards, 64) / 1e9:.1f} GB" for shards in ("nothing", "optimizer", "everything")]
    ['120.0 GB', '31.4 GB', '1.9 GB']
    """
    whole = {"nothing": BYTES_PER_PARAMETER, "optimizer": 2 * itemsize, "everything": 0}[shards]
    return parameters * (whole + (BYTES_PER_PARAMETER - whole) / ranks)


def memory(shape: GPTShape, strategy: Strategy) -> float:
    """Return the bytes that a device of the first stage needs: state, activations, gathered layers, logits."""
    tokens, layers = strategy.micro_batch * shape.context, shape.layers / strategy.pipeline
    parameters = shape.parameters / (strategy.tensor * strategy.pipeline)
    value = tokens * shape.width * shape.itemsize / strategy.tensor
    micro_batches = min(strategy.pipeline, shape.batch // (strategy.data * strategy.micro_batch))  # under way, with 1f1b
    saved = layers * value + SAVED_VALUES * value if strategy.recomputes else layers * SAVED_VALUES * value
    whole_layer = parameters / layers * 2 * shape.itemsize  # weights and gradients
    gathered = 2 * whole_layer if strategy.shards == "everything" else 0  # the next one is gathered while one computes
    logits = tokens * shape.vocabulary * (shape.itemsize + 4) / strategy.tensor
    state = state_bytes(parameters, shape.itemsize, strategy.shards, strategy.data)
    return state + micro_batches * saved + gathered + logits


def why_not(shape: GPTShape, strategy: Strategy, hardware: Hardware = H100) -> str | None:
    """Return why a strategy is not possible; None if it is."""
    if strategy.tensor > hardware.devices_per_node:
        return "tensor parallel ranks must be in one node"
    if shape.heads % strategy.tensor:
        return f"{shape.heads} heads cannot be divided by {strategy.tensor} ranks"
    if shape.layers % strategy.pipeline:
        return f"{shape.layers} layers cannot be divided by {strategy.pipeline} stages"
    if shape.batch % (strategy.data * strategy.micro_batch):
        return (
            f"a batch of {shape.batch} cannot be divided by {strategy.data} ranks x micro-batches of {strategy.micro_batch}"
        )
    if strategy.shards == "everything" and strategy.pipeline > 1:
        return "each micro-batch would gather the layers of its stage again"
    if (needed := memory(shape, strategy)) > USABLE_MEMORY * hardware.memory:
        return f"needs {needed / 1e9:,.0f} GB"
    return None


def strategies(shape: GPTShape, devices: int, hardware: Hardware = H100) -> Iterator[Strategy]:
    """Yield all strategies for a number of devices whose sizes are powers of two or, for stages, divide the layers."""
    stages = [p for p in range(1, shape.layers + 1) if shape.layers % p == 0 and devices % p == 0]
    tensors = [t for t in (1, 2, 4, 8, 16) if t <= hardware.devices_per_node]
    for pipeline, tensor in product(stages, tensors):
        if devices % (pipeline * tensor) == 0:
            for shards, log2, recomputes in product(("nothing", "optimizer", "everything"), range(7), (False, True)):
                data = devices // (pipeline * tensor)
                if shards == "nothing" or data > 1:
                    yield Strategy(data, tensor, pipeline, shards, 2**log2, recomputes)


FAMILIES: dict[str, Callable[[Strategy], bool]] = {
    "data parallel": lambda s: s.tensor == s.pipeline == 1 and s.shards == "nothing",
    "ZeRO-1": lambda s: s.tensor == s.pipeline == 1 and s.shards == "optimizer",
    "fully sharded": lambda s: s.tensor == s.pipeline == 1 and s.shards == "everything",
    "tensor 8": lambda s: s.tensor == 8 and s.pipeline == 1 and s.shards == "nothing",
    "pipeline": lambda s: s.tensor == 1 and s.pipeline > 1 and s.shards == "nothing",
    "best": lambda s: True,
}


def compare(shape: GPTShape, devices: int, hardware: Hardware = H100) -> dict[str, Prediction | None]:
    """Return the fastest strategy of each family; None where none is possible.

    `tensor 8` and `pipeline` are combined with data parallelism, if there are more devices than ranks or layers.
    """
    possible = [
        predict(shape, s, hardware) for s in strategies(shape, devices, hardware) if why_not(shape, s, hardware) is None
    ]
    members = {name: [p for p in possible if belongs(p.strategy)] for name, belongs in FAMILIES.items()}
    return {name: min(some, key=lambda p: p.seconds, default=None) for name, some in members.items()}


def comparison_table(shapes: Sequence[GPTShape], devices: int, hardware: Hardware = H100) -> str:
    """Return a table of predicted times in milliseconds: a line for each shape, a column for each family of strategies."""
    columns = ["width", "layers", "parameters", *FAMILIES, "of peak"]
    lines = [f"{devices} devices, ms a step", "  ".join(columns) + "  strategy"]
    for shape in shapes:
        found = compare(shape, devices, hardware)
        best = found["best"]
        cells = [str(shape.width), str(shape.layers), f"{shape.parameters / 1e6:,.0f} M"]
        cells += [f"{p.seconds * 1e3:,.1f}" if p else "-" for p in found.values()] + [
            f"{best.utilization:.0%}" if best else "-"
        ]
        row = "  ".join(cell.rjust(len(column)) for cell, column in zip(cells, columns, strict=True))
        lines.append(f"{row}  {best.strategy if best else 'does not fit'}")
    return "\n".join(lines)
