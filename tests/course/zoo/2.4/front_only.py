"""only the dims in front are summed"""


def unbroadcast(gradient, shape):
    lead = len(gradient.shape) - len(shape)
    for d in range(lead):
        gradient = gradient.reduce("add", d, 0.0)
    return gradient.reshape(gradient.shape[lead:])
