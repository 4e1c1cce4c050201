"""Train a small model with each kind of sharding, and print the losses and a digest of the weights of this rank.

    minifuse launch -n 2 tests/distributed/sharded_layers.py

Each program has a mesh of its own, so a process runs all of them.
"""

import json
from hashlib import sha256

import minifuse.distributed as dist
from tests.distributed.models import (
    gpt,
    mlp,
    stages_of_gpt,
    stages_of_mlp,
    tensor_parallel,
    train,
    train_pipeline,
    with_ring_attention,
)

STEPS = 3
PROGRAMS = {  # name -> the mesh, and a function that returns losses and weights
    "columns and rows": ({"model": 2}, lambda: train(mlp, tensor_parallel(mlp), STEPS, axes=())),
    "heads": ({"model": 2}, lambda: train(gpt, tensor_parallel(gpt), STEPS, axes=(), fused=False)),
    "ring attention": (
        {"data": 1, "sequence": 2},
        lambda: train(gpt, with_ring_attention, STEPS, axes=("data", "sequence")),
    ),
    "gpipe": ({"data": 1, "stage": 2}, lambda: train_pipeline(stages_of_mlp, 2, "gpipe", STEPS)),
    "1f1b": ({"data": 1, "stage": 2}, lambda: train_pipeline(stages_of_gpt, 2, "1f1b", STEPS, fused=False)),
    "fully sharded, kept": ({"data": 2}, lambda: train(gpt, dist.fully_shard, STEPS, fused=False)),
    "fully sharded": ({"data": 2}, lambda: train(mlp, lambda model: dist.fully_shard(model, keep=False), STEPS)),
    "sharded optimizer": ({"data": 2}, lambda: train(mlp, steps=STEPS, shard_state=True)),
}


def run_all():
    """Return the losses and norms of each program, and a digest of the weights."""
    results = {}
    for name, (mesh, program) in PROGRAMS.items():
        dist.init(mesh)
        losses, weights = program()
        values = weights.values() if isinstance(weights, dict) else weights
        results[name] = [[list(pair) for pair in losses], sha256(b"".join(w.tobytes() for w in values)).hexdigest()[:16]]
    return results


if __name__ == "__main__":
    dist.init()
    print("result", json.dumps(run_all()))
