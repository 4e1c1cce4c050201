"""Kernels over a table of arrays, compiled: 16 bytes at once, and no load that has to find out which memory it reads."""

import re

import pytest

from minifuse.backends.cuda.codegen.dialect import storage_of
from minifuse.backends.cuda.codegen.multi_tensor import generate_multi_tensor_kernel
from minifuse.backends.cuda.compiler import compile_ptx, kernel_from_text
from minifuse.backends.cuda.intrinsics.pointer_table import DEVICE_FUNCTIONS
from minifuse.core.dtypes import BY_NAME
from minifuse.ir.kernel_ir import Kernel, Load, ReadOutput

from .test_kernels_ptx import VECTORS


@pytest.mark.parametrize("cc", [(9, 0), (7, 5)])
@pytest.mark.parametrize("dtype", BY_NAME.values(), ids=str)
def test_vectors_of_global_memory(dtype, cc):
    kernel = Kernel(
        (ReadOutput(0, dtype) | Load(0, dtype) if dtype.name == "bool" else ReadOutput(0, dtype) * Load(0, dtype),), ()
    )
    text = generate_multi_tensor_kernel(kernel, ("1", "1"))
    ptx = compile_ptx(kernel_from_text(text.text, **DEVICE_FUNCTIONS), [kind for _, kind in text.parameters], 256, cc=cc).ptx
    pattern, count = VECTORS[storage_of(dtype)]
    for instruction in ("ld", "st"):
        assert len(re.findall(rf"\b{instruction}\.global{pattern}\b", ptx)) >= count * len(
            re.findall({"ld": "load4", "st": "store4"}[instruction], text.text)
        )
        assert not re.findall(rf"\b{instruction}\.(?!global|param)\S+", ptx)
    assert not re.search(r"\.local", ptx)
    assert "ld.global.u32" in ptx or "ld.global.nc.u32" in ptx or "ld.global.s32" in ptx  # the array of the block
