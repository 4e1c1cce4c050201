"""the padding is counted on one side only"""


def conv_size(size, kernel, stride, padding):
    return (size + padding - kernel) // stride + 1
