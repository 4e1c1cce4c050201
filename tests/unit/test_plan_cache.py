"""runtime.plan_cache: one limit in bytes, least recently used plans evicted first, and estimates of their size."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import minifuse as mf
from minifuse.compiler.plan import Plan
from minifuse.core.errors import MinifuseError
from minifuse.core.operators import TABLE
from minifuse.runtime.plan_cache import DEFAULT_LIMIT_MB, PlanCache, PlanTable, plan_cache
from tests.fuse import lengthening, reindexing

MB = 1 << 20


@pytest.fixture
def cache():
    made = PlanCache()
    made.set_limit(1)
    return made


@pytest.fixture
def limit():
    """A limit of all plans of this process, put back afterwards."""
    yield plan_cache.set_limit
    plan_cache.set_limit(None)


def test_all_tables_share_one_limit(cache):
    tables = [PlanTable(cache) for _ in range(3)]
    for k in range(300):
        tables[k % 3].put(k, str(k), 10_000)
        assert cache.stats().nbytes <= MB
    assert cache.stats().plans == sum(map(len, tables)) < 105
    assert sorted(key for table in tables for key in table) == list(range(300 - cache.stats().plans, 300))


def test_plans_that_are_looked_up_stay(cache):
    table = PlanTable(cache)
    table.put("used", "value", 10_000)
    for k in range(300):
        table.put(k, str(k), 10_000)
        assert table.get("used") == "value"
    assert 0 not in table


def test_plans_of_eager_calls_stay_while_used(cache):
    table, lookups = PlanTable(cache), 0
    table.put("used", "value", 10_000)
    for k in range(1000):
        table.put(k, str(k), 10_000)
        if "used" not in table.fast_path:  # as a call does that finds nothing there
            lookups += 1
            table.fast_path["used"] = lambda: None
            assert table.get("used") == "value"
    assert lookups <= 1000 * 10_000 * 8 / MB + 1


def test_the_newest_stays_however_large_it_is(cache):
    table = PlanTable(cache)
    table.put("large", "value", 5 * MB)
    assert list(table) == ["large"]
    table.put("larger", "value", 6 * MB)
    assert list(table) == ["larger"]


def test_a_cache_without_references_is_not_counted(cache):
    PlanTable(cache).put("key", "value", 1000)
    gc.collect()
    assert cache.stats()[:2] == (0, 0)


def test_a_smaller_limit_evicts_at_once(cache):
    table = PlanTable(cache)
    for k in range(50):
        table.put(k, str(k), 10_000)
    cache.set_limit(0.1)
    assert cache.stats().nbytes <= MB / 10
    assert list(table)[-1] == 49


@pytest.mark.parametrize("wrong", [-1, "many", float("nan"), float("inf")])
def test_a_limit_is_a_number_from_0_on(cache, wrong):
    with pytest.raises(MinifuseError, match="expected a number of megabytes from 0 on"):
        cache.set_limit(wrong)


def test_the_environment_sets_the_limit(monkeypatch):
    assert PlanCache().limit == DEFAULT_LIMIT_MB * MB
    monkeypatch.setenv("MINIFUSE_PLAN_LIMIT_MB", "1.5")
    assert PlanCache().limit == 1.5 * MB
    for wrong in ("much", "-3", "nan"):
        monkeypatch.setenv("MINIFUSE_PLAN_LIMIT_MB", wrong)
        with pytest.raises(MinifuseError, match="MINIFUSE_PLAN_LIMIT_MB"):
            _ = PlanCache().limit


def test_captures_of_all_functions_share_the_limit(limit):
    limit(0.5)
    functions = [mf.fuse(lambda x, k=k: x * k + 1) for k in range(3)]
    for n in range(1, 60):
        x = mf.ones(n, backend="python")
        assert [f(x).shape for f in functions] == [(n,)] * 3
    assert mf.cache.stats().nbytes_of_plans <= mf.cache.stats().plan_limit == MB // 2
    assert sum(f.stats().captures for f in functions) < 60
    assert functions[1](mf.ones(1, backend="python")).tolist() == [2]


def test_a_function_in_use_is_not_traced_again(limit):
    limit(1)
    used, x = mf.fuse(lambda x: x * 2 + 1), mf.ones(3, backend="python")
    other = mf.fuse(lambda x: x * 3 + 1)
    for n in range(1, 150):
        used(x)
        other(mf.ones(n, backend="python"))
    assert used.stats().calls == 1
    assert other.stats().captures < 100


def test_stats_contain_the_bytes_of_plans():
    gc.collect()  # plans of functions of other tests
    before = mf.cache.stats()
    f = mf.fuse(lambda x: x * 2.125 + 1)
    f(mf.ones(7))
    after = mf.cache.stats()
    assert after.plans >= before.plans + 1
    assert after.nbytes_of_plans > before.nbytes_of_plans
    assert mf.memory.stats().plans == after.nbytes_of_plans
    assert after.plan_limit == plan_cache.limit


def operation(k):
    x = mf.ones(5 + k, 3)
    plan = Plan(TABLE["add"], [x, x])
    return plan, plan


def program(kind, count):
    def make(k):
        function, inputs = kind(count + 2 * k)
        fused = mf.fuse(function)
        return fused, fused.plan(*[mf.tensor(x) if isinstance(x, np.ndarray) else x for x in inputs])

    return make


# All plans share the tables of interned objects, which grow at once when one object too many is added.
WITHOUT_TABLES = tracemalloc.Filter(False, weakref.__file__)
MEASURED = {
    "an operation": operation,
    "a chain": program(lengthening.chain, 40),
    "rows": program(lengthening.rows, 40),
    "a network": program(lengthening.network, 48),
    "a gradient": program(lengthening.gradient, 40),
    "a training step": program(lengthening.training, 60),
    "products": program(lengthening.products, 40),
    "a row and a column": program(lambda n: (lambda f, x: (f, [x]))(*reindexing.loop("a row and a column", n // 4)), 40),
    "two neighbors": program(lambda n: (lambda f, x: (f, [x]))(*reindexing.loop("two neighbors", n // 4)), 40),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MEASURED)
def test_estimates_are_right_within_a_factor_of_two(name):
    make, count = MEASURED[name], 3

    def made():
        found = [make(k) for k in range(count)]
        for _, plan in found:
            plan.run  # noqa: B018  # binds the kernels
        return found

    made()  # compiles, which is not measured
    gc.collect()
    tracemalloc.start()
    try:
        found = made()
        gc.collect()
        traces = tracemalloc.take_snapshot().filter_traces([WITHOUT_TABLES]).traces
    finally:
        tracemalloc.stop()
    measured = sum(trace.size for trace in traces)
    estimated = sum(plan.host.plan_nbytes() for _, plan in found)
    assert measured / 2 <= estimated <= measured * 2
