"""Questions on task 6.3: parts of weights, and what is sent."""

from random import Random

from .question import Question, choose


def part(rng: Random) -> Question:
    """Ask for the shape of a rank's part of the first weight."""
    size, inputs = rng.choice([2, 4, 8]), rng.choice([24, 40, 56])
    hidden = size * rng.choice([16, 32, 64])
    return Question(
        f"w1 has shape ({inputs}, {hidden}), and {size} ranks share its columns. Which shape has the part of a rank?",
        (inputs, hidden // size),
        f"All rows, and {hidden} / {size} = {hidden // size} columns.",
        {
            (inputs // size, hidden): "these are rows",
            (inputs // size, hidden // size): "only one dim is cut",
        },
        numbers={"size": size, "inputs": inputs, "hidden": hidden},
    )


def second_part(rng: Random) -> Question:
    """Ask for the shape of a rank's part of the second weight."""
    size, outputs = rng.choice([2, 4, 8]), rng.choice([24, 40, 56])
    hidden = size * rng.choice([16, 32, 64])
    return Question(
        f"w1 is cut by columns. w2, of shape ({hidden}, {outputs}), is cut so that no hidden value has to travel. With "
        f"{size} ranks, which shape has a part?",
        (hidden // size, outputs),
        f"By rows: those of the {hidden // size} hidden values that the rank has.",
        {
            (hidden, outputs // size): "by columns, each rank would need all hidden values",
            (hidden // size, outputs // size): "only one dim is cut",
        },
        numbers={"size": size, "hidden": hidden, "outputs": outputs},
    )


def elements(rng: Random) -> Question:
    """Ask for the number of elements that are summed forward."""
    size, batch = rng.choice([2, 4, 8]), rng.choice([5, 10, 20])
    inputs, hidden, outputs = rng.choice([8, 16]), rng.choice([64, 128]), rng.choice([10, 30])
    return Question(
        f"{size} ranks share two layers, {inputs} to {hidden} by columns and {hidden} to {outputs} by rows. x has {batch} "
        "rows. How many elements has the array that is all-reduced in the forward pass?",
        batch * outputs,
        f"A term of y has {batch} * {outputs} elements.",
        {
            batch * hidden: "hidden values do not travel",
            batch * inputs: "this is the all-reduce of the backward pass",
            batch * outputs // size: "a term is as large as the whole y",
        },
        numbers={"batch": batch, "outputs": outputs, "inputs": inputs, "hidden": hidden, "size": size},
    )


def bias(rng: Random) -> Question:
    """Ask for y if the bias is added on each rank."""
    size, sum_, b = rng.choice([2, 4, 8]), rng.randint(1, 50), rng.randint(2, 9)
    return Question(
        f"The terms of {size} ranks add up to {sum_}, and the bias is {b}. What is the result if each rank adds the bias to "
        "its term before the all-reduce?",
        sum_ + size * b,
        f"The sum has the bias {size} times: {sum_} + {size} * {b} = {sum_ + size * b}.",
        {sum_ + b: "this is the right result: the bias is added after the sum", size * (sum_ + b): "terms are different"},
        numbers={"size": size, "sum": sum_, "bias": b},
    )


def sums(rng: Random) -> Question:
    """Ask for the number of all-reduces of a network."""
    blocks = rng.randint(2, 12)
    return Question(
        f"A network has {blocks} blocks of two layers, each divided as on this page. How many all-reduces has a training "
        "step, forward and backward together, if the gradient of x is needed in each block?",
        2 * blocks,
        f"One forward and one backward for each block: 2 * {blocks}.",
        {4 * blocks: "two layers share them", blocks: "the gradient of x is summed, too"},
        numbers={"blocks": blocks},
    )


def direction(rng: Random) -> Question:
    """Ask what the copy before the columns does backward."""
    size = rng.choice([2, 4, 8])
    return choose(
        rng,
        f"The input x is the same on {size} ranks, and each multiplies it by its columns. What does this copy do in the "
        "backward pass?",
        "it sums the gradients of all ranks",
        {
            "it returns the gradient as it is": "that is what the sum after the rows does",
            "it takes the mean of the gradients": "a value that is used several times receives the sum",
            "it gathers the columns of the gradient": "each rank's gradient has all elements of x",
        },
        f"x was used {size} times. Each use sends a gradient back, and they are added.",
        numbers={"size": size},
    )


QUESTIONS = (part, second_part, elements, bias, sums, direction)
