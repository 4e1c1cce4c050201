"""the loss is a sum, not a mean"""


def tensor_loss(outputs, labels):
    right = outputs * labels + (1.0 - outputs) * (1.0 - labels)
    return -right.log().sum()
