"""Each case of the table on the python backend: eager, fused, with its gradient; a sample of them on the other backends."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import linalg, special

import minifuse as mf
from minifuse.functions import load

from .cases import Case, all_cases, arrays

CASES = all_cases()
STEP = 1e-6


def tensors(names: str, requires_grad: bool = False) -> dict[str, Any]:
    """Return the variables of an expression as tensors."""
    made = {name: mf.tensor(array.copy()) for name, array in arrays().items() if name in names}
    return {name: x.requires_grad_() if requires_grad and x.dtype.is_float else x for name, x in made.items()}


def evaluate(expression: str, names: dict[str, Any]) -> Any:
    """Evaluate one side of a case."""
    modules = {"mf": mf, "nn": mf.nn, "F": mf.nn.functional, "np": np, "sp": special, "scipy_linalg": linalg}
    return eval(expression, modules | names)


def variables_of(case: Case) -> list[str]:
    """Return the variables that the call of a case reads."""
    code = compile(case.call, "<case>", "eval")
    names = {*code.co_names}
    for constant in code.co_consts:
        names |= {*getattr(constant, "co_names", ())}
    return [name for name in arrays() if name in names]


def parts(result: Any) -> list[Any]:
    """Return the arrays of a result."""
    return [part for item in result for part in parts(item)] if isinstance(result, tuple | list) else [result]


def assert_close(got: Any, expected: Any) -> None:
    """Compare shapes, kinds of dtypes and values of each array of a result."""
    pairs = list(zip(parts(got), parts(expected), strict=True))
    for y, reference in pairs:
        y, reference = np.asarray(y.detach() if isinstance(y, mf.Tensor) else y), np.asarray(reference)
        assert y.shape == reference.shape
        assert y.dtype.kind == reference.dtype.kind
        np.testing.assert_allclose(y, reference, rtol=1e-7, atol=1e-10)


def with_backend(name: str, run: Callable[[], None]) -> None:
    """Run with another default backend."""
    with mf.use_backend(name):
        run()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.call)
def test_a_function_equals_its_reference(case: Case) -> None:
    expected = evaluate(case.reference, arrays())
    with mf.use_backend("python"):
        assert_close(evaluate(case.call, tensors(variables_of(case))), expected)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.call)
def test_a_fused_function_equals_its_reference(case: Case) -> None:
    names = variables_of(case)
    with mf.use_backend("python"):
        run = mf.fuse(lambda *xs: evaluate(case.call, dict(zip(names, xs, strict=True))))
        if case.is_eager_only or case.is_on_host:
            with pytest.raises(mf.FuseError, match="depends on values" if case.is_eager_only else "call it before"):
                run(*tensors(names).values())
        else:
            assert_close(run(*tensors(names).values()), evaluate(case.reference, arrays()))


@pytest.mark.parametrize("case", [case for case in CASES if case.has_gradient], ids=lambda case: case.call)
def test_the_gradient_of_a_function_equals_differences(case: Case) -> None:
    names = variables_of(case)
    with mf.use_backend("python"):
        xs = tensors(names, requires_grad=True)
        results = [y for y in parts(evaluate(case.call, xs)) if isinstance(y, mf.Tensor) and y.requires_grad]
        if not results:
            return
        sum(((y * y).sum() for y in results), start=mf.tensor(0.0, dtype=mf.float64)).backward()
    for name in names:
        if xs[name].requires_grad:
            direction = np.random.default_rng(1).normal(size=xs[name].shape)
            up, down = (sum_of_squares(case, name, sign * STEP * direction) for sign in (1, -1))
            slope = 0.0 if xs[name].grad is None else float((xs[name].grad.numpy() * direction).sum())
            assert slope == pytest.approx((up - down) / (2 * STEP), rel=1e-5, abs=1e-7), name


def sum_of_squares(case: Case, name: str, change: np.ndarray) -> float:
    """Return the sum of the squares of all float results of the reference, with one variable changed."""
    values = arrays()
    values[name] = values[name] + change
    floats = [y for y in map(np.asarray, parts(evaluate(case.reference, values))) if y.dtype.kind == "f"]
    return float(sum((y * y).sum() for y in floats))


@pytest.mark.parametrize("backend", ["parallel", "cuda"])
@pytest.mark.parametrize("case", CASES[::5], ids=lambda case: case.call)
def test_compiled_backends_agree(case: Case, backend: str) -> None:
    if backend not in mf.backends():
        pytest.skip(f"no {backend}")
    with_backend(
        backend, lambda: assert_close(evaluate(case.call, tensors(variables_of(case))), evaluate(case.reference, arrays()))
    )


def test_names_of_the_table_have_a_case_or_are_methods() -> None:
    tried = {case.function for case in CASES}
    untried = sorted(name for name in load() if name not in tried and not load()[name].__doc__)
    assert not untried, f"functions without a docstring and a case: {untried}"


def test_an_unknown_name_is_answered_with_the_nearest_ones() -> None:
    with pytest.raises(AttributeError, match=r"did you mean mf\.subtract"):
        mf.subtrct  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'sigmod'; did you mean mf\.sigmoid\?"):  # an operator
        mf.sigmod  # noqa: B018
    with pytest.raises(AttributeError, match=r"no float16; write x\.to\(mf\.float32\)"):
        mf.zeros(2, 3).half()


def test_a_view_in_place_changes_the_shape_of_the_tensor() -> None:
    with mf.use_backend("python"):
        x = mf.arange(6).reshape(2, 3)
        y = x
        assert x.transpose_(0, 1).unsqueeze_(0).shape == y.shape == (1, 3, 2)
        assert y.squeeze_().t_().tolist() == [[0, 1, 2], [3, 4, 5]]
        assert x.as_strided_((2, 2), (1, 2)).tolist() == [[0, 2], [1, 3]]
        with pytest.raises(mf.GradientError, match=r"write y = x\.swapaxes"):
            mf.zeros(2, 2, requires_grad=True).swapaxes_(0, 1)
        with pytest.raises(mf.FuseError, match=r"write x = x\.t\(\.\.\.\)"):
            mf.fuse(lambda x: x.t_())(mf.zeros(2, 3))


NAMES = (Path(__file__).parents[1] / "like_pytorch" / "names.txt").read_text().split()


def test_each_name_of_pytorch_exists_or_says_what_to_write() -> None:
    x = mf.zeros(2, 2)
    for name in NAMES:
        *path, last = name.split(".")
        owner = x if path == ["torch", "Tensor"] else mf
        for part in path[1:] if owner is mf else ():
            owner = getattr(owner, part)
        try:
            getattr(owner, last)
        except AttributeError as error:
            assert re.search("write|use", str(error)), f"{name}: {error}"  # noqa: PT017


def test_a_twin_in_place_stores_its_result() -> None:
    with mf.use_backend("python"):
        x = mf.tensor([1.0, -2.0])
        y = x
        assert x.subtract_(1.0) is y
        assert y.tolist() == [0.0, -3.0]
        with pytest.raises(mf.ShapeError, match="sum_: the result has shape"):
            mf.zeros(2, 2).sum_(0)


RANDOM = """
mf.rand_like(x) >= 0
mf.randn_like(x).abs() < 9
mf.randint(2, 5, (3, 4)) < 5
mf.randint_like(x, 3) >= 0
mf.randperm(7).sum() == 21
mf.normal(100.0, 1.0, (4,)) > 90
mf.normal(x * 0 + 100, 1.0) > 90
mf.bernoulli(x * 0 + 1) == 1
mf.poisson(x * 0) == 0
mf.multinomial(mf.tensor([0.0, 1.0, 0.0]), 5, replacement=True) == 1
mf.multinomial(mf.ones(2, 4), 4).sum(1) == 6
x.uniform_(2, 3) >= 2
x.normal_(50, 1) > 40
x.exponential_() >= 0
x.geometric_(0.5) >= 1
x.log_normal_() > 0
x.cauchy_(0, 1).abs() < 1e30
x.bernoulli_(1.0) == 1
x.random_(0, 3) < 3
"""


@pytest.mark.parametrize("expression", [line for line in RANDOM.split("\n") if line])
def test_random_numbers_are_in_their_range(expression: str) -> None:
    with mf.use_backend("python"):
        assert evaluate(f"({expression}).all()", {"x": mf.tensor(arrays()["x"])})


def test_a_fused_function_draws_anew_at_each_call() -> None:
    with mf.use_backend("python"):
        draw = mf.fuse(lambda x: x + mf.randint(1_000_000_000, (2,)))
        x = mf.zeros(2)
        assert draw(x).tolist() != draw(x).tolist()


def test_devices_stand_for_backends() -> None:
    with mf.use_backend("python"):
        assert mf.zeros(2, device="cpu").backend == "python"
        assert mf.rand(2, device="cpu").to("cpu").device == "cpu"
        with pytest.raises(mf.BackendError, match="tpu"):
            mf.zeros(2, device="tpu")


def test_a_tensor_is_created_on_the_device_of_another() -> None:
    for backend in ("python", "parallel"):
        x = mf.zeros(2, backend=backend)
        assert (x + mf.arange(2, device=x.device)).tolist() == [0, 1]
