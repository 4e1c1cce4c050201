"""derivatives are kept for the next step"""


def tensor_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            p.value = p.value - p.grad * rate
