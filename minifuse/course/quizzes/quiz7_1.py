"""Questions on task 7.1: rows of a table, their gradients, and the output layer."""

from random import Random

from .question import Question


def row_gradient(rng: Random) -> Question:
    """Ask for the gradient of a row that is used several times."""
    row = rng.randint(0, 4)
    ids = [row, row, *rng.sample([k for k in range(5) if k != row], 2)]
    rng.shuffle(ids)
    gradient = rng.sample(range(1, 10), 4)
    uses = [g for k, g in zip(ids, gradient, strict=True) if k == row]
    return Question(
        f"A table has 5 rows of one number. embed is called with ids {ids}, and the gradient of its result is {gradient}. "
        f"What is the gradient of row {row} of the table?",
        sum(uses),
        f"The row is used twice, so its gradients add up: {uses[0]} + {uses[1]} = {sum(uses)}.",
        {uses[1]: "this is the gradient of the last use alone", uses[0]: "this is the gradient of the first use alone"},
        numbers={"row": row, "ids": ids, "gradient": gradient},
    )


def one_hot(rng: Random) -> Question:
    """Ask for the size of a one-hot matrix."""
    count, width, length = rng.choice([1000, 5000, 50000]), rng.choice([64, 256]), rng.choice([16, 100, 128])
    return Question(
        f"A table has {count:,} rows of {width} numbers. How many elements has the one-hot matrix for {length} ids?",
        count * length,
        f"It has a row for each id and a column for each row of the table: {length} * {count:,} = {count * length:,}. "
        f"Selecting rows writes {length * width:,} elements.",
        {length * width: "this is the size of the result", count * width: "this is the size of the table"},
        numbers={"count": count, "length": length},
    )


def zero_rows(rng: Random) -> Question:
    """Ask for the number of rows without a gradient."""
    count = rng.randint(8, 20)
    few = rng.sample(range(count), rng.randint(2, 4))
    ids = [*few, few[0], few[1]]
    rng.shuffle(ids)
    return Question(
        f"A table has {count} rows. A loss depends on embed(table, {ids}). How many rows of the table's gradient are all 0, "
        "whatever the loss is?",
        count - len(few),
        f"The ids are of {len(few)} different rows; the other {count - len(few)} are not used.",
        {count - len(ids): "an id that occurs twice is one row", len(few): "these rows are used"},
        numbers={"count": count, "ids": ids},
    )


def tied_parameters(rng: Random) -> Question:
    """Ask how many parameters a tied table saves."""
    count, width, longest = rng.choice([100, 1000, 32000]), rng.choice([32, 64, 512]), rng.choice([128, 1024])
    return Question(
        f"A network has {count:,} tokens, width {width} and at most {longest} places. How many parameters fewer does it "
        "have if its output layer shares the table of the first layer?",
        count * width,
        f"The output layer would have a table of its own, {count:,} * {width} = {count * width:,}.",
        {2 * count * width: "one of the two tables stays", longest * width: "positions are another table"},
        numbers={"count": count, "width": width},
    )


def scores_shape(rng: Random) -> Question:
    """Ask for the shape of the scores."""
    batch, length, width, count = rng.randint(2, 9), rng.randint(10, 20), rng.randint(21, 30), rng.randint(50, 99)
    return Question(
        f"x has shape ({batch}, {length}, {width}), the table ({count}, {width}). What is the shape of unembed(x, table)?",
        (batch, length, count),
        f"Each of {batch} * {length} vectors gets a score for each of the {count} rows.",
        {(batch, length, width): "this is the shape of x", (batch, count): "each place has scores of its own"},
        numbers={"x": (batch, length, width), "table": (count, width)},
    )


QUESTIONS = (row_gradient, one_hot, zero_rows, tied_parameters, scores_shape)
