"""Questions of tasks 3.3 and 3.4: launch a CUDA kernel in the interpreter, and on a GPU if there is one."""

import warnings
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy as np

from .. import simulated
from ..launch_facts import Argument, Launch, LaunchFacts, flat
from ..loops import FUNCTIONS
from ..strided import Array, Strided
from ..student import Student
from ..verdicts import Wrong


def kernel_of(student: Student, case: Launch) -> FunctionType:
    """Return the student's kernel for a launch."""
    made: Any = student.raw(case.slot)
    kernel = made(FUNCTIONS[case.operator]) if case.operator else made
    if not callable(kernel):
        raise Wrong(
            f"{case.slot} returns {kernel}; it must define the kernel and return it: return kernel", kind="no kernel"
        )
    typed: FunctionType = kernel
    return typed


def launch(student: Student, case: Launch) -> LaunchFacts:
    """Launch a kernel in the interpreter, and return what it did."""
    given = case.fresh()
    trace = simulated.trace(student, case.slot, kernel_of(student, case), case.grid, case.block, *given)
    return simulated.facts_of(student, trace, flat(given[0]))


def launch_on_gpu(student: Student, cases: Sequence[Launch]) -> tuple[str, str, list[Array]]:
    """Return (name of the GPU, the reason for a failure, the outputs); the name is "" without a GPU."""
    from ...backends.cuda import compiler
    from ...backends.cuda.device import driver

    if not driver.query_driver().gpus:
        return "", "", []
    try:
        name = compiler.numba_cuda().get_current_device().name
        name = name.decode() if isinstance(name, bytes) else name
        return name, "", [output_on_gpu(student, case) for case in cases]
    except Exception as error:  # the driver is too old, Numba CUDA is not installed
        return "a GPU", f"{type(error).__name__}: {str(error).splitlines()[0][:100]}", []


def output_on_gpu(student: Student, case: Launch) -> Array:
    """Return the flat output of a launch on the GPU."""
    from ...backends.cuda.compiler import numba_cuda, rebind_for_numba

    kernel = numba_cuda().jit(rebind_for_numba(kernel_of(student, case)))
    arguments = [copy_to_device(x) for x in case.fresh()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Numba warns that a small grid leaves most of the GPU idle
        kernel[case.grid, case.block](*arguments)
    out: Any = arguments[0].storage if isinstance(arguments[0], Strided) else arguments[0]
    copied: Array = out.copy_to_host().reshape(-1)
    return copied


def copy_to_device(x: Argument) -> Any:  # of Numba CUDA
    """Copy the memory of an argument to the GPU."""
    from ...backends.cuda.compiler import numba_cuda

    cuda = numba_cuda()
    if isinstance(x, Strided):
        return x._replace(storage=cuda.to_device(x.storage))
    return cuda.to_device(x) if isinstance(x, np.ndarray) else x
