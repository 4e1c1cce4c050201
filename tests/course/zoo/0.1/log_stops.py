"""log or inv stops at a number that it does not like"""


def log(x):
    return math.log(x)
