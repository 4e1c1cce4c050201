"""`minifuse warmup [NAME ...]`: compile the kernels of the demo, the recipes or a function, and store them on disk.

First all plans are made, and several processes compile the missing kernels. Then each subject runs once on little data, to
compile kernels that are only determined at run time: those of unfused functions, gradients and text generation.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

from ..backends.registry import get_backend, use_backend
from ..core.errors import MinifuseError
from ..jit.fuse import Fused
from ..recipes import MODULES, recipe_named
from ..runtime.compile_workers import compile_all, use_workers
from ..runtime.kernel_cache import MissingKernel, cache
from ..runtime.processors import count_processors
from ..tensors.tensor import Tensor
from ..training import Trainer
from ..training.progress import new_progress_bar
from . import explain
from .files import RequestError
from .output import EXIT_INTERRUPTED, new_console, print_json, report_error
from .simulation import is_simulated

NAMES = ("demo", *MODULES)
DEMO_DIGITS = 128  # digits that the demo trains on: two batches


@dataclass(frozen=True)
class WarmupRequest:
    """The options, as given on the command line."""

    names: Sequence[str] = ()
    """Names in NAMES, or FILE.py:function; empty for all of NAMES."""
    shape: str | None = None
    dtype: str | None = None
    backend: str | None = None
    grad: bool = False
    jobs: int | None = None  # number of processes; None for one per processor


@dataclass(frozen=True)
class WarmupSubject:
    """Something to compile: a call of a fused function, if there is one, and a function that runs everything once."""

    name: str
    fused: Fused | None
    inputs: Sequence[object]
    run: Callable[[], object]


def run(request: WarmupRequest, json: bool) -> int:
    """Compile and report; return 1 if kernels cannot be stored, 2 if the request is invalid, 130 if interrupted."""
    console = new_console(is_quiet=json)
    try:
        require_compiler(request.backend)
        with redirect_stdout(sys.stderr) if json else nullcontext(), use_backend(get_backend(request.backend).name):
            subjects = [load_subject(name, request) for name in request.names or NAMES]
    except MinifuseError as error:
        return report_error("warmup", error)
    try:
        cache.check()
        with redirect_stdout(sys.stderr):  # the user's function may print
            facts = compile_subjects(subjects, request, console, json)
    except MinifuseError as error:
        return report_error("warmup", error, 1)
    except KeyboardInterrupt:
        sys.stderr.write("minifuse warmup: stopped; kernels compiled so far are stored\n")
        return EXIT_INTERRUPTED
    if json:
        print_json(facts)
    else:
        console.print(escape(summary(facts)))
    return 0


def summary(facts: Mapping[str, Any]) -> str:
    """Format the result as one line."""
    storage = f"{facts['nbytes'] / 1e6:,.1f} MB of kernels in {facts['folder']}"
    if not facts["compiled"]:
        return f"all {facts['kernels']:,} kernels exist already; {storage}"
    counts = f"{facts['compiled']:,} kernels compiled, {facts['found']:,} existed already, in {facts['seconds']:,.1f} s"
    return f"{counts}; {storage}"


def require_compiler(name: str | None) -> None:
    """Raise RequestError for a backend without a compiler on this machine."""
    if is_simulated(name):
        raise RequestError("cuda is simulated here, and the interpreter compiles nothing; use --backend parallel")
    if get_backend(name).name == "python":
        raise RequestError("the python backend compiles nothing; use --backend parallel or cuda")


def compile_subjects(
    subjects: Sequence[WarmupSubject], request: WarmupRequest, console: Console, json: bool
) -> dict[str, object]:
    """Compile the kernels of the subjects, and return the facts for JSON."""
    start, initial_stats, initial_names = perf_counter(), cache.stats(), {kernel.name for kernel in cache.kernels()}
    processes = request.jobs or count_processors()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    backend = get_backend(request.backend).name
    with new_progress_bar(*columns, console=console, disable=json, transient=True) as progress, use_backend(backend):
        bar = progress.add_task("planning", total=None)

        def show_compiled(done: int, total: int) -> None:
            progress.update(bar, description="compiling", completed=done, total=total)

        built_count = compile_all(lambda: missing_kernels(subjects), processes, show_compiled) if processes > 1 else 0
        progress.reset(bar, total=len(subjects))
        for subject in subjects:
            progress.update(bar, description=f"running {escape(subject.name)}")
            with use_workers(processes - 1):
                subject.run()
            progress.advance(bar)
    final_stats = cache.stats()
    unstored = [kernel for kernel in cache.kernels() if kernel.path is None and kernel.name not in initial_names]
    if unstored:
        raise MinifuseError(
            f"{len(unstored)} of {final_stats.in_memory} kernels could not be stored in {final_stats.folder}; free space "
            "there, or raise MINIFUSE_CACHE_LIMIT_MB"
        )
    compiled_count = final_stats.compiled - initial_stats.compiled
    kernels = final_stats.in_memory - initial_stats.in_memory
    return {
        "subjects": [subject.name for subject in subjects],
        "backend": backend,
        "kernels": kernels,
        "compiled": compiled_count,
        "found": max(kernels - compiled_count, 0),
        "processes": processes if built_count else 1,
        "seconds": perf_counter() - start,
        "nbytes": final_stats.nbytes_on_disk,
        "folder": str(final_stats.folder),
    }


def missing_kernels(subjects: Sequence[WarmupSubject]) -> dict[str, MissingKernel]:
    """Return the kernels of the fused functions that are not compiled yet."""
    missing: dict[str, MissingKernel] = {}
    for subject in subjects:
        if subject.fused is not None:
            missing |= subject.fused.plan(*subject.inputs).kernels_to_compile()
    return missing


# Subjects.


def load_subject(name: str, request: WarmupRequest) -> WarmupSubject:
    """Find the subject with a name.

    Raises
    ------
    MinifuseError
        The subject or its arguments are unknown.
    """
    if name in MODULES:
        return recipe_subject(name, request.backend)
    if name == "demo":
        return WarmupSubject(name, None, (), lambda: run_demo(request.backend))
    if ".py" not in name:
        raise RequestError(f"unknown subject {name!r}; expected one of {', '.join(NAMES)}, or FILE.py:function")
    explain_request = explain.ExplainRequest(name, request.shape, request.dtype, request.backend, request.grad)
    fused, inputs = explain.load_function(explain_request)
    return WarmupSubject(name.rpartition(os.sep)[2], fused, inputs, lambda: run_function(fused, inputs, request.grad))


def recipe_subject(name: str, backend: str | None) -> WarmupSubject:
    """Prepare a recipe: a training step, an evaluation, and its text output."""
    recipe = recipe_named(name)
    trainer = Trainer(recipe, recipe.settings.changed({"backend": get_backend(backend).name}))
    batch = next(trainer.batches(1))

    def run() -> None:
        trainer.step(*batch)
        trainer.measure()
        recipe.says(trainer.model, trainer.data, 0)

    assert isinstance(trainer.step, Fused)
    return WarmupSubject(name, trainer.step, batch, run)


def run_demo(backend: str | None) -> None:
    """Run the demo on little data: training, and the step that it times."""
    from .demo import COMPARED_DIGITS, DemoSize, evaluate
    from .training import train_digits

    size, name = DemoSize(), get_backend(backend).name
    result = train_digits(0, 1, None, name, DEMO_DIGITS, size.hidden, size.batch_size)
    state = {key: p.numpy().copy() for key, p in result.model.named_parameters()}
    evaluate(state, size.hidden, COMPARED_DIGITS, name, "float32")


def run_function(fused: Fused, inputs: Sequence[object], grad: bool) -> None:
    """Run a function of the user, and its gradient if requested."""
    for y in iterate_tensors(fused(*inputs)):
        if grad and y.requires_grad:
            y.sum().backward(retain_graph=True)


def iterate_tensors(x: object) -> Iterator[Tensor]:
    """Iterate over the tensors in a result."""
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, tuple | list | dict):
        for y in x.values() if isinstance(x, dict) else x:
            yield from iterate_tensors(y)
