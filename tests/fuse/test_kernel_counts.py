"""Twenty functions become few kernels: as many as said here, and never more than tinygrad or cupy.fuse makes of the same."""

import json

import numpy as np
import pytest

import minifuse as mf
from project.benchmarks import kernel_counts
from project.benchmarks.fusion_corpus import TWENTY, results_of
from project.benchmarks.kernel_counts import KEPT, check

BACKENDS = ("python", "parallel", "cuda")
MORE_THAN_ONE = {"softmax(q @ k.T / sqrt(d))": 2}  # a tile of the product holds parts of rows, and softmax needs whole ones
EXPECTED = {function.name: MORE_THAN_ONE.get(function.name, 1) for function in TWENTY}
functions = pytest.mark.parametrize("function", [pytest.param(function, id=function.name) for function in TWENTY])


def fused(function, backend):
    """The fused function, and inputs for it as tensors and as arrays."""
    inputs = function.inputs(np.random.default_rng(11))
    return mf.fuse(function.tensors), [mf.from_numpy(x.copy(), backend=backend) for x in inputs], inputs


def test_there_are_twenty():
    assert len(TWENTY) == len({function.name for function in TWENTY}) == 20


@pytest.mark.parametrize("backend", BACKENDS)
@functions
def test_a_function_becomes_so_many_kernels(function, backend):
    work, tensors, _ = fused(function, backend)
    plan = work.plan(*tensors)
    why = "\n".join(refusal.reason for refusal in plan.refusals)
    assert len(plan.steps) == EXPECTED[function.name], why
    assert bool(plan.refusals) == (EXPECTED[function.name] > 1), why


@functions
def test_a_gpu_launches_so_many_kernels(function):
    work, tensors, _ = fused(function, "cuda")
    plan = work.plan(*tensors)
    assert sum(launches(step, plan.backend) for step in plan.steps) == EXPECTED[function.name]


def launches(step, backend):
    """How many kernels the interpreter would launch for a step."""
    launcher = backend.compile(step).load()
    addresses = [256] * (len(step.outputs) + len(step.inputs))
    numbers = [1.0] * len(step.numbers)
    return len(launcher.ready_launches(*addresses, *numbers))


@functions
def test_the_counted_functions_are_right(function):
    work, tensors, inputs = fused(function, "parallel")
    check(function, inputs, [x.numpy() for x in results_of(work, tensors)])


@pytest.mark.parametrize("library", ["tinygrad", "cupy"])
def test_no_other_compiler_makes_fewer(library):
    said = kernel_counts.load_counts().get(library)
    if said is None:
        pytest.skip(f"the kernels of {library} were not counted: python -m project.benchmarks.kernel_counts {library}")
    theirs = said["kernels"]
    assert set(theirs) == set(EXPECTED)
    assert {name: count for name, count in theirs.items() if isinstance(count, int) and count < EXPECTED[name]} == {}
    assert sum(isinstance(count, int) for count in theirs.values()) >= 10, "a library that fuses nothing proves nothing"


def test_the_record_equals_the_plans():
    assert kernel_counts.load_counts()["minifuse"]["kernels"] == EXPECTED


def test_the_record_has_date_and_versions():
    for said in json.loads(KEPT.read_text(encoding="utf-8")).values():
        assert set(said) == {"version", "date", "kernels"}
        assert said["date"][:2] == "20"
        assert any(c.isdigit() for c in said["version"])
