"""derivatives are kept for the next step"""


def tensor_step(parameters, rate):
    """Change each parameter's value by -rate times its derivative, and let the next one begin at None. None is no change."""
    for p in parameters:
        if p.grad is not None:
            p.value = p.value - p.grad * rate
