"""Programs for numba.cuda, as its users write them: each runs under `minifuse check` as it does on a GPU."""

import textwrap

import numpy as np
import pytest

from minifuse.core.errors import UnknownWordError
from minifuse.simt.check import check

HEAD = """
import cmath, math
import numpy as np
import numba as nb
from numba import cuda, complex64, complex128, float32, int32
"""

PROGRAMS = {
    "a global has the value of the first launch": """
        SCALE = 2
        @cuda.jit
        def scale(a):
            i = cuda.grid(1)
            a[i] *= SCALE
        a = np.ones(8)
        scale[1, 8](a)
        SCALE = 3
        scale[1, 8](a)
        assert (a == 4).all()
        b = np.ones(8, np.float32)
        scale[1, 8](b)  # compiled anew for another type, with the value of now
        assert (b == 3).all()
    """,
    "a global array has the elements of the first launch": """
        TABLE = np.arange(4.0)
        @cuda.jit
        def look_up(a):
            i = cuda.grid(1)
            a[i] = TABLE[i] + cuda.const.array_like(TABLE)[i]
        a = np.zeros(4)
        look_up[1, 4](a)
        TABLE[:] = 100
        look_up[1, 4](a)
        assert a.tolist() == [0, 2, 4, 6]
    """,
    "a device array is a global": """
        table = cuda.to_device(np.arange(8.0))
        @cuda.jit
        def twice(out):
            i = cuda.grid(1)
            out[i] = table[i] * 2 + len(table) + table.shape[0]
            table[i] = -1
        out = np.zeros(8)
        twice[1, 8](out)
        assert out.tolist() == [16 + 2 * i for i in range(8)]
        assert (table.copy_to_host() == -1).all()
    """,
    "a device array is in a closure": """
        def make():
            kept = cuda.to_device(np.zeros(4))
            @cuda.jit
            def store(x):
                kept[cuda.grid(1)] = x
            return store, kept
        store, kept = make()
        store[1, 4](5.0)
        assert (kept.copy_to_host() == 5).all()
    """,
    "a function of NumPy stores in an array": """
        @cuda.jit
        def functions(r, x, s, n):
            np.sin(x, r)
            np.maximum(x, 0.5, s)
            np.add(s, x, s)
            np.isnan(x, n)
        x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
        r, s, n = np.zeros_like(x), np.zeros_like(x), np.ones(x.shape, bool)
        functions[1, 1](r, x, s, n)
        np.testing.assert_allclose(r, np.sin(x), rtol=1e-6)
        np.testing.assert_allclose(s, np.maximum(x, 0.5) + x, rtol=1e-6)
        assert not n.any()
    """,
    "a function of NumPy broadcasts to its output": """
        @cuda.jit
        def broadcast(r, x, y):
            np.multiply(x, y, r)
        x, y, r = np.arange(3.0).reshape(3, 1), np.arange(4.0), np.zeros((3, 4))
        broadcast[1, 1](r, x, y)
        assert (r == x * y).all()
    """,
    "a device array shows its interface": """
        d = cuda.to_device(np.arange(6.0).reshape(2, 3))
        shown = d.__cuda_array_interface__
        assert (shown["shape"], shown["typestr"], shown["strides"]) == ((2, 3), "<f8", None)
        assert d[:, 1].__cuda_array_interface__["strides"] == (24,)
        class Wrap:
            def __init__(self, array):
                self.__cuda_array_interface__ = array.__cuda_array_interface__
        assert cuda.is_cuda_array(Wrap(d))
        cuda.as_cuda_array(Wrap(d))[0, 0] = 7
        @cuda.jit
        def store(a):
            a[1, 1] = 9
        store[1, 1](Wrap(d))
        assert (d[0, 0], d[1, 1], d.alloc_size) == (7, 9, 48)
    """,
    "None is an argument": """
        @cuda.jit
        def store(a, flag):
            a[cuda.grid(1)] = 1 if flag is None else 2
        a = np.zeros(4)
        store[1, 4](a, None)
        assert (a == 1).all()
    """,
    "the Mandelbrot set": """
        @cuda.jit(device=True)
        def escapes(x, y, most):
            c, z = complex(x, y), 0.0j
            for i in range(most):
                z = z * z + c
                if z.real * z.real + z.imag * z.imag >= 4:
                    return i
            return most
        @cuda.jit((nb.f8, nb.uint8[:, :], nb.uint32))
        def draw(low, image, most):
            x, y = cuda.grid(2)
            if y < image.shape[0] and x < image.shape[1]:
                image[y, x] = escapes(low + x * 0.25, -1 + y * 0.25, most)
        image = np.zeros((8, 12), np.uint8)
        draw[(2, 1), (8, 8)](-2.0, image, 20)
        assert image[4, 8] == 20 and image[0, 0] == 0
    """,
    "complex numbers": """
        @cuda.jit
        def numbers(z, out):
            i = cuda.grid(1)
            tile = cuda.shared.array(4, dtype=complex64)
            own = cuda.local.array(1, complex128)
            tile[i] = complex64(z[i])
            own[0] = tile[i] * z[i].conjugate() + 1j
            out[i] = cmath.exp(own[0]) + abs(z[i]) + np.complex128(2) + cmath.phase(z[i]) + cmath.sqrt(-1)
        z = (np.arange(4) / 4 + 0.5j).astype(np.complex64)
        out = np.zeros(4, np.complex128)
        numbers[1, 4](z, out)
        np.testing.assert_allclose(out, np.exp(z * z.conj() + 1j) + abs(z) + 2 + np.angle(z) + 1j, rtol=1e-6)
    """,
    "a function of elements is vectorized": """
        @nb.vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
        def add(x, y):
            return x + math.sqrt(y)
        a, b = np.arange(6.0).reshape(2, 3), np.arange(3.0)
        np.testing.assert_allclose(add(a, b), a + np.sqrt(b))
        assert add(a.astype(np.float32), 4.0).dtype == np.float32
        assert isinstance(add(np.float32(1), np.float32(4)), np.float32)
        d, out = cuda.to_device(a), cuda.device_array_like(a)
        assert cuda.is_cuda_array(add(d, d))
        add(d, d, out=out)
        np.testing.assert_allclose(out.copy_to_host(), a + np.sqrt(a))
        try:
            add(a.astype(complex), b)
        except TypeError as error:
            assert "no signature takes complex128" in str(error)
        @nb.vectorize(["int64(int64, int64)"], target="cuda")
        def plus(x, y):
            return x + y
        plus(np.arange(3), 1)
        assert plus.reduce(np.arange(5)) == 10
    """,
    "a generalized function is vectorized": """
        @nb.guvectorize(["void(float64[:,:], float64[:,:], float64[:,:])"], "(m,n),(n,p)->(m,p)", target="cuda")
        def product(a, b, c):
            for i in range(c.shape[0]):
                for j in range(c.shape[1]):
                    c[i, j] = 0
                    for k in range(a.shape[1]):
                        c[i, j] += a[i, k] * b[k, j]
        a, b = np.arange(24.0).reshape(2, 3, 4), np.arange(20.0).reshape(4, 5)
        np.testing.assert_allclose(product(a, b), a @ b)
        @nb.guvectorize(["void(float64[:], float64, float64[:])"], "(n),()->()", target="cuda")
        def mean(x, bias, out):
            total = 0.0
            for i in range(x.shape[0]):
                total += x[i]
            out[0] = total / x.shape[0] + bias
        np.testing.assert_allclose(mean(a, 1.0), a.mean(2) + 1)
        np.testing.assert_allclose(mean(a[0], np.arange(3.0)), a[0].mean(1) + np.arange(3))
    """,
    "libdevice and fp16": """
        from numba.cuda import libdevice
        @cuda.jit
        def functions(a, h):
            i = cuda.grid(1)
            a[i] = libdevice.fast_sinf(a[i]) + libdevice.rsqrtf(float32(4)) + libdevice.sqrt(2.25)
            h[i] = cuda.fp16.hfma(h[i], h[i], cuda.fp16.hadd(h[i], h[i]))
            if cuda.fp16.hgt(h[i], np.float16(2)):
                h[i] = cuda.fp16.hsqrt(cuda.fp16.hneg(np.float16(-4)))
        a, h = np.ones(4, np.float32), np.ones(4, np.float16)
        functions[1, 4](a, h)
        np.testing.assert_allclose(a, np.sin(np.float32(1)) + 2, rtol=1e-6)
        assert (h == 2).all()
    """,
    "element types as texts and as objects of NumPy": """
        F4 = np.dtype("f4")
        @cuda.jit
        def kinds(a):
            i = cuda.grid(1)
            tile = cuda.shared.array(shape=(4, 4), dtype="float32")
            own = cuda.local.array((2, 2), dtype=F4)
            tile[0, i] = own[1, 1] = 1.5
            a[i] = tile[0, i] + own[1, 1]
        a = np.zeros(4)
        kinds[1, 4](a)
        assert (a == 3).all()
    """,
    "device arrays are known by their class": """
        from numba.cuda.cudadrv.devicearray import DeviceNDArray
        d = cuda.to_device(np.zeros(4))
        assert isinstance(d, DeviceNDArray) and cuda.cudadrv.devicearray.is_cuda_ndarray(d)
        @cuda.jit
        def nothing():
            pass
        nothing[1, 1]()
    """,
    "an exception of a kernel comes to the host with debug=True": """
        @cuda.jit(debug=True, opt=False)
        def refuses(a):
            if a[0] == 0:
                raise ValueError("a zero")
        try:
            refuses[1, 2](np.zeros(3))
        except ValueError as error:
            assert error.args == ("a zero",) and "thread 0 of block 0" in "".join(error.__notes__).replace("(0, 0, 0)", "0")
        else:
            raise AssertionError("nothing was raised")
    """,
    "structures": """
        point = np.dtype([("x", "f4"), ("id", "i4"), ("v", "f8", 3), ("in", [("a", "i4"), ("b", "f8")])], align=True)
        @cuda.jit
        def move(p):
            i = cuda.grid(1)
            if i < p.size:
                p[i].x += 1.5
                p[i]["id"] = i
                one = p[i]
                one.v[1] = one.x
                one["in"].a = 5
                p.x[i] += 1
        p = np.zeros(5, point)
        move[1, 8](p)
        assert p["x"].tolist() == [2.5] * 5 and p["id"].tolist() == [0, 1, 2, 3, 4]
        assert p["v"][:, 1].tolist() == [1.5] * 5 and p["in"]["a"].tolist() == [5] * 5
        same = np.dtype([("x", np.float32), ("y", np.float32)])
        d = cuda.device_array(4, same)
        @cuda.jit
        def fill(p):
            i = cuda.grid(1)
            p[i].x = i
            p[i].y = -i
        fill[1, 4](d)
        assert d.copy_to_host()["y"].tolist() == [0, -1, -2, -3]
    """,
}


def write(folder, source, name="script.py"):
    path = folder / name
    path.write_text(HEAD + textwrap.dedent(source), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_runs_without_findings(name, tmp_path):
    report = check(write(tmp_path, PROGRAMS[name]))
    if report.failure is not None:
        raise report.failure
    assert [str(finding.error) for finding in report.findings] == []
    assert report.launches > 0


def test_changed_global_is_hinted_once(tmp_path):
    report = check(write(tmp_path, PROGRAMS["a global has the value of the first launch"]))
    (hint,) = report.hints
    assert hint.startswith("script.py:15: kernel scale still uses the value that 'SCALE' had at its first launch")
    assert report.to_dict()["hints"] == [hint]
    assert report.status == 0


def test_changed_global_array_is_hinted(tmp_path):
    report = check(write(tmp_path, PROGRAMS["a global array has the elements of the first launch"]))
    assert ["'TABLE'" in hint for hint in report.hints] == [True]


def test_unchanged_global_is_not_hinted(tmp_path):
    assert check(write(tmp_path, PROGRAMS["a device array is a global"])).hints == []


def test_numpy_function_of_an_array_without_out_suggests_out(tmp_path):
    report = check(
        write(
            tmp_path,
            """
            @cuda.jit
            def k(a):
                a[0] = np.sin(a)
            k[1, 1](np.zeros(3))
            """,
        )
    )
    assert isinstance(report.failure, UnknownWordError)
    assert "write np.sin(x, out)" in str(report.failure)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("a[0] = np.dot(a, a)", "write a loop"),
        ("b = np.zeros(3)", "write cuda.local.array(shape, dtype)"),
        ("a[0] = np.random.rand()", "write xoroshiro128p_uniform_float32(states, i)"),
        ("a[0] = {1: 2}[1]", "take an array or a tuple"),
        ("a[cuda.thredIdx.x] = 1", "did you mean cuda.threadIdx?"),
        ("cuda.sync_threads()", "did you mean cuda.syncthreads?"),
        ("a[0] = np.sqr(2)", "did you mean np.sqrt?"),
        ("one[1, 1](a)", "kernels cannot launch kernels; launch one from the host"),
        ("import math", "import at the top"),
        ("b = a + a", "np.add(x, y, out)"),
        ("a[0] = sum(a)", "write a loop"),
    ],
)
def test_unsupported_code_suggests_a_replacement(line, advice, tmp_path):
    one = "@cuda.jit\ndef one(a):\n    a[0] = 1\n\n"
    report = check(write(tmp_path, f"{one}@cuda.jit\ndef k(a):\n    {line}\nk[1, 1](np.zeros(3))\n"))
    assert isinstance(report.failure, UnknownWordError)
    assert advice in str(report.failure)
    assert "script.py:12" in str(report.failure)


def test_vectorize_without_signatures_suggests_them(tmp_path):
    report = check(write(tmp_path, "@nb.vectorize(target='cuda')\ndef f(x):\n    return x\n"))
    assert "needs signatures; write @vectorize([" in str(report.failure)


def test_numba_vectorizers_are_restored_after_check(tmp_path):
    from numba.np.ufunc.decorators import GUVectorize, Vectorize

    registries = Vectorize.target_registry, GUVectorize.target_registry
    before = [(dict(registry), dict(registry.ondemand)) for registry in registries]
    assert check(write(tmp_path, PROGRAMS["a function of elements is vectorized"])).failure is None
    assert [(dict(registry), dict(registry.ondemand)) for registry in registries] == before


def test_memory_of_another_library_is_rejected(tmp_path):
    report = check(
        write(
            tmp_path,
            """
            class Foreign:
                __cuda_array_interface__ = dict(shape=(4,), typestr="<f8", data=(4096, False), version=3, strides=None)
            @cuda.jit
            def k(a):
                a[0] = 1
            k[1, 1](Foreign())
            """,
        )
    )
    assert isinstance(report.failure, UnknownWordError)
    assert "the memory of a Foreign" in str(report.failure)


@pytest.mark.parametrize("name", ["gpu_test.py", "test_gpu.py"])
def test_script_named_like_a_test_file_runs_as_a_script(name, tmp_path, capsys):
    source = """
        @cuda.jit
        def k(a):
            a[cuda.grid(1)] = 1
        def latest():
            return 1
        if __name__ == "__main__":
            a = np.zeros(4)
            k[1, 4](a)
            print("sum", a.sum())
    """
    report = check(write(tmp_path, source, name))
    assert (report.launches, report.status) == (1, 0)
    assert "sum 4.0" in capsys.readouterr().out


def test_out_of_bounds_field_access_names_the_field(tmp_path):
    report = check(
        write(
            tmp_path,
            """
            @cuda.jit
            def k(p):
                p[3].x = 1
            k[1, 1](np.zeros(3, [("x", "f4"), ("y", "f4")]))
            """,
        )
    )
    assert [finding.error.array for finding in report.findings] == ["p.x"]


def test_unknown_field_error_lists_the_fields(tmp_path):
    source = "@cuda.jit\ndef k(p):\n    p[0].z = 1\nk[1, 1](np.zeros(3, [('x', 'f4'), ('y', 'i4')]))\n"
    report = check(write(tmp_path, source))
    assert "its fields are x, y" in str(report.failure)


@pytest.mark.parametrize("schedules", [1, 3])
def test_one_record_is_an_argument_that_kernels_change(tmp_path, schedules):
    source = """
        point = np.array([(1.5, (2, 3)), (0, (0, 0))], [("x", "f8"), ("pair", [("a", "i4"), ("b", "i4")])])

        @cuda.jit
        def k(out, p):
            out[0] = p.x + p["pair"].b
            p.pair.a = 7

        out = np.zeros(1)
        k[1, 1](out, point[0])
        assert out[0] == 4.5
        assert point.tolist() == [(1.5, (7, 3)), (0, (0, 0))]
        """
    report = check(write(tmp_path, source), schedules=schedules)
    assert (report.failure, report.findings) == (None, [])


def test_trace_has_one_array_per_structure_field():
    from minifuse import simt

    def k(p):
        p[simt.cuda.grid(1)].y += 1

    trace = simt.trace(k, 1, 3, np.zeros(3, [("x", "f4"), ("y", "i4")]))
    assert [info.name for info in trace.arrays] == ["p.x", "p.y"]
    assert set(trace.events.array.tolist()) == {1}
    assert trace.outputs["p.y"].tolist() == [1, 1, 1]
