"""Questions on task 4.1: places of a kernel, and the three sums of a convolution."""

from random import Random

import numpy as np

from .. import oracle
from ..engine import Engine
from ..networks import conv1d
from .figures import terms
from .question import Question, Wrong, format_value


def places(xs: list[int], kernel: int, stride: int, padding: int) -> str:
    """Draw an input with its padding, and the places of a kernel below it."""
    cells = [0] * padding + xs + [0] * padding
    width = max(len(str(x)) for x in cells) + 2
    lines = ["input    " + "".join(f"{x:>{width}}" for x in cells)]
    for place in range((len(cells) - kernel) // stride + 1):
        start = place * stride
        lines.append(
            f"place {place:<3}" + " " * (start * width) + f"{'[':>{width - 1}}" + "-" * ((kernel - 1) * width + 1) + "]"
        )
    return "\n".join(lines)


def size(rng: Random) -> Question:
    """Ask for the number of places."""
    width, kernel, stride, padding = rng.randint(5, 9), rng.randint(2, 4), rng.randint(1, 3), rng.randint(0, 2)
    answer = oracle.function("conv_size")(width, kernel, stride, padding)
    return Question(
        f"An input of width {width} meets a kernel of width {kernel}, with stride {stride} and padding {padding}. How many "
        "places are there?",
        answer,
        f"With padding there are {width} + 2 * {padding} = {width + 2 * padding} cells. The last place begins at cell "
        f"{width + 2 * padding - kernel} at most: {width + 2 * padding - kernel} // {stride} + 1 = {answer}.",
        {
            answer - 1: "place 0 is one, too",
            width: "the kernel must fit, and a stride skips places",
            (width + padding - kernel) // stride + 1 if padding else answer + 1: "the padding is on both sides"
            if padding
            else "the kernel would not fit there",
        },
        drawing=places(list(range(1, width + 1)), kernel, stride, padding),
        numbers={"width": width, "kernel": kernel, "stride": stride, "padding": padding},
    )


def begin(rng: Random) -> Question:
    """Ask where a place begins."""
    stride, padding, x = rng.randint(2, 4), rng.randint(1, 3), rng.randint(0, 4)
    answer = oracle.function("position_of")((x,), (stride,), -padding)
    return Question(
        f"With stride {stride} and padding {padding}, at which index of the input does place {x} begin? An index below 0 "
        "is in the padding.",
        answer,
        f"Place x begins at x * stride - padding = {x} * {stride} - {padding} = {answer}.",
        {
            x * stride: "the padding comes before the input",
            x * stride + padding: "the padding moves the place to the left",
            x - padding: "each place is a stride further",
        },
        numbers={"stride": stride, "padding": padding, "x": x},
    )


def drawn(rng: Random) -> tuple[list[int], list[int], int, int]:
    """Draw an input, a kernel, a stride and a padding."""
    xs = [rng.randint(0, 9) for _ in range(rng.randint(5, 6))]
    kernel = rng.choice([[-1, 1], [1, 2], [1, -2, 1], [1, 0, 2], [2, 1, -1], [3, 1]])
    return xs, kernel, rng.choice([1, 1, 2]), rng.choice([0, 1])


def run(xs: list[int], kernel: list[int], stride: int, padding: int) -> tuple[list[float], list[float], list[float]]:
    """Return the output of conv1d, and the gradients of input and kernel where the output is summed."""
    engine = Engine()
    x, w = engine.tensor([[[float(v) for v in xs]]]), engine.tensor([[[float(v) for v in kernel]]])
    y = conv1d(x, w, stride, padding)
    y.sum().backward()
    flat = [np.asarray(values.tolist() if values else []).reshape(-1).tolist() for values in (y, x.grad, w.grad)]
    return flat[0], flat[1], flat[2]


def window(xs: list[int], kernel: list[int], stride: int, padding: int, place: int) -> list[int]:
    """Return the cells that a place sees."""
    cells = [0] * padding + xs + [0] * padding
    return cells[place * stride : place * stride + len(kernel)]


def output(rng: Random) -> Question:
    """Ask for an element of the output."""
    xs, kernel, stride, padding = drawn(rng)
    out, _, _ = run(xs, kernel, stride, padding)
    place = rng.randrange(len(out))
    seen = window(xs, kernel, stride, padding, place)
    wrong: Wrong = {sum(a * b for a, b in zip(seen, kernel[::-1], strict=True)): "the kernel is not flipped"}
    if padding:
        shifted = window(xs, kernel, stride, 0, place)
        wrong[sum(a * b for a, b in zip(shifted, kernel, strict=False))] = "the padding comes before the input"
    if stride > 1 and place:
        beside = window(xs, kernel, 1, padding, place)
        wrong[sum(a * b for a, b in zip(beside, kernel, strict=True))] = "each place is a stride further"
    return Question(
        f"The input {xs} meets the kernel {kernel}, with stride {stride} and padding {padding}. What is output {place}, "
        "counted from 0?",
        int(out[place]),
        f"Place {place} sees {seen}: {terms(list(zip(seen, kernel, strict=True)))} = {format_value(out[place])}.",
        wrong,
        drawing=places(xs, len(kernel), stride, padding),
        numbers={"xs": xs, "kernel": kernel, "stride": stride, "padding": padding, "place": place},
    )


def weight_gradient(rng: Random) -> Question:
    """Ask for the gradient of a weight."""
    xs, kernel, stride, padding = drawn(rng)
    out, _, gradient = run(xs, kernel, stride, padding)
    k = rng.randrange(len(kernel))
    met = [window(xs, kernel, stride, padding, place)[k] for place in range(len(out))]
    return Question(
        f"The input {xs} meets a kernel of {len(kernel)} weights, with stride {stride} and padding {padding}. Each output "
        f"receives 1. What does weight {k}, counted from 0, receive?",
        int(gradient[k]),
        f"The weight receives each input that it met, times the gradient of the output: {' + '.join(map(str, met))} = "
        f"{format_value(gradient[k])}.",
        {
            sum(xs): "at some of the inputs this weight was not laid",
            gradient[(k + 1) % len(kernel)]: f"this is weight {(k + 1) % len(kernel)}",
            len(out): "a weight receives the inputs beside it",
        },
        drawing=places(xs, len(kernel), stride, padding),
        numbers={"xs": xs, "kernel": kernel, "stride": stride, "padding": padding, "k": k},
    )


def input_gradient(rng: Random) -> Question:
    """Ask for the gradient of an input element."""
    xs, kernel, stride, padding = drawn(rng)
    out, gradient, _ = run(xs, kernel, stride, padding)
    i = rng.randrange(len(xs))
    hits = [(x, i - x * stride + padding) for x in range(len(out)) if 0 <= i - x * stride + padding < len(kernel)]
    below = " + ".join(f"({kernel[k]})" if kernel[k] < 0 else str(kernel[k]) for _, k in hits)
    at = ", ".join(f"weight {k} at place {x}" for x, k in hits)
    total = format_value(gradient[i])
    ends = ("No weight was laid on it: it receives 0.", f"It receives the one weight that was laid on it, {at}: {total}.")
    many = f"It receives each weight that was laid on it: {at}. {below} = {total}."
    shifted = sum(kernel[i - x * stride] for x in range(len(out)) if 0 <= i - x * stride < len(kernel))
    wrong: Wrong = {sum(kernel): "not each weight was laid on this element"}
    if padding:
        wrong[shifted] = "the padding is forgotten: i = x * stride + k - padding"
    return Question(
        f"An input of width {len(xs)} meets the kernel {kernel}, with stride {stride} and padding {padding}. Each output "
        f"receives 1. What does input element {i}, counted from 0, receive?",
        int(gradient[i]),
        (*ends, many)[min(len(hits), 2)],
        wrong,
        drawing=places([*range(len(xs))], len(kernel), stride, padding).replace("input ", "index ", 1),
        numbers={"width": len(xs), "kernel": kernel, "stride": stride, "padding": padding, "i": i},
    )


QUESTIONS = (size, begin, output, weight_gradient, input_gradient)
