"""The comment above a kernel of the cuda backend: the blocks and threads of its launches."""

import pytest

import minifuse as mf
from minifuse.inspect.dry_run import launches_of


def softmax(x):
    """Return rows that sum to 1."""
    e = mf.exp(x - x.max(1, keepdim=True))
    return e / e.sum(1, keepdim=True)


FUNCTIONS = {
    "pointwise": (lambda x, y: x * y + 1, (300, 40), (40,)),
    "gaps": (lambda x: x[:, 1:] * 2, (40, 37)),
    "transposed": (lambda x, y: x + y.T, (100, 300), (300, 100)),
    "rows": (softmax, (64, 1000)),
    "columns": (lambda x: x.sum(0), (300, 70)),
    "split": (lambda x: x.sum(), (1_000_000,)),
    "long rows": (softmax, (3, 30_000)),
    "several arrays": (lambda x, y, z: (x * 2, y * 2, z * 2), (3000,), (40, 50), (7,)),
    "matmul": (lambda x, y: (x @ y).relu(), (100, 50), (50, 70)),
    "two kernels": (lambda x: (x.sum(1) * 2, x.sum(0)), (90, 80)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_source_says_the_grid_and_block_of_each_launch(monkeypatch, name):
    monkeypatch.setenv("MINIFUSE_CUDA", "simulated")
    function, *shapes = FUNCTIONS[name]
    inputs = [mf.rand(*shape, backend="cuda") for shape in shapes]
    text = mf.fuse(function).source(*inputs)
    launches = [f"# grid {tuple(plan.grid)}, block {tuple(plan.block)}" for plan in launches_of(function, *inputs)]
    assert [line for line in text.splitlines() if line.startswith("# grid ")] == launches


def test_an_empty_result_has_no_launch():
    text = mf.fuse(lambda x: x * 2).source(mf.rand(0, 3, backend="cuda"))
    assert "# grid" not in text
