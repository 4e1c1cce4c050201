"""Questions on task 7.3: masks, scales, heads, and sums that are corrected."""

from random import Random

from .question import Question, choose


def seen(rng: Random) -> Question:
    """Ask how many keys a query sees."""
    columns = rng.randint(6, 12)
    rows = rng.randint(2, columns - 2)
    i = rng.randint(0, rows - 2)
    return Question(
        f"causal_mask({rows}, {columns}): the queries are the last {rows} of {columns} places. How many keys does query {i} "
        "see, counted from 0?",
        columns - rows + i + 1,
        f"It is at place {columns} - {rows} + {i} = {columns - rows + i}, and sees places 0 to {columns - rows + i}.",
        {i + 1: "the queries are the last places, not the first", columns - rows + i: "a query sees its own place too"},
        numbers={"rows": rows, "columns": columns, "i": i},
    )


def scores_bytes(rng: Random) -> Question:
    """Ask for the size of all scores."""
    heads, length, width = rng.choice([4, 8, 12]), rng.choice([256, 1024, 2048]), rng.choice([32, 64])
    return Question(
        f"{heads} heads of width {width} attend over {length:,} places, in float32. How many bytes have all their scores?",
        4 * heads * length**2,
        f"{heads} * {length:,} * {length:,} scores of 4 bytes: {4 * heads * length**2:,}. The queries of all heads have "
        f"{heads} * {length:,} * {width} * 4 = {4 * heads * length * width:,}.",
        {
            4 * heads * length * width: "these are the queries",
            heads * length**2: "a float32 has 4 bytes",
            4 * length**2: "each head has scores of its own",
        },
        numbers={"heads": heads, "length": length},
    )


def scale(rng: Random) -> Question:
    """Ask for a score."""
    width, root = rng.choice([(4, 2), (9, 3), (16, 4)])
    q, k = [[rng.choice([-1, 1, 2]) for _ in range(4)] for _ in range(2)]
    q[0], k[0] = 2, 3
    dot = sum(a * b for a, b in zip(q, k, strict=True))
    if dot == 0:
        k[0], dot = 5, 4
    more = f" The other {width - 4} numbers of q are 0." if width > 4 else ""
    return Question(
        f"Heads have the width {width}. q begins with {q}, and k with {k}.{more} What is the score of this query for this "
        "key?",
        dot / root,
        f"The dot product is {dot}; it is divided by sqrt({width}) = {root}.",
        {dot: "divided by the root of the width", dot / width: "the root of the width, not the width"},
        tolerance=1e-3,
        numbers={"q": q + [0] * (width - 4), "k": k + [0] * (width - 4)},
    )


def head_index(rng: Random) -> Question:
    """Ask where an element of a head comes from."""
    heads, width = rng.choice([2, 4, 8]), rng.randint(9, 16)
    head, column = rng.randint(1, heads - 1), rng.randint(0, width - 1)
    return Question(
        f"x has shape (10, {heads * width}) and is split into {heads} heads. Element [{head}, 5, {column}] of the result is "
        "x[5, c]. What is c?",
        head * width + column,
        f"Heads are beside each other, {width} columns each: {head} * {width} + {column} = {head * width + column}.",
        {column * heads + head: "heads are not interleaved", column: "this is the column in the first head"},
        numbers={"heads": heads, "width": width, "head": head, "column": column},
    )


def repaired(rng: Random) -> Question:
    """Ask for a sum that is corrected for a larger score."""
    first = [0, -rng.randint(1, 2)]
    rise = rng.randint(1, 3)
    second = [rise, rise - 1]
    before, added = sum(2.0**x for x in first), 1.5
    return Question(
        f"A stream uses 2 ** x in place of exp(x). The first block has the scores {first}, the second one {second}. What is "
        "the sum of the weights after both, relative to the largest score?",
        before * 2.0**-rise + added,
        f"After the first block the sum is {before}, relative to 0. The largest score becomes {rise}: {before} * "
        f"2 ** -{rise} + {added} = {before * 2.0**-rise + added}.",
        {before + added: "the first sum is relative to a smaller score", before * 2.0**rise + added: "it becomes smaller"},
        tolerance=1e-3,
        numbers={"first": first, "second": second},
    )


def why_infinity(rng: Random) -> Question:
    """Ask what the exponential of a hidden score is."""
    row = [rng.randint(-5, 5) for _ in range(3)]
    return choose(
        rng,
        f"The scores of a row are {row}, and the last one is hidden: where(mask, scores, -inf). What is exp of it, after "
        "the largest of the others is subtracted?",
        "0, which adds nothing to the sum",
        {
            "nan, since -inf is no number": "-inf less a number is -inf; only -inf less -inf is nan",
            "a very small number above 0": "exp(-inf) is 0 exactly",
            "1, as for the largest": "the hidden score is not the largest",
        },
        "exp(-inf) is 0. Only in a row that is hidden as a whole is the largest score -inf too.",
        numbers={"row": row},
    )


QUESTIONS = (seen, scores_bytes, scale, head_index, repaired, why_infinity)
