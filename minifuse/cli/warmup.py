"""`minifuse warmup [NAME ...]`: what the demo, the recipes or a function of the user's need is compiled, and kept on disk.

First everything is planned, and what the plans lack is compiled in several processes. Then each subject runs once, in small,
for what only running shows: functions that are not fused, gradients, what a model says in the end.
"""

import json as json_
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..backends.registry import get_backend, use_backend
from ..core.errors import MinifuseError
from ..jit.fuse import Fused
from ..recipes import MODULES, recipe_named
from ..runtime.compile_workers import compile_all
from ..runtime.kernel_cache import MissingKernel, cache
from ..tensors.tensor import Tensor
from ..training import Trainer
from . import explain
from .recipes import STOPPED
from .simulation import is_simulated
from .subjects import RequestError

WIDTH = 80  # columns
NAMES = ("demo", *MODULES)
FEW_DIGITS = 128  # of the demo: two batches


@dataclass(frozen=True)
class Request:
    """What is to be compiled; texts as the command line has them."""

    names: Sequence[str] = ()
    """Of NAMES, or FILE.py:function; all of NAMES if there are none."""
    shape: str | None = None
    dtype: str | None = None
    backend: str | None = None
    grad: bool = False
    jobs: int | None = None  # processes; one for each processor if left out


@dataclass(frozen=True)
class Subject:
    """Something that needs kernels: a call of a fused function, where there is one, and what runs all of it once."""

    name: str
    fused: Fused | None
    inputs: Sequence[Any]
    run: Callable[[], Any]


def run(request: Request, json: bool) -> int:
    """Compile, and say what there is; 1 where kernels cannot be kept, 2 for a request without sense, 130 if stopped."""
    console = Console(width=min(WIDTH, Console().width), highlight=False, quiet=json)
    try:
        refuse_where_nothing_compiles(request.backend)
        with redirect_stdout(sys.stderr) if json else nullcontext(), use_backend(get_backend(request.backend).name):
            subjects = [subject_of(name, request) for name in request.names or NAMES]
    except MinifuseError as error:
        sys.stderr.write(f"minifuse warmup: {error}\n")
        return 2
    try:
        cache.check()
        with redirect_stdout(sys.stderr):  # a function of the user's may print
            facts = warmed(subjects, request, console, json)
    except MinifuseError as error:
        sys.stderr.write(f"minifuse warmup: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("minifuse warmup: stopped; what was compiled until then is kept\n")
        return STOPPED
    if json:
        sys.stdout.write(json_.dumps(facts, indent=2) + "\n")
    else:
        console.print(escape(summary(facts)))
    return 0


def summary(facts: Mapping[str, Any]) -> str:
    """What was done, in a few words."""
    place = f"{facts['nbytes'] / 1e6:,.1f} MB of kernels in {facts['folder']}"
    if not facts["compiled"]:
        return f"all {facts['kernels']:,} kernels are there; {place}"
    found = f"{facts['compiled']:,} kernels compiled, {facts['found']:,} were there, in {facts['seconds']:,.1f} s"
    return f"{found}; {place}"


def refuse_where_nothing_compiles(name: str | None) -> None:
    """Raise for a backend that has no compiler here."""
    if is_simulated(name):
        raise RequestError("cuda is simulated here, and the interpreter compiles nothing; choose --backend parallel")
    if get_backend(name).name == "python":
        raise RequestError("the python backend compiles nothing; choose --backend parallel or cuda")


def warmed(subjects: Sequence[Subject], request: Request, console: Console, json: bool) -> dict[str, Any]:
    """Compile what the subjects need; what was done, as JSON has it."""
    start, before, known = perf_counter(), cache.stats(), {kernel.name for kernel in cache.kernels()}
    processes = request.jobs or count_processors()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    chosen = get_backend(request.backend).name
    with Progress(*columns, console=console, disable=json, transient=True) as progress, use_backend(chosen):
        bar = progress.add_task("planning", total=None)

        def tell(done: int, total: int) -> None:
            progress.update(bar, description="compiling", completed=done, total=total)

        built = compile_all(lambda: wanted_by(subjects), processes, tell) if processes > 1 else 0
        progress.reset(bar, total=len(subjects))
        for subject in subjects:
            progress.update(bar, description=f"running {escape(subject.name)}")
            subject.run()
            progress.advance(bar)
    after = cache.stats()
    lost = [kernel for kernel in cache.kernels() if kernel.path is None and kernel.name not in known]
    if lost:
        raise MinifuseError(
            f"{len(lost)} of {after.in_memory} kernels are not in {after.folder}: there is no room, or "
            "MINIFUSE_CACHE_LIMIT_MB is too small for them"
        )
    compiled = built + after.compiled - before.compiled
    kernels = after.in_memory - before.in_memory
    return {
        "subjects": [subject.name for subject in subjects],
        "backend": chosen,
        "kernels": kernels,
        "compiled": compiled,
        "found": max(kernels - compiled, 0),
        "processes": processes if built else 1,
        "seconds": perf_counter() - start,
        "nbytes": after.nbytes_on_disk,
        "folder": str(after.folder),
    }


def count_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def wanted_by(subjects: Sequence[Subject]) -> dict[str, MissingKernel]:
    """The kernels that the calls of fused functions lack."""
    found: dict[str, MissingKernel] = {}
    for subject in subjects:
        if subject.fused is not None:
            found |= subject.fused.plan(*subject.inputs).kernels_to_compile()
    return found


# What there is to compile.


def subject_of(name: str, request: Request) -> Subject:
    """What a name means.

    Raises
    ------
    MinifuseError
        There is no such thing, or its arguments are not known.
    """
    if name in MODULES:
        return of_recipe(name, request.backend)
    if name == "demo":
        return Subject(name, None, (), lambda: run_demo(request.backend))
    if ".py" not in name:
        raise RequestError(f"{name!r} is not known; expected one of {', '.join(NAMES)}, or FILE.py:function")
    asked = explain.Request(name, request.shape, request.dtype, request.backend, request.grad)
    fused, inputs = explain.subject_of(asked)
    return Subject(name.rpartition(os.sep)[2], fused, inputs, lambda: run_function(fused, inputs, request.grad))


def of_recipe(name: str, backend: str | None) -> Subject:
    """A recipe: a step of training, a look at what is held out, and what the model says."""
    recipe = recipe_named(name)
    trainer = Trainer(recipe, recipe.settings.changed({"backend": get_backend(backend).name}))
    batch = next(trainer.batches(1))

    def run() -> None:
        trainer.step(*batch)
        trainer.measure()
        recipe.says(trainer.model, trainer.data, 0)

    assert isinstance(trainer.step, Fused)
    return Subject(name, trainer.step, batch, run)


def run_demo(backend: str | None) -> None:
    """The demo in small: training, and the step that it times."""
    from .demo import BATCH, Course, evaluate
    from .training import train_digits

    course, name = Course(), get_backend(backend).name
    result = train_digits(0, 1, None, name, FEW_DIGITS, course.hidden, course.batch_size)
    state = {key: p.numpy().copy() for key, p in result.model.named_parameters()}
    evaluate(state, course.hidden, BATCH, name, "float32")


def run_function(fused: Fused, inputs: Sequence[Any], grad: bool) -> None:
    """A function of the user's, and its gradient where that is asked for."""
    for y in tensors_in(fused(*inputs)):
        if grad and y.requires_grad:
            y.sum().backward(retain_graph=True)


def tensors_in(x: Any) -> Iterator[Tensor]:
    """The tensors in a result."""
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, tuple | list | dict):
        for y in x.values() if isinstance(x, dict) else x:
            yield from tensors_in(y)
