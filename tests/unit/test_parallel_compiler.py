"""backends.parallel.compiler: from a kernel's text to machine code, and from the disk without a compiler."""

import ast
import ctypes
import json
import math
import os
import re
import struct
import subprocess
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba.core.compiler import Compiler

from minifuse.backends.llvm_linker import VECTOR_BYTES, needed_symbols
from minifuse.backends.parallel import compiler
from minifuse.backends.parallel.compiler import (
    build_object,
    compile_kernel_text,
    compiler_fingerprint,
    complete_source,
    link_object,
)
from minifuse.core.errors import CompileError
from minifuse.runtime.kernel_cache import KernelCache

Kernel = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, in memory and on disk."""
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "kernels"))
    empty = KernelCache()
    monkeypatch.setattr(compiler, "kernel_cache", empty)
    return empty


def call(address, *arrays, start=0, stop=None):
    """Run a kernel over arrays of one length, on this thread."""
    addresses = [array.ctypes.data for array in arrays]
    Kernel(address)(start, len(arrays[0]) if stop is None else stop, struct.pack(f"={len(arrays)}q", *addresses))


def text(*lines, imports="", pointers="f64 f64"):
    """A kernel that runs these lines for each i, with pointers x0, x1, ... to its arguments."""
    unpack = [f"x{k} = pointer_{short}(args[{k}])" for k, short in enumerate(pointers.split())]
    body = [*unpack, "for i in range(start, stop):", *(f"    {line}" for line in lines)]
    return "\n".join([imports, "", "def kernel(start, stop, args):", *(f"    {line}" for line in body), ""])


def machine_code(text):
    """The instructions of a kernel."""
    _, _, code = build_object("kernel", complete_source(text)).partition(b"\n")
    return [section.data() for section in llvm.ObjectFileRef.from_data(code).sections() if section.is_text()]


@pytest.mark.parametrize(
    "line",
    [
        "x0[i] = exp(x1[i]) + 1.0",
        "x0[i] = max(x1[i], 0.0) if i % 2 == 0 else x1[(i * 3) % stop]",
        "s = 0.0\n    for k in range(i):\n        s += x1[k] * i\n    x0[i] = s",
    ],
)
def test_the_passes_of_numba_that_are_left_out_change_nothing(line, monkeypatch):
    kernel = text(*line.split("\n    "))
    found = machine_code(kernel)
    monkeypatch.setattr(compiler, "_kernel_compiler", lambda: Compiler)
    assert found == machine_code(kernel) != []


def test_a_kernel_is_called_for_a_range(cache):
    x, y = np.zeros(10), np.arange(10.0)
    call(compile_kernel_text(text("x0[i] = x1[i] + i")), x, y, start=3, stop=7)
    assert x.tolist() == [0, 0, 0, 6, 8, 10, 12, 0, 0, 0]
    call(compile_kernel_text(text("x0[i] = -1.0")), x, y, start=5, stop=5)
    assert x[5] == 10


def test_a_kernel_in_memory_is_the_same_address(cache):
    assert compile_kernel_text(text("x0[i] = 1.0")) == compile_kernel_text(text("x0[i] = 1.0"))
    assert cache.stats()[:3] == (1, 1, 0)


FLOAT_CALLS = {
    "math.sin(x)": math.sin,
    "math.pow(x, 1.7)": lambda x: math.pow(x, 1.7),
    "math.erf(x)": math.erf,
    "math.atan2(x, 2.0)": lambda x: math.atan2(x, 2.0),
    "x % 0.7": lambda x: x % 0.7,
    "math.gamma(x)": math.gamma,  # a function of Numba's own
}


def test_functions_of_libm_and_of_numba_are_found(cache):
    y, last = np.linspace(0.5, 4, 9), len(FLOAT_CALLS)
    lines = [f"x{k}[i] = {call}" for k, call in enumerate(FLOAT_CALLS)]
    source = text(f"x = x{last}[i]", *lines, imports="import math", pointers="f64 " * (last + 1))
    for _ in range(2):  # compiled, then from disk
        results = np.zeros((last, 9))
        call(compile_kernel_text(source), *results, y)
        expected = [[function(value) for value in y] for function in FLOAT_CALLS.values()]
        np.testing.assert_allclose(results, expected, rtol=1e-13, atol=1e-15)
        cache._kernels.clear()


def test_integer_powers_and_divisions_by_zero(cache):
    x = np.array([-7, -2, -1, 0, 1, 2, 7])
    power, quotient, remainder = np.zeros((3, 7), np.int64)
    lines = ["x0[i] = x3[i] ** 5", "x1[i] = 7 // x3[i]", "x2[i] = 7 % x3[i]"]
    call(compile_kernel_text(text(*lines, pointers="i64 i64 i64 i64")), power, quotient, remainder, x)
    assert power.tolist() == (x**5).tolist()
    with np.errstate(divide="ignore"):
        assert quotient.tolist() == (7 // x).tolist()
        assert remainder.tolist() == (7 % x).tolist()


# The file that a person reads


def test_the_text_imports_only_names_that_it_uses():
    source = complete_source(
        text("x0[i] = where(x1[i] > f64(0), math.sin(x1[i]), y)", imports="import math\nfrom numpy import pi as y")
    )
    imports = [ast.unparse(node) for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imports == [
        "from numba import cfunc",
        "from minifuse.backends.parallel.vector_math import f64, pointer_f64, where",
        "import math",
        "from numpy import pi as y",
    ]
    plain = complete_source("def kernel(start, stop, args):\n    for i in range(start, stop):\n        args[i] = i\n")
    assert "vector_math" not in plain


def test_the_file_is_python_that_numba_compiles_by_itself(cache):
    compile_kernel_text(text("x0[i] = 2 * x1[i]"))
    (kernel,) = cache.kernels()
    namespace = {}
    exec(kernel.path.read_text(), namespace)
    x, y = np.zeros(100), np.arange(100.0)
    call(namespace[kernel.name].address, x, y)
    assert x.tolist() == (2 * y).tolist()


def test_the_code_is_as_large_as_numbas_own_and_computes_in_vectors(cache):
    import llvmlite.binding as llvm
    from numba import cfunc

    compile_kernel_text(text("x0[i] = x1[i] * x2[i] + x0[i]", pointers="f32 f32 f32"))
    (kernel,) = cache.kernels()
    code = build_object(kernel.name, kernel.text).partition(b"\n")[2]
    namespace = {"cfunc": cfunc}
    exec(kernel.text, namespace)
    numbas = namespace[kernel.name].inspect_llvm()
    assert "x float>" in numbas
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
    )
    sizes = [instructions(llvm, code), instructions(llvm, machine.emit_object(llvm.parse_assembly(numbas)))]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.25)  # a scalar loop has a tenth; one compiled twice, double


def instructions(llvm, code):
    """Bytes of instructions in an object file."""
    return sum(section.size() for section in llvm.ObjectFileRef.from_data(code).sections() if section.is_text())


def test_a_compile_error_shows_the_line_and_is_not_cached(cache):
    import numba

    with pytest.raises(numba.TypingError) as error:
        compile_kernel_text(text("x0[i] = x1[i].nothing"))
    assert "x0[i] = x1[i].nothing" in str(error.value)
    assert "from numba import cfunc" not in str(error.value)
    assert cache.stats()[:4] == (0, 0, 0, 0)


# What machine code needs of the process


def hide(monkeypatch, hidden):
    """Make LLVM find no function of this name."""
    find = compiler.llvm.address_of_symbol
    monkeypatch.setattr(compiler.llvm, "address_of_symbol", lambda name: None if name == hidden else find(name))


def test_needed_symbols_are_read_from_the_object_file(cache):
    compile_kernel_text(text("x0[i] = x1[i] % 0.7"))
    (kernel,) = cache.kernels()
    names = build_object(kernel.name, kernel.text).partition(b"\n")[0].decode().split()
    assert "fmod" in names  # no text declares it


def test_code_with_a_missing_symbol_is_an_error_and_not_cached(cache, monkeypatch):
    hide(monkeypatch, "fmod")
    for _ in range(2):
        with pytest.raises(CompileError, match="calls fmod, which this process does not have"):
            compile_kernel_text(text("x0[i] = x1[i] % 0.7"))
    assert cache.stats()[:4] == (0, 0, 0, 0)


def test_code_on_disk_that_calls_a_missing_function_is_made_again(cache):
    source = text("x0[i] = 2 * x1[i]")
    compile_kernel_text(source)
    (kernel,) = cache.kernels()
    code = build_object(kernel.name, kernel.text).partition(b"\n")[2]
    cache.put(kernel.name, kernel.text, b"no_such_function\n" + code)
    cache._kernels.clear()
    x, y = np.zeros(4), np.arange(4.0)
    call(compile_kernel_text(source), x, y)
    assert x.tolist() == (2 * y).tolist()
    assert cache.stats().compiled == 1
    cache._kernels.clear()
    compile_kernel_text(source)
    assert cache.stats().loaded == 1


UNRESOLVED = """
kernel = '''
def kernel(start, stop, args):
    x = pointer_f64(args[0])
    for i in range(start, stop):
        x[i] = math.pow(x[i], i)  # with the flags of a kernel a call of __powidf2
'''
import minifuse as mf
for _ in range(2):
    try:
        compile_kernel_text("import math" + kernel)
        print("compiled", end=" ")
    except mf.CompileError as error:
        print("__powidf2" in str(error), end=" ")
print(json.dumps([square(1)]))
"""


def test_a_function_that_the_linker_lacks_never_ends_the_process(tmp_path):
    """Where a library with that function is in the process, it compiles."""
    environment = os.environ | {"MINIFUSE_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM + UNRESOLVED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("True True [null]", "compiled compiled [null]")


@pytest.mark.parametrize("triple", ["x86_64-apple-darwin", "x86_64-pc-windows-msvc"])
def test_of_other_object_files_the_declared_functions_are_known(triple):
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    declared = (
        "declare double @sin(double)\ndefine double @f(double %x) {\n%y = call double @sin(double %x)\nret double %y\n}"
    )
    code = llvm.Target.from_triple(triple).create_target_machine().emit_object(llvm.parse_assembly(declared))
    assert needed_symbols(code, declared) == ["sin"]


# What decides the machine code


def test_the_flavour_holds_all_that_decides(cache, monkeypatch, tmp_path):
    import llvmlite
    import numba

    monkeypatch.setattr(compiler, "__file__", str(tmp_path / "compiler.py"))
    usual = compiler_fingerprint.__wrapped__()
    for part in ("cpu", *compiler.host_processor(), f"numba {numba.__version__}", f"llvmlite {llvmlite.__version__}"):
        assert part in usual.split("\n")
    monkeypatch.setenv("NUMBA_LOOP_VECTORIZE", "0")
    assert compiler_fingerprint.__wrapped__() != usual
    monkeypatch.delenv("NUMBA_LOOP_VECTORIZE")
    assert compiler_fingerprint.__wrapped__() == usual
    monkeypatch.setattr(compiler, "host_processor", lambda: ("another", "+avx"))
    assert compiler_fingerprint.__wrapped__() != usual


def test_the_flavour_changes_with_the_vocabulary(monkeypatch, tmp_path):
    (tmp_path / "vector_math.py").write_text("a = 1")
    monkeypatch.setattr(compiler, "__file__", str(tmp_path / "compiler.py"))
    first = compiler_fingerprint.__wrapped__()
    (tmp_path / "vector_math.py").write_text("a = 2")
    assert compiler_fingerprint.__wrapped__() != first


@pytest.mark.parametrize("name", ["llvm_linker.py", "numba_type_cache.py"])
def test_the_fingerprint_changes_with_modules_beside_the_backend(name, monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "__file__", str(tmp_path / "parallel" / "compiler.py"))
    first = compiler_fingerprint.__wrapped__()
    (tmp_path / name).write_text("a = 1")
    assert compiler_fingerprint.__wrapped__() != first


# From the disk


@pytest.mark.parametrize("payload", [b"", b"\n", b"\nnot an object file", b"sin\n\x7fELF" + bytes(200)])
def test_bytes_that_are_no_object_file_are_an_error(payload):
    with pytest.raises(RuntimeError):
        link_object("k_0", payload)


def test_a_function_that_is_not_there_is_an_error(cache):
    code = build_object("k_1", complete_source(text("x0[i] = 1.0")).replace("def kernel(", "def k_1("))
    with pytest.raises(RuntimeError):
        link_object("k_2", code)
    assert link_object("k_1", code)


def test_a_damaged_object_with_a_right_checksum_is_compiled_again(cache):
    source = text("x0[i] = x1[i]")
    with pytest.raises(RuntimeError):
        cache.find(complete_source(source), compiler_fingerprint(), lambda name, text: b"\nnothing", link_object)
    cache.find(complete_source(source), compiler_fingerprint(), lambda name, text: b"\nnothing", lambda name, payload: 0)
    (path,) = cache.stats().folder.glob("*.bin")
    damaged = path.read_bytes()
    cache._kernels.clear()
    x, y = np.zeros(4), np.arange(4.0)
    call(compile_kernel_text(source), x, y)
    assert x.tolist() == y.tolist()
    assert path.read_bytes() != damaged


@pytest.mark.skipif(VECTOR_BYTES < 64, reason="this processor has no AVX-512")
def test_vectors_fill_the_registers():
    """LLVM would take half of each on most processors that have AVX-512."""
    code = build_object(
        "k_wide", complete_source(text("x0[i] = x1[i] + x2[i]", pointers="f32 f32 f32")).replace("kernel", "k_wide")
    )
    add_of_512_bits = re.compile(rb"\x62[\x00-\xff]{2}[\x40-\x5f]\x58")  # an EVEX prefix of that length, vaddps
    assert add_of_512_bits.search(code)


PROGRAM = """
import json, os, struct, sys
from minifuse.backends.parallel.compiler import compile_kernel_text
from minifuse.backends.parallel.driver import driver
from minifuse.runtime.kernel_cache import cache

def square(more):
    loop = f"for i in range(start, stop): args[i] = i * i + {more}"
    kernel = compile_kernel_text(f"def kernel(start, stop, args):\\n    {loop}\\n")
    for chunks in (1, 4):
        results = bytes(8000)
        driver()(kernel, 1000, chunks, results)
        assert struct.unpack("=1000q", results) == tuple(i * i + more for i in range(1000))
"""

RUN = """
import minifuse.backends.parallel.backend
for more in range(3):
    square(more)
print(json.dumps([cache.stats().compiled, cache.stats().loaded, "numba" in sys.modules]))
"""

COUNT = """
from numba.core.event import install_recorder
with install_recorder("numba:compile") as compiled, install_recorder("numba:run_pass") as passes:
    for more in range(3):
        square(more)
print(json.dumps([cache.stats().compiled, cache.stats().loaded, len(compiled.buffer) + len(passes.buffer) > 0]))
"""

RACE = """
square(0)  # whatever is made at first use
read, write = os.pipe()
children = []
for _ in range(16):
    children.append(os.fork())
    if not children[-1]:
        os.read(read, 1)
        square(1)
        os._exit(0)
os.write(write, b"." * 16)
print(json.dumps([os.waitpid(child, 0)[1] for child in children]))
"""


def run_process(folder, script):
    environment = os.environ | {"MINIFUSE_CACHE": str(folder), "PYTHONWARNINGS": "ignore"}  # of a fork with threads
    command = [sys.executable, "-c", PROGRAM + script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_second_process_neither_compiles_nor_imports_numba(tmp_path):
    assert run_process(tmp_path, COUNT) == [3, 0, True]  # so the events are counted at all
    assert run_process(tmp_path, COUNT) == [0, 3, False]
    assert run_process(tmp_path, RUN) == [0, 3, False]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_sixteen_processes_race_for_one_kernel(tmp_path):
    assert run_process(tmp_path, RACE) == [0] * 16
    files = list(tmp_path.iterdir())
    assert sorted(file.suffix for file in files) == [".bin", ".bin", ".py", ".py"]
    assert len({file.stem for file in files}) == 2
