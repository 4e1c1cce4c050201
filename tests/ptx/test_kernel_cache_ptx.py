"""The kernel cache stores machine code for a GPU, compiled on a machine without one."""

import pytest

import minifuse as mf
from minifuse.backends.cuda.codegen.base import MAX_COLUMN_THREADS
from minifuse.backends.cuda.codegen.select import generate_kernel
from minifuse.backends.cuda.compiler import compile_ptx, compiler_fingerprint, link_cubin
from minifuse.backends.cuda.launcher import python_kernel
from minifuse.ir.kernel_ir import LoopNest
from minifuse.runtime.kernel_cache import KernelCache

from ..fuse.functions import Counter


def test_a_gpu_kernel_is_cached_as_machine_code(tmp_path, monkeypatch):
    """Compiled without a GPU; to another process, here another cache, it comes from disk."""
    pytest.importorskip("numba_cuda", reason='numba-cuda is not installed: pip install "minifuse[cuda13]"')
    pytest.importorskip("cuda.core", reason='cuda-core is not installed: pip install "minifuse[cuda13]"')
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path))
    f = mf.fuse(lambda x: (mf.exp(x) * 0.5).softmax(1))
    (step,) = f.plan(mf.ones(33, 65)).steps
    outputs, inputs = step.layouts()
    text = generate_kernel(step.kernel, LoopNest(step.shape, step.dims, [*outputs, *inputs]))
    built = Counter()

    def build(name, source):
        built.count()
        return link_cubin(
            compile_ptx(python_kernel(text), [kind for _, kind in text.parameters], MAX_COLUMN_THREADS), (9, 0)
        )

    payloads = [
        KernelCache().find(text.text, compiler_fingerprint((9, 0)), build, lambda name, payload: payload) for _ in range(2)
    ]
    assert built.total == 1
    assert payloads[0] == payloads[1]
    assert payloads[0].partition(b"\n")[2].startswith(b"\x7fELF"), "machine code, no PTX"
