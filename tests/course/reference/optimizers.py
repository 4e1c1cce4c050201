"""Module 4: optimizers.

A parameter is a tensor with `.value` and `.grad`, tensors without history (`Values`, as in task 2.4): they can be added,
subtracted and multiplied, also with numbers, and `v.map("inv")` is 1 / v. `.grad` is None if no loss depends on it.
`v.map("sqrt")` runs the operator that you write here. `v.tolist()` returns nested lists, and `p.engine.values(x)` makes
a `Values` of nested lists or of a number.
"""

import math

from minifuse.course import todo

# Task 4.6


def sqrt(x):
    """Return the square root of a number."""
    # begin 4.6a
    return math.sqrt(x)
    # end


class SGD:
    """Stochastic gradient descent with momentum and weight decay.

    For each parameter p with a gradient:

        d = p.grad + weight_decay * p.value
        velocity = momentum * velocity + d         (0 before the first step of p)
        p.value = p.value - rate * velocity

    `rate` is an attribute, so that a schedule can change it. A parameter whose gradient is None is left out: its value and
    its velocity stay as they are.
    """

    def __init__(self, parameters, rate, momentum=0.0, weight_decay=0.0):
        # begin 4.6b
        self.parameters, self.rate = list(parameters), rate
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocities = [None] * len(self.parameters)
        # end

    def zero_grad(self):
        """Set all gradients to None."""
        # begin 4.6c
        for p in self.parameters:
            p.grad = None
        # end

    def step(self):
        """Change the values. Gradients stay."""
        # begin 4.6d
        for k, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            d = p.grad + p.value * self.weight_decay
            if self.velocities[k] is not None:
                d = self.velocities[k] * self.momentum + d
            self.velocities[k] = d
            p.value = p.value - d * self.rate
        # end

    def state_dict(self):
        """Return the velocities as plain data, for `json.dumps`: lists, dicts with strings as keys, numbers and None."""
        # begin 4.6e
        return {"velocities": [None if v is None else v.tolist() for v in self.velocities]}
        # end

    def load_state_dict(self, state):
        """Continue from what `state_dict` returned."""
        # begin 4.6f
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]
        # end


class Adam:
    """Adam: the mean of the gradient, divided by the root of the mean of its square.

    For each parameter p with a gradient g, in its step number t = 1, 2, ...; m and v are 0 before the first one:

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        p.value = p.value - rate * (m / (1 - beta1 ** t)) / (sqrt(v / (1 - beta2 ** t)) + epsilon)

    A parameter whose gradient is None is left out: its value, m, v and t stay as they are.
    """

    def __init__(self, parameters, rate=0.001, betas=(0.9, 0.999), epsilon=1e-8):
        # begin 4.6g
        self.parameters, self.rate = list(parameters), rate
        self.betas, self.epsilon = betas, epsilon
        self.steps = [0] * len(self.parameters)
        self.moments = [(None, None)] * len(self.parameters)
        # end

    def zero_grad(self):
        """Set all gradients to None."""
        # begin 4.6h
        for p in self.parameters:
            p.grad = None
        # end

    def step(self):
        """Change the values. Gradients stay."""
        # begin 4.6i
        beta1, beta2 = self.betas
        for k, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            self.steps[k] += 1
            mean, square = self.moments[k]
            new_mean, new_square = p.grad * (1 - beta1), p.grad * p.grad * (1 - beta2)
            if mean is not None:
                new_mean, new_square = mean * beta1 + new_mean, square * beta2 + new_square
            self.moments[k] = new_mean, new_square
            root = (new_square * (1 / (1 - beta2 ** self.steps[k]))).map("sqrt")
            scale = self.rate / (1 - beta1 ** self.steps[k])
            p.value = p.value - new_mean * (root + self.epsilon).map("inv") * scale
        # end

    def state_dict(self):
        """Return steps, m and v of each parameter as plain data, for `json.dumps`."""
        # begin 4.6j
        lists = [[None if x is None else x.tolist() for x in pair] for pair in self.moments]
        return {"steps": list(self.steps), "moments": lists}
        # end

    def load_state_dict(self, state):
        """Continue from what `state_dict` returned."""
        # begin 4.6k
        self.steps = list(state["steps"])
        pairs = zip(self.parameters, state["moments"])
        self.moments = [tuple(None if x is None else p.engine.values(x) for x in pair) for p, pair in pairs]
        # end


def warmup_cosine(step, steps, warmup, peak):
    """Return the learning rate of a step, counted from 0.

    It grows in a straight line from peak / warmup, in step 0, to peak, in step warmup - 1. Then it falls along half a
    cosine: it is peak in step `warmup`, and 0 in step `steps` and after it. `warmup` is at most `steps`; if they are equal,
    the rate is 0 from there on.
    """
    # begin 4.6l
    if step < warmup:
        return peak * (step + 1) / warmup
    if step >= steps:
        return 0.0
    return peak * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2
    # end


def steps_until(optimizer, loss_of, target, most):
    """Train until a loss is at most `target`, and return the number of steps; None if it takes more than `most`.

    `loss_of()` returns the loss, a tensor; it is called once more than there are steps, so at most
    `most` + 1 times. One loss goes backward for each step, with gradients of this loss alone.
    """
    # begin 4.6m
    for step in range(most + 1):
        loss = loss_of()
        if loss.item() <= target:
            return step
        if step < most:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return None
    # end
