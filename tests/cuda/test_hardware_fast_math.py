"""Fast math on a GPU: errors over all exponents, special values, and that no kernel of the other setting is launched.

`pytest -m gpu -s tests/cuda/test_hardware_fast_math.py` prints the table of errors.
"""

import numpy as np
import pytest

import minifuse as mf

from .conftest import bits
from .fast_math_errors import CASES, errors_in_ulp, measure, table, wrong_specials
from .simulated import simulated

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

DENSE = 1 << 22
every_function = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every_function
def test_errors_are_within_the_documented_bounds(case):
    rows = measure(case, DENSE)
    assert {row.group for row in rows if row.excess > 0} == set(), rows


@every_function
def test_special_values(case):
    assert wrong_specials(case) == []


def test_the_table():
    text = table(DENSE)
    print(f"\n{text}")
    assert text.count("\n") > len(CASES)


@every_function
def test_the_interpreter_is_as_near_as_two_bounds(case):
    x = np.random.default_rng(0).uniform(0.1, 8, 500).astype(np.float32)
    inputs = [x, x[::-1].copy()][: 1 + (case.name == "div")]
    with mf.use_fast_math():
        on_gpu = case.function(*map(mf.tensor, inputs)).numpy()
        in_lanes = case.function(*[mf.tensor(a, backend=simulated()) for a in inputs]).numpy()
    assert errors_in_ulp(on_gpu, in_lanes.astype(np.float64)).max() <= 6


def program(x):
    return mf.exp(x * 40) / (x + 3), mf.rsqrt(x + 2)


@pytest.mark.parametrize("is_fused", [False, True])
def test_no_kernel_of_the_other_setting_is_launched(is_fused):
    """Calls alternate, so that cached plans, replayed graphs and compiled kernels are used again."""
    x = mf.tensor(np.random.default_rng(0).uniform(-2, 2, 5000).astype(np.float32))
    run, first = mf.fuse(program) if is_fused else program, {}
    for is_fast in (False, True, False, True, True, False, True, False) * 3:
        with mf.use_fast_math(is_fast):
            results = [bits(y) for y in run(x)]
        assert first.setdefault(is_fast, results) == results
    assert first[False] != first[True]


def test_float64_has_the_same_bits():
    x = mf.tensor(np.random.default_rng(0).uniform(-2, 2, 5000))
    exact = [bits(y) for y in program(x)]
    with mf.use_fast_math():
        assert [bits(y) for y in program(x)] == exact
