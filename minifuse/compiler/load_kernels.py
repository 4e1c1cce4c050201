"""Load the kernels of a plan: from memory, from disk, or compiled now, in several processes if several are missing."""

from collections.abc import Sequence
from contextlib import suppress

from ..backends.base import Backend, Launcher
from ..ir.steps import Step
from ..runtime.compile_workers import MIN_KERNELS_FOR_WORKERS, compile_in_parallel
from ..runtime.kernel_cache import KernelNotCompiled, cache


def load_kernels(backend: Backend, steps: Sequence[Step]) -> list[Launcher]:
    """Return the launcher of each step.

    All steps whose kernels exist are loaded first. So the kernels that are missing are known before the first of them is
    compiled. A step with several kernels only notes the first one that is missing, so there may be a second round.
    """
    executables = [*map(backend.compile, steps)]
    if len(executables) < MIN_KERNELS_FOR_WORKERS:
        return [executable.load() for executable in executables]
    launchers: dict[int, Launcher] = {}
    tried = set[str]()
    while len(launchers) < len(executables):
        with cache.collect_missing() as missing:
            for k, executable in enumerate(executables):
                if k not in launchers:
                    with suppress(KernelNotCompiled):
                        launchers[k] = executable.load()
        new = {name: job for name, job in missing.items() if name not in tried}
        if len(new) < MIN_KERNELS_FOR_WORKERS:
            break
        tried |= new.keys()
        compile_in_parallel(new)
    return [launchers[k] if k in launchers else executable.load() for k, executable in enumerate(executables)]
