"""the loss is a sum, not a mean"""


def tensor_loss(outputs, labels):
    """The mean over all points of -log(p), a tensor with one element. Outputs and labels have shape (points, 1)."""
    right = outputs * labels + (1.0 - outputs) * (1.0 - labels)
    return -right.log().sum()
