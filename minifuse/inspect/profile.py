"""`mf.profile()`: measure the time of each kernel, and compare it with the limits of the machine.

A profile is a dispatch hook. It runs each call through a copy of the plan's host program in which every launch is timed: by
the clock of the host, or on a GPU by events that are read at the end, so that the host does not wait. Kernels come from the
cache, and results and gradients are the same. Without a profile, calls cost nothing more.

Not measured: transfers between host and device, filling memory with a number, and other threads.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from io import TextIOWrapper
from time import perf_counter_ns
from typing import Any, NamedTuple, Protocol

from ..backends.base import Backend, Clock, Launcher
from ..compiler import pretty_print
from ..compiler.memory_traffic import step_traffic
from ..compiler.plan import Plan, display_name, get_inplace_plan, get_plan
from ..compiler.trace_result import PlannedFunction
from ..core.dispatch import DispatchHook, DispatchState, active_hook, active_tracer, use_dispatch_hook
from ..core.dtypes import Number
from ..core.errors import FuseError
from ..core.wording import format_count
from ..ir.graph import Node
from ..ir.steps import Step
from ..runtime.atomic_files import replacement
from ..tensors.tensor import view_cache
from .report import InspectionReport
from .timeline import (
    CallEvent,
    LaunchEvent,
    LaunchWork,
    ProfileRow,
    chrome_trace_events,
    flatten_record,
    group_launches,
    profile_table,
)

MAX_FORMULA_LENGTH = 200  # characters of a formula; a longer formula is cut


class CustomKernelPlan(Protocol):
    """A plan of `custom_kernels`: a custom kernel with indexed arguments, bound for given shapes and dtypes."""

    name: str
    shape: tuple[int, ...]
    backend: Backend
    step: Step
    """The launch of the kernel."""


class BackendTimeline(NamedTuple):
    """The clock of a backend, and the launches that it has timed."""

    clock: Clock
    first_mark: object
    """The first mark of the clock."""
    first_ns: int
    """The time of the first mark by the host's clock, in ns."""
    launches: list[tuple[LaunchWork, object, object]]
    """The work of each launch, and its marks before and after."""


class Profile(DispatchHook):
    """The result of `mf.profile()`: a context manager. After its block, `print` shows it.

    Attributes
    ----------
    events : list of LaunchEvent
        Every launch, in order.
    calls : list of CallEvent
        Every call of the host that is not made by another call.
    wall_us : float
        The time of the whole block, until its last launch has finished.
    """

    def __init__(self) -> None:
        self.events: list[LaunchEvent] = []
        self.calls: list[CallEvent] = []
        self.wall_us = 0.0
        self.timed_programs: dict[Plan, Callable[..., Any]] = {}
        self.timelines: dict[Backend, BackendTimeline] = {}
        self.outer: Profile | None = None
        self.is_in_call, self.planning_ns, self.start_ns = False, 0, 0
        self._context: AbstractContextManager[None] | None = None

    # The block.

    def __enter__(self) -> "Profile":
        if active_tracer() is not None:
            raise FuseError(
                "profile: got a block inside a traced function, where nothing runs; write the block around the call"
            )
        if self._context is not None:
            raise FuseError("profile: this profile was already used; call mf.profile() for another one")
        hook = active_hook()
        self.outer = hook if isinstance(hook, Profile) else None
        self._context = use_dispatch_hook(self)
        self.start_ns = perf_counter_ns()
        self._context.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        assert self._context is not None
        self._context.__exit__(*error)
        for clock, first_mark, first_ns, launches in self.timelines.values():
            times = clock.read([first_mark, *[mark for _, start, end in launches for mark in (start, end)]])[1:]
            for (work, _, _), start, end in zip(launches, times[::2], times[1::2], strict=True):
                self.events.append(LaunchEvent(work, self.microseconds_since_start(first_ns) + start, end - start))
        self.wall_us = self.microseconds_since_start(perf_counter_ns())
        self.events.sort(key=lambda event: event.start_us)
        self.timelines.clear()
        self.timed_programs.clear()
        for key in [key for key in list(view_cache) if isinstance(key[2], DispatchState) and key[2].hook is self]:
            view_cache.pop(key, None)

    def microseconds_since_start(self, time_ns: int) -> float:
        """Return the microseconds from the start of the profile to a time in ns."""
        return (time_ns - self.start_ns) / 1e3

    # Calls.

    def call(self, function: PlannedFunction, inputs: Sequence[object]) -> Any:
        """Run a call of the eager engine, of a backward pass or of an optimizer."""
        for x in inputs:
            if isinstance(x, Node):
                return x.apply(function, *inputs)
        with self.record_call(display_name(function)):
            with self.record_planning():
                plan, inputs = get_plan(function, inputs)
                program = self.timed_program(plan)
            return program(*inputs)

    def call_inplace(
        self, function: PlannedFunction, targets: tuple[int, ...], alias_of: tuple[int, ...], inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        """Return a function that runs an in-place operation and times its launches.

        `alias_of` contains for each input the index of the first input that is the same tensor.
        """

        def run(*values: object) -> Any:
            with self.record_call(display_name(function)):
                with self.record_planning():
                    program = self.timed_program(get_inplace_plan(function, targets, alias_of, inputs))
                return program(*values)

        return run

    def call_fused(self, fused: Any, inputs: tuple[object, ...], named: dict[str, object]) -> Any:
        """Run a call of a fused function."""
        with self.record_call(display_name(fused.function)):
            with self.record_planning():
                entry, flat = fused.get_entry(inputs, named)
                program = self.timed_program(entry.plan)
            entry.record_writes(flat)
            return entry.apply_effects(program(*entry.plan_inputs(flat)), flat)

    def launch_custom_kernel(self, plan: CustomKernelPlan, launch: Launcher) -> Launcher:
        """Return a timed launch of a custom kernel with indexed arguments."""
        kernel = plan.step.kernel
        dtype = next((e.dtype.name for e in (*kernel.outputs, *kernel.effects)), "")
        work = LaunchWork(plan.name, plan.name, f"pointwise over {plan.shape}, indexed", plan.backend, None, 0, dtype)
        return self.timed_launch(launch, work, plan.backend)

    @contextmanager
    def record_call(self, function: str) -> Iterator[None]:
        """Record the time of a call in the block. A call inside another call is not recorded by itself."""
        if self.is_in_call:
            yield
            return
        start, self.is_in_call, self.planning_ns = perf_counter_ns(), True, 0
        try:
            yield
        finally:
            self.is_in_call = False
            duration, planning = (perf_counter_ns() - start) / 1e3, self.planning_ns / 1e3
            for profile in self.enclosing_profiles():
                profile.calls.append(CallEvent(function, profile.microseconds_since_start(start), duration, planning))

    @contextmanager
    def record_planning(self) -> Iterator[None]:
        """Measure planning and tracing, which run as if there were no profile."""
        start = perf_counter_ns()
        with use_dispatch_hook(None):
            yield
        self.planning_ns += perf_counter_ns() - start

    # Launches.

    def timed_program(self, plan: Plan) -> Callable[..., Any]:
        """Return the host program of a plan with timed launches."""
        program = self.timed_programs.get(plan)
        if program is None:
            works = [launch_work(plan, step) for step in plan.steps]
            program = plan.host.compile_function(lambda k, launch: self.timed_launch(launch, works[k], plan.backend))
            self.timed_programs[plan] = program
        return program

    def timed_launch(self, launch: Launcher, work: LaunchWork, backend: Backend) -> Launcher:
        """Return a launch that records its time in this profile and in the profiles around it."""
        mark = self.timeline(backend).clock.mark
        timelines = [x.timeline(backend).launches for x in self.enclosing_profiles()]

        def run(*values: Number) -> None:
            start = mark()
            launch(*values)
            timed_launch = work, start, mark()
            for launches in timelines:
                launches.append(timed_launch)

        return run

    def timeline(self, backend: Backend) -> BackendTimeline:
        """Return the clock of a backend and its launches."""
        if backend not in self.timelines:
            clock = backend.clock()
            self.timelines[backend] = BackendTimeline(clock, clock.mark(), perf_counter_ns(), [])
        return self.timelines[backend]

    def enclosing_profiles(self) -> "Iterator[Profile]":
        """Yield this profile, then the profiles around it, from inner to outer."""
        profile: Profile | None = self
        while profile is not None:
            yield profile
            profile = profile.outer

    # Results.

    @property
    def kernels_us(self) -> float:
        """Return the time of all launches."""
        return sum(event.duration_us for event in self.events)

    @property
    def host_us(self) -> float:
        """Return the time of all calls, without planning and without synchronous launches."""
        waited_us = sum(event.duration_us for event in self.events if event.work.is_synchronous)
        return sum(call.duration_us - call.planning_us for call in self.calls) - waited_us

    @property
    def planning_us(self) -> float:
        """Return the time in which calls were traced, scheduled and compiled, once for each kind of call."""
        return sum(call.planning_us for call in self.calls)

    @property
    def rows(self) -> list[ProfileRow]:
        """Return a row for each kernel, sorted by total time, the longest first."""
        return group_launches(self.events)

    def as_dict(self) -> dict[str, Any]:
        """Return all data as dicts, lists, strings and numbers."""
        return {
            "wall_us": self.wall_us,
            "kernels_us": self.kernels_us,
            "host_us": self.host_us,
            "planning_us": self.planning_us,
            "rows": [flatten_record(row) for row in self.rows],
            "events": [flatten_record(event) for event in self.events],
            "calls": [asdict(call) for call in self.calls],
            "limits": self.limits(),
        }

    def limits(self) -> dict[str, object]:
        """Return the measured limits of each backend that was used: GB/s of a copy and GFLOP/s of matmuls."""
        work_of_backend = {str(event.work.backend): event.work for event in self.events}
        measured = {name: limits for name, work in work_of_backend.items() if (limits := work.limits())}
        return {name: {"gbytes_per_s": x.gbytes_per_s, "gflops": dict(x.gflops)} for name, x in measured.items()}

    def chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the launches and calls as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing.

        Parameters
        ----------
        path : path
            A JSON file. It is written under a temporary name and then renamed, so that no reader finds an incomplete file.
        """
        with replacement(path, is_durable=False) as file:
            text = TextIOWrapper(file, encoding="utf-8")
            json.dump({"traceEvents": list(chrome_trace_events(self.events, self.calls)), "displayTimeUnit": "ns"}, text)
            text.detach()

    def report(self) -> InspectionReport:
        """Arrange the rows as a table, with the totals and the limits below it."""
        rows = self.rows
        launches = f"{format_count(len(self.events), 'launch', 'launches')} of {format_count(len(rows), 'kernel')}"
        host_times = f"{self.host_us:,.1f} us of the host around them, {self.planning_us:,.1f} us of planning"
        limits = {str(event.work.backend): event.work.limits() for event in self.events}
        simulated = "times are those of the host, and say nothing about hardware"
        notes = [
            f"{launches}: {self.kernels_us:,.1f} us of {self.wall_us:,.1f} us",
            f"{format_count(len(self.calls), 'call')}: {host_times}",
            *[f"{name}: {measured or simulated}" for name, measured in limits.items()],
        ]
        return InspectionReport("", {"": [profile_table(rows)]}, notes)

    def __str__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


def launch_work(plan: Plan, step: Step) -> LaunchWork:
    """Describe the work of one step of a plan."""
    traffic, formula = step_traffic(step, plan.backend), pretty_print.format_step(step, plan.host.slot_names)
    short_formula = formula if len(formula) <= MAX_FORMULA_LENGTH else f"{formula[:MAX_FORMULA_LENGTH]}..."
    dtype = step.kernel.outputs[0].dtype.name
    return LaunchWork(
        display_name(plan.function),
        short_formula,
        pretty_print.describe_kernel(step),
        plan.backend,
        traffic.nbytes,
        traffic.flops,
        dtype,
    )


def profile() -> Profile:
    """Measure the kernels that run in a block of code.

    Returns
    -------
    Profile
        A context manager. After its block, `print(p)` shows a table of kernels, the longest first. `p.rows`, `p.events`
        and `p.calls` are the data, `p.as_dict()` returns them for JSON, and `p.chrome_trace(path)` writes a file for
        Perfetto.

    Raises
    ------
    FuseError
        The block is inside a function that is being traced.

    Notes
    -----
    A profile measures the eager engine, fused functions, backward passes, optimizers and custom kernels of this thread.
    Results are the same as without a profile. Each launch is timed by itself, which takes some microseconds on the host;
    inside the block, the launches of a plan are not replayed as one CUDA graph. On a GPU, times are measured by the GPU; a
    kernel of less than about 5 us looks longer if the GPU waits for the host. If CUDA is simulated, times are those of
    the interpreter.

    The roofline is measured once per process and backend, by a copy and a matmul, when it is first shown.

    Bytes are computed from the plan, which is shared by all calls with these shapes, dtypes and strides: a tensor that is
    passed as two operands is counted twice.

    Profiles may be nested: the outer one also records what the inner one records.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.rand(200, 300)
    >>> with mf.profile() as p:
    ...     y = (x.exp() * 2).sum(1)
    >>> sorted((row.work.formula, row.count) for row in p.rows)
    [('exp(x0)', 1), ('sum(x0)', 1), ('x0 * x1', 1)]
    >>> p.events[0].work.nbytes
    480000
    """
    return Profile()
