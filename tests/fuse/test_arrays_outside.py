"""NumPy arrays that a fused function refers to, such as globals and attributes, and what changes of them do."""

import numpy as np
import pytest

import minifuse as mf

USES_OF_ARRAYS = {
    "operand": lambda x, a: x + a,
    "operand on the left": lambda x, a: a * x,
    "operand of a change": lambda x, a: x.clone().copy_(mf.from_numpy(a)),
    "tensor over its memory": lambda x, a: mf.from_numpy(a) * x,
    "copy": lambda x, a: mf.tensor(a[::-1]) + x,
    "computed by NumPy": lambda x, a: x * a.sum(),
    "element": lambda x, a: x * a[1],
}


@pytest.mark.parametrize("name", USES_OF_ARRAYS)
def test_an_array_outside_may_be_another_or_have_other_elements(name):
    use = USES_OF_ARRAYS[name]
    array, x = np.arange(3.0), mf.ones(3, dtype="float64")
    f = mf.fuse(lambda x: use(x, array))
    for change in (None, np.full(3, 7.0), "in place", np.array([4.0, 3.0, 2.0])[::-1]):
        if isinstance(change, str):
            array += 1
        elif change is not None:
            array = change
        for _ in range(2):
            assert f(x).tolist() == use(x, array).tolist()


@pytest.mark.parametrize(
    "array", [np.array(["a", "b"]), np.zeros(3, "float16"), np.arange(4, dtype="uint16"), np.array([None])]
)
def test_an_array_that_is_no_tensor_may_be_read_outside(array):
    f = mf.fuse(lambda x: x * len(array) + (array.dtype.kind == "u" and int(array[0])))
    assert f(mf.ones(2)).tolist() == [len(array)] * 2
    if array.dtype.kind == "u":
        array[0] = 3
        assert f(mf.ones(2)).tolist() == [7, 7]


def test_a_large_array_outside_is_compared_by_a_sample():
    array = np.zeros(1_000_000, "float32")
    f = mf.fuse(lambda x: x + float(array.sum()))
    f(mf.ones(2))
    array += 1
    assert f(mf.ones(2)).tolist() == [1_000_001] * 2


def test_a_closure_array_shares_memory_with_a_changed_argument():
    found = []
    for fuse in (lambda f: f, mf.fuse):
        array = np.arange(6.0)

        def function(x, array=array):
            before = x + array[:1]
            x *= 2
            return before + array

        x = mf.from_numpy(array)
        try:
            found.append((fuse(function)(x).tolist(), array.tolist()))
        except mf.OverlapError:
            found.append(found[0])
    assert found[0] == found[1]


def test_an_array_among_the_attributes_of_a_module_may_change():
    class Masked(mf.nn.Module):
        def __init__(self):
            super().__init__()
            self.mask = np.ones(3)

        @mf.fuse
        def forward(self, x):
            return x * self.mask

    module, x = Masked(), mf.ones(3, dtype="float64")
    assert module(x).tolist() == [1, 1, 1]
    module.mask = np.zeros(3)
    assert module(x).tolist() == [0, 0, 0]
    module.mask[1] = 5
    assert module(x).tolist() == [0, 5, 0]


def test_an_array_outside_that_does_not_change_is_captured_once():
    array = np.arange(3.0)
    f = mf.fuse(lambda x: x * array)
    for _ in range(3):
        f(mf.ones(3, dtype="float64"))
    assert f.stats().captures == 1


def test_an_array_outside_that_a_capture_would_change_is_refused():
    array = np.zeros(3)

    def function(x):
        array[0] += 1
        return x * 2

    with pytest.raises(mf.FuseError, match="a list or an array"):
        mf.fuse(function)(mf.ones(3))
