"""Plot a training run: the loss of each step, its mean in each epoch, and the metric on held-out data."""

import io
from collections.abc import Sequence

from ..core.errors import MissingPartError
from .recipe import Recipe
from .records import LogLine

BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"  # distinguishable with color blindness
SIZE, DPI = (7.0, 4.2), 120  # inches; pixels per inch


def draw_curves(lines: Sequence[LogLine], recipe: Recipe) -> bytes:
    """Plot a log, and return the picture as PNG bytes.

    Raises
    ------
    MissingPartError
        matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPartError(
            'curves need matplotlib, which is not installed; run: pip install "minifuse[train]"'
        ) from None
    steps = [line for line in lines if "loss" in line]
    metric = recipe.target
    metrics = [(line["step"], line["held_out"][metric]) for line in lines if metric in line.get("held_out", ())]
    figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")
    axes = figure.add_subplot()
    axes.plot([x["step"] for x in steps], [x["loss"] for x in steps], color=BLUE, alpha=0.35, linewidth=0.8, label="loss")
    epochs: dict[int, list[LogLine]] = {}
    for x in steps:
        epochs.setdefault(x["epoch"], []).append(x)
    means = [(group[-1]["step"], sum(x["loss"] for x in group) / len(group)) for group in epochs.values()]
    if len(means) > 1:
        axes.plot(*zip(*means, strict=True), color=BLUE, linewidth=1.8, label="mean loss of an epoch")
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    metric_axes = axes.twinx() if metrics and metric != "loss" else axes
    if metrics:
        metric_axes.plot(*zip(*metrics, strict=True), color=VERMILLION, linestyle="--", label=f"{metric}, held out")
    handles, labels = axes.get_legend_handles_labels()
    if metric_axes is not axes:
        metric_axes.set_ylabel(f"{metric} on held-out data")
        more_handles, more_labels = metric_axes.get_legend_handles_labels()
        handles, labels = handles + more_handles, labels + more_labels
    axes.legend(handles, labels, frameon=False)
    axes.set_title(f"{recipe.name}: {recipe.about}", fontsize=10, loc="left")
    png = io.BytesIO()
    figure.savefig(png, format="png")
    return png.getvalue()
