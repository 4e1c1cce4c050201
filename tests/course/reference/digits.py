"""Module 4: a network that classifies handwritten digits on your own engine.

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
        # begin 4.5a
        def drawn(size, *shape):
            """Return nested lists of numbers between -size and size."""
            if not shape:
                return random.uniform(-size, size)
            return [drawn(size, *shape[1:]) for _ in range(shape[0])]

        self.kernels = engine.tensor(drawn(1 / 3, 6, 1, 3, 3))
        self.scores = engine.tensor(drawn(54**-0.5, 10, 6, 3, 3))
        self.biases = engine.tensor([0.0] * 10)
        # end

    def __call__(self, images, seed=None):
        """Return log-probabilities (n, 10) of images, a tensor of shape (n, 1, 8, 8) without gradients.

        Dropout uses `seed`; with None, nothing is dropped.
        """
        # begin 4.5b
        seen = max_pool(conv2d(images, self.kernels), (2, 2)).relu()
        if seed is not None:
            seen = dropout(seen, 0.1, seed, is_training=True)
        scores = conv2d(seen, self.scores).reshape(images.shape[0], 10) + self.biases
        return log_softmax(scores, 1)
        # end

    def parameters(self):
        """Return all parameters: a list of tensors."""
        # begin 4.5c
        return [self.kernels, self.scores, self.biases]
        # end


def digit_loss(likely, labels):
    """Return the mean over all rows of minus the log-probability of the label; labels is a list of 0 to 9."""
    # begin 4.5d
    chosen = [[float(digit == label) for digit in range(10)] for label in labels]
    return (likely * chosen).sum() * (-1 / len(labels))
    # end


def count_right(likely, labels):
    """Return the number of rows in which the label has the largest log-probability: an int."""
    # begin 4.5e
    count = 0
    for row, label in zip(likely.tolist(), labels):
        count += row.index(max(row)) == label
    return count
    # end


def train_digits(engine, images, labels, steps, seed):
    """Return a DigitNetwork that has learned from images, a list of arrays (1, 8, 8), and labels, a list of 0 to 9.

    A batch for the network is `engine.constant([images[k] for k in chosen])`. At most `steps` losses go backward,
    each of a few images: 16 at a time are enough. `seed` is for Random.
    """
    # begin 4.5f
    random = Random(seed)
    network = DigitNetwork(engine, random)
    for step in range(steps):
        some = random.sample(range(len(images)), 16)
        likely = network(engine.constant([images[k] for k in some]), seed=step)
        digit_loss(likely, [labels[k] for k in some]).backward()
        rate = 0.9 * (1 - step / steps)
        for p in network.parameters():
            p.value, p.grad = p.value - p.grad * rate, None
    return network
    # end
