"""backends.cuda.device.dlpack over host memory: NumPy reads a capsule and releases it. On a GPU: tests/cuda."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda.device import dlpack
from minifuse.backends.cuda.device.dlpack import array_interface, export_capsule
from minifuse.core.dtypes import BY_NUMPY, DTYPES, bool_, float32
from minifuse.core.layout import Layout, row_major

from ..cuda.simulated import simulated

CPU = 1


class Owner:
    """Memory that says when it goes."""

    def __init__(self, array):
        self.array = array


class Exporter:
    """What NumPy asks for a capsule."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return CPU, 0


def export(array, owner=None):
    """A capsule of a NumPy array."""
    layout = Layout(array.shape, tuple(s // array.itemsize for s in array.strides), 0)
    return export_capsule(owner or array, array.ctypes.data, BY_NUMPY[array.dtype], layout, 0, CPU)


@pytest.mark.parametrize("dtype", [dtype.name for dtype in DTYPES])
@pytest.mark.parametrize(
    "see",
    [lambda a: a, lambda a: a.T, lambda a: a[1:, ::2], lambda a: a[::-1], lambda a: a[2, 3, ...], lambda a: a[:, 1:1]],
    ids=["whole", "turned over", "strided", "flipped", "one element", "empty"],
)
def test_numpy_reads_a_capsule(see, dtype):
    array = see((np.arange(24).reshape(4, 6) % 5).astype(dtype))
    found = np.from_dlpack(Exporter(export(array)))
    assert found.dtype == dtype
    assert found.shape == array.shape
    np.testing.assert_array_equal(found, array)
    if array.size:
        assert found.ctypes.data == array.ctypes.data
        assert found.strides == array.strides


def test_exported_memory_lives_until_it_is_released():
    before = len(dlpack.exported_capsules)
    owner = Owner(np.arange(5.0))
    alive = weakref.ref(owner)
    found = np.from_dlpack(Exporter(export(owner.array, owner)))
    view = found[1:]
    del owner, found
    gc.collect()
    assert alive() is not None
    assert view.tolist() == [1, 2, 3, 4]
    del view
    gc.collect()
    assert alive() is None
    assert len(dlpack.exported_capsules) == before


def test_an_unused_capsule_is_released():
    owner = Owner(np.arange(5.0))
    alive = weakref.ref(owner)
    capsule = export(owner.array, owner)
    assert repr(capsule).startswith('<capsule object "dltensor"')
    del owner
    gc.collect()
    assert alive() is not None
    dlpack.release_unclaimed()  # as the next capsule does; this one somebody still has
    assert alive() is not None
    del capsule
    dlpack.release_unclaimed()
    gc.collect()
    assert alive() is None


def test_a_capsule_is_consumed_once():
    capsule = export(np.arange(5.0))
    first = np.from_dlpack(Exporter(capsule))
    with pytest.raises((ValueError, RuntimeError, BufferError)):
        np.from_dlpack(Exporter(capsule))
    assert first.tolist() == [0, 1, 2, 3, 4]


def test_the_struct_contains_device_shape_and_strides():
    array = np.zeros((3, 4), bool)
    capsule = export_capsule(array, array.ctypes.data, bool_, row_major((3, 4)), 2)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    found = dlpack.DLManagedTensor.from_address(get(capsule, b"dltensor"))
    assert (found.device.kind, found.device.index) == (dlpack.DLPACK_CUDA, 2)
    assert (found.dtype.code, found.dtype.bits, found.dtype.lanes) == (6, 8, 1)
    assert (found.ndim, found.shape[:2], found.strides[:2], found.byte_offset) == (2, [3, 4], [4, 1], 0)
    assert found.data == array.ctypes.data


# The other protocol


@pytest.mark.parametrize(
    ("dtype", "text"),
    list(zip(DTYPES, ["<f4", "<f8", "|i1", "<i2", "<i4", "<i8", "|u1", "|b1"], strict=True)),
    ids=[dtype.name for dtype in DTYPES],
)
def test_the_interface_of_an_array(dtype, text):
    found = array_interface(4096, dtype, Layout((3, 5), (-10, 2), 0), is_writable=True)
    size = dtype.itemsize
    assert found["shape"] == (3, 5)
    assert found["strides"] == (-10 * size, 2 * size)
    assert found["typestr"] == text
    assert found["data"] == (4096, False)
    assert found["version"] == 3
    assert found["stream"] == 1  # the legacy default one


def test_the_interface_of_empty_and_read_only_arrays():
    assert array_interface(4096, float32, row_major((0, 3)), is_writable=True)["data"] == (
        4096,
        False,
    )  # CuPy asks which GPU it is
    assert array_interface(4096, float32, row_major((3,)), is_writable=False)["data"] == (4096, True)


# Tensors of the interpreter, whose memory is no GPU's


def test_a_simulated_tensor_exports_a_copy():
    x = mf.tensor(np.arange(6.0).reshape(2, 3), backend=simulated())
    assert x.__dlpack_device__() == (1, 0)
    found = np.from_dlpack(x.T)
    np.testing.assert_array_equal(found, np.arange(6.0).reshape(2, 3).T)
    x += 1
    assert found[0, 0] == 0
    assert not hasattr(x, "__cuda_array_interface__")


def test_a_tensor_of_the_host_is_on_no_gpu():
    with pytest.raises(AttributeError, match="not on a GPU"):
        mf.ones(3, backend="parallel").__cuda_array_interface__  # noqa: B018
