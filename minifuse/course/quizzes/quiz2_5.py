"""Questions on task 2.5: a network of tensors."""

from math import prod
from random import Random

import numpy as np

from .. import oracle
from ..engine import Engine
from .figures import align, table
from .question import Question, format_value


def parameters(rng: Random) -> Question:
    """Ask for the number of learned elements."""
    inputs, hidden = rng.randint(2, 4), rng.randint(3, 12)
    network = oracle.function("TensorNetwork")(Engine(), inputs, hidden, Random(0))
    shapes = [p.value.shape for p in network.parameters()]
    answer = sum(prod(shape) for shape in shapes)
    return Question(
        f"How many numbers does TensorNetwork(engine, inputs={inputs}, hidden={hidden}, random) learn, all parameters "
        "together?",
        answer,
        f"Shapes {', '.join(map(str, shapes))}: {' + '.join(str(prod(shape)) for shape in shapes)} = {answer}.",
        {
            len(shapes): "this is the number of tensors, not of their elements",
            inputs * hidden + hidden: "the biases, or the last layer, are left out",
            answer - 1: "the output has a bias, too",
        },
        numbers={"inputs": inputs, "hidden": hidden},
    )


def hidden_shape(rng: Random) -> Question:
    """Ask for the shape of the hidden layer."""
    n, inputs, hidden = rng.choice([16, 80, 100]), rng.randint(2, 4), rng.randint(5, 12)
    engine = Engine()
    layer = oracle.function("TensorLinear")(engine, inputs, hidden, Random(0))
    answer = layer(engine.constant(np.zeros((n, inputs)).tolist())).value.shape
    return Question(
        f"{n} points with {inputs} numbers each go through TensorLinear(engine, {inputs}, {hidden}, random). Which shape "
        "has the result?",
        answer,
        f"xs ({n}, {inputs}) @ weights ({inputs}, {hidden}) + biases ({hidden},): a row for each point, a column for each "
        "unit.",
        {
            answer[::-1]: "a row is a point",
            (hidden,): "each point has its own row",
            (n, inputs): "the layer turns inputs into units",
        },
        drawing=align(answer, (hidden,), result=answer),
        numbers={"n": n, "inputs": inputs, "hidden": hidden},
    )


def labels(rng: Random) -> Question:
    """Ask for the shape of outputs - labels when the shapes differ."""
    n = rng.choice([4, 10, 16, 100])
    answer = oracle.function("broadcast_shape")((n, 1), (n,))
    return Question(
        f"outputs have shape ({n}, 1), and somebody passes labels of shape ({n},). Which shape has outputs - labels?",
        answer,
        f"Aligned at the last dim, 1 meets {n} and nothing meets {n}. Nothing complains, each output meets the label of "
        "every point, and the network learns nothing:",
        {(n, 1): "shapes are aligned at the last dim", (n,): "shapes are aligned at the last dim"},
        drawing=align((n, 1), (n,), result=answer),
        numbers={"n": n},
    )


def bias_gradient(rng: Random) -> Question:
    """Ask for the gradient of a bias, which every row receives."""
    n, hidden, d = rng.randint(3, 20), rng.randint(2, 4), rng.choice([0.5, 1.0, 2.0])
    engine = Engine()
    layer = oracle.function("TensorLinear")(engine, 2, hidden, Random(0))
    engine.backward(layer(engine.constant([[1.0, 1.0]] * n)), np.full((n, hidden), d).tolist())
    gradients = [p.grad for p in layer.parameters()]
    answer = float(np.asarray(gradients[1].tolist())[0])
    return Question(
        f"{n} points go through TensorLinear with {hidden} outputs. Each element of the ({n}, {hidden}) result receives "
        f"{d}. What does each bias receive?",
        answer,
        f"The biases were broadcast to every row, so each receives the sum over {n} rows: {n} * {d} = "
        f"{format_value(answer)}.",
        {d: "a bias is used in every row", hidden * d: "a bias is used once in each row, not in each column"},
        numbers={"n": n, "hidden": hidden, "d": d},
    )


def calls(rng: Random) -> Question:
    """Ask how the number of calls grows with the number of points."""
    n = rng.choice([2, 4, 8])
    counts = {}
    for kind in ("scalar", "tensor"):
        for many in (n, 2 * n):
            engine = Engine()
            points, kinds = [[k / many, 1 - k / many] for k in range(many)], [k % 2 for k in range(many)]
            oracle.function(f"train_{kind}_network")(engine, points, kinds, 1, 0)
            counts[kind, many] = engine.share().lent_calls
    return Question(
        f"A step of the network of tensors takes {counts['tensor', n]} calls of your functions for {n} points. How many "
        f"does it take for {2 * n} points?",
        counts["tensor", 2 * n],
        "All points go through each call together, so the number of points does not matter:",
        {
            2 * counts["tensor", n]: "a call does all points at once",
            counts["scalar", 2 * n]: "this is what the network of numbers takes",
        },
        drawing=table(
            [(kind, counts[kind, n], counts[kind, 2 * n]) for kind in ("scalar", "tensor")],
            ("network", f"{n} points", f"{2 * n} points"),
        ),
        numbers={"n": n, "counts": counts["tensor", n]},
    )


QUESTIONS = (parameters, hidden_shape, labels, bias_gradient, calls)
