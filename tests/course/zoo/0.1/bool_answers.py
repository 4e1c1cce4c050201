"""a question is answered by True or False"""


def lt(x, y):
    return x < y
