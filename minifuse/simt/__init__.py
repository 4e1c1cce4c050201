"""Interpret CUDA kernels thread by thread, on any machine: `run` executes a kernel, `trace` also records its accesses.

The files, from low level to high:

    record, bytecode_locations   the columns and tables of a trace, and positions in the source
    arithmetic, libdevice        arithmetic of the numbers in kernels
    lanes, loops, collectives, fragments, deadlock, machine   threads, warps and barriers
    memory, pointers, struct_arrays, address_spaces           arrays in kernels, and their addresses
    cuda_api, atomics, random    the names that a kernel uses
    rebind, launch               turn a function written for Numba into a launch of the interpreter
    metrics, races, fences, columnar, diagnostics, summary, trace, trace_file   analyses of a trace
    request_picture, trace_html                               a trace in a notebook
    occupancy                    theoretical occupancy of a kernel
    host, check                  run and check unmodified numba.cuda scripts

Only `host` imports Numba, and no file imports a GPU library. The interpreter executes the kernel's Python code, and does not
model time: there are no caches, no latencies and no compiler optimizations.
"""

from .cuda_api import cuda, mma_sync, shuffle_registers, word
from .lanes import current
from .launch import Schedules, run, schedules, trace
from .memory import KernelArray as Array
from .pointers import Pointer, Table
from .trace import Trace

load = Trace.load

__all__ = [
    "Array",
    "Pointer",
    "Schedules",
    "Table",
    "Trace",
    "cuda",
    "current",
    "load",
    "mma_sync",
    "run",
    "schedules",
    "shuffle_registers",
    "trace",
    "word",
]
