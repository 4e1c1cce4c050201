"""The process that runs a pasted kernel: `python -I -m project.sandbox.child`, with a request on its standard input.

It imports everything first, then gives up its rights, and only then reads the kernel. Its answer is JSON: a picture, facts
and lines, or an error.
"""

import builtins
import json
import linecache
import os
import re
import resource
import sys
from math import prod
from pathlib import Path
from textwrap import indent
from typing import Any

from minifuse.cli.subjects import FileRunner
from minifuse.core.errors import MinifuseError
from minifuse.runtime.system_calls import keep_needed_calls
from minifuse.simt.host import ScriptKernel, stand_in_modules, substitute_modules

from ..views import thread_memory, thread_pictures, threads, user_kernel
from ..views.plain import as_plain

NAME = "pasted.py"
CPU_SECONDS, MEMORY_NBYTES = 5, 512 << 20  # of the kernel; memory beside what is imported
NOBODY = 65534
CPLUSPLUS = re.compile(r"\b__(global|device|shared)__\b|<<<|#include\b")
WARM = "from numba import cuda\n\n@cuda.jit\ndef fill(x):\n    x[cuda.grid(1)] = 1\n"


def give_up_rights() -> None:
    """Drop root, limit time and memory, and keep only the system calls that computing needs."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        used = int(file.read().split()[0]) * resource.getpagesize()
    if os.geteuid() == 0:
        os.chroot(".")  # the empty folder in which this process was started
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    limits = {
        resource.RLIMIT_CPU: CPU_SECONDS,
        resource.RLIMIT_AS: used + MEMORY_NBYTES,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_CORE: 0,
    }
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, limit))
    keep_needed_calls()


def run_kernel(source: str, grid: str, block: str, arguments: str, of: tuple[int, int]) -> dict[str, Any]:
    """Launch the kernel of a text, and return what the page shows, as plain data."""
    kernel, name = find_kernel(source)
    example = user_kernel.example_of(kernel)
    launch = grid or example.grid, block or example.block, arguments or example.arguments
    seen = user_kernel.launch_kernel(kernel, name, *launch, of)
    return {
        "name": name,
        "example": example.arguments,
        "picture": as_plain(thread_pictures.picture(seen)),
        "facts": as_plain(user_kernel.kernel_facts(seen)),
        "lines": as_plain(threads.source(seen)),
        "written": as_plain(count_written(seen)),
    }


def count_written(seen: threads.TracedLaunch) -> tuple[int, int]:
    """Return how many elements of the arrays that are stored to exactly one thread wrote, and how many there are."""
    writers = dict[tuple[str, int], set[tuple[int, int]]]()
    for access in thread_memory.accesses(seen.trace):
        if access.is_store:
            writers.setdefault((access.array, access.element), set()).add(access.thread)
    arrays = {name for name, _ in writers}
    sizes = sum(prod(info.shape) for info in seen.trace.arrays if info.space == "global" and info.name in arrays)
    return sum(len(found) == 1 for found in writers.values()), sizes


def find_kernel(source: str) -> tuple[Any, str]:
    """Run a text, with the interpreter in place of numba.cuda, and return its last kernel and the kernel's name."""
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    values: dict[str, Any] = {"__name__": "pasted", "__builtins__": builtins}
    try:
        exec(compile(source, NAME, "exec"), values)  # this process can only compute
    except SyntaxError as error:
        if CPLUSPLUS.search(source):
            raise MinifuseError(
                f"this is CUDA C++; expected Python for numba.cuda, as in\n\n{indent(WARM, '    ')}"
            ) from error
        raise MinifuseError(f"line {error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        raise MinifuseError(f"the text raised {type(error).__name__}: {error}") from error
    kernels = [(key, value) for key, value in values.items() if isinstance(value, ScriptKernel) and not value.is_device]
    if not kernels:
        raise MinifuseError("the text has no kernel; write a function with @cuda.jit")
    return kernels[-1][1], kernels[-1][0]


def answer_request(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request, or its error."""
    try:
        first, second = request["of"]
        return run_kernel(request["source"], request["grid"], request["block"], request["arguments"], (first, second))
    except MinifuseError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": f"the kernel needs more than {MEMORY_NBYTES >> 20} MiB"}
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Answer one request."""
    with substitute_modules(stand_in_modules(FileRunner()), Path.cwd()):
        run_kernel(WARM, "1", "1", "", (0, 0))  # imports what is imported late
        sys.setrecursionlimit(400)
        give_up_rights()
        print("ready", flush=True)
        answer = json.dumps(answer_request(json.loads(sys.stdin.readline())))
    sys.stdout.write(answer)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
