"""Run a `numba.cuda` script without a GPU, with every launch in the interpreter, and collect the hazards of its kernels.

The script runs unmodified in this process, with `simt.host` in place of `numba.cuda`. Each launch is traced, and its hazards
are collected, one for each kernel and pair of lines. A test file (test_*.py or *_test.py) is run by pytest in the same way.
`cli.check` prints the report.

Not checked: leaks, missing synchronization of streams, time, and outputs that a launch leaves unchanged. Copying device
memory to the host is a hazard if it was never written.
"""

import ast
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..core.errors import (
    LimitError,
    MissingPartError,
    RaceError,
    SimtError,
    UninitializedReadError,
    UnknownWordError,
    UnwrittenOutputError,
)
from ..core.wording import format_count
from ..runtime.script_environment import script_environment
from . import run as run_kernel
from . import trace as trace_kernel
from .host import HostOrDevice, Line, ScriptLaunch, format_line, stand_in_modules, substitute_modules
from .host.snapshots import array_arguments, restore, snapshot
from .launch_summary import LaunchSummary, add_summary
from .machine import LOOP_LIMIT
from .trace import Trace

MAX_RECORDED_ACCESSES = 1_000_000  # per launch: about 3 s and 50 MB
EXIT_HAZARDS, EXIT_FAILED, EXIT_STOPPED = 1, 2, 130  # exit statuses
# files that do not belong to the script have names with these prefixes
INTERNAL_PREFIXES = ("<frozen", f"{Path(__file__).parents[1]}{os.sep}")


@dataclass
class HazardFinding:
    """A hazard, and how often it was found in one kernel at one pair of lines."""

    error: SimtError
    kernel: str | None  # None if it was found outside a kernel
    launch: int | None  # number of the first launch that had the hazard, from 1
    line: Line  # line of the script, of the first launch or of the host call that found the hazard
    count: int = 1  # launches, or host calls, that had the hazard
    last_launch: int | None = None  # number of the last launch that had the hazard


@dataclass
class ScheduleFinding:
    """Launches from one line whose results depend on the order in which warps and blocks run."""

    kernel: str
    launch: int  # number of the first of these launches, from 1
    line: Line
    seeds: list[int]  # seeds whose results differ from seed 0, in the first launch
    tried: int  # schedules, including seed 0
    count: int = 1  # launches with differing results


class EndedLaunch(NamedTuple):
    """The launch in which the script ended."""

    error: BaseException
    kernel: str
    launch: int  # its number, from 1
    line: Line  # of the script


@dataclass
class Report:
    """The results of running a script."""

    script: Path
    launches: int = 0
    kernels: list[str] = field(default_factory=list)
    findings: list[HazardFinding] = field(default_factory=list)
    schedules: list[ScheduleFinding] = field(default_factory=list)
    tried: int = 1  # schedules per launch
    hints: list[str] = field(default_factory=list)  # likely mistakes that are not hazards
    unrecorded: list[int] = field(default_factory=list)  # numbers of launches with too many accesses to record
    failure: BaseException | None = None  # the exception that ended the script, unless it is a hazard
    is_stopped: bool = False  # True after Ctrl-C
    ended_in: EndedLaunch | None = None  # None if the script ended outside a launch, or ran to its end
    trace: Trace | None = None  # of the first launch with a hazard, otherwise of the last, if it is kept
    summaries: list[LaunchSummary] = field(default_factory=list)  # if they are requested
    exit_status: int = 0  # of the script itself

    @property
    def status(self) -> int:
        """The exit status of the command: 1 for a hazard, 2 for an exception, 130 for Ctrl-C, otherwise the script's own."""
        if self.is_stopped:
            return EXIT_STOPPED
        if self.findings:
            return EXIT_HAZARDS
        return EXIT_FAILED if self.failure is not None else self.exit_status

    def verdict(self) -> str:
        """Return the last line of the report: `3 launches of 2 kernels: 1 hazard`."""
        end = " before the script was stopped" if self.is_stopped else ""
        if self.failure is not None:
            end = f" before the script ended by {type(self.failure).__name__}"
        if not self.launches and not self.findings:
            return f"no kernel was launched{end}"
        launches, kernels = format_count(self.launches, "launch", "launches"), format_count(len(self.kernels), "kernel")
        hazards = format_count(len(self.findings), "hazard") if self.findings else f"no hazards{end}"
        return f"{launches} of {kernels}: {hazards}"

    def end(self) -> str:
        """Return the sentence about the launch that ended the script, or "" if there is none, or a traceback shows it."""
        if self.ended_in is None or self.failure is not None:
            return ""
        location = f"launch {self.ended_in.launch} at {format_line(self.ended_in.line)}"
        if self.is_stopped:
            return f"stopped in kernel {self.ended_in.kernel}, {location}"
        return f"the script ended in {location}; the rest of it was not checked"

    def to_dict(self) -> dict[str, object]:
        """Return the report in types that JSON represents."""
        return {
            "script": str(self.script),
            "launches": self.launches,
            "kernels": self.kernels,
            "hazards": [finding_as_dict(finding) for finding in self.findings],
            "schedules": [asdict(schedule) for schedule in self.schedules],
            "schedules_tried": self.tried,
            "unrecorded": self.unrecorded,
            "hints": self.hints,
            "summaries": [summary.to_dict() for summary in self.summaries],
            "ended_in_launch": None if self.ended_in is None else self.ended_in.launch,
            "exception": None if self.failure is None else f"{type(self.failure).__name__}: {self.failure}",
            "status": self.status,
        }


class Checker:
    """Run the launches of a script and collect their hazards: the launch handler of `simt.host`.

    If a launch cannot continue (an access out of bounds, a barrier that not all threads reach), the hazard is raised where
    the script launched it, because later results would be meaningless.
    """

    def __init__(self, report: Report, limit: int, loop_limit: int, keeps_trace: bool, summarizes: bool) -> None:
        self.report, self.limit, self.loop_limit = report, limit, loop_limit
        self.keeps_trace, self.summarizes = keeps_trace, summarizes
        self.ended_in: EndedLaunch | None = None  # the last launch that raised
        self._trace_has_hazard = False
        self._seen: dict[tuple[object, ...], HazardFinding] = {}
        self._kernels: set[Callable[..., object]] = set()

    def launch(self, launch: ScriptLaunch) -> None:
        """Run one launch, collect its hazards, and try other schedules."""
        self.report.launches += 1
        try:
            self._check_launch(launch)
        except BaseException as error:
            self.ended_in = EndedLaunch(error, launch.kernel.py_func.__name__, self.report.launches, launch.line)
            raise

    def _check_launch(self, launch: ScriptLaunch) -> None:
        report, name = self.report, launch.kernel.py_func.__name__
        if launch.kernel.py_func not in self._kernels:
            self._kernels.add(launch.kernel.py_func)
            report.kernels.append(name)
        self._note_stale_globals(launch)
        arrays = list(array_arguments(launch.arguments))
        initial_memory = snapshot(arrays)
        trace = self._trace_launch(launch, 0)
        hazards = reportable_hazards(trace)
        if self.keeps_trace and not self._trace_has_hazard:
            outputs = {key: array.copy() for key, array in trace.outputs.items()}  # a later launch may change the arrays
            report.trace, self._trace_has_hazard = replace(trace, outputs=outputs), bool(hazards)
        if self.summarizes:
            add_summary(report.summaries, name, report.launches, launch.line, trace)
        for hazard in hazards:
            self._add_finding(hazard, launch.line, name, report.launches)
        if trace.is_complete and report.tried > 1:
            self._try_schedules(launch, arrays, initial_memory, bool(hazards))
        elif not trace.is_complete and type(trace.findings[-1]) is LimitError:
            restore(arrays, initial_memory)
            self._run_unrecorded(launch)
        elif not trace.is_complete:
            raise numba_exception(trace.findings[-1], launch)

    def _note_stale_globals(self, launch: ScriptLaunch) -> None:
        """Add a hint for each global variable whose new value the kernel does not use."""
        for name in launch.kernel.frozen_for(launch.arguments).changed_globals():
            hint = (
                f"{format_line(launch.line)}: kernel {launch.kernel.py_func.__name__} still uses the value that {name!r} "
                "had at its first launch, because Numba compiles globals in; pass it as an argument to use the new value"
            )
            if hint not in self.report.hints:
                self.report.hints.append(hint)

    def _trace_launch(self, launch: ScriptLaunch, seed: int) -> Trace:
        return trace_kernel(
            launch.kernel.frozen_for(launch.arguments),
            launch.grid,
            launch.block,
            *launch.arguments,
            seed=seed,
            limit=self.limit,
            shared=launch.shared,
            loop_limit=self.loop_limit,
        )

    def _run_unrecorded(self, launch: ScriptLaunch) -> None:
        """Run a launch that is too long to record, with every check except that for races."""
        self.report.unrecorded.append(self.report.launches)
        try:
            run_kernel(
                launch.kernel.frozen_for(launch.arguments),
                launch.grid,
                launch.block,
                *launch.arguments,
                shared=launch.shared,
                loop_limit=self.loop_limit,
            )
        except SimtError as error:
            if is_kernel_hazard(error):
                self._add_finding(error, launch.line, launch.kernel.py_func.__name__, self.report.launches)
            raise

    def _try_schedules(
        self, launch: ScriptLaunch, arrays: list[HostOrDevice], initial_memory: list[np.ndarray], has_hazard: bool
    ) -> None:
        """Run the launch again from its initial memory with other seeds. Keep the results of seed 0."""
        report, name, results, differing_seeds = self.report, launch.kernel.py_func.__name__, snapshot(arrays), []
        for seed in range(1, report.tried):
            restore(arrays, initial_memory)
            hazards = reportable_hazards(self._trace_launch(launch, seed))
            if hazards and not has_hazard:
                has_hazard = True
                for hazard in hazards:
                    self._add_finding(hazard, launch.line, name, report.launches)
            if any(a.tobytes() != b.tobytes() for a, b in zip(snapshot(arrays), results, strict=True)):
                differing_seeds.append(seed)
        restore(arrays, results)
        if differing_seeds:
            self._add_schedule_finding(ScheduleFinding(name, report.launches, launch.line, differing_seeds, report.tried))

    def _add_schedule_finding(self, new: ScheduleFinding) -> None:
        for finding in self.report.schedules:
            if (finding.kernel, finding.line) == (new.kernel, new.line):
                finding.count += 1
                return
        self.report.schedules.append(new)

    def report_hazard(self, error: SimtError, line: Line) -> None:
        """Add a hazard that was found outside a kernel."""
        self._add_finding(error, line, None, None)

    def _add_finding(self, error: SimtError, line: Line, kernel: str | None, launch: int | None) -> None:
        key = (type(error), kernel, tuple(sorted(error.lines)) or str(error))
        finding = self._seen.get(key)
        if finding is None:
            finding = self._seen[key] = HazardFinding(error, kernel, launch, line)
            self.report.findings.append(finding)
        elif launch is None or launch != finding.last_launch:
            finding.count += 1
        finding.last_launch = launch


def numba_exception(error: SimtError, launch: ScriptLaunch) -> Exception:
    """Return the exception that a kernel raised, as Numba does if the kernel has debug=True. Otherwise return the error."""
    cause, is_kernel_exception = error.__cause__, type(error) is SimtError
    if not (launch.kernel.options.get("debug") and is_kernel_exception and isinstance(cause, Exception)):
        return error
    try:
        exception = type(cause)(*cause.args)
    except TypeError:
        return error
    exception.add_note(str(error))
    exception.__cause__ = error
    return exception


def reportable_hazards(trace: Trace) -> list[SimtError]:
    """Return the hazards of a launch that the report includes.

    A read before the write that it races with is reported only as the race.
    """
    hazards = trace.hazards()
    racy_lines = {(hazard.array, line) for hazard in hazards if isinstance(hazard, RaceError) for line in hazard.lines}
    return [
        hazard
        for hazard in hazards
        if is_kernel_hazard(hazard)
        and not (isinstance(hazard, UninitializedReadError) and (hazard.array, hazard.lines[0]) in racy_lines)
    ]


def is_kernel_hazard(error: SimtError) -> bool:
    """Return whether an error is a hazard of the script's kernels.

    Unsupported names and the limit of recorded accesses are limits of the interpreter, not of the kernel. An output that a
    launch leaves unwritten may be written by another launch.
    """
    return type(error) not in (SimtError, LimitError, UnknownWordError, UnwrittenOutputError)


def check(
    script: Path,
    arguments: Sequence[str] = (),
    *,
    schedules: int = 1,
    limit: int = MAX_RECORDED_ACCESSES,
    loop_limit: int = LOOP_LIMIT,
    keeps_trace: bool = False,
    summarizes: bool = False,
) -> Report:
    """Run a script and check its kernels.

    Parameters
    ----------
    script
        A Python script, or a test file, which pytest runs.
    arguments
        The arguments of the script (`sys.argv`) or of pytest.
    schedules
        Run each launch in this many orders of warps and blocks. The script continues with the results of the first.
    limit
        Record at most this many memory accesses per launch. A longer launch is run again without recording, so races are
        found only among its first accesses.
    loop_limit
        End a launch with a LoopLimitError if it runs this many loop iterations and calls, counted over all threads, without
        a thread ending.
    keeps_trace
        Keep the trace of the first launch with a hazard, or of the last launch if there is no hazard.
    summarizes
        Count sectors and wavefronts.

    Returns
    -------
    Report

    Notes
    -----
    The script runs in this process, as `__main__`. Afterwards `sys.modules`, `sys.argv` and `sys.path` are restored.
    """
    report = Report(script, tried=schedules)
    checker = Checker(report, limit, loop_limit, keeps_trace, summarizes)
    path = script.resolve()
    with script_environment(path, arguments), substitute_modules(stand_in_modules(checker), path.parent):
        try:
            if is_test_file(path):
                report.exit_status = run_pytest(path, arguments)
            else:
                runpy.run_path(str(path), run_name="__main__")
        except SystemExit as error:
            report.exit_status = exit_code(error)
        except (Exception, KeyboardInterrupt) as error:
            is_reported = isinstance(error, SimtError) and is_kernel_hazard(error) and bool(report.findings)
            report.is_stopped = isinstance(error, KeyboardInterrupt)
            report.failure = None if is_reported or report.is_stopped else error
            if checker.ended_in is not None and checker.ended_in.error is error:
                report.ended_in = checker.ended_in
    return report


def is_test_file(script: Path) -> bool:
    """Return whether pytest collects the file by its name and finds a test in it. Other files run as scripts."""
    if not (script.name.startswith("test_") or script.stem.endswith("_test")):
        return False
    try:
        tree = ast.parse(script.read_bytes())
    except (SyntaxError, ValueError):  # running the file reports the error
        return False
    methods = [node for statement in tree.body if isinstance(statement, ast.ClassDef) for node in statement.body]
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
        for node in (*tree.body, *methods)
    )


def run_pytest(path: Path, arguments: Sequence[str]) -> int:
    """Run the tests of a file in this process."""
    try:
        import pytest
    except ImportError as error:
        raise MissingPartError(
            f'{path.name} is a test file, and pytest is not installed; run: pip install "minifuse[test]"'
        ) from error
    return int(pytest.main([str(path), *arguments]))


def exit_code(error: SystemExit) -> int:
    """Return the status passed to `sys.exit`. If it is a message, print it and return 1."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    sys.stderr.write(f"{error.code}\n")
    return 1


def script_traceback(report: Report) -> str:
    """Return the traceback of the exception that ended the script, without the lines of minifuse."""
    error = report.failure
    if error is None:
        return ""
    summary = traceback.TracebackException.from_exception(error)
    exception: traceback.TracebackException | None = summary
    while exception is not None:
        frames = [frame for frame in exception.stack if not frame.filename.startswith(INTERNAL_PREFIXES)]
        exception.stack = traceback.StackSummary.from_list(frames)
        exception = exception.__cause__ or exception.__context__
    return "".join(summary.format())


def finding_as_dict(finding: HazardFinding) -> dict[str, object]:
    """Return a hazard in types that JSON represents."""
    error = finding.error
    return {
        "error": type(error).__name__,
        "message": str(error),
        "lines": [list(line) for line in error.lines],
        "array": error.array,
        "element": error.element,
        "block": error.block,
        "threads": error.threads,
        "epoch": error.epoch,
        "kernel": finding.kernel,
        "launch": finding.launch,
        "launched_at": list(finding.line),
        "count": finding.count,
    }
