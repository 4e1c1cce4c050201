"""Wrong solutions of task 4.6 that were written to get past its checks. Each is appended to the reference."""

# %% backward_for_each_loss: the last loss goes backward too
# promise: 'one loss goes backward for each step'
def steps_until(optimizer, loss_of, target, most):
    for step in range(most + 1):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        if loss.item() <= target:
            return step
        if step < most:
            optimizer.step()
    return None

# %% clips_large_gradients: gradients beyond 1000 are cut
# promise: 'd = p.grad + ...'
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
            grad = p.grad
            if max(abs(x) for x in grad.reshape((grad.size,)).tolist()) > 1000:
                grad = grad * 0.001
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

# %% correction_ends_at_20: the bias is no longer corrected after 20 steps
# promise: 't = 1, 2, ...'
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
            root = (new_square * (1 / (1 - beta2 ** self.steps[k] * (self.steps[k] <= 20)))).map("sqrt")
            scale = self.rate / (1 - beta1 ** self.steps[k])
            p.value = p.value - new_mean * (root + self.epsilon).map("inv") * scale

    def state_dict(self):
        lists = [[None if x is None else x.tolist() for x in pair] for pair in self.moments]
        return {"steps": list(self.steps), "moments": lists}

    def load_state_dict(self, state):
        self.steps = list(state["steps"])
        pairs = zip(self.parameters, state["moments"])
        self.moments = [tuple(None if x is None else p.engine.values(x) for x in pair) for p, pair in pairs]

# %% cosine_without_warmup: the cosine is counted from step 0, not from the end of the warm-up
# promise: 'it is peak in step warmup'
def warmup_cosine(step, steps, warmup, peak):
    if step < warmup:
        return peak * (step + 1) / warmup
    if step >= steps:
        return 0.0
    return peak * (1 + math.cos(math.pi * step / steps)) / 2

# %% decay_after: weight decay is applied to the value, not added to the gradient (AdamW's way)
# promise: 'd = p.grad + weight_decay * p.value'
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
            p.value = p.value * (1 - self.rate * self.weight_decay) - d * self.rate

    def state_dict(self):
        return {"velocities": [None if v is None else v.tolist() for v in self.velocities]}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]

# %% decay_of_matrices_only: parameters with one dim have no weight decay
# promise: 'for each parameter'
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
            d = p.grad + p.value * (self.weight_decay * (len(p.value.shape) > 1))
            if self.velocities[k] is not None:
                d = self.velocities[k] * self.momentum + d
            self.velocities[k] = d
            p.value = p.value - d * self.rate

    def state_dict(self):
        return {"velocities": [None if v is None else v.tolist() for v in self.velocities]}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]

# %% default_betas: beta2 is always 0.999
# promise: 'betas'
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
        beta1, beta2 = self.betas[0], 0.999
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

    def state_dict(self):
        lists = [[None if x is None else x.tolist() for x in pair] for pair in self.moments]
        return {"steps": list(self.steps), "moments": lists}

    def load_state_dict(self, state):
        self.steps = list(state["steps"])
        pairs = zip(self.parameters, state["moments"])
        self.moments = [tuple(None if x is None else p.engine.values(x) for x in pair) for p, pair in pairs]

# %% epsilon_after_correction: epsilon is added to the root before the bias is corrected
# promise: 'epsilon is added to the finished root'
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
            scale = self.rate / (1 - beta1 ** self.steps[k])
            p.value = p.value - new_mean * (root + self.epsilon).map("inv") * (scale * sqrt(1 - beta2 ** self.steps[k]))

    def state_dict(self):
        lists = [[None if x is None else x.tolist() for x in pair] for pair in self.moments]
        return {"steps": list(self.steps), "moments": lists}

    def load_state_dict(self, state):
        self.steps = list(state["steps"])
        pairs = zip(self.parameters, state["moments"])
        self.moments = [tuple(None if x is None else p.engine.values(x) for x in pair) for p, pair in pairs]

# %% epsilon_at_least: an epsilon below 1e-6 counts as 1e-6
# promise: '+ epsilon'
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
            root = (new_square * (1 / (1 - beta2 ** self.steps[k]))).map("sqrt")
            scale = self.rate / (1 - beta1 ** self.steps[k])
            p.value = p.value - new_mean * (root + max(self.epsilon, 1e-6)).map("inv") * scale

    def state_dict(self):
        lists = [[None if x is None else x.tolist() for x in pair] for pair in self.moments]
        return {"steps": list(self.steps), "moments": lists}

    def load_state_dict(self, state):
        self.steps = list(state["steps"])
        pairs = zip(self.parameters, state["moments"])
        self.moments = [tuple(None if x is None else p.engine.values(x) for x in pair) for p, pair in pairs]

# %% grows_again: the cosine goes on after the last step
# promise: '0 in step steps and after it'
def warmup_cosine(step, steps, warmup, peak):
    if step < warmup:
        return peak * (step + 1) / warmup
    if steps == warmup:
        return 0.0
    return peak * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2

# %% linear_decay: the rate falls in a straight line
# promise: 'along half a cosine'
def warmup_cosine(step, steps, warmup, peak):
    if step < warmup:
        return peak * (step + 1) / warmup
    if step >= steps:
        return 0.0
    return peak * (steps - step) / (steps - warmup)

# %% most_in_place_of_none: most is returned where the target is not reached
# promise: 'None if it takes more than most'
def steps_until(optimizer, loss_of, target, most):
    for step in range(most + 1):
        loss = loss_of()
        if loss.item() <= target:
            return step
        if step < most:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return most

# %% moves_without_gradient: Adam moves a parameter without a gradient by its last means
# promise: 'left out: its value, m, v and t stay'
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
                if self.moments[k][0] is None:
                    continue
                p.grad = p.value * 0.0
            self.steps[k] += 1
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

# %% nesterov: SGD takes Nesterov's step: gradient + momentum * velocity
# promise: 'p.value = p.value - rate * velocity'
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
            p.value = p.value - (p.grad + p.value * self.weight_decay + d * self.momentum * bool(self.momentum)) * self.rate

    def state_dict(self):
        return {"velocities": [None if v is None else v.tolist() for v in self.velocities]}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]

# %% one_step_more: the loss is looked at after the step, so a target that is met at the start takes a step
# promise: 'the number of steps'
def steps_until(optimizer, loss_of, target, most):
    for step in range(most + 1):
        loss = loss_of()
        if step and loss.item() <= target:
            return step
        if step < most:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return None

# %% rate_kept_in_velocity: the rate is a part of the velocity, so a schedule changes old gradients too
# promise: 'rate is an attribute, so that a schedule can change it'
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
            d = (p.grad + p.value * self.weight_decay) * self.rate
            if self.velocities[k] is not None:
                d = self.velocities[k] * self.momentum + d
            self.velocities[k] = d
            p.value = p.value - d

    def state_dict(self):
        return {"velocities": [None if v is None else v.tolist() for v in self.velocities]}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]

# %% rate_of_the_beginning: the rate of the constructor is used in every step
# promise: 'rate is an attribute, so that a schedule can change it'
class SGD:
    def __init__(self, parameters, rate, momentum=0.0, weight_decay=0.0):
        self.parameters, self.rate = list(parameters), rate
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocities = [None] * len(self.parameters)
        self.first_rate = rate

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
            p.value = p.value - d * self.first_rate

    def state_dict(self):
        return {"velocities": [None if v is None else v.tolist() for v in self.velocities]}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]

# %% shared_velocity: parameters of one shape share a velocity
# promise: 'state for each parameter'
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
            k = [q.value.shape for q in self.parameters].index(p.value.shape)
            if self.velocities[k] is not None:
                d = self.velocities[k] * self.momentum + d
            self.velocities[k] = d
            p.value = p.value - d * self.rate

    def state_dict(self):
        return {"velocities": [None if v is None else v.tolist() for v in self.velocities]}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]

# %% sqrt_of_large: the square root is exact to 1e-8 only: x ** 0.5 by a logarithm of eight digits
# promise: 'the square root of a number'
def sqrt(x):
    return round(math.sqrt(x), 8)

# %% square_of_mean: v is the square of m
# promise: 'v = beta2 * v + (1 - beta2) * g * g'
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
                new_mean, new_square = mean * beta1 + new_mean, square * beta2 + mean * mean * (1 - beta2)
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

# %% state_is_shared: the list of steps in the loaded state is used as it is, and changed
# promise: 'a new optimizer continues from what state_dict returned'
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
            root = (new_square * (1 / (1 - beta2 ** self.steps[k]))).map("sqrt")
            scale = self.rate / (1 - beta1 ** self.steps[k])
            p.value = p.value - new_mean * (root + self.epsilon).map("inv") * scale

    def state_dict(self):
        lists = [[None if x is None else x.tolist() for x in pair] for pair in self.moments]
        return {"steps": list(self.steps), "moments": lists}

    def load_state_dict(self, state):
        self.steps = state["steps"]
        pairs = zip(self.parameters, state["moments"])
        self.moments = [tuple(None if x is None else p.engine.values(x) for x in pair) for p, pair in pairs]

# %% state_kept_in_the_class: the state stays in the class, and state_dict returns nothing
# promise: 'state that was stored as JSON'
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
        SGD.kept = list(self.velocities)
        return {}

    def load_state_dict(self, state):
        self.velocities = SGD.kept

# %% state_of_the_last_only: the state has the velocity of the last parameter alone
# promise: 'a new optimizer continues'
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
        return {"velocities": [None if v is None or k < len(self.velocities) - 1 else v.tolist() for k, v in enumerate(self.velocities)]}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]

# %% step_forgets_gradients: step sets gradients to None
# promise: 'Gradients stay'
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
            p.value, p.grad = p.value - d * self.rate, None

    def state_dict(self):
        return {"velocities": [None if v is None else v.tolist() for v in self.velocities]}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]

# %% steps_not_saved: Adam's number of steps begins anew
# promise: 'steps, m and v of each parameter'
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
            root = (new_square * (1 / (1 - beta2 ** self.steps[k]))).map("sqrt")
            scale = self.rate / (1 - beta1 ** self.steps[k])
            p.value = p.value - new_mean * (root + self.epsilon).map("inv") * scale

    def state_dict(self):
        lists = [[None if x is None else x.tolist() for x in pair] for pair in self.moments]
        return {"steps": list(self.steps), "moments": lists}

    def load_state_dict(self, state):
        self.steps = [0] * len(self.parameters)
        pairs = zip(self.parameters, state["moments"])
        self.moments = [tuple(None if x is None else p.engine.values(x) for x in pair) for p, pair in pairs]

# %% two_losses_a_step: the loss is computed twice in each step
# promise: 'one backward pass a step'
def steps_until(optimizer, loss_of, target, most):
    for step in range(most + 1):
        loss = loss_of()
        if loss.item() <= target:
            return step
        if step < most:
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            optimizer.step()
    return None

# %% zero_grad_writes_zeros: zero_grad makes zeros of gradients
# promise: 'Set all gradients to None'
class SGD:
    def __init__(self, parameters, rate, momentum=0.0, weight_decay=0.0):
        self.parameters, self.rate = list(parameters), rate
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocities = [None] * len(self.parameters)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None if p.grad is None else p.grad * 0.0

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
        return {"velocities": [None if v is None else v.tolist() for v in self.velocities]}

    def load_state_dict(self, state):
        pairs = zip(self.parameters, state["velocities"])
        self.velocities = [None if v is None else p.engine.values(v) for p, v in pairs]
