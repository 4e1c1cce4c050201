"""Twenty programs whose ranks do not ask for the same: all stop within two seconds, and the lines that differ are named."""

import pytest

from tests.engines.launching import launch
from tests.engines.test_launch import START

WITHIN_SECONDS = 2.0  # from the fault to the end of the launcher
THREE = "[mf.ones(3, requires_grad=True) for _ in range(3)]"

# name: (what rank 0 does, what rank 1 does, what the message has)
PLANTED = {
    "op": ("dist.all_reduce(x)", "dist.all_gather(x)", ["all_reduce(add) of float32 (3, 5)", "all_gather"]),
    "operator": ("dist.all_reduce(x)", "dist.all_reduce(x, 'max')", ["all_reduce(add)", "all_reduce(maximum)"]),
    "shape": ("dist.all_reduce(x)", "dist.all_reduce(mf.ones(3, 4))", ["(3, 5)", "(3, 4)"]),
    "shape of one size": ("dist.all_reduce(x)", "dist.all_reduce(x.T.clone())", ["(3, 5)", "(5, 3)"]),
    "dims": ("dist.all_reduce(x)", "dist.all_reduce(x.reshape(15))", ["(3, 5)", "(15,)"]),
    "scalar": ("dist.all_reduce(x.sum())", "dist.all_reduce(x)", ["float32 ()", "(3, 5)"]),
    "dtype": ("dist.all_reduce(x)", "dist.all_reduce(x.double())", ["float32 (3, 5)", "float64 (3, 5)"]),
    "dtype of one size": ("dist.all_reduce(x)", "dist.all_reduce(mf.ones(3, 5, dtype=mf.int32))", ["float32", "int32"]),
    "order": ("dist.all_reduce(x); dist.shift(x)", "dist.shift(x); dist.all_reduce(x)", ["all_reduce", "shift"]),
    "order of shapes": (
        "dist.all_reduce(x); dist.all_reduce(x[0])",
        "dist.all_reduce(x[0]); dist.all_reduce(x)",
        ["(3, 5)", "(5,)"],
    ),
    "source": ("dist.broadcast(x, 0)", "dist.broadcast(x, 1)", ["broadcast"]),
    "shift": ("dist.shift(x, 1)", "dist.shift(x, 2)", ["shift"]),
    "one more": ("dist.all_reduce(x); dist.shift(x)", "dist.shift(x)", ["all_reduce", "shift"]),
    "one more at the end": ("dist.all_reduce(x)", "pass", ["rank 0 waits in all_reduce", "for rank 1, which ended"]),
    "a barrier": ("dist.barrier()", "dist.all_reduce(x)", ["all_reduce(add) of float32 (3, 5)"]),
    "no barrier": ("dist.barrier()", "pass", ["rank 0 waits in", "for rank 1, which ended"]),
    "rows": ("dist.all_gather(x)", "dist.all_gather(x[:, :4])", ["(5,)", "(4,)"]),
    "gradient": ("x.requires_grad_(); dist.all_reduce(x).sum().backward()", "dist.all_reduce(x)", ["waits in all_reduce"]),
    "parameters": (
        f"ps = {THREE}; sum(p.sum() for p in ps).backward(); dist.average_gradients(ps)",
        f"ps = {THREE}; sum(p.sum() for p in ps[1:]).backward(); dist.average_gradients(ps)",
        ["array", "all_reduce(add)"],
    ),
    "loop": (
        "for _ in range(300): dist.all_reduce(x)",
        "for _ in range(299): dist.all_reduce(x)",
        ["after 300 collectives"],
    ),
}
COMPILE_FIRST = ("gradient", "parameters")  # kernels, before the collectives that differ


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mismatch_is_named(tmp_path, name):
    first, second, words = PLANTED[name]
    done = launch(tmp_path, START + f"fault()\nif rank == 0:\n    {first}\nelse:\n    {second}\n")
    assert done.code == 1
    assert all(word in done.err for word in [*words, "minifuse launch: ", "script.py:"]), done.err
    assert "Traceback" not in done.err
    assert done.seconds < WITHIN_SECONDS + (5 if name in COMPILE_FIRST else 0)
