"""the step changes a name, not the parameter"""


def tensor_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            value = p.value
            value = value - p.grad * rate
            p.grad = None
