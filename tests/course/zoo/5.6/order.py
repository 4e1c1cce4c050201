"""a kernel runs before one that it waits for"""

right = schedule


def schedule(graph):
    return tuple(sorted(right(graph), key=lambda kernel: kernel.nodes))
