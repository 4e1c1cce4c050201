"""Kernels for GPUs are sent to other processes, which compile them as this one does."""

import pickle
import re
import time

import pytest

import minifuse as mf
from minifuse.backends.cuda.codegen.select import generate_kernel
from minifuse.backends.cuda.compiler import CubinCompiler, compile_ptx
from minifuse.backends.cuda.kernel_pickle import dump_kernel, load_kernel
from minifuse.backends.cuda.launcher import python_kernel
from minifuse.backends.cuda.tile_shapes import GpuKernel
from minifuse.ir.kernel_ir import LoopNest
from minifuse.runtime import compile_workers
from minifuse.runtime.compile_workers import compile_in_parallel
from minifuse.runtime.kernel_cache import MissingKernel
from minifuse.runtime.kernel_files import read_payload

from .test_attention_ptx import KERNELS as ATTENTION
from .test_tensor_cores_ptx import MMA, WGMMA


def generated(function, *inputs):
    """The generated kernel of a fused function."""
    (step,) = mf.fuse(function).plan(*inputs).steps
    outputs, inputs = step.layouts()
    text = generate_kernel(step.kernel, LoopNest(step.shape, step.dims, [*outputs, *inputs]))
    types = tuple(kind for _, kind in text.parameters)
    return GpuKernel("generated", (), python_kernel(text), types, 1024, text=text.text)


KERNELS = {
    "pointwise": lambda: generated(lambda x: mf.exp(x) * 0.5, mf.ones(1000)),
    "rows": lambda: generated(lambda x: (mf.exp(x) * 0.5).softmax(1), mf.ones(33, 65)),
    "integers": lambda: generated(lambda x: (x // 3 + (x > 2)).sum(0), mf.ones(33, 65, dtype=mf.int64)),
    "matmul": lambda: next(iter(MMA.values())),
}


def without_names(ptx):
    """PTX without the names of functions and of shared memory, which contain numbers that Numba counts in a process."""
    return re.sub(r"_cudapy_\w+|[\w$]*_Z[\w$]+", "name", ptx)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_a_kernel_is_the_same_after_a_journey(kernel):
    kernel = kernel()
    sent = load_kernel(dump_kernel(kernel.function))
    assert sent is not kernel.function
    ptx = [compile_ptx(x, kernel.signature, kernel.threads, kernel.blocks).ptx for x in (kernel.function, sent)]
    assert without_names(ptx[0]) == without_names(ptx[1])
    assert len(without_names(ptx[0])) > 0.5 * len(ptx[0])


def test_workers_compile_to_machine_code(tmp_path, monkeypatch):
    """Each kind of kernel is sent, and the server does not use a GPU, of which there is none here."""
    pytest.importorskip("cuda.core", reason='cuda-core is not installed: pip install "minifuse[cuda13]"')
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path))
    monkeypatch.setattr(compile_workers, "compile_here", lambda jobs: wait_for(jobs))
    kernels = [*[kernel() for kernel in KERNELS.values()], ATTENTION["key_gradient short"], WGMMA["tf32, 64 columns"]]
    jobs = [
        MissingKernel(f"k_{k:024x}", x.source, CubinCompiler(lambda x=x: x.function, *options_of(x)))
        for k, x in enumerate(kernels)
    ]
    with compile_workers.use_workers(2):
        compile_in_parallel({job.name: job for job in jobs})
    compile_workers.close_shared_server()
    for job, kernel in zip(jobs, kernels, strict=True):
        entry, _, code = read_payload(job.name).partition(b"\n")
        assert code.startswith(b"\x7fELF")
        assert b"." + entry in code
        assert kernel.is_arch_specific == (b"wgmma" in entry)


def options_of(kernel):
    return kernel.signature, kernel.threads, kernel.blocks, (9, 0), kernel.is_arch_specific


def wait_for(jobs):
    """What this process does while it compiles nothing itself."""
    end = time.monotonic() + 120
    while not all(read_payload(job.name) for job in jobs):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_kernel_that_calls_functions_of_the_caller_is_sent_by_its_code():
    """Also a function of a script, which other processes cannot import."""
    space = {"__name__": "__main__"}
    exec("def twice(x):\n    return x + x\n", space)
    compiler = CubinCompiler(lambda: space["twice"], ("*f32",), 1, 1, (9, 0))
    data = pickle.loads(pickle.dumps(compiler))
    assert data.make_kernel()(3) == 6
    assert data.make_kernel() is not space["twice"]
