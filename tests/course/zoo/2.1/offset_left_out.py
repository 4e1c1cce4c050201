"""the offset is left out"""


def position_of(index, strides, offset):
    return sum(i * stride for i, stride in zip(index, strides))
