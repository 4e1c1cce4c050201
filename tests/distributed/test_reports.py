"""Reports name collectives: the source of a fused function, its explanation, and a program of one rank has none."""

import minifuse as mf
import minifuse.distributed as dist


def step(x):
    return dist.all_reduce(x.exp()).sum() + dist.all_gather(x, 1).sum()


def test_source_and_explanation_name_collectives():
    def program():
        f = mf.fuse(step)
        x = mf.ones(2, 3)
        return mf.source(f, x), str(f.explain(x))

    for source, explanation in dist.simulate(2, program):
        assert "all_reduce of (2, 3) over 2 ranks along data, 24 bytes" in source
        assert "all_reduce" in explanation
        assert "all_gather" in explanation


def test_a_program_of_one_rank_has_the_plan_without_collectives():
    x = mf.ones(2, 3)
    plain = mf.fuse(lambda x: x.exp().sum() + x.sum())
    assert mf.source(mf.fuse(step), x) == mf.source(plain, x)
