"""only the dims in front are summed"""


def unbroadcast(gradient, shape):
    """The sum of a gradient over all that a tensor of `shape` was repeated along, so that it has that shape."""
    lead = len(gradient.shape) - len(shape)
    for d in range(lead):
        gradient = gradient.reduce("add", d, 0.0)
    return gradient.reshape(gradient.shape[lead:])
