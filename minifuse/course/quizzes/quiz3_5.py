"""Questions on task 3.5: lines of memory, sets of a cache, passes, and indices below 0."""

from random import Random

import numpy as np

from .. import oracle
from ..kernel_groups import count_bytes, nodes_to_compute
from ..scheduled import unfused_cost
from .figures import table
from .question import Question, format_value
from .quiz3_1 import CHAINS

LINE, ITEM = 64, 8  # bytes


def lines_used(addresses: "np.typing.NDArray[np.int64]") -> int:
    """Return the number of lines that reads of float64 at these addresses use."""
    return len(np.unique(addresses // LINE))


def steps(rng: Random) -> Question:
    """Ask how far reads down a column are apart."""
    rows, columns = rng.randint(4, 12), rng.randint(4, 20)
    positions = np.arange(rows * columns).reshape(rows, columns)
    answer = int(np.median(np.diff(positions[:, 0])))
    return Question(
        f"A loop goes down a column of a row-major matrix of shape ({rows}, {columns}). How many elements is one read from "
        "the one before?",
        answer,
        f"The next row begins {columns} elements later, which are {columns * ITEM} bytes. Along a row the steps are 1.",
        {1: "this is along a row", rows: "a row has as many elements as there are columns"},
        drawing=table([("along rows", 1), ("down columns", answer)], ("", "step")),
        numbers={"rows": rows, "columns": columns},
    )


def lines(rng: Random) -> Question:
    """Ask how many lines a walk down a column uses."""
    rows, columns, is_row = rng.choice([8, 16, 24, 32, 40]), rng.choice([8, 16, 24, 32, 64]), rng.random() < 0.4
    positions = np.arange(rows * columns).reshape(rows, columns) * ITEM
    down, along = lines_used(positions[:, 0]), lines_used(positions[0])
    answer = along if is_row else down
    of, length = (f"one row of {columns} elements", columns) if is_row else (f"one column of {rows} elements", rows)
    return Question(
        f"Memory comes in lines of 64 bytes: 8 numbers of float64. A row-major matrix has shape ({rows}, {columns}). How "
        f"many lines does a loop over {of} use?",
        answer,
        f"Along a row a line serves 8 elements: {columns} / 8 = {along}. Down a column each element is in a line of its "
        f"own: {down}.",
        {
            length: "a line serves 8 neighbors",
            (down if is_row else rows // 8): "this is down a column"
            if is_row
            else "neighbors in a column are not in one line",
        }
        if is_row
        else {rows // 8: "neighbors in a column are not in one line", rows * columns // 8: "this is the whole matrix"},
        numbers={"rows": rows, "columns": columns, "row": is_row},
    )


def sets(rng: Random) -> Question:
    """Ask how many sets of a cache a column uses."""
    per_row = rng.choice([8, 16, 32, 64, 128, 33, 65])
    columns = per_row * LINE // ITEM
    used = len(set((ITEM * columns * np.arange(4096) // LINE % 64).tolist()))
    return Question(
        "A cache has 64 sets; the line of an address goes to set (address // 64) % 64. A matrix of float64 has rows of "
        f"{columns} elements, which are {per_row} lines. How many different sets does one column of 4,096 rows use?",
        used,
        f"Row r begins at line {per_row} * r, so its set is ({per_row} * r) % 64: "
        f"{', '.join(str(per_row * r % 64) for r in range(5))}, ... That is {used} of 64 sets, so the lines of a column "
        + ("are spread over the cache." if used == 64 else "push each other out."),
        {
            64 if used < 64 else 1: "steps that divide 64 come back to the same sets"
            if used < 64
            else "an odd step visits all sets",
            per_row: "this is the step from row to row, not the number of sets",
        },
        numbers={"columns": columns},
    )


def passes(rng: Random) -> Question:
    """Ask for the bytes that one loop moves."""
    text, function = rng.choice(list(CHAINS.items()))
    n = rng.choice([100, 1000])
    graph = oracle.function("capture")(function, (1, n), (1, n))
    fused = count_bytes(graph, [frozenset(nodes_to_compute(graph))])
    loops, unfused = unfused_cost(graph)
    return Question(
        f"a and b have {format_value(n)} elements of float64. How many bytes does one loop for {text} move at least, reads "
        "and writes?",
        fused,
        f"It reads each operand once and writes the result once: 3 * {format_value(n)} * 8 = {format_value(fused)}.",
        {
            unfused: "this is a pass over memory for each operator",
            2 * n * ITEM: "the result is written, too",
            3 * n: "an element has 8 bytes",
        },
        drawing=table([(f"{loops} loops", unfused), ("1 loop", fused)], ("", "bytes")),
        numbers={"text": text, "n": n},
    )


def innermost(rng: Random) -> Question:
    """Ask for the step of reads of b in the innermost loop."""
    n, name = rng.choice([30, 50, 64, 100]), rng.choice(["j", "k"])
    b = np.arange(4 * n).reshape(4, n)
    answer = int(np.diff(b[0] if name == "j" else b[:, 0])[0])
    order = "i, k, j" if name == "j" else "i, j, k"
    return Question(
        f"out[i, j] += a[i, k] * b[k, j]; b is row-major and has {n} columns. The loops are nested in the order {order}, "
        "the last one innermost. How many elements does the place in b move with each step of the innermost loop?",
        answer,
        f"The innermost loop changes {name}: "
        + ("b is read along its row, in steps of 1." if name == "j" else f"b is read down its column, in steps of {n}."),
        {
            (n if name == "j" else 1): "b[k, j] is in row k and column j",
            0: f"{name} is an index of b; it changes the place in b",
        },
        drawing=table([("i, k, j", 1), ("i, j, k", n)], ("order", "step in b")),
        numbers={"n": n, "name": name},
    )


def negative(rng: Random) -> Question:
    """Ask what an index of -1 reads."""
    numbers = rng.sample(range(1, 10), 5)
    i = -rng.randint(1, 3)
    return Question(
        f"a is np.array({numbers}), and a compiled loop reads a[{i}]. What does it get?",
        int(np.array(numbers)[i]),
        f"Index {i} counts from the end, in compiled code too: a[5 - {-i}]. So each element that is read with an index "
        "that may be below 0 begins with a question, unless a slice asks it once.",
        {
            numbers[0]: "an index below 0 counts from the end",
            numbers[-i]: f"this is a[{-i}]",
            **({numbers[i + 1]: "-1 is the last element"} if i < -1 else {}),
        },
        numbers={"numbers": numbers, "i": i},
    )


QUESTIONS = (steps, lines, sets, passes, innermost, negative)
