"""the same loop is written again"""


def neg_list(xs):
    return [-x for x in xs]
