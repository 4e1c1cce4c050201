"""Launch kernels: `run` executes one, `trace` also records it, `schedules` compares many execution orders.

All three check grid, block and arguments as Numba does, rebind the kernel, run the machine and collect the results.
"""

import math
from collections.abc import Iterator, Sequence
from inspect import CO_VARARGS
from types import FunctionType
from typing import NamedTuple, Protocol, TypeGuard

import numpy as np

from ..core.errors import SimtError, UnknownWordError
from ..core.wording import format_count
from .address_spaces import select_scalar_arguments
from .lanes import getcurrent
from .machine import LOOP_LIMIT, MAX_THREADS_PER_BLOCK, Machine
from .rebind import ReboundKernel, rebind
from .record import LOAD, Recorder
from .trace import Trace

Sizes = int | tuple[int, ...]


class PlannedLaunch(Protocol):
    """A launch that another part of the library has planned."""

    kernel: object
    grid: Sizes
    block: Sizes
    arguments: Sequence[object]
    shared: int


class PreparedLaunch(NamedTuple):
    """A checked launch, ready for the machine."""

    kernel: ReboundKernel
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: list[tuple[str, object]]
    shared: int

    def machine(self, seed: int, recorder: Recorder | None, loop_limit: int | None) -> Machine:
        """Return a machine that is ready to run this launch."""
        return Machine(
            self.kernel.function,
            self.grid,
            self.block,
            self.arguments,
            shared=self.shared,
            seed=seed,
            recorder=recorder,
            is_cooperative=self.kernel.is_cooperative,
            loop_limit=loop_limit,
        )


class Schedules(NamedTuple):
    """A comparison of the results of a launch in many orders of blocks, warps and lanes with those in index order."""

    tried: int
    different: tuple[int, ...]  # seeds with other outputs; pass one as seed= to replay it
    failed: tuple[int, ...]  # seeds that end in an error, unlike seed 0
    outputs: dict[str, int]  # name of an array -> first seed that changes it

    def __str__(self) -> str:
        affected = sorted((*self.different, *self.failed))
        if not affected:
            return f"the same in {self.tried} schedules"
        return f"different in {len(affected)} of {self.tried} schedules; seed {affected[0]} replays it"


def run(
    kernel: object,
    grid: Sizes | None = None,
    block: Sizes | None = None,
    *arguments: object,
    seed: int = 0,
    shared: int = 0,
    loop_limit: int | None = LOOP_LIMIT,
) -> None:
    """Run a CUDA kernel on the CPU, lane by lane, with every check except that for races, and record nothing.

    Parameters
    ----------
    kernel : function, dispatcher of cuda.jit, or launch plan
        A launch plan has the attributes kernel, grid, block, arguments and shared. With it, omit these arguments.
    grid, block : int or tuple of 1 to 3 ints
        Number of blocks in the grid, and of threads per block.
    *arguments
        NumPy arrays (written in place), numbers, tuples of these, `Pointer`, device arrays.
    seed : int
        Execution order: 0 is the order of the indices, every other seed is a reproducible shuffled order.
    shared : int
        Bytes of dynamic shared memory.
    loop_limit : int or None
        Raise LoopLimitError after this many loop iterations and calls, counted over all threads, without a thread ending.
        None for no limit.

    Raises
    ------
    SimtError
        The first error of the kernel, with its line, block and thread.
    LoopLimitError
        A loop or a recursion did not end within `loop_limit`.
    UnknownWordError
        The kernel uses a name that is not supported.

    Notes
    -----
    An access takes about 1 us, a lane about 3 us.

    Examples
    --------
    >>> from minifuse import simt
    >>> import numpy as np
    >>> def double(a):
    ...     i = simt.cuda.grid(1)
    ...     if i < a.size:
    ...         a[i] *= 2
    >>> a = np.arange(5)
    >>> simt.run(double, 2, 4, a)
    >>> a
    array([0, 2, 4, 6, 8])
    """
    prepare_launch(kernel, grid, block, arguments, shared).machine(seed, None, loop_limit).run()


def trace(
    kernel: object,
    grid: Sizes | None = None,
    block: Sizes | None = None,
    *arguments: object,
    seed: int = 0,
    limit: int | None = 1_000_000,
    shared: int = 0,
    loop_limit: int | None = LOOP_LIMIT,
) -> Trace:
    """Run a CUDA kernel on the CPU, lane by lane, and record every access.

    Parameters
    ----------
    kernel, grid, block, *arguments, seed, shared, loop_limit
        See `run`.
    limit : int or None
        Record at most this many events, then end the launch with a LimitError among the hazards.

    Returns
    -------
    Trace
        Outputs, events, requests and hazards. If an error ends the launch, it is the last of the findings, and
        `is_complete` is False.

    Raises
    ------
    UnknownWordError
        The kernel uses a name that is not supported. Every other error is in `hazards()`.

    Notes
    -----
    An event takes about 2 us and 50 bytes.

    Examples
    --------
    >>> from minifuse import simt
    >>> import numpy as np
    >>> def shift(a):
    ...     i = simt.cuda.grid(1)
    ...     a[i] = a[i + 1]
    >>> shifted = simt.trace(shift, 1, 4, np.arange(4))
    >>> len(shifted.events.thread), shifted.is_complete
    (6, False)
    """
    launch = prepare_launch(kernel, grid, block, arguments, shared)
    recorder = Recorder(limit)
    machine = launch.machine(seed, recorder, loop_limit)
    try:
        machine.run()
    except UnknownWordError:
        raise
    except SimtError as error:
        machine.findings.append(error)
        is_complete = False
    else:
        is_complete = True
    events, instructions, barriers, collectives = recorder.finish()
    stored_rows = np.unique(events.array[events.kind != LOAD]).tolist()
    code = launch.kernel.source.__code__
    names, values = [name for name, _ in launch.arguments], tuple(value for _, value in launch.arguments)
    return Trace(
        kernel=launch.kernel.source.__name__,
        file=code.co_filename,
        line=code.co_firstlineno,
        grid=machine.grid,
        block=machine.block,
        shared=launch.shared,
        seed=seed,
        arguments=select_scalar_arguments(names, values),
        outputs={name: data for row, (name, data) in machine.spaces.arguments.items() if row in stored_rows},
        events=events,
        instructions=instructions,
        arrays=recorder.arrays,
        barriers=barriers,
        collectives=collectives,
        findings=machine.findings,
        is_complete=is_complete,
        fresh=tuple(machine.spaces.unwritten_arguments),
    )


def schedules(
    kernel: object,
    grid: Sizes | None = None,
    block: Sizes | None = None,
    *arguments: object,
    count: int = 64,
    shared: int = 0,
    loop_limit: int | None = LOOP_LIMIT,
) -> Schedules:
    """Run a kernel in many orders of blocks, warps and lanes, each from the same initial memory, and compare the outputs.

    Parameters
    ----------
    kernel, grid, block, *arguments, shared, loop_limit
        See `run`. Afterwards, the arrays have their initial contents again.
    count : int
        Seeds to try: 0 to count - 1.

    Returns
    -------
    Schedules
        The seeds whose outputs differ in any bit from those of seed 0.

    Raises
    ------
    SimtError
        Seed 0 ends in an error.

    Notes
    -----
    Float sums by atomics legitimately differ in their last bits between orders.

    Examples
    --------
    >>> from minifuse import simt
    >>> import numpy as np
    >>> def who_is_last(a):
    ...     a[0] = simt.cuda.grid(1)
    >>> str(simt.schedules(who_is_last, 2, 64, np.zeros(1), count=8))
    'different in 6 of 8 schedules; seed 1 replays it'
    """
    launch = prepare_launch(kernel, grid, block, arguments, shared)
    saved = [(data, data.copy()) for _, value in launch.arguments for data in argument_memory(value) if data.flags.writeable]
    try:
        expected = run_outputs(launch, 0, loop_limit)
        different, failed, outputs = [], [], dict[str, int]()
        for seed in range(1, count):
            restore_memory(saved)
            try:
                contents = run_outputs(launch, seed, loop_limit)
            except SimtError:
                failed.append(seed)
                continue
            changed_arrays = [name for name, content in contents.items() if content != expected[name]]
            if changed_arrays:
                different.append(seed)
            for name in changed_arrays:
                outputs.setdefault(name, seed)
    finally:
        restore_memory(saved)
    return Schedules(count, tuple(different), tuple(failed), outputs)


def run_outputs(launch: PreparedLaunch, seed: int, loop_limit: int | None) -> dict[str, bytes]:
    """Run a launch, and return the contents of its arrays by name."""
    machine = launch.machine(seed, None, loop_limit)
    machine.run()
    return {name: data.tobytes() for name, data in machine.spaces.arguments.values()}


def argument_memory(value: object) -> Iterator[np.ndarray]:
    """Yield the NumPy arrays of an argument: its elements, and the flags that record which are written."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from argument_memory(part)
    else:
        for name in ("data", "written"):
            part = getattr(value, name, None)
            if isinstance(part, np.ndarray):
                yield part


def restore_memory(saved: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Restore arrays to earlier contents."""
    for data, content in saved:
        data[...] = content


def prepare_launch(
    kernel: object, grid: Sizes | None, block: Sizes | None, arguments: tuple[object, ...], shared: int
) -> PreparedLaunch:
    """Check the arguments of a call, and return the launch. Raise SimtError if they are invalid."""
    if grid is None:
        if not is_launch_plan(kernel):
            raise SimtError(f"launch of {kernel!r}: no grid; write run(kernel, grid, block, *arguments) or run(plan)")
        grid, block, arguments, shared = kernel.grid, kernel.block, tuple(kernel.arguments), kernel.shared
        kernel = kernel.kernel
    if getattr(getcurrent(), "lane", None) is not None:
        raise SimtError("a kernel cannot launch a kernel; launch it from the host")
    rebound = rebind(kernel)
    blocks, threads = check_sizes(grid, "grid"), check_sizes(block, "block")
    if math.prod(threads) > MAX_THREADS_PER_BLOCK:
        raise SimtError(
            f"a block of {math.prod(threads)} threads; a GPU allows at most {MAX_THREADS_PER_BLOCK}: use more blocks"
        )
    return PreparedLaunch(rebound, blocks, threads, name_arguments(rebound, arguments), shared)


def is_launch_plan(value: object) -> TypeGuard[PlannedLaunch]:
    """Return whether a value has the attributes of a launch plan."""
    return all(hasattr(value, name) for name in ("kernel", "grid", "block", "arguments", "shared"))


def check_sizes(value: Sizes | None, name: str) -> tuple[int, ...]:
    """Check a grid or block of one to three sizes, and return it as a tuple."""
    sizes: Sequence[object] = value if isinstance(value, Sequence) else (value,)
    valid_sizes = tuple(int(size) for size in sizes if isinstance(size, int | np.integer) and size > 0)
    if not 1 <= len(sizes) <= 3 or len(valid_sizes) < len(sizes):
        raise SimtError(f"{name}: got {value}; expected a positive integer or a tuple of 1 to 3 positive integers")
    return valid_sizes


def name_arguments(rebound: ReboundKernel, arguments: tuple[object, ...]) -> list[tuple[str, object]]:
    """Return the arguments with the names of their parameters."""
    names = rebound.parameter_names
    problem = wrong_argument_count(rebound.source, len(arguments))
    if problem:
        raise SimtError(problem)
    extra_names = [f"argument {number}" for number in range(len(names), len(arguments))]
    return list(zip([*names, *extra_names], arguments, strict=False))


def wrong_argument_count(function: FunctionType, count: int) -> str:
    """Return how many arguments a kernel takes, or "" if it takes `count`."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    required_count = len(names) - len(function.__defaults__ or ())
    if required_count <= count and (count <= len(names) or code.co_flags & CO_VARARGS):
        return ""
    expected = format_count(len(names), "argument")
    expected = expected if required_count == len(names) else f"{required_count} to {expected}"
    return f"{function.__name__}({', '.join(names)}) takes {expected}, got {count}"
