"""CUDA kernels lane by lane, on any machine: `trace` runs one and records every access, `run` only runs it.

    record       the columns and tables of a trace          facts, hazards, trace   what they say
    arithmetic   numbers in kernels                          lanes, stuck, machine   lanes, and where they wait
    collectives, fragments   what a warp does together
    memory, pointers, spaces   arrays, and where they lie    words, atomics, random   what a kernel says
    adopt        from a function for Numba to ours           host, check             scripts as they are

Above `errors`, below the backends. It needs neither Numba nor a GPU, and imports neither. It runs what a kernel says, and is
not a model of time: no cache, no latency, nothing that a compiler moves.
"""

from .cuda_api import cuda, mma_sync, word
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
    "trace",
    "word",
]
