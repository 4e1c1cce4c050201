"""Task 4.3: pooling."""

import numpy as np

from ..conv_cases import agrees, pooled_back, pooled_by_window, setting_pairs, store_result
from ..oracle import module4
from ..questions.convolution import Case
from ..strided import Array
from ..task import Mistake, Task

MEAN = "average: each output element is the mean of its window"
MEAN_BACK = "average: each input element gets its part of the gradient of every window that contains it"
LARGEST = "max: each output element is the largest of its window"
LARGEST_BACK = "max: the largest element of each window gets the window's gradient; equal largest elements share it"


def windows(case: Case, x: Array) -> Array:
    """Return the windows of a case."""
    return module4.windows(x, *setting_pairs(case))


def gradient_to_first_maximum(window: Array, d: float) -> Array:
    """Return the gradient of a window if its first maximum gets all of d."""
    gradient = np.zeros(window.shape)
    gradient[np.unravel_index(np.argmax(window), window.shape)] = d
    return gradient


TASK = Task(
    id="4.3",
    title="Pooling",
    file="pooling.py",
    slots=("average_pool", "average_pool_gradient", "max_pool", "max_pool_gradient"),
    points=4,
    text=(
        "Pooling makes an image smaller: each window becomes one number, its mean or its largest element. Windows may "
        "overlap, and may leave rows and columns at the end out. Write both, and their gradients: the mean gives every "
        "element an equal part; max gives all to the largest element, or an equal part to each of several, as the "
        "library does. Write into each element of `out`, which may hold anything before."
    ),
    hints=(
        "For the gradient, loop over the output elements again. To each element of a window, add its share of d, the "
        "gradient of the output element.",
        "First set the gradient to 0. Then take the window of each output element. For the mean, add d / (rows * "
        "columns) to each element. For max, count how many elements equal the largest, and add d / count to those.",
        "docs/course/4.3-pooling.md draws overlapping windows.",
    ),
    reads=("docs/course/4.3-pooling.md",),
    checks=(
        agrees(MEAN, "average_pool"),
        agrees(MEAN_BACK, "average_pool_gradient"),
        agrees(LARGEST, "max_pool"),
        agrees(LARGEST_BACK, "max_pool_gradient"),
    ),
    mistakes=(
        Mistake(
            "windows lie side by side, whatever the stride says",
            "Window y begins at row y * stride[0]. The size of the window is another number.",
            wrong_answer=store_result(pooled_by_window),
            when=lambda w: w.kind == "IndexError",
            check=MEAN,
        ),
        Mistake(
            "the sum is divided by a square",
            "A window of 2 rows and 3 columns has six elements.",
            wrong_answer=store_result(lambda c, x: windows(c, x).sum((-2, -1)) / setting_pairs(c)[0][0] ** 2),
            check=MEAN,
        ),
        Mistake(
            "the gradient is not divided",
            "An element that counts for one sixth of a mean gets one sixth of the mean's gradient.",
            wrong_answer=store_result(lambda c, d: pooled_back(c, d, lambda window, d: np.full(window.shape, d))),
            check=MEAN_BACK,
        ),
        Mistake(
            "where windows overlap, the last one counts",
            "An element in two windows gets a part of the gradients of both: add them.",
            wrong_answer=store_result(
                lambda c, d: pooled_back(c, d, lambda window, d: np.full(window.shape, d / window.size), adds=False)
            ),
            check=MEAN_BACK,
        ),
        Mistake(
            "the gradient begins with what was in the output before",
            "Memory for a result may hold anything, NaN too. Set each element to 0 first; elements in no window stay 0.",
            when=lambda w: not w.kind and np.isnan(w.got).sum() > np.isnan(w.expected).sum(),
            check=MEAN_BACK,
        ),
        Mistake(
            "the running maximum is initialized to 0",
            "If all elements are negative, so is the largest. Initialize with an element of the window, or with -inf.",
            wrong_answer=store_result(lambda c, x: np.maximum(windows(c, x).max((-2, -1)), 0)),
            check=LARGEST,
        ),
        Mistake(
            "each of several equal elements gets the whole gradient",
            "The parts of an output element's gradient must add up to it. Count how many elements equal the largest.",
            wrong_answer=store_result(
                lambda c, x, d: pooled_back(c, d, lambda window, d: np.where(window == window.max(), d, 0.0), x)
            ),
            check=LARGEST_BACK,
        ),
        Mistake(
            "the first of several equal elements gets the whole gradient",
            "Some libraries do so. Here equal elements share the gradient, so that their order does not matter.",
            wrong_answer=store_result(lambda c, x, d: pooled_back(c, d, gradient_to_first_maximum, x)),
            check=LARGEST_BACK,
        ),
        Mistake(
            "every element of the window gets the gradient of its largest",
            "Only the largest decided the output: move another one a little, and nothing changes.",
            wrong_answer=store_result(lambda c, x, d: pooled_back(c, d, lambda window, d: np.full(window.shape, d), x)),
            check=LARGEST_BACK,
        ),
    ),
)
