"""The host side of numba.cuda: arrays, copies, and launches with the checks of the driver. No kernel runs."""

import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor, wait
from enum import IntEnum
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import float32, float64, int32

from minifuse.backends.cuda import compiler
from minifuse.core.errors import (
    CudaError,
    DTypeError,
    MissingPartError,
    ShapeError,
    UninitializedReadError,
    UnknownWordError,
    ViewError,
)
from minifuse.simt.host import DeviceArray, stand_in_modules, substitute_modules


class LaunchLog:
    """Records launches and reports. Instead of a kernel, it runs `effect` on the arguments."""

    def __init__(self):
        self.launches, self.reports, self.effect = [], [], lambda *arguments: None

    def launch(self, launch):
        self.launches.append(launch)
        self.effect(*launch.arguments)

    def report_hazard(self, error, line):
        self.reports.append((error, line))


@pytest.fixture
def log():
    return LaunchLog()


@pytest.fixture
def cuda(log):
    return stand_in_modules(log)["numba.cuda"]


def line_of(function, text):
    """Return the number of the first line of a function that contains the text."""
    code = function.__code__
    lines = Path(code.co_filename).read_text(encoding="utf-8").splitlines()
    return next(i + 1 for i in range(code.co_firstlineno, len(lines)) if text in lines[i])


ARRAYS = [
    np.arange(7),
    np.arange(15, dtype=np.float32).reshape(3, 5),
    np.asfortranarray(np.arange(15, dtype=np.int16).reshape(3, 5)),
    np.arange(24.0).reshape(2, 3, 4),
    np.array(3 + 4j),
    np.zeros((0, 3), bool),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.shape}{a.dtype}")
def test_arrays_survive_the_round_trip_to_the_device(cuda, log, array):
    device = cuda.to_device(array)
    assert (device.shape, device.dtype, device.strides) == (array.shape, array.dtype, array.strides)
    assert (device.size, device.nbytes, device.ndim) == (array.size, array.nbytes, array.ndim)
    back = device.copy_to_host()
    np.testing.assert_array_equal(back, array)
    assert back.strides == array.strides
    into = np.empty_like(array)
    assert device.copy_to_host(into) is into
    np.testing.assert_array_equal(into, array)
    like = cuda.device_array_like(array)
    assert (like.shape, like.dtype, like.strides) == (array.shape, array.dtype, array.strides)
    like.copy_to_device(device)
    np.testing.assert_array_equal(like, array)
    assert log.reports == []


def test_device_array_is_a_copy_and_its_slices_are_views(cuda):
    host = np.arange(12)
    device = cuda.to_device(host)
    host[0] = 99
    assert device[0] == 0
    device[2:5] = 7
    device.reshape(3, 4)[1][2] = 8
    device.ravel()[-1] = 9
    device[6:][:2].copy_to_device(np.array([5, 5]))
    np.testing.assert_array_equal(device.copy_to_host(), [0, 1, 7, 7, 7, 5, 5, 5, 8, 9, 10, 9])
    assert len(device) == 12
    assert [int(x) for x in device[:3]] == [0, 1, 7]
    assert cuda.to_device(device) is device
    part = cuda.as_cuda_array(device)
    part[0] = 1
    assert device[0] == 1


def test_transpose_view_squeeze_and_split_match_numba_cuda(cuda):
    matrix = cuda.to_device(np.arange(6, dtype=np.float32).reshape(2, 3))
    turned = matrix.T
    np.testing.assert_array_equal(turned, np.arange(6).reshape(2, 3).T)
    turned[0, 0] = 50
    assert matrix[0, 0] == 0  # numba.cuda transposes by a kernel, into new memory
    assert matrix.view(np.int32)[0, 1] == np.float32(1).view(np.int32)
    assert cuda.to_device(np.zeros((1, 4))).squeeze().shape == (4,)
    assert [part.shape for part in cuda.to_device(np.zeros(7)).split(3)] == [(3,), (3,), (1,)]
    assert matrix.flags == {"C_CONTIGUOUS": True, "F_CONTIGUOUS": False}
    assert matrix.is_c_contiguous()
    assert not matrix.is_f_contiguous()


def test_copying_unwritten_memory_to_the_host_is_reported(cuda, log):
    device = cuda.device_array((3, 4), np.float32)
    assert np.isnan(device.data).all()
    device[:, :2] = 0
    device.copy_to_host()  # the copy
    ((error, line),) = log.reports
    here = test_copying_unwritten_memory_to_the_host_is_reported
    assert isinstance(error, UninitializedReadError)
    assert line == (__file__, line_of(here, "# the copy"))
    assert error.lines == (line, (__file__, line_of(here, "device_array((3")))
    assert error.element == (0, 2)
    assert "5 more of 12" in str(error)
    assert device[0, 1] == 0
    assert len(log.reports) == 1
    device[2, 3]
    assert len(log.reports) == 2
    other = cuda.to_device(np.zeros(4, np.float32))
    other[:] = device[2]  # a copy between device arrays also copies which elements were written
    np.testing.assert_array_equal(other.written, [True, True, False, False])


def test_device_arrays_have_the_requested_order_or_strides(cuda):
    assert cuda.device_array((3, 4), order="F").strides == (8, 24)
    gaps = cuda.device_array((3, 4), np.int32, strides=(32, 4))
    gaps[...] = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(gaps, np.arange(12).reshape(3, 4))
    assert gaps.strides == (32, 4)


def test_copies_of_another_dtype_shape_or_layout_are_errors(cuda):
    device = cuda.to_device(np.zeros((3, 5), np.float32))
    with pytest.raises(DTypeError, match="float32, the host array float64"):
        device.copy_to_host(np.zeros((3, 5)))
    with pytest.raises(ShapeError, match=r"shape \(3, 5\), the host array \(5, 3\)"):
        device.copy_to_device(np.zeros((5, 3), np.float32))
    with pytest.raises(ViewError, match="strides"):
        device.copy_to_host(np.zeros((5, 3), np.float32).T)
    with pytest.raises(ViewError, match="gaps"):
        device[:, ::2].copy_to_device(np.zeros((3, 3), np.float32))
    with pytest.raises(ViewError, match="ascontiguousarray"):
        cuda.to_device(np.zeros((3, 5))[:, ::2])
    with pytest.raises(ViewError, match="reshape"):
        device[:, :2].reshape(6)
    with pytest.raises(DTypeError, match="Python objects"):
        cuda.to_device([None, "a"])
    with pytest.raises(ShapeError, match="expected integers of at least 0"):
        cuda.device_array((3, -1))
    with pytest.raises(IndexError):
        device[3]


def test_host_arithmetic_on_device_arrays_is_an_error(cuda):
    device = cuda.to_device(np.arange(3.0))
    for compute in (lambda: device + 1, lambda: 2 * device, lambda: device @ device, lambda: -device, lambda: device > 0):
        with pytest.raises(DTypeError, match=r"copy_to_host\(\)"):
            compute()
    np.testing.assert_allclose(np.asarray(device, np.float32), [0, 1, 2])
    with pytest.raises(AttributeError, match="'mean'"):
        device.mean()
    with pytest.raises(UnknownWordError, match="index array"):
        device[[0, 2]]


def test_numpy_arguments_are_copied_back(cuda, log):
    @cuda.jit
    def kernel(out, a, n, pair):
        """Never run."""

    def effect(out, a, n, pair):
        assert isinstance(out, DeviceArray)
        assert n == 3
        assert isinstance(pair, tuple)
        out[...] = a.data * n
        a[...] = -1
        pair[0][...] = 5

    log.effect = effect
    out, a, third = np.zeros(4), np.arange(4.0), np.zeros(2)
    kernel[1, 4](out, a, 3, (third, 2))
    np.testing.assert_array_equal(out, [0, 3, 6, 9])
    np.testing.assert_array_equal(a, [-1] * 4)
    np.testing.assert_array_equal(third, [5, 5])
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    kernel[1, 4](out, frozen, 3, (third, 2))
    np.testing.assert_array_equal(frozen, np.arange(4.0))
    assert [launch.kernel is kernel for launch in log.launches] == [True, True]


@pytest.mark.parametrize("where", ["host", "device"])
def test_generator_states_are_rows_of_two_integers_in_a_kernel(cuda, log, where):
    @cuda.jit
    def kernel(states):
        """Never run."""

    def effect(states):
        assert (states.shape, states.dtype) == ((5, 2), np.uint64)
        assert states.written.shape == (5, 2)
        assert states.written.all()
        states.data[3, 1] = 42

    log.effect = effect
    states = cuda.random.create_xoroshiro128p_states(5, seed=1)
    states = states.copy_to_host() if where == "host" else states
    kernel[1, 1](states)
    assert states[3]["s1"] == 42


def test_in_out_and_inout_set_the_copy_direction(cuda, log):
    @cuda.jit
    def kernel(out, a, both):
        """Never run."""

    seen = []

    def effect(*arrays):
        seen.extend(array.written.all() for array in arrays)
        for array in arrays:
            array[...] = 1

    log.effect = effect
    out, a, both = np.zeros(2), np.zeros(2), np.zeros(2)
    kernel[1, 2](cuda.Out(out), cuda.In(a), cuda.InOut(both))
    assert seen == [False, True, True]
    assert (out.sum(), a.sum(), both.sum()) == (2, 0, 2)


class Color(IntEnum):
    RED = 4


class Pair(NamedTuple):
    first: int
    second: float


def test_enums_tuples_and_numbers_are_arguments(cuda, log):
    @cuda.jit
    def kernel(a, b=2, *rest):
        """Never run."""

    kernel[1, 1](Color.RED)
    kernel[1, 1](Pair(1, 2.0), np.float32(3), True)
    assert log.launches[0].arguments == (4, 2)
    assert log.launches[1].arguments == (Pair(1, 2.0), np.float32(3), True)
    assert isinstance(log.launches[1].arguments[0], Pair)
    for bad in ([1, 2], "text", {}, SimpleNamespace()):
        with pytest.raises(DTypeError, match="argument 'a'"):
            kernel[1, 1](bad)
    with pytest.raises(TypeError, match=r"kernel\(a, b\) takes 1 to 2 arguments, got 0, at test_host.py:\d+"):
        kernel[1, 1]()


def test_mapped_memory_is_shared_by_host_and_kernel(cuda, log):
    @cuda.jit
    def kernel(a):
        """Never run."""

    def fill(a):
        a[...] = 7

    log.effect = fill
    for make in (cuda.mapped_array, cuda.managed_array):
        mapped = make(3, np.int32)
        kernel[1, 3](mapped)
        np.testing.assert_array_equal(mapped, 7)
        assert type(mapped.copy_to_host()) is np.ndarray
    host = np.zeros(3)
    with cuda.mapped(host) as device:
        kernel[1, 3](device)
    np.testing.assert_array_equal(host, 7)
    with cuda.pinned(host):
        assert cuda.pinned_array((2, 3), np.float32).shape == (2, 3)
    assert cuda.is_cuda_array(mapped)
    assert not cuda.is_cuda_array(host)


@pytest.mark.parametrize(
    ("grid", "block", "error", "words"),
    [
        (1, 1025, CudaError, "1025 threads, more than 1024"),
        (1, (32, 33), CudaError, "1056 threads"),
        (1, (1, 1, 65), CudaError, r"\(1, 1, 65\) is larger"),
        (0, 1, CudaError, r"grid \(0, 1, 1\) is empty"),
        (1, (4, 0), CudaError, "block .* is empty"),
        ((1, 65536), 1, CudaError, "grid .* is larger"),
        (10 / 4, 1, DTypeError, "contains a float; .* use //"),
        ((1, 1, 1, 1), 1, ShapeError, "1 to 3"),
        (1, None, DTypeError, "NoneType"),
    ],
)
def test_invalid_grids_and_blocks_are_errors(cuda, log, grid, block, error, words):
    @cuda.jit
    def kernel():
        """Never run."""

    with pytest.raises(error, match=words):
        kernel[grid, block]()
    assert not log.launches


def test_invalid_launches_are_errors(cuda):
    @cuda.jit(launch_bounds=64)
    def kernel():
        """Never run."""

    @cuda.jit(device=True)
    def function(a):
        return a

    kernel[1, 64, 0, 49152]()
    with pytest.raises(CudaError, match="65 threads, more than 64"):
        kernel[1, 65]()
    with pytest.raises(CudaError, match="49153 bytes of dynamic shared memory"):
        kernel[1, 1, 0, 49153]()
    with pytest.raises(CudaError, match=r"kernel\[blocks, threads\]"):
        kernel()
    with pytest.raises(ShapeError, match="expected kernel"):
        kernel[1]
    with pytest.raises(CudaError, match="remove device=True"):
        function[1, 1]
    with pytest.raises(CudaError, match=r"function\.py_func"):
        function(3)
    assert function.py_func(3) == 3


def test_launch_has_grid_block_shared_memory_and_line(cuda, log):
    @cuda.jit
    def kernel():
        """Never run."""

    kernel[2, (3, 4)]()  # the launch
    kernel[(2, np.int64(5)), [4, 1, 2], cuda.stream(), 64]()
    kernel.forall(100, tpb=32)()
    kernel.forall(300)()
    kernel.forall(0)()
    found = [(launch.grid, launch.block, launch.shared) for launch in log.launches]
    assert found == [
        ((2, 1, 1), (3, 4, 1), 0),
        ((2, 5, 1), (4, 1, 2), 64),
        ((4, 1, 1), (32, 1, 1), 0),
        ((3, 1, 1), (128, 1, 1), 0),
    ]
    assert log.launches[0].line == (
        __file__,
        line_of(test_launch_has_grid_block_shared_memory_and_line, "# the launch"),
    )


SIGNATURES = [
    "void(float32[:], int32)",
    (float32[:], int32),
    numba.void(float32[:], int32),
    ["void(float64[:], int32)", "void(float32[:], int32)"],
]


@pytest.mark.parametrize("signature", SIGNATURES, ids=str)
def test_signatures_convert_numbers_and_check_arrays(cuda, log, signature):
    @cuda.jit(signature)
    def kernel(a, n):
        """Never run."""

    kernel[1, 1](np.zeros(3, np.float32), 2)
    assert type(log.launches[0].arguments[1]) is np.int32
    for bad in [(np.zeros(3, np.int8), 2), (np.zeros((3, 1), np.float32), 2), (np.zeros(3, np.float32), 2.5), (4, 2)]:
        with pytest.raises(DTypeError, match="do not match the signature"):
            kernel[1, 1](*bad)


def test_signature_may_require_c_order(cuda, log):
    @cuda.jit((float64[::1],))
    def kernel(a):
        """Never run."""

    device = cuda.to_device(np.zeros(6))
    kernel[1, 1](device)
    with pytest.raises(DTypeError, match="order C"):
        kernel[1, 1](device[::2])


def test_jit_options_are_ignored_or_rejected_by_name(cuda):
    def function(a):
        """Never run."""

    ignored = {"inline": "always", "fastmath": True, "cache": True, "debug": True, "opt": False, "lineinfo": True}
    for make in (
        cuda.jit,
        cuda.jit(),
        cuda.jit(**ignored, max_registers=32),
        cuda.jit("void(int32)"),
        cuda.jit(device=True),
    ):
        assert make(function).py_func is function
        assert make(function).__name__ == "function"
    assert cuda.jit(numba.njit(function)).py_func is function
    here = Path(__file__).name
    for option in ("link", "extensions", "boundscheck", "colour"):
        with pytest.raises(UnknownWordError, match=rf"cuda\.jit\({option}=...\) at {here}:\d+"):
            cuda.jit(**{option: ["x.cu"]})
    with pytest.raises(DTypeError, match="a function or a signature"):
        cuda.jit(3)
    with pytest.raises(UnknownWordError, match=r"kernel\.inspect_asm"):
        cuda.jit(function).inspect_asm()


def test_unknown_names_of_numba_cuda_are_errors(cuda):
    for name in ("declare_device", "external_stream", "compile_ptx", "frobnicate"):
        with pytest.raises(UnknownWordError, match=rf"cuda\.{name} at test_host\.py:\d+") as raised:
            getattr(cuda, name)
        assert raised.value.lines[0][0] == __file__
    with pytest.raises(UnknownWordError, match="device attribute COLOUR"):
        cuda.get_current_device().COLOUR  # noqa: B018
    assert not hasattr(cuda, "__wrapped__")


def test_streams_and_events_match_numba_cuda(cuda):
    stream, called = cuda.stream(), []
    with stream.auto_synchronize() as inside:
        assert inside is stream
    stream.add_callback(lambda *given: called.append(given), "argument")
    assert called == [(stream, 0, "argument")]
    assert int(stream) != int(cuda.stream())
    assert not cuda.default_stream()
    begin, end = cuda.event(), cuda.event()
    with pytest.raises(CudaError, match="never recorded"):
        begin.elapsed_time(end)
    begin.record(stream)
    end.record()
    end.wait(stream)
    assert end.query()
    assert cuda.event_elapsed_time(begin, end) == begin.elapsed_time(end) >= 0
    with pytest.raises(CudaError, match="timing=False"):
        begin.elapsed_time(cuda.event(timing=False))
    for call in (cuda.synchronize, stream.synchronize, end.synchronize, cuda.profile_start, cuda.profile_stop, cuda.close):
        assert call() is None


def test_device_is_one_gpu_of_compute_capability_9_0(cuda, capsys):
    device = cuda.get_current_device()
    assert (device.name, device.compute_capability) == ("minifuse simt", (9, 0))
    assert (device.MAX_THREADS_PER_BLOCK, device.WARP_SIZE, device.MULTIPROCESSOR_COUNT) == (1024, 32, 132)
    assert device.MAX_SHARED_MEMORY_PER_BLOCK == 49152
    assert cuda.is_available()
    assert cuda.detect()
    assert "1 CUDA device" in capsys.readouterr().out
    assert len(cuda.gpus) == len(cuda.list_devices()) == 1
    assert cuda.gpus.current is cuda.select_device(0)
    with cuda.gpus[0], cuda.defer_cleanup():
        free, total = cuda.current_context().get_memory_info()
    assert 0 < free <= total
    with pytest.raises(CudaError, match="INVALID_DEVICE"):
        cuda.select_device(1)
    assert cuda.runtime.get_version()[0] >= 12


def test_reduce_computes_in_the_element_type(cuda, log):
    add = cuda.reduce(lambda a, b: a + b)
    values = np.arange(10, dtype=np.int32)
    assert add(values) == 45
    assert add(cuda.to_device(values), size=4, init=100) == 106
    assert type(add(values)) is np.int32
    assert cuda.Reduce(max)(np.array([3.0, 9.0, 4.0])) == 9
    result = cuda.device_array(1, np.int32)
    assert add(values, res=result) is None
    assert result[0] == 45
    assert add(np.array([2**31 - 1, 1], np.int32)) == -(2**31)
    assert add(values[:0], init=3) == 3
    assert cuda.reduce(lambda a, b: (a + b) / 2)(np.array([4, 7], np.int32)) == 4  # 2, then 4.5, each stored as int32
    with pytest.raises(ShapeError, match="one dim"):
        add(np.zeros((2, 2)))
    assert not log.reports
    add(cuda.device_array(3))
    assert len(log.reports) == 1


def test_types_and_constants_are_those_of_numba(cuda):
    assert cuda.float32 is numba.float32
    assert cuda.types.float32 is numba.types.float32
    assert cuda.random.xoroshiro128p_dtype.names == ("s0", "s1")
    assert cuda.random.create_xoroshiro128p_states(3, seed=1).shape == (3,)


MODULE = """
import numba, numba.cuda, numba.cuda.random
import numba.cuda as first
from numba import cuda as second
from numba.cuda import jit, to_device, float32, grid
from numba.cuda.random import create_xoroshiro128p_states
assert numba.cuda is first is second
from {neighbour} import theirs
assert theirs is first
import {plain}
seen = first
"""


def test_stand_in_replaces_numba_cuda_only_inside_the_context(log, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "neighbour_of_script.py").write_text("from numba import cuda as theirs\n")
    (tmp_path / "plain_neighbour.py").write_text("value = 1\n")
    (tmp_path / "script_itself.py").write_text(MODULE.format(neighbour="neighbour_of_script", plain="plain_neighbour"))
    true = SimpleNamespace(name="the true one")
    monkeypatch.setitem(sys.modules, "numba.cuda", true)
    monkeypatch.setitem(sys.modules, "numba.cuda.deep", true)
    monkeypatch.setattr(numba, "cuda", true, raising=False)
    before = dict(sys.modules)
    modules = stand_in_modules(log)
    with substitute_modules(modules, tmp_path):
        import script_itself

        assert script_itself.seen is modules["numba.cuda"]
        assert "numba.cuda.deep" not in sys.modules
    assert sys.modules["numba.cuda"] is sys.modules["numba.cuda.deep"] is numba.cuda is true
    assert sys.modules.keys() == before.keys()


def test_numba_cuda_is_restored_after_an_exception(log, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "numba.cuda", raising=False)
    monkeypatch.delattr(numba, "cuda", raising=False)
    finders = list(sys.meta_path)
    with pytest.raises(ZeroDivisionError), substitute_modules(stand_in_modules(log), tmp_path):
        1 / 0  # noqa: B018
    assert "numba.cuda" not in sys.modules
    assert not hasattr(numba, "cuda")
    assert sys.meta_path == finders


def test_no_thread_compiles_while_a_script_runs(log, tmp_path):
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    with ThreadPoolExecutor(1) as pool, substitute_modules(modules := stand_in_modules(log), tmp_path):
        found = pool.submit(compiler.numba_cuda)
        assert wait([found], 0.05).not_done, "this thread has imported what the script imports"
    assert found.result() is sys.modules["numba.cuda"] is not modules["numba.cuda"]


def test_no_script_runs_while_a_thread_compiles(log, tmp_path, monkeypatch):
    """Else its end would restore a module that the compiler was importing, without the names that it did not have yet."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    replaced = Event()

    def compiling(*_):
        pool.submit(script)
        assert not replaced.wait(0.05), "a script has replaced numba.cuda"
        raise ImportError("enough")

    def script():
        with substitute_modules(stand_in_modules(log), tmp_path):
            replaced.set()

    monkeypatch.setattr(compiler, "rebind_for_numba", compiling)
    with ThreadPoolExecutor(1) as pool, pytest.raises(MissingPartError, match="enough"):
        compiler.compile_ptx(lambda: None, ())
    assert replaced.is_set()


def test_modules_that_imported_the_stand_in_are_unloaded(log, tmp_path, monkeypatch):
    library = tmp_path / "lib"
    library.mkdir()
    (library / "late_library.py").write_text(
        textwrap.dedent("""
        from numba import cuda
    """)
    )
    (library / "other_library.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(library)
    with substitute_modules(stand_in_modules(log), tmp_path / "script"):
        import late_library  # noqa: F401
        import other_library  # noqa: F401
    assert "late_library" not in sys.modules
    assert "other_library" in sys.modules
    del sys.modules["other_library"]


def test_importing_unsupported_submodules_is_an_error(log, tmp_path):
    with substitute_modules(stand_in_modules(log), tmp_path):
        with pytest.raises(UnknownWordError, match=r"import numba\.cuda\.compiler at test_host\.py"):
            import numba.cuda.compiler  # noqa: F401
        with pytest.raises(UnknownWordError, match=r"numba\.cuda\.cudadrv\.driver\.launch"):
            from numba.cuda.cudadrv.driver import launch  # noqa: F401
        from numba.cuda.cudadrv.driver import CudaAPIError
    assert CudaAPIError is CudaError
