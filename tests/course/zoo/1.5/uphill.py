"""the step goes uphill"""


def scalar_step(parameters, rate):
    for p in parameters:
        if p.grad is not None:
            p.value = p.value + rate * p.grad
            p.grad = None
