"""Random programs of collectives on 1 to 8 simulated ranks, against NumPy that computes all ranks in step."""

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist

COUNT = 2000
OPERATORS = {
    "sum": sum,
    "mean": lambda xs: sum(xs) / len(xs),
    "max": lambda xs: np.max(xs, 0),
    "min": lambda xs: np.min(xs, 0),
}


def even_sizes(n, parts):
    return [len(part) for part in np.array_split(np.arange(n), parts)]


def draw_call(rng, shape, n):
    """One call: the function of a tensor on a rank, and that of the arrays of all ranks."""
    dim, by, source = int(rng.integers(len(shape))), int(rng.integers(-3, 4)), int(rng.integers(n))
    op = str(rng.choice([*OPERATORS]))
    uneven = [int(k) for k in rng.multinomial(shape[dim], np.full(n, 1 / n))]
    order = [int(k) for k in rng.permutation(len(shape))]
    can_exchange = shape[dim] % n == 0
    join = int(rng.integers(len(shape)))

    def cut(x, sizes, k):
        return np.split(x, np.cumsum(sizes)[:-1], dim)[k]

    calls = {
        "all_reduce": (lambda x: dist.all_reduce(x, op), lambda xs: [OPERATORS[op](xs)] * n),
        "all_gather": (lambda x: dist.all_gather(x, dim), lambda xs: [np.concatenate(xs, dim)] * n),
        "reduce_scatter": (
            lambda x: dist.reduce_scatter(x, dim, op),
            lambda xs: [cut(OPERATORS[op](xs), even_sizes(shape[dim], n), k) for k in range(n)],
        ),
        "uneven": (
            lambda x: dist.all_gather(dist.reduce_scatter(x, dim, sizes=uneven), dim, sizes=uneven),
            lambda xs: [sum(xs)] * n,
        ),
        "broadcast": (lambda x: dist.broadcast(x, source), lambda xs: [xs[source]] * n),
        "reduce": (lambda x: dist.reduce(x, source), lambda xs: [sum(xs) * (k == source) for k in range(n)]),
        "all_to_all": (
            lambda x: dist.all_to_all(x, dim, join),
            lambda xs: [np.concatenate([np.split(x, n, dim)[k] for x in xs], join) for k in range(n)],
        ),
        "shift": (lambda x: dist.shift(x, by), lambda xs: [xs[(k - by) % n] for k in range(n)]),
        "permute": (lambda x: x.permute(*order), lambda xs: [x.transpose(order) for x in xs]),
        "own": (lambda x: x * (dist.rank() + 1) + 1, lambda xs: [x * (k + 1) + 1 for k, x in enumerate(xs)]),
        "slice": (lambda x: x[::-1], lambda xs: [x[::-1] for x in xs]),
    }
    if not can_exchange:
        del calls["all_to_all"]
    name = str(rng.choice([*calls]))
    return name, *calls[name]


def run_program(seed):
    """Run one random program; return what differs, or ""."""
    rng = np.random.default_rng(seed)
    n, shape = int(rng.integers(1, 9)), tuple(int(k) for k in rng.integers(1, 9, rng.integers(1, 4)))
    arrays = [rng.integers(-4, 5, shape).astype("float64") for _ in range(n)]
    first, names, functions = arrays, [], []
    for _ in range(int(rng.integers(1, 6))):
        if not (0 < arrays[0].size <= 4096 and len({x.shape for x in arrays}) == 1):
            break  # ranks of uneven parts, or a large array
        name, function, reference = draw_call(rng, arrays[0].shape, n)
        names.append(name)
        functions.append(function)
        arrays = [np.asarray(x, "float64") for x in reference(arrays)]

    def composed(x):
        for function in functions:
            x = function(x)
        return x

    run = mf.fuse(composed) if seed % 2 else composed
    backend = "parallel" if seed % 50 == 0 else "python"
    got = dist.simulate(n, lambda: run(mf.tensor(first[dist.rank()], backend=backend)).numpy())
    is_right = all(a.shape == b.shape and np.allclose(a, b, rtol=1e-12) for a, b in zip(got, arrays, strict=True))
    return "" if is_right else f"program {seed} on {n} ranks of {shape}: {', '.join(names)}"


@pytest.mark.parametrize("first", [0, pytest.param(100, marks=pytest.mark.thorough)])
def test_random_programs_compute_what_numpy_does(first):
    seeds = range(first, 100 if first == 0 else COUNT)
    wrong = [text for seed in seeds if (text := run_program(seed))]
    assert not wrong, "\n".join(wrong[:10])
