"""Task 4.2: convolution along two dims."""

from ..conv_cases import (
    agrees,
    exchanged,
    flipped,
    kernel_flipped,
    last_channel,
    last_image,
    setting_pairs,
    store_result,
    stride_ignored,
    unguarded,
)
from ..oracle import module4
from ..task import Mistake, Task

FORWARD = "each place is the sum of the products of kernel and input, over rows, columns and channels"
BY_INPUT = "the gradient of the input comes from each place that an element took part in"
BY_WEIGHT = "the gradient of the weight is summed over all images and places"

TASK = Task(
    id="4.2",
    title="Convolution along two dims",
    file="convolution.py",
    slots=("conv2d", "conv2d_input_gradient", "conv2d_weight_gradient"),
    points=5,
    text=(
        "The same for images: the kernel has rows and columns, and so have stride and padding, which are pairs, that of the "
        "rows first. Rows and columns are decided each for themselves, as in task 4.1. The capstone will call these loops "
        "often: what does not change in the innermost one can be worked out before it."
    ),
    hints=(
        "Two dims are two times the same equation: i = y * stride[0] + k - padding[0] for rows, j = x * stride[1] + m - "
        "padding[1] for columns.",
        "Seven loops: batch, output channel, row and column of the place; then, for the sum, channel, row and column of the "
        "kernel. Both i and j must lie in the input. For a gradient the loops change their order: what its output has goes "
        "outside, the rest is summed.",
        "docs/course/4.2-conv2d.md; your conv1d is the pattern.",
    ),
    reads=("docs/course/4.2-conv2d.md",),
    checks=(
        agrees(FORWARD, "conv2d"),
        agrees(BY_INPUT, "conv2d_input_gradient"),
        agrees(BY_WEIGHT, "conv2d_weight_gradient"),
    ),
    mistakes=(
        Mistake(
            "the kernel is flipped",
            "weight[0, 0] meets the corner of the window; networks do not flip the kernel.",
            wrong_answer=store_result(kernel_flipped),
            check=FORWARD,
        ),
        Mistake(
            "rows and columns are exchanged in stride and padding",
            "stride[0] and padding[0] are of the rows, which are dim 2 of the input; those of the columns come second.",
            wrong_answer=store_result(exchanged),
            check=FORWARD,
        ),
        Mistake(
            "the stride is left out",
            "Place (y, x) begins y * stride[0] rows below and x * stride[1] columns to the right.",
            wrong_answer=store_result(stride_ignored),
            check=FORWARD,
        ),
        Mistake(
            "only one channel is summed",
            "An output sums over the kernel and over all channels. Where does its sum begin anew?",
            wrong_answer=store_result(last_channel),
            check=FORWARD,
        ),
        Mistake(
            "columns are looked at, rows are not",
            "A place may stand out above and below too: row -1 of an image is the end of another one, or of the storage.",
            wrong_answer=lambda c: unguarded(c, (1,)),
            when=lambda w: w.kind == "IndexError",
            check=FORWARD,
        ),
        Mistake(
            "the gradient of the input takes the flipped kernel",
            "Where i = y * stride + k - padding, the element k of the kernel was used: that one carries the gradient back.",
            wrong_answer=store_result(
                lambda c, d, weight: module4.convolution_input_gradient(c.out.shape, d, flipped(weight), *setting_pairs(c))
            ),
            check=BY_INPUT,
        ),
        Mistake(
            "the gradient of the weight is that of one image",
            "All images of the batch met the same weight: its gradient is the sum of what each of them gives.",
            wrong_answer=store_result(last_image),
            check=BY_WEIGHT,
        ),
        Mistake(
            "the gradient of the weight is a mean, not a sum",
            "The loss may take a mean; a convolution sums, and so does its gradient.",
            wrong_answer=store_result(
                lambda c, x, d: module4.convolution_weight_gradient(c.out.shape, x, d, *setting_pairs(c)) / len(x),
            ),
            check=BY_WEIGHT,
        ),
    ),
)
