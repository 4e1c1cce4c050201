"""Steps of training as one fused call: parameters, gradients, losses and states as unfused, bit by bit or nearly."""

import numpy as np
import pytest

import minifuse as mf
from minifuse import nn
from minifuse.testing import assert_close

STEPS = 10


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.second(mf.tanh(self.first(x)))


class Shared(nn.Module):
    """One matrix, used twice, and transposed."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.last(mf.relu(self.inner(mf.tanh(self.inner(x))) @ self.inner.weight.T))


class Frozen(nn.Module):
    """A layer that does not learn, below one that does, and a parameter that is not used."""

    def __init__(self):
        super().__init__()
        self.frozen, self.last = nn.Linear(4, 5), nn.Linear(5, 3)
        self.unused = nn.Parameter(mf.tensor([1.0, 2.0]))
        for p in self.frozen.parameters():
            p.requires_grad = False

    def forward(self, x):
        return self.last(mf.sigmoid(self.frozen(x)))


class Tied(nn.Module):
    """One parameter under two names."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(4, 3)
        self.decode = nn.Linear(4, 3)
        self.decode.weight = self.encode.weight

    def forward(self, x):
        return self.encode(x) * self.decode(x)


MODELS = [Perceptron, Shared, Frozen, Tied]
OPTIMIZERS = {
    "sgd": lambda ps: mf.optim.SGD(ps, lr=0.1),
    "decay": lambda ps: mf.optim.SGD(ps, lr=0.1, weight_decay=0.05),
    "momentum": lambda ps: mf.optim.SGD(ps, lr=0.05, momentum=0.9),
    "nesterov": lambda ps: mf.optim.SGD(ps, lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True),
    "adam": lambda ps: mf.optim.Adam(ps, lr=0.02),
    "adam with decay": lambda ps: mf.optim.Adam(ps, lr=0.02, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.05),
}


def batch(k, count=8, backend="parallel"):
    random = np.random.default_rng(k)
    x = mf.tensor(random.uniform(-1, 1, (count, 4)), "float32", backend=backend)
    return x, mf.tensor(random.uniform(-1, 1, (count, 3)), "float32", backend=backend)


class World:
    """A model, an optimizer, and a step of training, fused or not; two worlds start alike."""

    def __init__(self, model, optimizer, is_fused, step, backend="parallel"):
        mf.manual_seed(0)
        with mf.use_backend(backend):
            self.model = model()
        self.params = list(self.model.parameters())
        self.optimizer = optimizer([p for p in self.params if p.requires_grad])
        self.backend = backend
        plain = lambda *inputs: step(self.model, self.optimizer, *inputs)  # noqa: E731
        self.step = mf.fuse(plain) if is_fused else plain

    def seen(self):
        """Parameters, gradients, and what the optimizer remembers."""
        found = [x for p in self.params for x in (p, p.grad)]
        for state in self.optimizer.state_dict()["state"].values():
            found += [state[name] for name in sorted(state)]
        return found


def agree(found, expected):
    """Two lists of tensors, numbers and None."""
    assert len(found) == len(expected)
    for k, (x, y) in enumerate(zip(found, expected, strict=True)):
        assert type(x) is type(y), (k, x, y)
        if isinstance(x, mf.Tensor):
            assert (x.dtype, x.shape, x.requires_grad) == (y.dtype, y.shape, y.requires_grad), k
            assert_close(x, y.detach().numpy(), "composed", scale=1.0, what=f"item {k}")
        else:
            assert x == y, k


def worlds(model, optimizer, step, backend="parallel"):
    return [World(model, OPTIMIZERS[optimizer], is_fused, step, backend) for is_fused in (False, True)]


def check(model, optimizer, step, backend="parallel", steps=STEPS, before=lambda world, k: None):
    """Some steps in both worlds, compared after each."""
    pair = worlds(model, optimizer, step, backend)
    losses = []
    for k in range(steps):
        results = []
        for world in pair:
            before(world, k)
            loss = world.step(*batch(k, backend=backend))
            results.append([*[x.detach() for x in (loss if isinstance(loss, tuple) else (loss,))], *world.seen()])
        agree(*reversed(results))
        losses.append(results[0][0].item())
    assert len(set(losses)) == steps  # something moves
    return pair


def square(model, x, y):
    d = model(x) - y
    return (d * d).mean()


def whole_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = square(model, x, y)
    loss.backward()
    optimizer.step()
    return loss


@pytest.mark.sampled(3, each="model")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_a_complete_training_step(model, optimizer):
    _, fused = check(model, optimizer, whole_step)
    assert fused.step.stats().calls <= 3  # the first step is another: no gradients yet, nothing remembered


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
@pytest.mark.parametrize("backend", ["python", "cuda"])
def test_a_complete_training_step_on_other_backends(optimizer, backend):
    check(Tied, optimizer, whole_step, backend, steps=2)


def zero_grad_last(model, optimizer, x, y):
    loss = square(model, x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def gradients_only(model, optimizer, x, y):
    """Added to those of the calls before."""
    loss = square(model, x, y)
    loss.backward()
    return loss


def two_steps(model, optimizer, x, y):
    return whole_step(model, optimizer, x, y) + 0.0, whole_step(model, optimizer, x * 0.5, y)


def two_losses(model, optimizer, x, y):
    optimizer.zero_grad()
    first = square(model, x, y)
    second = mf.abs(model(x)).mean()
    first.backward()
    second.backward()
    optimizer.step()
    return first, second


def two_losses_of_one_graph(model, optimizer, x, y):
    optimizer.zero_grad()
    out = model(x)
    first, second = (out * y).sum(), (out * out).mean()
    first.backward(retain_graph=True)
    second.backward()
    optimizer.step()
    return first, second


def sum_of_gradients_by_hand(model, optimizer, x, y):
    optimizer.zero_grad()
    square(model, x[:4], y[:4]).backward()
    loss = square(model, x[4:], y[4:])
    loss.backward()
    with mf.no_grad():
        for p in model.parameters():
            if p.grad is not None:
                p.grad *= 0.5
    optimizer.step()
    return loss


def clipped(model, optimizer, x, y):
    """Gradients of at most a length."""
    optimizer.zero_grad()
    loss = square(model, x, y)
    loss.backward()
    with mf.no_grad():
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        norm = mf.sqrt(sum((g * g).sum() for g in grads))
        for g in grads:
            g *= mf.minimum(1.0, 0.1 / norm)
    optimizer.step()
    return loss, norm


def penalty_on_the_gradient(model, optimizer, x, y):
    """The gradient by the input, differentiated again."""
    optimizer.zero_grad()
    slope = mf.grad(lambda x: (model(x) * y).sum())(x.detach().requires_grad_())
    loss = square(model, x, y) + (slope * slope).mean()
    loss.backward()
    optimizer.step()
    return loss


def create_graph(model, optimizer, x, y):
    optimizer.zero_grad()
    x = x.clone().requires_grad_()
    (model(x) * y).sum().backward(create_graph=True)
    slope = x.grad
    for p in model.parameters():
        p.grad = None
    loss = square(model, x, y) + (slope * slope).mean()
    loss.backward()
    optimizer.step()
    return loss


def update_by_hand(model, optimizer, x, y):
    loss = square(model, x, y)
    loss.backward()
    with mf.no_grad():
        for p in model.parameters():
            if p.grad is not None:
                p -= 0.1 * p.grad
            p.grad = None
    return loss


def evaluated_afterwards(model, optimizer, x, y):
    """The loss once more, with the new parameters."""
    loss = whole_step(model, optimizer, x, y)
    with mf.no_grad():
        again = square(model, x, y)
    return loss, again, loss - again


WAYS = [
    zero_grad_last, gradients_only, two_steps, two_losses, two_losses_of_one_graph, sum_of_gradients_by_hand, clipped,
    penalty_on_the_gradient, create_graph, update_by_hand, evaluated_afterwards,
]  # fmt: skip


@pytest.mark.sampled(3, each="way")
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("way", WAYS, ids=lambda f: f.__name__)
def test_training_styles(way, optimizer):
    check(Perceptron, optimizer, way, steps=4)


@pytest.mark.sampled(3, each="model")
@pytest.mark.parametrize("way", [gradients_only, two_losses_of_one_graph, update_by_hand], ids=lambda f: f.__name__)
@pytest.mark.parametrize("model", MODELS[1:], ids=lambda m: m.__name__)
def test_other_models(model, way):
    check(model, "sgd", way, steps=3)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_settings_that_change_between_steps(optimizer):
    """A learning rate is a number of the launch: it captures nothing."""

    def schedule(world, k):
        world.optimizer.param_groups[0]["lr"] = 0.05 / (k + 1)
        if k == 6:
            world.optimizer.param_groups[0]["weight_decay"] = 0.125

    _, fused = check(Perceptron, optimizer, whole_step, before=schedule)
    assert fused.step.stats().calls <= 3


def test_gradients_set_and_cleared_between_steps():
    def meddle(world, k):
        if k in (2, 5):
            world.optimizer.zero_grad()
        if k == 3:
            for p in world.params:
                p.grad = mf.ones_like(p.detach())

    check(Perceptron, "sgd", gradients_only, before=meddle)


def test_parameters_that_freeze_between_steps():
    def freeze(world, k):
        world.model.first.weight.requires_grad = k % 4 < 2

    check(Perceptron, "sgd", update_by_hand, before=freeze)


def test_parameters_that_are_replaced_between_steps():
    def replace(world, k):
        if k % 3 == 2:
            world.model.second.bias = nn.Parameter(mf.tensor([0.5 * k, 1.0, -1.0]))

    check(Perceptron, "sgd", lambda model, optimizer, x, y: update_by_hand(model, optimizer, x, y), before=replace)


def test_batches_of_other_sizes():
    pair = worlds(Perceptron, "momentum", whole_step)
    for k, count in enumerate((8, 5, 8, 1, 13, 5)):
        results = [[world.step(*batch(k, count)).detach(), *world.seen()] for world in pair]
        agree(*reversed(results))


def test_fused_and_unfused_steps_in_turn():
    """They share parameters, gradients and state."""
    pair = worlds(Perceptron, "adam", whole_step)
    unfused, mixed = pair
    plain = lambda *inputs: whole_step(mixed.model, mixed.optimizer, *inputs)  # noqa: E731
    for k in range(6):
        expected = [unfused.step(*batch(k)).detach(), *unfused.seen()]
        step = mixed.step if k % 2 else plain
        agree([step(*batch(k)).detach(), *mixed.seen()], expected)


def test_state_that_is_loaded_between_steps():
    pair = worlds(Perceptron, "adam", whole_step)
    saved = []
    for k in range(6):
        results = [[world.step(*batch(k)).detach(), *world.seen()] for world in pair]
        agree(*reversed(results))
        if k == 1:
            saved = [world.optimizer.state_dict() for world in pair]
            saved = [{"state": {n: {a: (b if isinstance(b, int | float) else b.clone()) for a, b in s.items()} for n, s in d["state"].items()}, "param_groups": d["param_groups"]} for d in saved]  # fmt: skip  # noqa: E501
        if k == 3:
            for world, state in zip(pair, saved, strict=True):
                world.optimizer.load_state_dict(state)


def test_a_fused_loss_and_an_unfused_update():
    """The gradient of a fused function, and its parameters changed in place by somebody else."""
    results = []
    for fuse in (lambda f: f, mf.fuse):
        mf.manual_seed(0)
        model = Perceptron()
        optimizer = mf.optim.Adam(model.parameters(), lr=0.02)
        loss_of = fuse(lambda x, y, model=model: square(model, x, y))
        seen = []
        for k in range(STEPS):
            optimizer.zero_grad()
            loss = loss_of(*batch(k))
            loss.backward()
            optimizer.step()
            seen += [loss, *[x for p in model.parameters() for x in (p.clone(), p.grad)]]
        results.append(seen)
    agree(*reversed(results))


def test_a_change_between_loss_and_backward_is_refused():
    """As unfused: the gradient would be wrong."""
    w = mf.tensor([1.0, 2.0], requires_grad=True)

    def loss_of(x):
        return (w * w * x).sum()

    for f in (loss_of, mf.fuse(loss_of)):
        loss = f(mf.ones(2))
        with mf.no_grad():
            w += 1
        with pytest.raises(mf.GradientError, match="modified in place"):
            loss.backward()


def test_a_loss_used_twice_is_freed_once():
    w = mf.tensor([1.0, 2.0], requires_grad=True)

    def inside(x):
        loss = (w * w * x).sum()
        loss.backward()
        loss.backward()
        return loss

    for f in (inside, mf.fuse(inside)):
        with pytest.raises(mf.GradientError, match="freed its saved values"):
            f(mf.ones(2))
        w.grad = None

    def outside(x):
        loss = (w * w * x).sum()
        loss.backward()
        return loss

    for f in (outside, mf.fuse(outside)):
        loss = f(mf.ones(2))
        with pytest.raises(mf.GradientError):
            loss.backward()


def test_a_loss_is_no_leaf_even_when_it_was_used():
    w = mf.tensor([1.0, 2.0], requires_grad=True)

    def step(x):
        loss = (w * w * x).sum()
        loss.backward()
        return loss

    assert [f(mf.ones(2)).requires_grad for f in (step, mf.fuse(step))] == [True, True]


def test_gradients_have_memory_of_their_own():
    """Neither the parameter's, nor another gradient's, nor a result's."""
    p, q = mf.tensor([1.0, 2.0], requires_grad=True), mf.tensor([3.0, 4.0], requires_grad=True)

    @mf.fuse
    def f():
        loss = (p + q).sum()
        loss.backward()
        return loss, p.grad, p.detach() * 1

    loss, grad, _ = f()
    assert grad is p.grad
    with mf.no_grad():
        p.grad *= 5
    assert (q.grad.tolist(), p.tolist(), loss.item()) == ([1, 1], [1, 2], 10)
    f()
    assert (p.grad.tolist(), q.grad.tolist()) == ([6, 6], [2, 2])


def test_random_numbers_are_drawn_anew_in_each_call():
    def noisy(x):
        return x + mf.rand(3, backend="parallel") + mf.randn(3, backend="parallel") * 0

    results = []
    for f in (noisy, mf.fuse(noisy)):
        mf.manual_seed(3)
        results.append([f(mf.zeros(3)).tolist() for _ in range(3)])
    assert results[0] == results[1]
    assert results[0][0] != results[0][1]


@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
def test_an_update_after_a_reduction_is_applied_once(backend):
    def step(x, state):
        with mf.no_grad():
            total = x.sum(0)
            share = total / (total * total).sum()
            state += 0.1 * (share - state)
        return share

    x = mf.rand(5, 3).to(backend)
    one, other = mf.ones(3).to(backend), mf.ones(3).to(backend)
    fused = mf.fuse(step)
    assert_close(fused(x, one), step(x, other))
    assert_close(one, other)
    spaces = {(step.shape, step.dims) for entry in fused.entries.values() for step in entry.plan.steps}
    assert ((3,), ()) in spaces  # not the rows of what was folded: threads along a row would each change the target
