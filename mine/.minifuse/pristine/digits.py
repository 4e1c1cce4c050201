"""Module 4, the last task: a network that classifies handwritten digits on your own engine.

`engine.tensor(nested lists)` is a tensor with gradients, `engine.constant(...)` one without, for data. Tensors have
+, -, *, @, `.relu()`, `.exp()`, `.log()`, `.sum()`, `.mean()`, `.reshape(2, 3)`; an operand may be a number or a list.
The module networks has

    conv2d(x, weight, stride=(1, 1), padding=(0, 0))      max_pool(x, window)        average_pool(x, window)
    log_softmax(x, dim)      softmax(x, dim)              dropout(x, rate, seed, is_training)

`t.tolist()` returns the elements, `t.engine` the engine. `.value` and `.grad` are tensors without history, which can be
added, subtracted and multiplied. An image is (1, 8, 8): one channel of 8 x 8 pixels, from -1, paper, to 1, ink.
"""

from random import Random

from minifuse.course import todo
from minifuse.course.networks import average_pool, conv2d, dropout, log_softmax, max_pool, softmax

# Task 4.5


class DigitNetwork:
    """A convolution, pooling, relu, dropout, and one output for each digit: how likely it is, as a logarithm.

    A layer whose kernels are as large as what they see is a linear layer: conv2d can be the last layer too. How many
    kernels, how large, and how many elements are dropped is up to you.
    """

    def __init__(self, engine, random):
        todo("4.5a")

    def __call__(self, images, seed=None):
        """Return log-probabilities (n, 10) of images (n, 1, 8, 8). Dropout uses `seed`; with None, nothing is dropped."""
        todo("4.5b")

    def parameters(self):
        """Return all parameters: a list of tensors."""
        todo("4.5c")


def digit_loss(likely, labels):
    """Return the mean over all rows of minus the log-probability of the label; labels is a list of 0 to 9."""
    todo("4.5d")


def count_right(likely, labels):
    """Return the number of rows in which the label has the largest log-probability: an int."""
    todo("4.5e")


def train_digits(engine, images, labels, steps, seed):
    """A DigitNetwork that has learnt from images, a list of (1, 8, 8), and labels, a list of 0 to 9.

    At most `steps` losses go backward, each of a few images: 16 at a time are enough. `seed` is for Random.
    """
    todo("4.5f")
