"""`minifuse tune FILE.py:function`: search the fastest schedule of each kernel of a function by timing it on a GPU.

The function runs once, and its backward pass with --grad. A kernel that is tuned already is not timed again: its row shows
the times of its search. The schedules are kept for this kind of GPU, and every program uses them.
"""

import sys
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stdout
from typing import Any

from ..backends.codegen.schedule import describe_tile
from ..backends.codegen.schedule_search import SearchResult
from ..backends.registry import get_backend, use_backend
from ..compiler.plan import Plan
from ..compiler.pretty_print import format_step
from ..core.errors import MinifuseError
from ..core.wording import format_count
from ..inspect.explain import plan_backward
from ..inspect.report import Column, InspectionReport, make_table, number_column
from ..jit.fuse import Fused
from ..tensors.tensor import Tensor
from .explain import ExplainRequest, load_function
from .files import RequestError
from .output import new_console, print_json, print_report, report_error
from .simulation import explain_simulation, is_simulated
from .warmup import iterate_tensors

NO_KERNELS = "no kernel of this call has a schedule: matrix products, attention and a few other kernels have templates"


def run(request: ExplainRequest, clears: bool, json: bool) -> int:
    """Tune and print; return 2 if the request is invalid or there is no GPU."""
    try:
        backend = request.backend or "cuda"
        device: Any = getattr(get_backend(backend), "device", None)
        if device is None:
            raise RequestError(f"the {backend} backend has no schedules to search; use --backend cuda")
        if is_simulated(backend):
            raise RequestError(f"{explain_simulation('whose times say nothing about a GPU')} Tune on a machine with a GPU")
        if not (request.what or clears):
            raise RequestError("got no function; write minifuse tune FILE.py:function, or minifuse tune --clear")
        cleared = device.schedules.clear() if clears else 0
        with redirect_stdout(sys.stderr) if json else nullcontext(), use_backend(backend):
            found = list(tune_function(request)) if request.what else []
    except MinifuseError as error:
        return report_error("tune", error)
    notes = [f"{format_count(cleared, 'schedule')} removed"] * clears + [f"schedules for {device.schedules.gpu}"]
    if json:
        kernels = [{"kernel": kernel, **result._asdict()} for kernel, result in found]
        print_json({"gpu": device.schedules.gpu, "cleared": cleared, "kernels": kernels})
    else:
        print_report(make_report(found, notes if found or not request.what else [NO_KERNELS]), new_console())
    return 0


def tune_function(request: ExplainRequest) -> Iterator[tuple[str, SearchResult]]:
    """Run a function with tuning, and yield the formula and the search of each kernel that has a schedule."""
    fused, inputs = load_function(request)
    tuned = Fused(fused.function, fused.recompute, tune=True)
    with redirect_stdout(sys.stderr):  # the function may print
        for y in iterate_tensors(tuned(*inputs)):
            if request.grad and y.requires_grad:  # its gradient is stored row by row, as most are
                y.backward(Tensor.full(y.shape, 1, y.dtype, y.meta.backend), retain_graph=True)
    entry, flat = tuned.get_entry(tuple(inputs), {})
    plans: list[Plan | None] = [entry.plan]
    if request.grad:
        plans.append(plan_backward(entry.plan, [*flat, *entry.plan.hidden]))
    for plan in filter(None, plans):
        for step in plan.steps:
            for result in plan.backend.compile(step).searches:
                yield format_step(step, plan.host.slot_names), result


def make_report(found: list[tuple[str, SearchResult]], notes: list[str]) -> InspectionReport:
    """Arrange the searches as a table, with a row for each launch."""
    columns = (
        Column("kernel", wraps=True),
        number_column("closed form", "us", ",.1f"),
        number_column("best", "us", ",.1f"),
        number_column("timed"),
        Column("schedule", wraps=True),
    )
    rows = [(kernel, x.first_us, x.us, x.candidates, describe_tiles(x)) for kernel, x in found]
    return InspectionReport("", {"": [make_table(columns, rows, 0)] if rows else []}, notes)


def describe_tiles(result: SearchResult) -> str:
    """Return the tiles of a schedule in words; "closed form" if no other one is faster."""
    if result.us == result.first_us:
        return "closed form"
    tiles = [f"i{a}: {describe_tile(tile)}" for a, tile in enumerate(result.schedule.tiles)]
    return "; ".join(tiles)
