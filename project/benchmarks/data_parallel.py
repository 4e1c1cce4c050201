"""Measure data parallel steps of a GPT: on one rank alone, and on all ranks, with gradients in buckets of several sizes.

    minifuse launch -n 2 --engine nccl project/benchmarks/data_parallel.py --backend cuda --json results.json
    minifuse launch -n 2 project/benchmarks/data_parallel.py --width 64 --batch 8

The batch is that of one rank, so a step on n ranks has n times the examples: the efficiency is the time alone divided by the
time on all. Losses are compared with those of one rank that has the whole batch.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import minifuse as mf
import minifuse.distributed as dist
from minifuse import nn, optim
from minifuse.engines.world import use_world
from minifuse.recipes.gpt import GPT

LETTERS, CONTEXT, HEAD_SIZE = 65, 256, 64
REPEATS, STEPS, WARMUPS, COMPARED = 5, 8, 8, 4


def make_step(options: argparse.Namespace, bucket_mb: float | None) -> Callable[..., Any]:
    """Return a fused training step of a new model."""
    mf.manual_seed(0)
    model = GPT(LETTERS, CONTEXT, options.layers, options.width // HEAD_SIZE or 1, options.width).to(backend=options.backend)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99), weight_decay=0.1)

    @mf.fuse
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.cross_entropy(model(x).reshape(-1, LETTERS), y.reshape(-1))
        loss.backward()
        dist.average_gradients(model, bucket_mb=bucket_mb)
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return dist.all_reduce(loss.detach(), "mean")

    return step


def measure(step: Callable[..., Any], batch: Sequence[Any], backend: str) -> dict[str, Any]:
    """Return the first losses, and the medians of milliseconds of a step, and of the host in a step."""
    losses = [step(*batch).item() for _ in range(COMPARED)]
    for _ in range(WARMUPS):
        step(*batch)
    times, host_times = [], []
    for _ in range(REPEATS):
        mf.synchronize(backend)
        dist.barrier()
        start = perf_counter()
        for _ in range(STEPS):
            step(*batch)
        host_times.append((perf_counter() - start) / STEPS * 1e3)
        mf.synchronize(backend)
        times.append((perf_counter() - start) / STEPS * 1e3)
    return {"losses": losses, "ms": round(float(np.median(times)), 3), "host_ms": round(float(np.median(host_times)), 3)}


def main() -> None:
    """Measure all rows, and print them on rank 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default="parallel")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--precision", default="highest")
    parser.add_argument("--buckets", type=float, nargs="*", default=[1, 4, 1024], help="in MB")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    dist.init()
    mf.set_float32_matmul_precision(options.precision)
    rng = np.random.default_rng(0)
    arrays = rng.integers(0, LETTERS, (2, dist.size() * options.batch, CONTEXT))
    whole = [mf.tensor(np.ascontiguousarray(x), backend=options.backend) for x in arrays]
    own = [mf.tensor(np.split(x, dist.size())[dist.rank()].copy(), backend=options.backend) for x in arrays]
    with use_world(None):  # this rank alone
        expected = [make_step(options, None)(*whole).item()]
        alone = measure(make_step(options, None), own, options.backend)
    rows = {"alone": {"ms": alone["ms"], "host_ms": alone["host_ms"]}}
    for bucket_mb in options.buckets:
        row = measure(make_step(options, bucket_mb), own, options.backend)
        difference = abs(row.pop("losses")[0] - expected[0])
        rows[f"{dist.size()} ranks, buckets of {bucket_mb:g} MB"] = row | {
            "efficiency": round(alone["ms"] / row["ms"], 4),
            "first_loss_differs_by": difference,
        }
    if dist.rank() == 0:
        for name, row in rows.items():
            print(f"{name:32} {', '.join(f'{key} {value}' for key, value in row.items())}")
        if options.json:
            settings = {key: value for key, value in vars(options).items() if key != "json"}
            options.json.write_text(json.dumps({"settings": settings, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
