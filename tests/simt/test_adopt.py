"""`rebind`: functions that are written for Numba run in the interpreter, with its own `cuda`, math and arrays."""

import enum
import math
import math as m
import os
import subprocess
import sys
import types
from collections import namedtuple
from math import exp, pi

import numpy as np
import pytest
from numpy import sqrt as root

from minifuse import simt
from minifuse.core.errors import MissingPartError, UnknownWordError
from minifuse.simt import cuda
from minifuse.simt.rebind import rebind
from tests.sources import ROOT

numba = pytest.importorskip("numba")

FACTOR = 2
TABLE = np.array([10.0, 20.0, 30.0])
PAIR = (3, 0.5)
Point = namedtuple("Point", "x y")


class Color(enum.IntEnum):
    RED = 7


def double(x):
    return FACTOR * x


def apply(a):
    i = cuda.threadIdx.x
    a[i] = double(a[i]) + PAIR[0] + Color.RED


def test_kernels_call_plain_functions_and_read_module_constants():
    a = np.zeros(2)
    simt.run(apply, 1, 2, a)
    assert a.tolist() == [10, 10]


def test_changed_globals_are_read_by_the_next_run(monkeypatch):
    a = np.ones(1)
    simt.run(apply, 1, 1, a)
    monkeypatch.setitem(globals(), "FACTOR", 5)
    a[:] = 1
    simt.run(apply, 1, 1, a)
    assert a[0] == 15
    monkeypatch.setitem(globals(), "double", lambda x: -x)
    a[:] = 1
    simt.run(apply, 1, 1, a)
    assert a[0] == 9


def test_rebind_is_cached():
    assert rebind(apply) is rebind(apply)
    assert rebind(apply).parameter_names == ["a"]


def test_launch_leaves_module_globals_unchanged():
    before = {name: id(value) for name, value in globals().items()}
    simt.run(apply, 1, 1, np.ones(1))
    assert {name: id(value) for name, value in globals().items()} == before
    assert double.__globals__ is globals()


def use_aliases(out):
    out[0] = m.exp(0) + exp(0) + pi * 0 + root(4) + np.sqrt(9) + math.inf * 0 if out[0] > 0 else m.exp(0) + exp(0) + root(4)


def test_imported_aliases_resolve():
    out = np.zeros(1)
    simt.run(use_aliases, 1, 1, out)
    assert out[0] == 4


def read_module_array(out):
    mine = cuda.const.array_like(TABLE)
    i = cuda.threadIdx.x
    out[i] = mine[i] + TABLE[i] + len(TABLE) + TABLE.shape[0]


def write_constant(out):
    TABLE[0] = 1


def test_module_arrays_are_read_only_constants():
    out = np.zeros(3)
    trace = simt.trace(read_module_array, 1, 3, out)
    assert out.tolist() == [26, 46, 66]
    assert {info.name: info.space for info in trace.arrays} == {"out": "global", "TABLE": "const"}
    assert {row.function for row in trace.instructions} == {"read_module_array"}
    assert list(trace.outputs) == ["out"]
    with pytest.raises(Exception, match="read-only"):
        simt.run(write_constant, 1, 1, out)


def make_kernel(scale, helper):
    def kernel(a, extra=4, *, more=1):
        a[0] = helper(a[0]) * scale + extra + more

    return kernel


def test_closures_and_default_arguments_work():
    a = np.ones(1)
    simt.run(make_kernel(3, double), 1, 1, a)
    assert a[0] == 11
    simt.run(make_kernel(3, lambda x: x + 1), 1, 1, a, 0)
    assert a[0] == 37


def test_changed_closure_variable_is_read_by_the_next_run():
    scale = 2

    def kernel(a):
        a[0] = scale

    a = np.zeros(1)
    simt.run(kernel, 1, 1, a)
    scale = 3
    simt.run(kernel, 1, 1, a)
    assert a[0] == 3


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def use_recursion(a):
    a[0] = factorial(5)


def test_recursive_functions_run():
    a = np.zeros(1)
    simt.run(use_recursion, 1, 1, a)
    assert a[0] == 120


def with_inner(a):
    def add(x):
        return x + FACTOR

    a[0] = add(double(1))


def test_functions_defined_inside_a_kernel_run():
    a = np.zeros(1)
    simt.run(with_inner, 1, 1, a)
    assert a[0] == 4


def test_functions_and_constants_of_other_modules_work(monkeypatch):
    other = types.ModuleType("other")
    exec("import math\nWIDTH = 8\ndef half(x):\n    return math.floor(x / 2)", other.__dict__)
    monkeypatch.setitem(globals(), "other", other)

    def kernel(a):
        a[0] = other.half(other.WIDTH + 1)

    a = np.zeros(1)
    simt.run(kernel, 1, 1, a)
    assert a[0] == 4
    other.WIDTH = 20
    simt.run(kernel, 1, 1, a)
    assert a[0] == 10


def test_named_tuples_are_built_and_passed():
    def kernel(a, p):
        q = Point(p.y, p.x)
        a[0] = q.x

    a = np.zeros(1)
    simt.run(kernel, 1, 1, a, Point(1, 2))
    assert a[0] == 2


class PairLoad:
    """An object with an implementation for the interpreter, like the intrinsics of the library's kernels."""

    @staticmethod
    @simt.word
    def python_semantics(array):
        return array.load(0, 2)


PAIR_LOAD = PairLoad()
THING = object()


def use_pair_load(a):
    a[2], a[3] = PAIR_LOAD(a)


def test_an_object_with_python_semantics_is_replaced_by_them():
    a = np.arange(4.0)
    simt.run(use_pair_load, 1, 1, a)
    assert a.tolist() == [0, 1, 0, 1]


def uses_open(a):
    a[0] = 1
    open("file")  # noqa: PTH123, SIM115


def uses_module(a):
    a[0] = sys.maxsize2


def uses_object(a):
    a[0] = THING


def uses_try(a):
    try:
        a[0] = 1
    except IndexError:
        a[0] = 2


def uses_import(a):
    import os

    a[0] = os.getpid()


def uses_dict(a):
    a[0] = {1: a[0]}[1]


def calls_unknown(a):
    uses_open(a)


@pytest.mark.parametrize(
    ("kernel", "name", "step"),
    [
        (uses_open, "open", 2),
        (uses_module, "sys.maxsize2", 1),
        (uses_object, "THING of type object", 1),
        (uses_try, "try and with", 1),
        (uses_import, "import", 1),
        (uses_dict, "a dict", 1),
    ],
)
def test_unsupported_python_is_rejected_before_the_kernel_runs(kernel, name, step):
    a = np.zeros(1)
    with pytest.raises(UnknownWordError, match=f"{name}.* at test_adopt.py:") as info:
        simt.run(kernel, 1, 1, a)
    if name != "try and with":
        assert info.value.lines == ((__file__, kernel.__code__.co_firstlineno + step),)
    assert a[0] == 0


def test_error_names_the_line_in_the_called_function():
    with pytest.raises(UnknownWordError) as info:
        simt.run(calls_unknown, 1, 1, np.zeros(1))
    assert info.value.lines == ((__file__, uses_open.__code__.co_firstlineno + 2),)


def test_launching_a_non_function_is_an_error():
    with pytest.raises(UnknownWordError, match="expected a Python function or a kernel"):
        simt.run(3, 1, 1)


@pytest.fixture(scope="module")
def aliases():
    """Import kernels that are written for Numba. (`cuda.jit` compiles nothing before a launch.)"""
    pytest.importorskip("numba.cuda")
    from tests.simt import numba_aliases

    return numba_aliases


def test_numba_dispatchers_aliases_and_types_work(aliases):
    a, out = np.arange(4, dtype=np.float32), np.zeros(4)
    before = dict(vars(aliases))
    trace = simt.trace(aliases.alias, 1, 4, out, a)
    assert trace.is_complete, trace.findings
    expected = np.array([x * x + x**3 for x in a[::-1]]) + 4.5
    expected[0] += 6
    assert out.tolist() == expected.tolist()
    assert trace.kernel == "alias"
    assert vars(aliases) == before


def test_numba_random_numbers_are_drawn(aliases):
    states = np.full(3, 1 << 62, np.uint64).astype([("s0", np.uint64), ("s1", np.uint64)])
    out = np.zeros(3)
    trace = simt.trace(aliases.uniform, 1, 3, states, out)
    assert trace.is_complete
    assert out.tolist() == [0.5] * 3
    assert states["s0"][0] != 1 << 62
    assert {row.function for row in trace.instructions} == {"uniform"}


def test_unsupported_numba_name_is_an_error_with_its_line(aliases):
    with pytest.raises(UnknownWordError, match=r"cuda\.libdevice at numba_aliases.py:"):
        simt.run(aliases.unknown, 1, 1, np.zeros(1))


def test_outputs_agree_with_numbas_own_simulator(tmp_path):
    pytest.importorskip("numba.cuda")
    from tests.simt import numba_kernels

    environment = {"NUMBA_ENABLE_CUDASIM": "1", "PATH": "", "HOME": str(tmp_path)}
    command = [sys.executable, numba_kernels.__file__, str(tmp_path / "found.npz")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = np.load(tmp_path / "found.npz")
    for kernel, grid, block, arrays in numba_kernels.launches():
        trace = simt.trace(kernel, grid, block, *arrays)
        assert trace.hazards() == []
        assert np.allclose(arrays[0], expected[trace.kernel], rtol=1e-6), trace.kernel


def test_interpreter_imports_nothing_from_numba_cuda(tmp_path):
    code = (
        "import sys, numpy as np\nfrom minifuse import simt\nfrom minifuse.simt import cuda\n"
        "def k(a):\n    a[0] = cuda.grid(1)\n"
        "sys.modules['numba'] = None\nsimt.run(k, 1, 1, np.zeros(1))\n"
        "print([name for name in sys.modules if name.startswith('numba.')  and 'cuda' in name])"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_missing_greenlet_error_shows_the_install_command():
    code = "import sys\nsys.modules['greenlet'] = None\nimport minifuse.simt"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert MissingPartError.__name__ in done.stderr
    assert 'pip install "minifuse[simt]"' in done.stderr
