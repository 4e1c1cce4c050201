"""backends.cuda.compiler: intrinsics are found through globals, closures, defaults and device functions, without a GPU."""

import builtins
import linecache
import math
import re

import numpy as np
import pytest

from minifuse.backends.cuda import compiler
from minifuse.backends.cuda.compiler import compile_ptx, compile_target, kernel_from_text, numba_type, rebind_for_numba
from minifuse.backends.cuda.intrinsics import base
from minifuse.backends.cuda.intrinsics.base import Intrinsic, device, f32
from minifuse.core.errors import MissingPartError
from minifuse.simt import cuda

needs_numba = pytest.mark.usefixtures("numba_cuda")
TWICE = Intrinsic(lambda x: x + x, lambda: "numba's twice")


@pytest.fixture
def numba_cuda():
    pytest.importorskip(
        "numba_cuda", reason='numba-cuda is not installed: pip install "minifuse[cuda13]" (no GPU is needed)'
    )
    return compiler.numba_cuda()


@pytest.fixture
def named(monkeypatch):
    """In the place of Numba's objects, names that say what they stand for."""
    monkeypatch.setattr(compiler, "numba_cuda", lambda: "numba.cuda")
    monkeypatch.setattr(compiler, "device_function", lambda function: ("device", function))


@device
def square(x):
    return x * x


@device
def sum_of_squares(x, y):
    return square(x) + square(y)


# What stands for what


def test_intrinsics_of_the_module_are_numbas(named):
    def kernel(out, x):
        out[cuda.threadIdx.x] = TWICE(x) + math.sqrt(x)

    found = rebind_for_numba(kernel)
    assert found.__globals__["cuda"] == "numba.cuda"
    assert found.__globals__["TWICE"] == "numba's twice"
    assert found.__globals__["math"] is math
    assert found.__code__ is kernel.__code__
    assert kernel.__globals__["cuda"] is cuda  # the kernel itself stays as it was


def test_only_named_globals_are_rebound(named):
    def kernel(out):
        out[0] = 1

    assert set(rebind_for_numba(kernel).__globals__) == {"__builtins__", "__name__"}


def test_closures_are_rebound(named):
    word, number = TWICE, 3

    def kernel(out, x):
        out[0] = word(x) + number

    cells = dict(zip(rebind_for_numba(kernel).__code__.co_freevars, rebind_for_numba(kernel).__closure__, strict=True))
    assert cells["word"].cell_contents == "numba's twice"
    assert cells["number"].cell_contents == 3


def test_functions_that_a_kernel_calls_are_rebound_once(named):
    def kernel(out, x):
        out[0] = sum_of_squares(x, x) + square(x)

    names = rebind_for_numba(kernel).__globals__
    kind, called = names["sum_of_squares"]
    assert kind == "device"
    assert called.__globals__["square"] is names["square"]  # one object, though two name it
    assert called.__code__ is sum_of_squares.__code__


def test_names_inside_inner_functions_are_found(named):
    def kernel(out, x):
        out[0] = max([TWICE(y) for y in (x, x)])

    assert rebind_for_numba(kernel).__globals__["TWICE"] == "numba's twice"


def test_defaults_stay(named):
    def kernel(out, x, scale=2):
        out[0] = x * scale

    assert rebind_for_numba(kernel).__defaults__ == (2,)


# Text


def test_a_text_becomes_a_function_over_the_intrinsics():
    kernel = kernel_from_text("def kernel(out, x):\n    out[0] = own(f32(x))\n", own=lambda x: x + 1)
    out = [0]
    kernel(out, 2.5)
    assert out == [np.float32(3.5)]
    assert kernel.__globals__["f32"] is f32


def test_messages_can_show_the_lines_of_a_text():
    kernel = kernel_from_text("def kernel(out):\n    out[0] = 77  # this line\n")
    assert "this line" in linecache.getline(kernel.__code__.co_filename, 2)


def test_two_texts_have_two_files():
    """So that a line number in a message is that of its own kernel."""
    first, second = kernel_from_text("def kernel(a):\n    a[0] = 1\n"), kernel_from_text("def kernel(a):\n    a[0] = 2\n")
    assert first.__code__.co_filename != second.__code__.co_filename
    assert "1" in linecache.getline(first.__code__.co_filename, 2)


# With Numba


@needs_numba
def test_a_kernel_is_compiled_for_the_processor_that_is_named():
    kernel = kernel_from_text("def kernel(out, x):\n    i = cuda.threadIdx.x\n    out[i] = x[i] * f32(2)\n")
    for cc, name in (((9, 0), "sm_90"), ((7, 5), "sm_75")):
        found = compile_ptx(kernel, ["*f32", "*f32"], threads=128, cc=cc)
        assert f".target {name}" in found.ptx
        assert f".entry {found.entry}(" in found.ptx
        assert ".maxntid 128" in found.ptx
    assert compile_target.get() == (9, 0)


@needs_numba
def test_a_literal_does_not_widen_a_float32():
    kernel = kernel_from_text(
        "def kernel(out, x):\n    i = cuda.threadIdx.x\n    out[i] = x[i] * cast_like(x[i], 0.1) + f32(2.5)\n"
    )
    assert ".f64" not in compile_ptx(kernel, ["*f32", "*f32"]).ptx


@needs_numba
def test_functions_are_compiled_into_their_callers():
    def kernel(out, x):
        out[0] = sum_of_squares(x[0], x[1])

    assert not re.search(r"\bcall\.", compile_ptx(kernel, ["*f32", "*f32"]).ptx)


@needs_numba
def test_device_functions_are_compiled_once(monkeypatch):
    made, real = [], compiler.device_function
    monkeypatch.setattr(compiler, "device_function", lambda function: made.append(function.__name__) or real(function))
    monkeypatch.setattr(compiler, "_device_functions", {})
    found = []
    for factor in (2, 3):
        text = f"""
def point(x):
    return square(x) * f32({factor})


def kernel(out, x):
    out[0] = point(x[0]) + square(x[1])
"""
        found.append(compile_ptx(kernel_from_text(text, square=square), ["*f32", "*f32"]).ptx)
        found.append(compile_ptx(kernel_from_text(text, square=square), ["*f32", "*f32"], cc=(7, 5)).ptx)
    assert sorted(made) == ["point"] * 4 + ["square"] * 2  # a word for each processor, the kernel's own each time
    assert [ptx.count(".entry") for ptx in found] == [1] * 4
    assert ["0f40400000" in ptx for ptx in found] == [False, False, True, True]  # 3 as a float32


@needs_numba
@pytest.mark.parametrize("name", ["f32", "f64", "i32", "i64", "u8"])
def test_types_of_arguments(name, numba_cuda):
    assert numba_type(name) is getattr(base, name).compiled
    assert numba_type(f"*{name}") == numba_cuda.types.CPointer(numba_type(name))


def test_without_numba_the_error_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *more):
        if name == "numba_cuda":
            raise ImportError("No module named 'numba_cuda'")
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingPartError, match=r'numba-cuda is not installed.*pip install "minifuse\[cuda13\]"'):
        compiler.numba_cuda()


# What decides the machine code


def test_a_flavour_names_the_processor_and_all_that_compiles():
    text = compiler.compiler_fingerprint((9, 0))
    assert "sm_90" in text
    for package in ("numba-cuda", "cuda-core", "nvidia-nvvm", "nvidia-nvjitlink"):
        assert f"{package} " in text
    assert text != compiler.compiler_fingerprint((7, 5))
    assert compiler.version_of("numpy") == np.__version__
    assert compiler.version_of("no-such-package") == "-"
