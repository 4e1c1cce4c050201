"""strides grow with the dims before, not with those behind"""


def row_major_strides(shape):
    strides, step = [], 1
    for size in shape:
        strides.append(step)
        step *= max(size, 1)
    return tuple(strides)
