"""Questions on task 3.2: what a matmul stores, and where places are worked out."""

from itertools import product
from random import Random

from ...core.layout import row_major
from .figures import table
from .question import Question, choose, format_value


def sizes(rng: Random) -> tuple[int, int, int]:
    """Draw M, K and N."""
    m, k, n = rng.sample([10, 20, 30, 40, 50, 100], 3)
    return m, k, n


def removed(rng: Random) -> Question:
    """Ask for the size of the array that fusion removes."""
    m, k, n = sizes(rng)
    products = row_major((m, k, 1)).expand(m, k, n)
    answer = 4 * products.size
    return Question(
        f"a is ({m}, {k}), b is ({k}, {n}), float32. (a[:, :, None] * b[None]).sum(1) makes an array of all products. How "
        "many bytes has it?",
        answer,
        f"Its shape is {products.shape}: {m} * {k} * {n} products of 4 bytes are {format_value(answer)} bytes, for a "
        f"result of {format_value(4 * m * n)}. A fused kernel keeps each product in a register.",
        {
            4 * m * n: "this is the result; the products have a third dim",
            products.size: "these are elements, of 4 bytes each",
            4 * (m * k + k * n): "these are a and b",
        },
        numbers={"m": m, "k": k, "n": n},
    )


def saved_work(rng: Random) -> Question:
    """Ask for the number of multiplications that fusion saves."""
    m, k, n = sizes(rng)
    work = row_major((m, k, n)).size
    rows = [("multiply, then sum", work, work + m * n), ("three loops", work, m * n)]
    return choose(
        rng,
        f"A matmul of ({m}, {k}) and ({k}, {n}) is fused by hand. How many multiplications does that save?",
        "None",
        {
            format_value(work): "every product is still computed",
            format_value(work - m * n): "every product is still computed",
            "Half of them": "every product is still computed, once before and once after",
        },
        "Fusion saves stores and loads, not arithmetic:",
        drawing=table(rows, ("", "multiplications", "numbers stored")),
        numbers={"m": m, "k": k, "n": n},
    )


def places(rng: Random) -> Question:
    """Ask how many places are worked out, by where this is done."""
    m, k, n = rng.sample([2, 3, 4, 5, 6, 10], 3)
    at = rng.choice(["in the innermost loop", "before the innermost loop", "before the loop of columns"])
    counts = {
        "in the innermost loop": 2 * len(list(product(range(m), range(n), range(k)))),
        "before the innermost loop": 2 * len(list(product(range(m), range(n)))),
        "before the loop of columns": 2 * len(range(m)),
    }
    answer = counts.pop(at)
    return Question(
        f"Loops over {m} rows, {n} columns and {k} products make a matmul. Somebody works out a place in a and a place in "
        f"b {at}. How many places is that in all?",
        answer,
        f"The fewer things change in a loop, the less there is to find out in it. A place for each matrix, {at}:",
        {
            answer // 2: "there is a place in a and one in b",
            **{count: f"this would be {other}" for other, count in counts.items()},
        },
        drawing=table([(name, count) for name, count in {**counts, at: answer}.items()], ("where", "places")),
        numbers={"m": m, "k": k, "n": n, "at": at},
    )


def shared_loop(rng: Random) -> Question:
    """Ask which loop cannot be a prange."""
    m, k, n = rng.sample([2, 3, 4, 5], 3)
    names = dict(zip("ijk", (m, n, k), strict=True))
    writers: dict[str, list[set[tuple[int, int]]]] = {
        "i": [{(i, j) for j in range(n)} for i in range(m)],
        "j": [{(i, j) for i in range(m)} for j in range(n)],
        "k": [{(i, j) for i in range(m) for j in range(n)} for _ in range(k)],
    }
    is_safe = {name: not set.intersection(*cells) for name, cells in writers.items()}
    right = next(name for name in "ijk" if not is_safe[name])
    texts = {"i": "the loop over rows i", "j": "the loop over columns j", "k": "the loop over k"}
    meets = [
        (texts[name], names[name], len(set.intersection(*cells)), "no race" if is_safe[name] else "race")
        for name, cells in writers.items()
    ]
    return choose(
        rng,
        f"out[i, j] += a[i, k] * b[k, j], with {m} rows i, {n} columns j and {k} steps k. Which loop cannot be a prange?",
        texts[right],
        {texts[name]: f"iterations of {name} write different elements of out" for name in "ij"}
        | {"none of them": "the steps over k add to the same element"},
        "The steps over k add to the same result, and two threads would update it at once. Elements of out that all "
        "iterations write:",
        drawing=table(meets, ("loop", "iterations", "elements in common", "")),
        numbers={"m": m, "k": k, "n": n, "right": right},
    )


def batch(rng: Random) -> Question:
    """Ask for the strides of an operand with a batch of 1."""
    count, rows, columns = rng.sample([2, 3, 4, 5, 6], 3)
    view = row_major((1, rows, columns)).expand(count, rows, columns)
    return Question(
        f"out is a batch of {count} matrices; the row-major operand a has shape (1, {rows}, {columns}). Which "
        f"strides does a have, as a tensor of shape ({count}, {rows}, {columns})?",
        view.strides,
        f"a has only one matrix, so its stride along the batch is 0. Within the matrix nothing changes: {view.strides}.",
        {
            row_major((count, rows, columns)).strides: "all matrices of the batch read the same one",
            (0, 1, rows): "within a matrix nothing changes",
        },
        numbers={"count": count, "rows": rows, "columns": columns},
    )


QUESTIONS = (removed, saved_work, places, shared_loop, batch)
