"""Right solutions of task 4.6 that are written in unusual ways. Each is appended to the reference."""

# %% one_state_for_each: state in dicts by position, zeros before the first step, and lists in place of tensors
class SGD:
    def __init__(self, parameters, rate, momentum=0.0, weight_decay=0.0):
        self.parameters = tuple(parameters)
        self.rate, self.settings, self.state = rate, (momentum, weight_decay), {}

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        momentum, weight_decay = self.settings
        for k, p in enumerate(self.parameters):
            if p.grad is not None:
                before = p.engine.values(self.state[str(k)]) if str(k) in self.state else p.value * 0.0
                velocity = before * momentum + (p.grad + p.value * weight_decay)
                p.value = p.value + velocity * -self.rate
                self.state[str(k)] = velocity.tolist()

    def state_dict(self):
        return dict(self.state)

    def load_state_dict(self, state):
        self.state = dict(state)

# %% unscaled_means: Adam keeps sums in place of means, and the products of the betas in place of a number of steps
class Adam:
    def __init__(self, parameters, rate=0.001, betas=(0.9, 0.999), epsilon=1e-8):
        self.parameters, self.rate, self.betas, self.epsilon = list(parameters), rate, betas, epsilon
        self.state = [None for _ in self.parameters]

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        one, two = self.betas
        for k, p in enumerate(self.parameters):
            g = p.grad
            if g is None:
                continue
            if self.state[k] is None:
                self.state[k] = [g * 0.0, g * 0.0, 1.0, 1.0]
            m, v, left, rest = self.state[k]
            m, v, left, rest = m * one + g, v * two + g * g, left * one, rest * two
            self.state[k] = [m, v, left, rest]
            root = (v * ((1 - two) / (1 - rest))).map("sqrt")
            p.value = p.value - m * ((1 - one) / (1 - left) * self.rate) * (root + self.epsilon).map("inv")

    def state_dict(self):
        return {"all": [s and [s[0].tolist(), s[1].tolist(), s[2], s[3]] for s in self.state]}

    def load_state_dict(self, state):
        values = self.parameters[0].engine.values
        self.state = [s and [values(s[0]), values(s[1]), s[2], s[3]] for s in state["all"]]

# %% recursive_training: steps_until calls itself, and the schedule is a square of a cosine
def steps_until(optimizer, loss_of, target, most):
    loss = loss_of()
    if loss.item() <= target:
        return 0
    if most == 0:
        return None
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps = steps_until(optimizer, loss_of, target, most - 1)
    return None if steps is None else 1 + steps


def sqrt(x):
    return x**0.5


def warmup_cosine(step, steps, warmup, peak):
    if step + 1 <= warmup:
        return peak / warmup * (step + 1)
    done = min((step - warmup) / max(steps - warmup, 1), 1.0) if step < steps else 1.0
    return 0.0 if done == 1.0 else peak * math.cos(done * math.pi / 2) ** 2
