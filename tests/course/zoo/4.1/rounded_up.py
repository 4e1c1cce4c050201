"""the last place is counted although the kernel does not fit there"""


def conv_size(size, kernel, stride, padding):
    return -(-(size + 2 * padding - kernel) // stride) + 1
