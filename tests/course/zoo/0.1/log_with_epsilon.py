"""log adds something to its argument first"""


def log(x):
    return math.log(x + 1e-6)
