"""Lines of `mf.nn` give PyTorch's recorded values and gradients, eagerly and in a fused function."""

import pytest
from numpy.testing import assert_allclose

import minifuse as mf
from tests.nn.evaluate_lines import LINES, evaluate
from tests.nn.recorded import load

FUSED = [line for k, line in enumerate(LINES) if k % 16 == 0 and "net" not in line]


def compare(line, found):
    """Compare all results and gradients of a line with PyTorch's."""
    prefix = f"{line}|"
    expected = {name.removeprefix(prefix): x for name, x in load("lines").items() if name.startswith(prefix)}
    assert found.keys() == expected.keys()
    for key, x in found.items():
        assert x.dtype == expected[key].dtype
        assert_allclose(x, expected[key], 1e-6, 1e-6, err_msg=key)


@pytest.mark.parametrize("line", LINES)
def test_nn_gives_the_values_and_gradients_of_pytorch(line):
    with mf.use_backend("python"):
        compare(line, evaluate(line, "minifuse"))


@pytest.mark.parametrize("line", FUSED)
def test_nn_gives_the_same_in_a_fused_function(line):
    with mf.use_backend("python"):
        compare(line, evaluate(line, "minifuse", lambda f: mf.fuse(f)()))
