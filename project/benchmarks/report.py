"""Results as tables: for the terminal, and as the same strings for the page."""

import shutil
import sys
from collections.abc import Sequence
from typing import NamedTuple

from . import curves
from .formatting import duration, number, targets
from .row import US, Result, Row

WIDTH = 160  # columns of the output, if it is not a terminal
TITLES = {
    "host": "What a call costs: 1,024 float32",
    "large": "Large arrays: 2^24 float32, and x of (4096, 1024)",
    "functions": "Elementwise functions of 2^22 numbers",
    "matmul": "Matrix products",
    "convolution": "Convolutions, pooling and losses, float32",
    "training": "Training: a perceptron on handwritten digits",
    "start": "The start of a process",
    "fusion-host": "Fused functions: what a call costs, 1,024 float32",
    "fusion-large": "Fused functions of large arrays: 2^24 float32, and x of (4096, 1024)",
    "fusion-matmul": "Layers of a network, float32",
    "fusion-training": "A whole training step as one call",
    "gpu-host": "What a call costs the host: 1,024 float32 on the GPU",
    "gpu-memory": "Memory of the GPU: 2^26 float32, x of (8192, 8192)",
    "gpu-sums": "Sums and maxima on the GPU, x of (8192, 8192)",
    "gpu-softmax": "Softmax on the GPU, x of (8192, 8192)",
    "gpu-matmul": "Matrix products on the GPU, float32",
    "gpu-tensor-cores": "Matrix products on the GPU's tensor cores, float32 rounded to tf32 and bf16",
    "gpu-ladder": "The ladder of matrix products on the GPU",
    "gpu-compile": "Compiling a pointwise kernel for the GPU",
    "networks": "Networks that learn, float32",
    "gpu-networks": "Networks that learn on the GPU, float32",
    "gpu-fusion-host": "Fused functions on the GPU: what a call costs the host, 1,024 float32",
    "gpu-fusion-memory": "Fused functions on the GPU: 2^26 float32, and x of (8192, 8192)",
    "gpu-fusion-matmul": "Layers of a network on the GPU, float32",
    "gpu-fusion-training": "Training steps on the GPU, each one call, waited for together",
    "sweeps": "All sizes, float32",
    "sweeps-threads": "All sizes, on one thread and on all",
    "gpu-sweeps": "All sizes on the GPU, float32, each call waited for",
    "costs-length": "How cost grows with the length of a function",
    "costs-rank": "How cost grows with the rank",
    "costs-memory": "How memory grows with size",
    "costs-compiling": "What compiling costs",
    "held-out": "Programs from publications, float32",
    "held-out-gradients": "Programs from publications, forward and backward, float32",
    "gpu-held-out": "Programs from publications on the GPU, float32",
    "gpu-held-out-gradients": "Programs from publications on the GPU, forward and backward, float32",
    "loop-nests": "Loop nests of many shapes, float32",
    "gpu-loop-nests": "Loop nests of many shapes on the GPU, float32",
    "library-scans": "Scans, float32",
    "gpu-library-scans": "Scans on the GPU, float32",
    "library-order": "Sorts, counts and searches, float32",
    "gpu-library-order": "Sorts, counts and searches on the GPU, float32",
    "library-indexing": "Indices and masks, float32",
    "gpu-library-indexing": "Indices and masks on the GPU, float32",
    "library-joining": "Joined and repeated arrays, float32",
    "gpu-library-joining": "Joined and repeated arrays on the GPU, float32",
    "gpu-costs-compiling": "What compiling costs on the GPU",
}


class Table(NamedTuple):
    """A group of rows, or the sizes of a curve, as text. `notes` are printed below the table."""

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: Sequence[str] = ()


def tables(results: Result) -> list[Table]:
    """Return a table for each group, with our time and each peer's ratio, and one for each curve, with all times."""
    finished: list[Table] = []
    results = as_printed(results)
    for group in dict.fromkeys(row["group"] for row in results["rows"]):
        rows = [row for row in results["rows"] if row["group"] == group]
        if all("curve" in row for row in rows):
            group_curves = [curve for curve in curves.curves_of(results) if curve.group == group]
            title = TITLES.get(group, group)
            finished += [
                Table(f"{title}: {curve.title}", *curves.table_of(curve), curves.facts(curve)) for curve in group_curves
            ]
            continue
        peers = list(dict.fromkeys(who for row in rows for who in row.get("ratios", {})))
        has_targets = any(row.get("targets") for row in rows)
        header = ["", US, *peers, *(["target"] if has_targets else [])]
        lines = [
            [row["name"], format_ours(row), *(ratio(row, who) for who in peers), *([targets(row)] if has_targets else [])]
            for row in rows
        ]
        finished.append(Table(TITLES.get(group, group), header, lines))
    return finished


def as_printed(results: Result) -> Result:
    """Return results without what is not printed: the targets of a quick run, which times other sizes, and once."""
    rows = [row | {"targets": []} for row in results["rows"]] if results["quick"] else results["rows"]
    return results | {"rows": rows}


def format_ours(row: Result) -> str:
    """Format our time, rate and counts, or the reason why there is no time."""
    if "wrong" in row:
        return "wrong: " + "; ".join(f"{who} {what}" for who, what in row["wrong"].items())
    cells = [duration(row["times"][US]["median"])]
    cells += [rate(row, US)] if rate(row, US) else []
    cells += [f"{n} {what}" for what, n in row["counts"].items()]
    return ", ".join(cells)


def rate(row: Result, who: str) -> str:
    """Format the rate of arithmetic or of memory traffic; empty if it is unknown."""
    if "gflop_per_s" in row:
        gflop_per_s = row["gflop_per_s"][who]
        return f"{gflop_per_s:.0f} GFLOP/s" if gflop_per_s < 1000 else f"{number(gflop_per_s / 1000)} TFLOP/s"
    return f"{number(row['gb_per_s'][who])} GB/s" if "gb_per_s" in row else ""


def compact(results: Result) -> Table:
    """Return all rows in one table of medians, for the end of a long output."""
    results = as_printed(results)
    peers = list(dict.fromkeys(who for row in results["rows"] for who in row.get("ratios", {})))
    lines = []
    for row in results["rows"]:
        ratios = row.get("ratios", {})
        cells = [f"{number(ratios[who]['median'])}x {rate(row, who)}".rstrip() if who in ratios else "" for who in peers]
        lines.append([f"{row['group']} {row['name']}", format_ours(row), *cells, targets(row)])
    return Table("All rows: medians, and the rates of the peers", ["", US, *peers, "target"], lines)


def ratio(row: Result, who: str) -> str:
    """Format a peer's time divided by ours: the median, and the quartiles."""
    spread = row.get("ratios", {}).get(who)
    return f"{number(spread['median'])}x ({number(spread['q1'])} to {number(spread['q3'])})" if spread else ""


def summary(results: Result) -> list[str]:
    """Return lines about machine, date, versions, threads, and how many targets are met."""
    machine, versions, device = results["machine"], results["versions"], results.get("device")
    vectors = [name for name in ("avx512f", "avx2", "sve", "neon") if name in machine["vector_features"]]
    verdicts = [target["met"] for row in results["rows"] for target in row.get("targets", [])]
    lines = [
        f"{results['date'][:10]}, {machine['processor']} ({machine['microarchitecture']}), {machine['cores']} cores"
        + (f", {vectors[0]}" if vectors else "")
    ]
    if device:
        lines.append(
            f"{device['name']}, compute capability {device['compute_capability']}, {device['multiprocessors']} "
            f"multiprocessors, driver {device['driver']}; {device['flushed_mib']} MiB are written before each call"
            + ("; TF32 is off, unless a row names it" if device.get("allows_tf32") is False else "")
        )
    lines.append(", ".join(f"{name} {version}" for name, version in versions.items()))
    if results["threads"]:
        lines.append("threads: " + ", ".join(f"{who} {n}" for who, n in results["threads"].items()))
    load = results["load"]
    if load["before"]:
        lines.append(f"load of the machine in the minute before: {load['before'][0]}, at the end: {load['after'][0]}")
    lines += [f"without {who}: {why}" for who, why in results["missing"].items()]
    lines += [f"{row['name']} without {who}: {why}" for row in results["rows"] for who, why in row.get("broken", {}).items()]
    if results["quick"]:
        return [*lines, "a quick run of smaller sizes than a title says: it shows that the rows work, not how fast"]
    return [*lines, f"targets met: {verdicts.count(True)} of {len(verdicts)}"]


def progress(row: Row, result: Result) -> None:
    """Print a line about a finished row to stderr."""
    peers = ", ".join(f"{who} {number(r['median'])}x" for who, r in result.get("ratios", {}).items())
    line = f"{result['group']:10} {row.name:45} {format_ours(result)}{'; ' * bool(peers)}{peers}"
    if sys.stderr.isatty():
        line = line[: shutil.get_terminal_size().columns - 1]
    print(line, file=sys.stderr, flush=True)
