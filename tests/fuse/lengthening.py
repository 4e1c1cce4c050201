"""Functions of about n operators each, of the kinds that programs are made of, to see how the cost of planning grows."""

import minifuse as mf

WIDTH = 8


def chain(n):
    def f(x):
        for _ in range(n // 2):
            x = x * 0.999 + 0.01
        return x

    return f, [mf.ones(64)]


def used_twice(n):
    def f(x):
        for _ in range(n // 3):
            x = mf.maximum(x * 0.5, x) - 0.25
        return x

    return f, [mf.ones(64)]


def tree(n):
    def f(x):
        level = [x * (1 + k / n) for k in range(n // 2)]
        while len(level) > 1:
            level = [a + b for a, b in zip(level[::2], level[1::2], strict=False)] + level[len(level) - len(level) % 2 :]
        return level[0]

    return f, [mf.ones(64)]


def apart(n):
    def f(*xs):
        return tuple((x * 2 + 1) * 2 + 1 for x in xs)

    return f, [mf.ones(64 + k) for k in range(n // 4)]


def results(n):
    def f(x):
        found = []
        for k in range(n // 2):
            x = x * 0.5 + k
            found.append(x)
        return tuple(found)

    return f, [mf.ones(64)]


def rows(n):
    def f(x):
        for _ in range(n // 5):
            x = x.softmax(1) * 2 + x
        return x

    return f, [mf.ones(WIDTH, WIDTH)]


def nested_folds(n):
    def f(x):
        for _ in range(n // 2):
            x = x.sum(1, keepdim=True).expand(WIDTH, WIDTH)
        return x + 1

    return f, [mf.ones(WIDTH, WIDTH)]


def both_dims(n):
    def f(x):
        for k in range(n // 3):
            x = x.sum(k % 2, keepdim=True).expand(WIDTH, WIDTH) * 0.1
        return x + 1

    return f, [mf.ones(WIDTH, WIDTH)]


def products(n):
    def f(x, w):
        for _ in range(n):
            x = x @ w
        return x

    return f, [mf.ones(WIDTH, WIDTH), mf.ones(WIDTH, WIDTH)]


def views(n):
    def f(x):
        for _ in range(n // 2):
            x = x.T + 1
        return x

    return f, [mf.ones(WIDTH, WIDTH)]


def slices(n):
    def f(x):
        for _ in range(n):
            x = x[1:]
        return x + 1

    return f, [mf.ones(n + 5)]


def changes(n):
    def f(x):
        for _ in range(n):
            x += 0.5

    return f, [mf.ones(64)]


def parts(n):
    def f(x):
        x = x * 1
        for k in range(n // 4):
            x[k % 16 : k % 16 + 4] += 0.5
        return x

    return f, [mf.ones(64)]


def network(n):
    def f(x, *weights):
        for w in weights:
            h = x - x.mean(1, keepdim=True)
            h = h / ((h * h).mean(1, keepdim=True) + 1e-5).sqrt()
            x = x + (h @ w).relu()
        return x.sum()

    return f, [mf.ones(WIDTH, WIDTH) for _ in range(1 + max(n // 12, 1))]


def gradient(n):
    def f(x):
        y = x
        for _ in range(n // 4):
            y = (y * 1.01).sin()
        y.sum().backward()
        return x.grad

    return f, [mf.ones(64).requires_grad_()]


def training(n):
    layers = []
    for _ in range(max(n // 20, 1)):
        layers += [mf.nn.Linear(WIDTH, WIDTH), mf.nn.LayerNorm(WIDTH), mf.nn.ReLU()]
    model = mf.nn.Sequential(*layers)
    optimizer = mf.optim.AdamW(model.parameters(), lr=1e-3)

    def step(x, y):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, [mf.ones(WIDTH, WIDTH), mf.ones(WIDTH, WIDTH)]


KINDS = [
    *(chain, used_twice, tree, apart, results, rows, nested_folds, both_dims),
    *(products, views, slices, changes, parts, network, gradient, training),
]
