"""the network says 0 where it should say less"""


def network_for_split():
    return [(-1.0, 0.0, 0.25), (1.0, 0.0, -0.7)], (1.0, 1.0, 0.0)
