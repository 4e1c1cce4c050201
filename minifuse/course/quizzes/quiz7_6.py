"""Questions on task 7.6: scales, codes, errors, bytes, and overflow."""

from random import Random

from .question import Question


def code(rng: Random) -> Question:
    """Ask for the code of a weight."""
    step, answer = rng.choice([1, 2, 4]), rng.randint(5, 100)
    other = answer * step + (step // 2 - 1 if step > 2 else 0)
    largest = 127 * step
    return Question(
        f"The largest weight of a row is {largest}. What is the code of the weight {-other}?",
        -answer,
        f"The scale is {largest} / 127 = {step}, and {-other} / {step} rounds to {-answer}.",
        {answer: "a code has the sign of its weight", -other * 127: "divide by the scale"},
        numbers={"largest": largest, "weight": -other},
    )


def error(rng: Random) -> Question:
    """Ask for the largest error of a row."""
    step = rng.choice([2, 4, 6, 10])
    return Question(
        f"The largest weight of a row is {127 * step}. By how much does a weight of this row change at most?",
        step / 2,
        f"A step is {step}, and rounding moves by at most half a step.",
        {float(step): "rounding goes to the nearest code", 0.5: "this is the error of a code"},
        numbers={"largest": 127 * step},
    )


def half(rng: Random) -> Question:
    """Ask for the code of a half."""
    low = rng.randint(1, 60)
    answer = low + low % 2
    return Question(
        f"A weight is {low}.5 steps. What is its code?",
        answer,
        f"A half goes to the even one of {low} and {low + 1}.",
        {low + 1 - low % 2: "a half goes to the even neighbor"},
        numbers={"weight": low + 0.5},
    )


def nbytes(rng: Random) -> Question:
    """Ask for the bytes of quantized weights."""
    rows, columns = rng.choice([64, 100, 256]), rng.choice([50, 200, 512])
    answer = rows * columns + 8 * rows
    return Question(
        f"Weights have {rows} rows and {columns} columns. How many bytes do codes of int8 take, with "
        "a scale of float64 for each row?",
        answer,
        f"{rows} * {columns} codes of 1 byte, and {rows} scales of 8.",
        {
            rows * columns + 8: "each row has a scale",
            rows * columns + 8 * columns: "rows have scales, not columns",
            8 * rows * columns: "a code has 1 byte",
        },
        numbers={"rows": rows, "columns": columns},
    )


def overflow(rng: Random) -> Question:
    """Ask for a product in int8."""
    a, b = rng.randint(12, 60), rng.randint(12, 60)
    return Question(
        f"Two codes are {a} and {b}. What is their product in int8, where sums and products wrap around?",
        (a * b + 128) % 256 - 128,
        f"{a} * {b} = {a * b}; multiples of 256 are lost, and the range is -128 to 127.",
        {a * b: "int8 ends at 127", 127: "it wraps around, it does not stop at the end"},
        numbers={"a": a, "b": b},
    )


QUESTIONS = (code, error, half, nbytes, overflow)
