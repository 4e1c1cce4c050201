"""Kernels that Numba cannot compile are refused, and those that it compiles are not: the same verdict as its compiler."""

import re
import warnings
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

from minifuse import simt
from minifuse.core.errors import SimtError, UnknownWordError

numba = pytest.importorskip("numba")

SIZE, PAIR, NUMPY_SIZE, IS_ON = 16, (4, 8), np.int64(8), True
Point = namedtuple("Point", "x y")
POINT = Point(4, 8)
MODULE = SimpleNamespace(SIZE=8)

ACCEPTED = {
    "number": "s = cuda.local.array(16, float32)",
    "folded by Python": "s = cuda.local.array(1 << 5, float32)",
    "global": "s = cuda.shared.array(SIZE, float32)",
    "keyword": "s = cuda.shared.array(dtype=float32, shape=SIZE)",
    "global tuple": "s = cuda.local.array(PAIR, float32)",
    "item of a tuple": "s = cuda.local.array((PAIR[0], SIZE), float32)",
    "variable": "n = SIZE\n    s = cuda.local.array((n, n), float32)",
    "variable of a tuple": "m, n = PAIR\n    s = cuda.local.array(m, float32)",
    "variables": "m, n = 4, 8\n    s = cuda.local.array((m, n), float32)",
    "dims of an argument": "s = cuda.local.array(out.ndim, float32)",
    "branch": "s = cuda.local.array(16 if SIZE > 3 else 8, float32)",
    "tuple with a star": "t = (*PAIR, 3)\n    out[0] = t[2]",
    "list in a loop": "for x in [1, 2, 3]:\n        out[0] += x",
    "list of targets": "[m, n] = PAIR\n    out[0] = m",
    "bare return": "if out[0] > 1:\n        return\n    return None",
}
REFUSED = {
    "parameter": ("s = cuda.local.array(k, float32)", "the size k of a local array is computed in the kernel"),
    "default": ("s = cuda.shared.array((4, d), float32)", "the size d of a shared array is computed"),
    "shape": ("s = cuda.shared.array(out.shape[0], float32)", "the size out.shape[0] of a shared array"),
    "size": ("s = cuda.shared.array(out.size, float32)", "the size out.size of a shared array"),
    "size of the block": ("s = cuda.shared.array(cuda.blockDim.x, float32)", "the size cuda.blockDim.x of a shared array"),
    "padded tile": ("s = cuda.shared.array((SIZE, SIZE + 1), float32)", "the size SIZE + 1 of a shared array"),
    "minus": ("s = cuda.local.array(-SIZE, float32)", "the size -SIZE of"),
    "product in a variable": ("n = SIZE * 2\n    s = cuda.local.array(n, float32)", "the size n of a local array"),
    "changed variable": ("n = 4\n    n *= 2\n    s = cuda.local.array(n, float32)", "the size n of a local array"),
    "loop": ("for i in range(3):\n        s = cuda.local.array(i, float32)", "the size i of a local array"),
    "call": ("s = cuda.local.array(int(SIZE), float32)", "the size int(SIZE) of"),
    "number of NumPy": ("s = cuda.local.array(NUMPY_SIZE, float32)", "the size NUMPY_SIZE of"),
    "boolean": ("s = cuda.local.array(IS_ON, float32)", "the size IS_ON of"),
    "attribute": ("s = cuda.local.array(POINT.x, float32)", "the size POINT.x of"),
    "list": ("l = [1, 2, 3]\n    out[0] = l[1]", "a list at kernels.py:3 is not supported"),
    "list of a call": ("l = [x for x in range(3)]\n    out[0] = l[1]", "a list at kernels.py:3 is not supported"),
    "result": ("return 5", "the kernel returns 5, and a kernel cannot return a value: store it in an array"),
    "result of a branch": ("if k > 7:\n        return out[0]", "the kernel returns out[0], and a kernel cannot"),
}


def make_kernel(body, tmp_path, cuda, decorator=""):
    """Return a kernel of a file, for the interpreter or for Numba."""
    path = tmp_path / "kernels.py"
    path.write_text(f"{decorator}\ndef kernel(out, k, d=4):\n    {body}\n", encoding="utf-8")
    values = {"cuda": cuda, "float32": numba.float32, **globals()}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), values)
    return values["kernel"]


def is_compiled(body, tmp_path):
    """Return whether Numba compiles a kernel."""
    pytest.importorskip("numba_cuda")
    from numba import cuda

    kernel = make_kernel(body, tmp_path, cuda)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cuda.compile_ptx(kernel, (numba.float32[:], numba.int64, numba.int64), cc=(9, 0))
    except Exception:
        return False
    return True


@pytest.mark.parametrize("name", ACCEPTED)
def test_kernels_that_numba_compiles_run(name, tmp_path):
    simt.run(make_kernel(ACCEPTED[name], tmp_path, simt.cuda), 1, 1, np.zeros(8, np.float32), 2)
    assert is_compiled(ACCEPTED[name], tmp_path)


@pytest.mark.parametrize("name", REFUSED)
def test_kernels_that_numba_refuses_are_refused(name, tmp_path):
    body, message = REFUSED[name]
    with pytest.raises(UnknownWordError, match=re.escape(message)) as info:
        simt.run(make_kernel(body, tmp_path, simt.cuda), 1, 1, np.zeros(8, np.float32), 2)
    ((file, line),) = info.value.lines
    assert (file, line) == (str(tmp_path / "kernels.py"), 2 + len(body.split("\n")) if "list" not in name else 3)
    assert not is_compiled(body, tmp_path)


def double_first(out, n):
    s = simt.cuda.local.array(n, np.float32)
    s[0] = 1
    out[0] = s[0]


def pad_first(out, n):
    s = simt.cuda.local.array(n + 1, np.float32)
    s[0] = 1


def test_parameters_of_device_functions_may_be_constants():
    def kernel(out):
        double_first(out, 16)

    def padded(out):
        pad_first(out, 16)

    simt.run(kernel, 1, 1, np.zeros(1))
    with pytest.raises(UnknownWordError, match=r"pad_first at .*: the size n \+ 1 of a local array"):
        simt.run(padded, 1, 1, np.zeros(1))


def add_one(out):
    out[0] += 1


def test_a_kernel_may_return_only_the_none_of_a_call():
    def calls(out):
        return add_one(out)

    def adds(out):
        return simt.cuda.atomic.add(out, 0, 1)

    simt.run(calls, 1, 2, np.zeros(1))
    with pytest.raises(UnknownWordError, match=r"adds: the kernel returns .*0\.0.*, in thread 0 of block 0") as info:
        simt.run(adds, 1, 2, np.zeros(1))
    assert [line for _, line in info.value.lines] == [adds.__code__.co_firstlineno + 1]


def test_decorators_and_inner_functions_are_no_part_of_a_kernel(tmp_path):
    body = "def f(x):\n        return 2 * x\n    out[0] = f(3)"
    kernel = make_kernel(body, tmp_path, simt.cuda, "@(lambda f, signatures=['void()']: f)")
    out = np.zeros(1)
    simt.run(kernel, 1, 1, out, 1)
    assert out[0] == 6


def test_shared_arrays_of_a_kernel_have_at_most_48_kib():
    def kernel(out):
        first, second = simt.cuda.shared.array((80, 100), np.float32), simt.cuda.shared.array(4288, np.float32)
        first[0, 0] = second[0] = 1

    def too_many(out):
        first = simt.cuda.shared.array((80, 100), np.float32)
        second = simt.cuda.shared.array(4289, np.float32)
        first[0, 0] = second[0] = 1

    simt.run(kernel, 2, 1, np.zeros(1))
    with pytest.raises(SimtError, match=r"'second' at .*have 49,156 bytes, more than 49,152; use smaller arrays") as info:
        simt.run(too_many, 2, 1, np.zeros(1))
    assert [line for _, line in info.value.lines] == [too_many.__code__.co_firstlineno + 2]
