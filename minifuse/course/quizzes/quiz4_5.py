"""Questions on task 4.5: shapes in a network of digits, its loss, and what is counted."""

import math
from math import prod
from random import Random

import numpy as np

from .. import oracle
from ..engine import Engine
from ..networks import conv2d, max_pool
from .figures import table
from .question import Question, format_value


def layers(n: int, size: int, kernels: int, kernel: int, window: int) -> list[tuple[int, ...]]:
    """Return the shapes of images, of their convolution, and of its pooling."""
    engine = Engine()
    images = engine.constant(np.zeros((n, 1, size, size)).tolist())
    seen = conv2d(images, engine.tensor(np.zeros((kernels, 1, kernel, kernel)).tolist()))
    return [tuple(x.value.shape) for x in (images, seen, max_pool(seen, (window, window)))]


def shape(rng: Random) -> Question:
    """Ask for the shape after convolution and pooling."""
    n, size, kernels, kernel, window = (
        rng.choice([1, 2, 4]),
        rng.choice([8, 9, 10]),
        rng.randint(3, 8),
        rng.choice([2, 3]),
        2,
    )
    images, seen, answer = layers(n, size, kernels, kernel, window)
    return Question(
        f"Images of shape {images} go through conv2d with {kernels} kernels of {kernel} x {kernel}, then max_pool with "
        f"windows of {window} x {window} side by side. Which shape has the result?",
        answer,
        f"A kernel has {size} - {kernel} + 1 = {seen[2]} places along each dim, and {seen[2]} // {window} = {answer[2]} "
        "windows:",
        {
            (n, kernels, size // 2, size // 2): "without padding a kernel has fewer places than there are pixels",
            (n, 1, *answer[2:]): "there is a channel for each kernel",
            seen: "pooling keeps one number of each window",
        },
        drawing=table([("images", images), ("conv2d", seen), ("max_pool", answer)]),
        numbers={"n": n, "size": size, "kernels": kernels, "kernel": kernel},
    )


def first_loss(rng: Random) -> Question:
    """Ask for the loss of a network that knows nothing, as a power of e."""
    kinds, n = rng.choice([2, 4, 5, 10, 20]), rng.choice([1, 4, 16])
    engine = Engine()
    likely = engine.tensor([[math.log(1 / kinds)] * kinds] * n)
    loss = oracle.function("digit_loss")(likely, [k % kinds for k in range(n)]).item()
    answer = round(math.exp(loss), 6)
    return Question(
        f"A network that knows nothing says the same probability for each of {kinds} kinds. For {n} "
        f"{'image' if n == 1 else 'images'}, its loss is log(?). Which number is it?",
        answer,
        f"The loss is the mean of -log(1 / {kinds}) = log({kinds}) = {loss:.3f}, for any number of images. For ten digits "
        f"it begins near {math.log(10):.1f}.",
        {
            1 / kinds: "the loss is minus the logarithm of the probability",
            2 * kinds: "the loss is a mean, and the labels do not matter here",
            0: "a loss of log(1) = 0 is that of a network that is always sure and right",
        },
        tolerance=1e-4,
        numbers={"kinds": kinds, "n": n},
    )


def counted(rng: Random) -> Question:
    """Ask how many digits are read right."""
    likely = [[round(-rng.uniform(0.1, 4), 1) for _ in range(3)] for _ in range(5)]
    labels = [rng.randint(0, 2) for _ in range(5)]
    answer = oracle.function("count_right")(Engine().tensor(likely), labels)
    reads = [int(np.argmax(row)) for row in likely]
    rows = [
        (*row, label, read, "right" if read == label else "wrong")
        for row, label, read in zip(likely, labels, reads, strict=True)
    ]
    return Question(
        "A network returns these log-probabilities of the kinds 0, 1 and 2 for five images. How many does it read right?",
        answer,
        "The kind with the largest log-probability, the one closest to 0, is what the network reads:",
        {
            sum(
                int(np.argmin(row)) == label for row, label in zip(likely, labels, strict=True)
            ): "the largest logarithm is the one closest to 0",
            5 - answer: "these are the wrong ones",
        },
        figure=table([(*row, label) for row, label in zip(likely, labels, strict=True)], ("0", "1", "2", "label")),
        drawing=table(rows, ("0", "1", "2", "label", "reads", "")),
        numbers={"likely": likely, "labels": labels},
    )


def parameters(rng: Random) -> Question:
    """Ask for the number of parameters of the network of the page, with other sizes."""
    kernels, kernel, rest = rng.randint(2, 8), rng.choice([2, 3]), rng.choice([2, 3])
    engine = Engine()
    tensors = [engine.tensor(np.zeros(s).tolist()) for s in ((kernels, 1, kernel, kernel), (10, kernels, rest, rest), (10,))]
    shapes = [p.value.shape for p in tensors]
    answer = sum(map(prod, shapes))
    return Question(
        f"A network has {kernels} kernels of {kernel} x {kernel} for one channel, then ten kernels as large as what they "
        f"see, {kernels} channels of {rest} x {rest}, and ten biases. How many numbers does it learn?",
        answer,
        f"{' + '.join(format_value(prod(s)) for s in shapes)} = {format_value(answer)}.",
        {
            answer - 10: "the biases are learned, too",
            prod(shapes[0]) + 10 * rest * rest + 10: "each of the ten kernels has a part for each channel",
        },
        drawing=table([(s, prod(s)) for s in shapes], ("shape", "elements")),
        numbers={"kernels": kernels, "kernel": kernel, "rest": rest},
    )


def relu(rng: Random) -> Question:
    """Ask for the work of relu after pooling."""
    n, size, kernels, window = rng.choice([1, 2]), rng.choice([6, 8, 10]), rng.randint(2, 6), 2
    _, seen, pooled = layers(n, size, kernels, 3, window)
    answer = prod(pooled)
    return Question(
        f"A convolution has a result of shape {seen}. relu after max_pool with windows of 2 x 2 returns the same as relu "
        "before it. For how many elements is relu computed after pooling?",
        answer,
        f"After pooling the shape is {pooled}: {answer} elements in place of {prod(seen)}, a quarter. relu keeps the order "
        "of numbers, so the largest of a window stays the largest.",
        {prod(seen): "this is before pooling", prod(seen) // 2: "a window of 2 x 2 has four elements"},
        numbers={"n": n, "size": size, "kernels": kernels},
    )


def always(rng: Random) -> Question:
    """Ask for the accuracy of a network that always says the same."""
    counts = rng.sample(range(10, 40), 4)
    counts[0] += (-sum(counts)) % 20
    unseen = sum(counts)
    kinds = [kind for kind, count in enumerate(counts) for _ in range(count)]
    most = max(range(4), key=kinds.count)
    likely = Engine().tensor([[-0.1 if k == most else -3.0 for k in range(4)]] * unseen)
    answer = round(100 * oracle.function("count_right")(likely, kinds) / unseen, 6)
    return Question(
        f"{unseen} images that a network has not seen show the kinds 0 to 3, this often: {counts}. It always says {most}. "
        "How many percent does it get right?",
        answer,
        f"{counts[most]} of {unseen} = {format_value(answer)} %. A network has learned something only if it does better.",
        {
            25.0: "the kinds are not equally frequent",
            100 - answer: "these are wrong",
            0.0: "it is right for one of the kinds",
        },
        tolerance=0.6,
        numbers={"counts": counts},
    )


QUESTIONS = (shape, first_loss, counted, parameters, relu, always)
