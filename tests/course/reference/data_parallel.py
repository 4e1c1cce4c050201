"""Module 6: training on many ranks, each with its part of every batch.

All ranks run the same program. `group` connects them: `group.rank` and `group.size`; `group.broadcast(array, source)`
returns the array of rank `source`, to which the others pass one of the same shape; `group.start_all_reduce(array)` begins
a sum over all ranks and returns a function, which waits for the sum and returns it; `group.all_reduce(array)` does both.
All ranks must call the same ones in the same order, with arrays of the same shape and dtype.
"""

import numpy as np

from minifuse.course import todo

# Task 6.2


def broadcast_parameters(parameters, group):
    """Return the parameters of rank 0, on all ranks: a list of new arrays."""
    # begin 6.2a
    return [group.broadcast(x, 0).copy() for x in parameters]
    # end


def make_buckets(sizes, limit):
    """Return the buckets: lists of indices of parameters; sizes[k] is the number of elements of parameter k.

    The last parameter is the first of the first bucket, and each bucket continues with the parameter before. It takes as
    many as it can hold without more than `limit` elements in all; a parameter with more is alone in its bucket.
    """
    # begin 6.2b
    buckets, room = [], 0
    for k in reversed(range(len(sizes))):
        if not buckets or sizes[k] > room:
            buckets.append([])
            room = limit
        buckets[-1].append(k)
        room -= sizes[k]
    return buckets
    # end


class GradientAverager:
    """The gradients of a step, averaged over the examples of all ranks, in buckets of at most `limit` elements.

    Parameters have these shapes. This rank's gradients are those of the mean loss over `examples` examples. Their number may
    differ between ranks. It may be 0, but not on all ranks; gradients are 0 then. The constructor may all-reduce one number;
    after it, there is one all-reduce for each bucket, in the order of buckets on all ranks. It begins as soon as the
    gradients of its bucket and of all buckets before are there.
    """

    def __init__(self, shapes, limit, examples, group):
        # begin 6.2c
        self.shapes, self.group = shapes, group
        self.buckets = make_buckets([int(np.prod(shape)) for shape in shapes], limit)
        self.weight = examples / group.all_reduce(np.array([float(examples)]))[0]
        self.gradients, self.sums = {}, []
        # end

    def ready(self, k, gradient):
        """Take the gradient of parameter k: an array that the caller may overwrite afterwards."""
        # begin 6.2d
        self.gradients[k] = gradient * self.weight
        while len(self.sums) < len(self.buckets):
            bucket = self.buckets[len(self.sums)]
            if any(i not in self.gradients for i in bucket):
                break
            flat = np.concatenate([self.gradients[i].reshape(-1) for i in bucket])
            self.sums.append(self.group.start_all_reduce(flat))
        # end

    def finish(self):
        """Wait for all sums, and return the list of averaged gradients."""
        # begin 6.2e
        averages = [None] * len(self.shapes)
        for bucket, wait in zip(self.buckets, self.sums):
            flat = wait()
            for k in bucket:
                count = int(np.prod(self.shapes[k]))
                averages[k], flat = flat[:count].reshape(self.shapes[k]), flat[count:]
        return averages
        # end


def train_parallel(parameters, parts, backward, rate, limit, group):
    """Return the parameters after a step of gradient descent for each part, with the parameters of rank 0 at the start.

    A part (x, y) is what this rank has of a batch; len(x) may be 0, but not on all ranks. `backward(parameters, part,
    ready)` computes the gradients of the mean loss over the part, and calls `ready(k, gradient)` for each parameter. They
    are 0 if len(x) is 0.
    """
    # begin 6.2f
    parameters = broadcast_parameters(parameters, group)
    for part in parts:
        averager = GradientAverager([x.shape for x in parameters], limit, len(part[0]), group)
        backward(parameters, part, averager.ready)
        parameters = [x - rate * gradient for x, gradient in zip(parameters, averager.finish())]
    return parameters
    # end
