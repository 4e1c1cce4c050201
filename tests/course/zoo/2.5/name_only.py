"""the step changes a name, not the parameter"""


def tensor_step(parameters, rate):
    """Change each parameter's value by -rate times its derivative, and let the next one begin at None. None is no change."""
    for p in parameters:
        if p.grad is not None:
            value = p.value
            value = value - p.grad * rate
            p.grad = None
