"""Pictures of training, epoch by epoch: the decision boundary as a heat map, or the confusion matrix, and the gradients."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from minifuse.core.wording import format_count

from . import train_gradients
from .picture import LOAD, OTHER, STORE, Cell, Frame, Grid, Picture
from .train import CELLS, DIGITS, Moment, Run, centers, confusion, look, sentence, share_right

Words = tuple[tuple[str, str], ...]
DRAWN_DIGITS = 2
PLANE_WORDS: Words = ((LOAD, "class 0 is likelier"), (STORE, "class 1 is likelier"), (OTHER, "no number"))
DIGIT_WORDS: Words = ((LOAD, "read right"), (STORE, "misread"), (OTHER, "ink"))


def picture(run: Run, chosen: str | None = None) -> Picture:
    """Draw the decision boundary of a toy set, or the confusion matrix of digits, after each kept epoch and now."""
    now = look(run)
    moments = [*(found for found in run.moments if found.steps != now.steps), now]
    if run.settings.data == DIGITS:
        first, *others = confusion_grids(run, now, chosen)
        words, make_frame = DIGIT_WORDS, confusion_frame
    else:
        first, others = boundary(run, now), []
        words, make_frame = PLANE_WORDS, boundary_frame
    frames = [make_frame(run, found, first) for found in moments]
    if not now.gradients:  # empty lanes would say nothing
        return Picture(frames[-1].sentence, (first, *others), tuple(frames), words, first=len(frames) - 1)
    history = [found.gradients for found in moments]
    drawn = train_gradients.grid(history)
    frames = [add_changes(*pair, drawn) for pair in zip(frames, train_gradients.states(history), strict=True)]
    grids, words = (first, drawn, *others), (*words, *train_gradients.WORDS)
    return Picture(frames[-1].sentence, grids, tuple(frames), words, first=len(frames) - 1)


def add_changes(frame: Frame, state: dict[tuple[int, int], tuple[str, str]], drawn: Grid) -> Frame:
    """Add the gradients of a moment to its step."""
    kinds, texts = train_gradients.changes(drawn, state)
    return replace(frame, kinds=(*frame.kinds, *kinds), texts=(*frame.texts, *texts))


def boundary(run: Run, now: Moment) -> Grid:
    """Draw the square in cells, tinted by the prediction at the center of each, and the points in it."""
    places, inside = centers(), dict[tuple[int, int], list[tuple[int, bool]]]()
    for part, is_test in ((run.train, False), (run.test, True)):
        x, y = (tensor.numpy() for tensor in part)
        for (across, up), which in zip(x, y, strict=True):
            row, column = CELLS - 1 - cell_index(float(up)), cell_index(float(across))
            inside.setdefault((row, column), []).append((int(which), is_test))
    cells = []
    for k, (row, column) in enumerate(np.ndindex(CELLS, CELLS)):
        share, found = float(now.shares[k]), inside.get((row, column), [])
        label = (
            f"x {places[k, 0]:.2f}, y {places[k, 1]:.2f}: class 1 is {share:.0%} likely at last; {describe_points(found)}"
        )
        cells.append(Cell(row, column, signs(found), label, cell_kind(share), (f"c{k}",), tint(share)))
    names = tuple(f"{x:.1f}" for x in places[:CELLS, 0])
    return Grid(
        "boundary", "stronger color: surer; points: ○ class 0, ● class 1", CELLS, CELLS, tuple(cells), names[::-1], names
    )


def boundary_frame(run: Run, found: Moment, grid: Grid) -> Frame:
    """Return the step of an epoch: the kinds and tints that differ from those of the grid, its last state."""
    now = [(cell_kind(float(share)), tint(float(share))) for share in found.shares]
    kinds = tuple((c.links[0], kind) for c, (kind, _) in zip(grid.cells, now, strict=True) if kind != c.kind)
    tints = tuple((c.links[0], deep) for c, (_, deep) in zip(grid.cells, now, strict=True) if deep != c.tint)
    return Frame(sentence(run, found), kinds, tints=tints, numbers=numbers(run, found))


def tint(share: float) -> float:
    """Return how sure a probability of class 1 is of its class: 0 at one half, 1 at 0 and 1."""
    return round(abs(2 * share - 1), 2) if np.isfinite(share) else 0.0


def numbers(run: Run, found: Moment) -> tuple[tuple[str, str], ...]:
    """Return epoch, loss, accuracy and gradients of a moment."""
    loss = ((f"{run.losses[found.epoch - 1]:.3f}", "mean loss"),) if found.epoch else ()
    ratio = train_gradients.first_over_last(found.gradients)
    gradient = ((f"{ratio:.2g}", "gradient, first layer / last"),) if np.isfinite(ratio) else ()
    return (str(found.epoch), "epoch"), *loss, (f"{share_right(run, found):.0%}", "held out, right"), *gradient


def cell_index(x: float) -> int:
    """Return the row or column of the cell of a coordinate."""
    return min(max(int((x + 1) / 2 * CELLS), 0), CELLS - 1)


def cell_kind(share: float) -> str:
    """Return the kind of a cell, by the probability of class 1."""
    return OTHER if not np.isfinite(share) else STORE if share > 0.5 else LOAD


def signs(points: list[tuple[int, bool]]) -> str:
    """Format points as at most two signs, or a number and a sign."""
    classes = [which for which, _ in points]
    if len(classes) <= 2:
        return "".join("○●"[which] for which in classes)
    both = "◐" if len(set(classes)) == 2 else "○●"[classes[0]]
    return f"{len(classes)}{both}"


def describe_points(points: list[tuple[int, bool]]) -> str:
    """Describe the points of a cell."""
    if not points:
        return "no point"
    parts = []
    for key in dict.fromkeys(sorted(points)):
        n = points.count(key)
        parts.append(f"{format_count(n, 'point')} of class {key[0]}{', held out' if key[1] else ''}")
    return "; ".join(parts)


def confusion_grids(run: Run, now: Moment, chosen: str | None = None) -> tuple[Grid, ...]:
    """Draw the confusion matrix of the held-out digits, and some of the digits."""
    matrix, cells = confusion(run, now.read), list[Cell]()
    for actual, predicted in np.ndindex(10, 10):
        n = int(matrix[actual, predicted])
        label = f"{n} of the digit {actual} read as {predicted}"
        kind, text = confusion_kind(actual, predicted, n), str(n) if n else ""
        cells.append(Cell(actual, predicted, text, label, kind, (confusion_link(actual, predicted),)))
    names = tuple(map(str, range(10)))
    grid = Grid("confusion", "row: what it is; column: what it was read as", 10, 10, tuple(cells), names, names)
    return grid, *drawn_digits(run, now.read, chosen)


def confusion_kind(actual: int, predicted: int, count: int) -> str:
    """Return the kind of a cell of the confusion matrix."""
    return "" if not count else LOAD if actual == predicted else STORE


def confusion_frame(run: Run, found: Moment, grid: Grid) -> Frame:
    """Return the step of an epoch: the counts that differ from those of the grid, its last state."""
    matrix = confusion(run, found.read)
    changed = [(c, int(matrix[c.row, c.column])) for c in grid.cells if (c.text or "0") != str(matrix[c.row, c.column])]
    kinds = tuple((c.links[0], confusion_kind(c.row, c.column, n)) for c, n in changed)
    texts = tuple((c.links[0], str(n) if n else "") for c, n in changed)
    return Frame(sentence(run, found), kinds, texts, numbers=numbers(run, found))


def confusion_link(actual: int, predicted: int) -> str:
    """Return the link of a cell of the confusion matrix."""
    return f"is{actual}read{predicted}"


def drawn_digits(run: Run, read: npt.NDArray[np.int64], chosen: str | None) -> list[Grid]:
    """Draw held-out digits of the chosen cell; without one, the first misclassified digits, or the first of all."""
    x, y = (tensor.numpy() for tensor in run.test)
    indices = (
        [k for k in range(len(y)) if confusion_link(int(y[k]), int(read[k])) == chosen]
        or list(np.flatnonzero(read != y))
        or [0]
    )
    return [
        Grid(
            f"digit{n}",
            f"held-out digit {k}: a {y[k]}, read as {read[k]}",
            8,
            8,
            tuple(
                Cell(
                    row,
                    column,
                    str(ink) if ink else "",
                    f"row {row}, column {column}, ink {ink} of 16",
                    OTHER if ink else "",
                )
                for (row, column), ink in np.ndenumerate(np.rint(x[k] * 16).astype(int).reshape(8, 8))
            ),
        )
        for n, k in enumerate(indices[:DRAWN_DIGITS])
    ]
