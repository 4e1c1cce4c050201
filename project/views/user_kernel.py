"""A kernel of the user: the file that `minifuse app --kernel FILE.py:name` names, launched by the page.

The file runs as in a program of the user, but text that is typed on the page is not executed: sizes and arguments have the
small grammar of `minifuse trace`.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from shlex import quote
from threading import Lock
from typing import Any

import numpy as np

from minifuse.backends.cuda.launch_plan import LaunchPlan
from minifuse.cli.subjects import load_kernel, parse_kernel_arguments, parse_sizes
from minifuse.core.errors import MinifuseError
from minifuse.core.wording import format_count
from minifuse.simt import Trace

from .cited_facts import Fact
from .kernel_parameters import kernel_uses
from .threads import TracedLaunch, facts, trace_near

MAX_CHARACTERS = 400
MAX_THREADS, MAX_ELEMENTS = 4096, 4096  # threads of all blocks; elements of one array
LOADING = Lock()  # a running file imports the interpreter as numba.cuda; one file at a time


def run_launch(what: str, grid: str, block: str, arguments: str, of: tuple[int, int] = (0, 0)) -> TracedLaunch:
    """Launch a kernel of a file, and trace one thread.

    Parameters
    ----------
    what : str
        /absolute/FILE.py:name.
    grid, block : str
        One to three sizes: "4", "2, 2".
    arguments : str
        The arguments, separated by spaces: "x=64:float32 y=64:float32 n=64". Arrays get random elements.
    of : tuple of two ints
        The block and the thread to record; larger numbers mean the last block or thread.

    Raises
    ------
    MinifuseError
        The file, a size or an argument is not right, or there is more than can be drawn.
    """
    return launch_kernel(find_kernel(what), what, grid, block, arguments, of)


def launch_kernel(
    kernel: Any, what: str, grid: str, block: str, arguments: str, of: tuple[int, int] = (0, 0)
) -> TracedLaunch:
    """Launch a kernel, and trace one thread; `what` names it in messages."""
    if max(map(len, (grid, block, arguments))) > MAX_CHARACTERS:
        raise MinifuseError(f"a text of more than {MAX_CHARACTERS} characters; write less")
    blocks, threads = (parse_sizes(name, "".join(text.split())) for name, text in (("grid", grid), ("block", block)))
    if (total := prod(blocks) * prod(threads)) > MAX_THREADS:
        raise MinifuseError(
            f"{join_sizes(blocks)} blocks of {join_sizes(threads)} threads are {total:,} threads; expected at most "
            f"{MAX_THREADS:,}: take fewer blocks, or count a launch of this size with `minifuse trace FILE.py:kernel`"
        )
    values = parse_kernel_arguments(kernel, what.rpartition(":")[2], arguments.split())
    sizes = [value.size for value in values if hasattr(value, "size")]
    if max(sizes, default=0) > MAX_ELEMENTS:
        raise MinifuseError(
            f"an array of {max(sizes):,} elements; expected at most {MAX_ELEMENTS}, so that each can be seen"
        )
    plan = LaunchPlan(kernel, blocks, threads, values, 0)
    timelines, places, thread = trace_near(plan, of)
    check_dims(kernel, values, timelines.trace)
    return TracedLaunch(what, (max(sizes, default=0),), plan, timelines, timelines.trace.is_complete, thread, places)


def join_sizes(sizes: Sequence[int]) -> str:
    """Format sizes: "2 x 2"."""
    return " x ".join(map(str, sizes))


def find_kernel(what: str) -> Any:
    """Return the kernel as its file now defines it."""
    file, _, name = what.rpartition(":")
    try:
        changed = Path(file).stat().st_mtime_ns
    except (OSError, ValueError) as error:
        raise MinifuseError(f"{file} cannot be read: {error}") from error
    with LOADING:
        return load_cached(file, name, changed)


@lru_cache(maxsize=4)
def load_cached(file: str, name: str, changed: int) -> Any:
    """Return the kernel of a file that was changed at this time."""
    return load_kernel(Path(file), name)


@dataclass(frozen=True)
class Example:
    """A launch to begin with: blocks, threads of a block, and arguments, as a page has them."""

    grid: str
    block: str
    arguments: str


def example(what: str) -> Example:
    """Return a launch to begin with, which fits the source of a kernel."""
    return example_of(find_kernel(what))


def example_of(kernel: Any) -> Example:
    """Return a launch to begin with: an argument for each parameter without a default, of the dims that the source uses."""
    uses, parameters = kernel_uses(kernel), inspect.signature(kernel).parameters.values()
    arguments = " ".join(uses.argument(p.name) for p in parameters if p.default is p.empty)
    return Example(",".join(map(str, uses.grid)), ",".join(map(str, uses.block)), arguments)


def check_dims(kernel: Any, values: Sequence[Any], trace: Trace) -> None:
    """Raise MinifuseError if a launch was ended by a fault, and an array has fewer dims than the source uses."""
    if trace.is_complete:
        return
    uses = kernel_uses(kernel)
    for name, value in zip(inspect.signature(kernel).parameters, values, strict=False):
        use = uses.arrays.get(name)
        if use is not None and np.ndim(value) < use.dims:
            raise MinifuseError(
                f"{name} has {format_count(np.ndim(value), 'dim')}, and line {use.line} has {use.text}: write "
                f"{uses.argument(name)} in arguments"
            )


def kernel_facts(launch: TracedLaunch) -> list[Fact]:
    """Return facts about the kernel; whether its result is right is unknown here."""
    return [fact for fact in facts(launch) if fact.name != "the result"]


def command(launch: TracedLaunch, arguments: str) -> str:
    """Return the terminal command that traces the same launch."""
    assert launch.plan is not None
    grid, block = (",".join(map(str, sizes)) for sizes in (launch.plan.grid, launch.plan.block))
    options = " ".join(f"--arg {quote(text)}" for text in arguments.split())
    return f"minifuse trace {quote(launch.subject)} --grid {grid} --block {block} {options}"
