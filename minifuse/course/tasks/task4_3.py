"""Task 4.3: pooling."""

import numpy as np

from ..conv_cases import Case, agrees, pooled_back, pooled_by_window, setting_pairs, store_result
from ..oracle import module4
from ..strided import Array
from ..task import Mistake, Task

MEAN = "average: each place is the mean of its window"
MEAN_BACK = "average: each element gets its part of every window that it lies in"
LARGEST = "max: each place is the largest of its window"
LARGEST_BACK = "max: the largest of each window gets its gradient, equal ones share it"


def windows(case: Case, x: Array) -> Array:
    """Return the windows of a case."""
    return module4.windows(x, *setting_pairs(case))


def to_the_first(window: Array, d: float) -> Array:
    """Assign the whole gradient to the first maximum."""
    found = np.zeros(window.shape)
    found[np.unravel_index(np.argmax(window), window.shape)] = d
    return found


TASK = Task(
    id="4.3",
    title="Pooling",
    file="pooling.py",
    slots=("average_pool", "average_pool_gradient", "max_pool", "max_pool_gradient"),
    points=4,
    text=(
        "Pooling makes an image smaller: each window becomes one number, its mean or its largest element. Windows may "
        "overlap, and may leave rows and columns at the end out. Write both, and their gradients: the mean gives every "
        "element an equal part; max gives all to the largest, and where several are equal, an equal part to each, as the "
        "library does. Write into each element of `out`, which may hold anything before."
    ),
    hints=(
        "Pooling reads; its gradient goes the same way back: walk over the places again, and give each element of the "
        "window what it is due.",
        "First set the gradient to 0 everywhere. Then for each place: the window it read; for the mean, add d / (rows * "
        "columns) to each element; for max, find the largest, count how many are equal to it, add d / count to those.",
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
            "An element that counts for one sixth of a mean gets one sixth of its gradient.",
            wrong_answer=store_result(lambda c, d: pooled_back(c, d, lambda window, one: np.full(window.shape, one))),
            check=MEAN_BACK,
        ),
        Mistake(
            "where windows overlap, the last one counts",
            "An element that lies in two windows gets a part from both: add.",
            wrong_answer=store_result(
                lambda c, d: pooled_back(c, d, lambda window, one: np.full(window.shape, one / window.size), adds=False)
            ),
            check=MEAN_BACK,
        ),
        Mistake(
            "the gradient begins with what was in the output before",
            "Memory for a result may hold anything, NaN too. Set each element to 0 first; those in no window stay so.",
            when=lambda w: not w.kind and np.isnan(w.got).sum() > np.isnan(w.expected).sum(),
            check=MEAN_BACK,
        ),
        Mistake(
            "the largest begins at 0",
            "Where all elements are negative, so is the largest. Begin with one of them, or with -inf.",
            wrong_answer=store_result(lambda c, x: np.maximum(windows(c, x).max((-2, -1)), 0)),
            check=LARGEST,
        ),
        Mistake(
            "each of several equal elements gets the whole gradient",
            "The parts of one place must add up to its gradient. Count how many are equal to the largest.",
            wrong_answer=store_result(
                lambda c, x, d: pooled_back(c, d, lambda window, one: np.where(window == window.max(), one, 0.0), x)
            ),
            check=LARGEST_BACK,
        ),
        Mistake(
            "the first of several equal elements gets the whole gradient",
            "That is one rule, and some libraries have it. Here equal ones share, so that no order of elements matters.",
            wrong_answer=store_result(lambda c, x, d: pooled_back(c, d, to_the_first, x)),
            check=LARGEST_BACK,
        ),
        Mistake(
            "every element of the window gets the gradient of its largest",
            "Only the largest decided the output: move another one a little, and nothing changes.",
            wrong_answer=store_result(lambda c, x, d: pooled_back(c, d, lambda window, one: np.full(window.shape, one), x)),
            check=LARGEST_BACK,
        ),
    ),
)
