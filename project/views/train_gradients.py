"""The gradients of a training run: the root mean square of each parameter's gradient, step by step of the replay.

The root mean square does not depend on the size of a parameter, so layers can be compared: gradients that shrink from the
last layer to the first one vanish, and those that grow from epoch to epoch explode.
"""

from collections.abc import Iterator, Sequence
from math import floor, isfinite, log10
from typing import NamedTuple

import numpy as np

import minifuse as mf

from .cited_facts import DERIVED, Fact
from .picture import IDLE, PATH, SHARED, WRONG, Cell, Grid

LOWEST, HIGHEST = -6, 1  # powers of ten: below the first a gradient has vanished, from the last on it has exploded
COLUMNS = HIGHEST - LOWEST + 2
HEADS = (f"<1e{LOWEST}", *(f"1e{k}" for k in range(LOWEST, HIGHEST)), f">={10**HIGHEST}")
WORDS = (
    (SHARED, "gradient of this step"),
    (PATH, "in earlier epochs"),
    (IDLE, f"vanished: below 1e{LOWEST}"),
    (WRONG, f"exploded: from {10**HIGHEST} on"),
)

Place = tuple[int, int]


class Gradient(NamedTuple):
    """The root mean squares of a parameter and of its gradient in the last step."""

    name: str
    rms: float
    weights: float


Gradients = tuple[Gradient, ...]


def parameter_names(model: mf.nn.Module) -> list[str]:
    """Return the names of the parameters by layer, such as "layer 1 weight"."""
    names = [name.rpartition(".") for name, _ in model.named_parameters()]
    layers = list(dict.fromkeys(module for module, *_ in names))
    return [f"layer {layers.index(module) + 1} {name}" for module, _, name in names]


def gradients_of(model: mf.nn.Module) -> Gradients:
    """Return the gradients of the parameters of a model, in the order of its layers; empty before the first step."""
    pairs = zip(parameter_names(model), model.parameters(), strict=True)
    return tuple(
        Gradient(name, root_mean_square(p.grad), root_mean_square(p.detach())) for name, p in pairs if p.grad is not None
    )


def root_mean_square(x: mf.Tensor) -> float:
    """Return the root mean square of the elements, in float64."""
    return float(np.sqrt(np.mean(np.square(x.numpy().astype(np.float64)))))


def column_of(rms: float) -> int:
    """Return the column of a root mean square: one for each power of ten."""
    if not isfinite(rms):
        return COLUMNS - 1
    return min(max(floor(log10(rms)) - LOWEST + 1, 0), COLUMNS - 1) if rms > 0 else 0


def format_rms(rms: float) -> str:
    """Format a root mean square in few characters."""
    return f"{rms:.0e}".replace("e-0", "e-").replace("e+0", "e") if rms and isfinite(rms) else f"{rms:g}"


def states(history: Sequence[Gradients]) -> Iterator[dict[Place, tuple[str, str]]]:
    """Generate for each moment the cells that are not empty: their kinds, and their texts."""
    visited = dict[Place, tuple[str, str]]()
    for gradients in history:
        now = dict[Place, tuple[str, str]]()
        for row, gradient in enumerate(gradients):
            column = column_of(gradient.rms)
            kind = IDLE if column == 0 else WRONG if column == COLUMNS - 1 else SHARED
            now[row, column] = kind, format_rms(gradient.rms)
        yield visited | now
        visited |= dict.fromkeys(now, (PATH, ""))


def grid(history: Sequence[Gradients]) -> Grid:
    """Draw a lane for each parameter, in its last state."""
    *_, last = states(history)
    names = tuple(gradient.name for gradient in history[-1])
    cells = tuple(
        Cell(row, column, text, f"{name}: a gradient of {HEADS[column]}", kind, (link(row, column),))
        for row, name in enumerate(names)
        for column in range(COLUMNS)
        for kind, text in [last.get((row, column), ("", ""))]
    )
    title = "gradients: root mean square of each parameter"
    return Grid("gradients", title, len(names), COLUMNS, cells, names, HEADS)


def link(row: int, column: int) -> str:
    """Return the link of a cell."""
    return f"g{row}.{column}"


def changes(drawn: Grid, state: dict[Place, tuple[str, str]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the kinds and texts of a moment that differ from those of the grid, its last state."""
    now = [(c, *state.get((c.row, c.column), ("", ""))) for c in drawn.cells]
    kinds = [(c.links[0], kind) for c, kind, _ in now if kind != c.kind]
    return kinds, [(c.links[0], text) for c, _, text in now if text != c.text]


def first_over_last(gradients: Gradients) -> float:
    """Return the gradient of the first layer's weights over that of the last layer's; NaN if that is 0 or unknown."""
    weights = [gradient.rms for gradient in gradients if gradient.name.endswith("weight")]
    return weights[0] / weights[-1] if weights and weights[-1] else float("nan")


def facts(gradients: Gradients, epoch: int) -> list[Fact]:
    """Return the gradient of each parameter, and how it changes from the last layer to the first."""
    known = [
        Fact(
            f"gradient of {found.name}",
            f"{found.rms:.2e}",
            DERIVED,
            f"root mean square in the last step, epoch {epoch}; that of the parameter is {found.weights:.2e}",
        )
        for found in gradients
    ]
    if isfinite(ratio := first_over_last(gradients)):
        why = "of the weights; far below 1 from layer to layer, gradients vanish on their way back"
        known.append(Fact("gradient, first layer over last", f"{ratio:.2g}", DERIVED, why))
    return known
