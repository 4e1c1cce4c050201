"""softmax goes without the largest element"""


def fused_softmax(x):
    e = x.exp()
    return e / e.sum()
