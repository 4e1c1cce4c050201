"""Questions on task 4.2: places in two dims, work, and kernels that find edges."""

from math import prod
from random import Random

import numpy as np

from .. import oracle
from ..cases import fresh
from ..engine import Engine
from ..networks import conv2d
from .figures import matrix, terms
from .question import Question, format_value


def shape(rng: Random) -> Question:
    """Ask for rows and columns of places."""
    rows, columns, kernel = rng.randint(4, 7), rng.randint(5, 9), (rng.randint(1, 3), rng.randint(2, 3))
    stride, padding = (rng.randint(1, 2), rng.randint(1, 3)), (rng.randint(0, 1), rng.randint(0, 2))
    engine = Engine()
    x, w = engine.constant(np.zeros((1, 1, rows, columns)).tolist()), engine.tensor(np.zeros((1, 1, *kernel)).tolist())
    answer = tuple(conv2d(x, w, stride, padding).value.shape[2:])
    conv_size = oracle.function("conv_size")
    swapped = conv_size(rows, kernel[0], stride[1], padding[1]), conv_size(columns, kernel[1], stride[0], padding[0])
    return Question(
        f"An image of {rows} rows and {columns} columns meets a kernel of {kernel[0]} x {kernel[1]}, with stride {stride} "
        f"and padding {padding}. How many places are there, as (rows, columns)?",
        answer,
        f"Each dim has a rule of its own. Rows: ({rows} + 2 * {padding[0]} - {kernel[0]}) // {stride[0]} + 1 = "
        f"{answer[0]}. Columns: ({columns} + 2 * {padding[1]} - {kernel[1]}) // {stride[1]} + 1 = {answer[1]}.",
        {
            swapped: "stride and padding of rows come first",
            (answer[0] - 1, answer[1] - 1): "place 0 is one, too",
        },
        numbers={"image": (rows, columns), "kernel": kernel, "stride": stride, "padding": padding},
    )


def corner(rng: Random) -> Question:
    """Ask which row and column a place begins at."""
    stride, padding = (rng.randint(1, 3), rng.randint(1, 3)), (rng.randint(0, 2), rng.randint(0, 2))
    y, x = rng.randint(1, 3), rng.randint(1, 3)
    position_of = oracle.function("position_of")
    answer = (position_of((y,), (stride[0],), -padding[0]), position_of((x,), (stride[1],), -padding[1]))
    return Question(
        f"With stride {stride} and padding {padding}, at which (row, column) of the image is the upper left corner of the "
        f"kernel at place ({y}, {x})?",
        answer,
        f"Row y * stride[0] - padding[0] = {y} * {stride[0]} - {padding[0]}, column x * stride[1] - padding[1] = {x} * "
        f"{stride[1]} - {padding[1]}: {answer}. An index below 0 is in the padding.",
        {
            (x * stride[0] - padding[0], y * stride[1] - padding[1]): "the row of the place comes first",
            (y * stride[1] - padding[1], x * stride[0] - padding[0]): "stride and padding of rows come first",
        },
        numbers={"stride": stride, "padding": padding, "place": (y, x)},
    )


def output(rng: Random) -> Question:
    """Ask for an output of a kernel that finds edges."""
    image = np.array([[rng.choice([0, 0, 5, 9]) for _ in range(4)] for _ in range(3)], float)
    kernel = np.array(rng.choice([[[-1, 1], [-1, 1]], [[-1, -1], [1, 1]], [[1, 0], [0, -1]], [[1, 2], [0, 1]]]), float)
    engine = Engine()
    y = np.asarray(conv2d(engine.constant([[image.tolist()]]), engine.tensor([[kernel.tolist()]])).tolist())[0, 0]
    row, column = rng.randint(0, 1), rng.randint(0, 2)
    seen = image[row : row + 2, column : column + 2]
    turned = float((seen * kernel[::-1, ::-1]).sum())
    pairs = list(zip(seen.reshape(-1).tolist(), kernel.reshape(-1).tolist(), strict=True))
    return Question(
        f"The image meets this kernel, with stride (1, 1) and no padding. What is the output at place ({row}, {column})?",
        float(y[row, column]),
        f"The kernel covers rows {row} and {row + 1}, columns {column} and {column + 1}: {terms(pairs)} = "
        f"{format_value(float(y[row, column]))}.",
        {
            turned: "the kernel is not flipped",
            float((image[column % 2 : column % 2 + 2, row : row + 2] * kernel).sum()): "the row of the place comes first",
        },
        figure="\n".join([matrix("image", image), matrix("kernel", kernel)]),
        drawing=matrix("output", y),
        numbers={"image": image.tolist(), "kernel": kernel.tolist(), "place": (row, column)},
    )


def work(rng: Random) -> Question:
    """Ask for the number of products."""
    batch, channels, out = rng.choice([1, 2, 10]), rng.randint(1, 3), rng.randint(2, 6)
    places, kernel = (rng.randint(2, 6), rng.randint(2, 6)), (rng.randint(2, 3), rng.randint(2, 3))
    answer = prod(fresh((batch, out, *places, channels, *kernel)).shape)
    return Question(
        f"A batch of {batch} with {channels} {'channel' if channels == 1 else 'channels'} meets {out} kernels of "
        f"{kernel[0]} x {kernel[1]}, each at {places[0]} x {places[1]} places. How many products does conv2d compute?",
        answer,
        f"Four loops walk over the output, three sum: batch * out channels * places * channels * kernel size = {batch} * "
        f"{out} * {places[0] * places[1]} * {channels} * {kernel[0] * kernel[1]} = {format_value(answer)}.",
        {
            batch * out * prod(places): "this is the number of outputs, each of which is a sum of products",
            batch * out * prod(places) * channels: "each output sums over the rows and columns of the kernel, too",
            **({answer // channels: "an output sums over the channels, too"} if channels > 1 else {}),
        },
        numbers={"batch": batch, "channels": channels, "out": out, "places": places, "kernel": kernel},
    )


def weights(rng: Random) -> Question:
    """Ask for the number of weights."""
    channels, out, kernel = rng.randint(2, 6), rng.randint(2, 10), rng.randint(2, 4)
    engine = Engine()
    x, w = (
        engine.constant(np.zeros((1, channels, 5, 5)).tolist()),
        engine.tensor(np.zeros((out, channels, kernel, kernel)).tolist()),
    )
    assert conv2d(x, w).value.shape[1] == out
    answer = prod(w.value.shape)
    return Question(
        f"Images have {channels} channels, and a convolution with kernels of {kernel} x {kernel} makes {out} channels of "
        "them. How many weights has it?",
        answer,
        f"weight has shape {w.value.shape}: there is a kernel for each output channel, and each is {channels} x {kernel} x "
        f"{kernel}. That is {format_value(answer)}, whatever the size of the image.",
        {
            out * kernel * kernel: "a kernel has a part for each input channel",
            channels * kernel * kernel: "there is a kernel for each output channel",
        },
        numbers={"channels": channels, "out": out, "kernel": kernel},
    )


QUESTIONS = (shape, corner, output, work, weights)
