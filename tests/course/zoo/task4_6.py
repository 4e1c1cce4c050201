"""Wrong solutions of task 4.6, one a cell: `# %% name: the mistake that the check must name`."""


# %% average: the velocity is an average of gradients
class SGD:
    def __init__(self, parameters, rate, momentum=0.0, weight_decay=0.0):
        self.parameters, self.rate = list(parameters), rate
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocities = [None] * len(self.parameters)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        for k, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            d = p.grad + p.value * self.weight_decay
            d = d * (1 - self.momentum)
            if self.velocities[k] is not None:
                d = self.velocities[k] * self.momentum + d
            self.velocities[k] = d
            p.value = p.value - d * self.rate

    def state_dict(self):
        return {"velocities": [None if v is None else v.tolist() for v in self.velocities]}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]


# %% empty_state: a new optimizer begins anew
class SGD:
    def __init__(self, parameters, rate, momentum=0.0, weight_decay=0.0):
        self.parameters, self.rate = list(parameters), rate
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocities = [None] * len(self.parameters)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        for k, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            d = p.grad + p.value * self.weight_decay
            if self.velocities[k] is not None:
                d = self.velocities[k] * self.momentum + d
            self.velocities[k] = d
            p.value = p.value - d * self.rate

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


# %% epsilon_below: epsilon is added below the root
class Adam:
    def __init__(self, parameters, rate=0.001, betas=(0.9, 0.999), epsilon=1e-8):
        self.parameters, self.rate = list(parameters), rate
        self.betas, self.epsilon = betas, epsilon
        self.steps = [0] * len(self.parameters)
        self.moments = [(None, None)] * len(self.parameters)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
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
            root = (new_square * (1 / (1 - beta2 ** self.steps[k])) + self.epsilon).map("sqrt")
            scale = self.rate / (1 - beta1 ** self.steps[k])
            p.value = p.value - new_mean * root.map("inv") * scale

    def state_dict(self):
        lists = [[None if x is None else x.tolist() for x in pair] for pair in self.moments]
        return {"steps": list(self.steps), "moments": lists}

    def load_state_dict(self, state):
        self.steps = list(state["steps"])
        pairs = zip(self.parameters, state["moments"])
        self.moments = [tuple(None if x is None else p.engine.values(x) for x in pair) for p, pair in pairs]


# %% never_zeroed: gradients of earlier losses are added
def steps_until(optimizer, loss_of, target, most):
    for step in range(most + 1):
        loss = loss_of()
        if loss.item() <= target:
            return step
        if step < most:
            loss.backward()
            optimizer.step()
    return None


# %% no_correction: the bias of the means is not corrected
class Adam:
    def __init__(self, parameters, rate=0.001, betas=(0.9, 0.999), epsilon=1e-8):
        self.parameters, self.rate = list(parameters), rate
        self.betas, self.epsilon = betas, epsilon
        self.steps = [0] * len(self.parameters)
        self.moments = [(None, None)] * len(self.parameters)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
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
            root = new_square.map("sqrt")
            scale = self.rate
            p.value = p.value - new_mean * (root + self.epsilon).map("inv") * scale

    def state_dict(self):
        lists = [[None if x is None else x.tolist() for x in pair] for pair in self.moments]
        return {"steps": list(self.steps), "moments": lists}

    def load_state_dict(self, state):
        self.steps = list(state["steps"])
        pairs = zip(self.parameters, state["moments"])
        self.moments = [tuple(None if x is None else p.engine.values(x) for x in pair) for p, pair in pairs]


# %% no_decay: weight decay is left out
class SGD:
    def __init__(self, parameters, rate, momentum=0.0, weight_decay=0.0):
        self.parameters, self.rate = list(parameters), rate
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocities = [None] * len(self.parameters)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        for k, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            d = p.grad
            if self.velocities[k] is not None:
                d = self.velocities[k] * self.momentum + d
            self.velocities[k] = d
            p.value = p.value - d * self.rate

    def state_dict(self):
        return {"velocities": [None if v is None else v.tolist() for v in self.velocities]}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]


# %% none_is_zero: no gradient counts as a gradient of 0
class SGD:
    def __init__(self, parameters, rate, momentum=0.0, weight_decay=0.0):
        self.parameters, self.rate = list(parameters), rate
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocities = [None] * len(self.parameters)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        for k, p in enumerate(self.parameters):
            grad = p.value * 0.0 if p.grad is None else p.grad
            d = grad + p.value * self.weight_decay
            if self.velocities[k] is not None:
                d = self.velocities[k] * self.momentum + d
            self.velocities[k] = d
            p.value = p.value - d * self.rate

    def state_dict(self):
        return {"velocities": [None if v is None else v.tolist() for v in self.velocities]}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]


# %% one_count: all parameters share one number of steps
class Adam:
    def __init__(self, parameters, rate=0.001, betas=(0.9, 0.999), epsilon=1e-8):
        self.parameters, self.rate = list(parameters), rate
        self.betas, self.epsilon = betas, epsilon
        self.steps = [0] * len(self.parameters)
        self.moments = [(None, None)] * len(self.parameters)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        beta1, beta2 = self.betas
        self.count = getattr(self, "count", 0) + 1
        for k, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            self.steps[k] = self.count
            mean, square = self.moments[k]
            new_mean, new_square = p.grad * (1 - beta1), p.grad * p.grad * (1 - beta2)
            if mean is not None:
                new_mean, new_square = mean * beta1 + new_mean, square * beta2 + new_square
            self.moments[k] = new_mean, new_square
            root = (new_square * (1 / (1 - beta2 ** self.steps[k]))).map("sqrt")
            scale = self.rate / (1 - beta1 ** self.steps[k])
            p.value = p.value - new_mean * (root + self.epsilon).map("inv") * scale

    def state_dict(self):
        lists = [[None if x is None else x.tolist() for x in pair] for pair in self.moments]
        return {"steps": list(self.steps), "moments": lists}

    def load_state_dict(self, state):
        self.steps = list(state["steps"])
        pairs = zip(self.parameters, state["moments"])
        self.moments = [tuple(None if x is None else p.engine.values(x) for x in pair) for p, pair in pairs]


# %% rate_0_first: the first step has rate 0
def warmup_cosine(step, steps, warmup, peak):
    if step < warmup:
        return peak * step / warmup
    if step >= steps:
        return 0.0
    return peak * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


# %% tensors_in_state: the state is no plain data
class SGD:
    def __init__(self, parameters, rate, momentum=0.0, weight_decay=0.0):
        self.parameters, self.rate = list(parameters), rate
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocities = [None] * len(self.parameters)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        for k, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            d = p.grad + p.value * self.weight_decay
            if self.velocities[k] is not None:
                d = self.velocities[k] * self.momentum + d
            self.velocities[k] = d
            p.value = p.value - d * self.rate

    def state_dict(self):
        return {"velocities": self.velocities}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]


# %% one_loss_less: the loss after the last step is left out
def steps_until(optimizer, loss_of, target, most):
    for step in range(most):
        loss = loss_of()
        if loss.item() <= target:
            return step
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return None
