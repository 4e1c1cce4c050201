"""the first of what was repeated is taken, not the sum"""

from minifuse.course import Strided


def unbroadcast(gradient, shape):
    lead = len(gradient.shape) - len(shape)
    for d in range(len(gradient.shape)):
        if d < lead or shape[d - lead] == 1:
            gradient = first_along(gradient, d)
    return gradient.reshape(shape)


def first_along(x, dim):
    shape = (*x.shape[:dim], 1, *x.shape[dim + 1 :])
    first = Strided(x.data.storage, shape, x.data.strides, x.data.offset)
    return x.engine.values(first)
