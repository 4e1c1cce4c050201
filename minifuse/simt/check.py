"""Run a script of `numba.cuda` without a GPU, every launch in the interpreter, and collect what is wrong with its kernels.

Top of `simt`. The script runs unmodified in this process, with the host side in `simt.host` in the place of `numba.cuda`;
each launch goes through `trace`, whose hazards are gathered here, one for each kernel and pair of lines. A file of tests
(test_*.py or *_test.py) is run by pytest in the same way. How a report looks is the command's affair (`cli.check`).

Not judged: leaks, what streams and missing synchronisations would break, time, and outputs that a launch leaves as they
are. A copy to the host of memory that nobody ever wrote is a hazard.
"""

import ast
import os
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import (
    LimitError,
    MissingPartError,
    RaceError,
    SimtError,
    UninitializedReadError,
    UnknownWordError,
    UnwrittenOutputError,
)
from . import run as run_kernel
from . import trace as trace_kernel
from .host import DeviceArray, Line, ScriptLaunch, format_line, stand_in_modules, substitute_modules
from .machine import LOOP_LIMIT
from .trace import Trace

MAX_RECORDED_ACCESSES = 1_000_000  # accesses to memory that are recorded of a launch: some 3 s, and 50 MB
EXIT_HAZARDS, EXIT_FAILED = 1, 2  # exit statuses
INTERNAL_PREFIXES = (
    "<frozen",
    f"{Path(__file__).parents[1]}{os.sep}",
)  # how names of files begin that no script has written


@dataclass
class HazardFinding:
    """A hazard, as often as it was found in one kernel at one pair of lines."""

    error: SimtError
    kernel: str | None  # None where it was found outside a kernel
    launch: int | None  # number of the first launch that had it, from 1
    line: Line  # of the script: that launch, or the call that found it
    count: int = 1  # launches, or calls, that had it
    last: int | None = None  # number of the last launch that had it


@dataclass
class ScheduleFinding:
    """Launches from one line whose results depend on the order in which warps and blocks run."""

    kernel: str
    launch: int  # number of the first one, from 1
    line: Line
    seeds: list[int]  # those that give other results than seed 0, in the first one
    tried: int
    count: int = 1  # launches


@dataclass
class Report:
    """What a run of a script showed."""

    script: Path
    launches: int = 0
    kernels: list[str] = field(default_factory=list)
    findings: list[HazardFinding] = field(default_factory=list)
    schedules: list[ScheduleFinding] = field(default_factory=list)
    tried: int = 1  # schedules a launch
    hints: list[str] = field(default_factory=list)  # on what the script does without a hazard, and surely did not mean
    unrecorded: list[int] = field(default_factory=list)  # numbers of launches with more accesses than are recorded
    failure: BaseException | None = None  # what ended the script, where that is no hazard
    exit_status: int = 0  # that the script itself asked for

    @property
    def status(self) -> int:
        """The exit status of the command: 1 for a hazard, 2 for an exception, otherwise the script's own."""
        if self.findings:
            return EXIT_HAZARDS
        return EXIT_FAILED if self.failure is not None else self.exit_status

    def verdict(self) -> str:
        """The last line: `3 launches of 2 kernels: 1 hazard`."""
        if not self.launches and not self.findings:
            return "no kernel was launched"
        found = f"{pluralize(len(self.findings), 'hazard')}" if self.findings else "no hazards"
        return f"{pluralize(self.launches, 'launch', 'launches')} of {pluralize(len(self.kernels), 'kernel')}: {found}"

    def facts(self) -> dict[str, Any]:
        """All of it in types that JSON has."""
        return {
            "script": str(self.script),
            "launches": self.launches,
            "kernels": self.kernels,
            "hazards": [finding_as_dict(finding) for finding in self.findings],
            "schedules": [asdict(schedule) for schedule in self.schedules],
            "schedules_tried": self.tried,
            "unrecorded": self.unrecorded,
            "hints": self.hints,
            "exception": None if self.failure is None else f"{type(self.failure).__name__}: {self.failure}",
            "status": self.status,
        }


class Checker:
    """Runs the launches of a script and gathers their hazards: the judge that `simt.host` hands them to.

    A launch that cannot go on (out of bounds, a barrier that not all threads reach) raises its hazard where the script
    launched it, since nothing that the script did afterwards would mean anything.
    """

    def __init__(self, report: Report, limit: int, loop_limit: int, keeps_trace: bool) -> None:
        self.report, self.limit, self.loop_limit, self.keeps_trace = report, limit, loop_limit, keeps_trace
        self.trace: Trace | None = None  # of the first launch with a hazard, or else of the last launch
        self._trace_has_hazard = False
        self._seen: dict[tuple[Any, ...], HazardFinding] = {}
        self._kernels: set[Any] = set()

    def launch(self, launch: ScriptLaunch) -> None:
        """Run one launch, judge it, and try other schedules of it."""
        report, name = self.report, launch.kernel.py_func.__name__
        report.launches += 1
        if launch.kernel.py_func not in self._kernels:
            self._kernels.add(launch.kernel.py_func)
            report.kernels.append(name)
        self._note_stale_globals(launch)
        arrays = list(array_arguments(launch.arguments))
        before = snapshot(arrays)
        trace = self._trace_launch(launch, 0)
        hazards = reportable_hazards(trace)
        if self.keeps_trace and not self._trace_has_hazard:
            outputs = {key: array.copy() for key, array in trace.outputs.items()}  # a later launch may write to the arrays
            self.trace, self._trace_has_hazard = replace(trace, outputs=outputs), bool(hazards)
        for hazard in hazards:
            self._add_finding(hazard, launch.line, name, report.launches)
        if trace.is_complete and report.tried > 1:
            self._try_schedules(launch, arrays, before, bool(hazards))
        elif not trace.is_complete and type(trace.findings[-1]) is LimitError:
            restore(arrays, before)
            self._run_unrecorded(launch)
        elif not trace.is_complete:
            raise numba_exception(trace.findings[-1], launch)

    def _note_stale_globals(self, launch: ScriptLaunch) -> None:
        """Note names whose new value the kernel does not see."""
        for name in launch.kernel.frozen_for(launch.arguments).changed_globals():
            hint = (
                f"{format_line(launch.line)}: kernel {launch.kernel.py_func.__name__} still uses the value that {name!r} "
                "had at its first launch, as Numba compiles it in; pass it as an argument to use the new one"
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
        """Do a launch that is too long to record: with every check but that for races."""
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

    def _try_schedules(self, launch: ScriptLaunch, arrays: list[Any], before: list[NDArray[Any]], has_hazard: bool) -> None:
        """Run the launch again from where it started, under other seeds; leave what seed 0 gave."""
        report, name, after, different = self.report, launch.kernel.py_func.__name__, snapshot(arrays), []
        for seed in range(1, report.tried):
            restore(arrays, before)
            hazards = reportable_hazards(self._trace_launch(launch, seed))
            if hazards and not has_hazard:
                has_hazard = True
                for hazard in hazards:
                    self._add_finding(hazard, launch.line, name, report.launches)
            if any(a.tobytes() != b.tobytes() for a, b in zip(snapshot(arrays), after, strict=True)):
                different.append(seed)
        restore(arrays, after)
        if different:
            self._add_schedule_finding(ScheduleFinding(name, report.launches, launch.line, different, report.tried))

    def _add_schedule_finding(self, new: ScheduleFinding) -> None:
        for known in self.report.schedules:
            if (known.kernel, known.line) == (new.kernel, new.line):
                known.count += 1
                return
        self.report.schedules.append(new)

    def report_hazard(self, error: SimtError, line: Line) -> None:
        """Take note of a hazard that happened outside a kernel."""
        self._add_finding(error, line, None, None)

    def _add_finding(self, error: SimtError, line: Line, kernel: str | None, launch: int | None) -> None:
        key = (type(error), kernel, tuple(sorted(error.lines)) or str(error))
        finding = self._seen.get(key)
        if finding is None:
            finding = self._seen[key] = HazardFinding(error, kernel, launch, line)
            self.report.findings.append(finding)
        elif launch is None or launch != finding.last:
            finding.count += 1
        finding.last = launch


def numba_exception(error: SimtError, launch: ScriptLaunch) -> Exception:
    """Return the exception that a kernel raised, as Numba gives it to the host where it compiles with debug=True."""
    cause, is_raised = error.__cause__, type(error) is SimtError
    if not (launch.kernel.options.get("debug") and is_raised and isinstance(cause, Exception)):
        return error
    try:
        found = type(cause)(*cause.args)
    except TypeError:
        return error
    found.add_note(str(error))
    found.__cause__ = error
    return found


def reportable_hazards(trace: Trace) -> list[SimtError]:
    """The hazards of a launch that count here. A read before the write that it races with is told as the race alone."""
    hazards = trace.hazards()
    racy = {(hazard.array, line) for hazard in hazards if isinstance(hazard, RaceError) for line in hazard.lines}
    return [
        hazard
        for hazard in hazards
        if is_kernel_hazard(hazard)
        and not (isinstance(hazard, UninitializedReadError) and (hazard.array, hazard.lines[0]) in racy)
    ]


def is_kernel_hazard(error: SimtError) -> bool:
    """Whether an error counts as one of the script's kernels.

    What the interpreter cannot do, or not within its limit, says nothing about a kernel. An output that a launch leaves as
    it is may be filled by another launch.
    """
    return type(error) is not SimtError and not isinstance(error, LimitError | UnknownWordError | UnwrittenOutputError)


def check(
    script: Path,
    arguments: Sequence[str] = (),
    *,
    schedules: int = 1,
    limit: int = MAX_RECORDED_ACCESSES,
    loop_limit: int = LOOP_LIMIT,
    trace: Path | None = None,
) -> Report:
    """Run a script and judge its kernels.

    Parameters
    ----------
    script
        A Python script, or a file of tests, which pytest then runs.
    arguments
        What the script finds in `sys.argv`, or what pytest is told.
    schedules
        Run each launch under this many orders of warps and blocks; the script goes on with the results of the first.
    limit
        Accesses to memory that are recorded of a launch. One with more is run again unrecorded, so that races in it are
        found among the first accesses alone.
    loop_limit
        Loop iterations and calls of a launch after which one of its threads must have ended. A launch with more raises
        LoopLimitError in the script.
    trace
        Save the trace of the first launch that has a hazard, or of the last launch where none has, in this file.

    Returns
    -------
    Report

    Notes
    -----
    The script runs in this process, as `__main__`. Afterwards `sys.modules`, `sys.argv` and `sys.path` are as they were.
    """
    report = Report(script, tried=schedules)
    checker = Checker(report, limit, loop_limit, keeps_trace=trace is not None)
    path = script.resolve()
    with script_environment(path, arguments), substitute_modules(stand_in_modules(checker), path.parent):
        try:
            if is_test_file(path):
                report.exit_status = run_pytest(path, arguments)
            else:
                runpy.run_path(str(path), run_name="__main__")
        except SystemExit as error:
            report.exit_status = exit_code(error)
        except Exception as error:
            is_told = isinstance(error, SimtError) and is_kernel_hazard(error) and bool(report.findings)
            report.failure = None if is_told else error
    if trace is not None and checker.trace is not None:
        checker.trace.save(trace)
    return report


def is_test_file(script: Path) -> bool:
    """Return whether pytest collects a file by its name, and finds a test in it. Any other file runs as a script."""
    if not (script.name.startswith("test_") or script.stem.endswith("_test")):
        return False
    try:
        tree = ast.parse(script.read_bytes())
    except (SyntaxError, ValueError):  # running it says why
        return False
    inside = [node for outer in tree.body if isinstance(outer, ast.ClassDef) for node in outer.body]
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
        for node in (*tree.body, *inside)
    )


def run_pytest(path: Path, arguments: Sequence[str]) -> int:
    """Run the tests of a file in this process."""
    try:
        import pytest
    except ImportError as error:
        raise MissingPartError(
            f'{path.name} is a file of tests, and pytest is not installed; run: pip install "minifuse[test]"'
        ) from error
    return int(pytest.main([str(path), *arguments]))


@contextmanager
def script_environment(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Let `sys.argv` and `sys.path` be what the interpreter would give to the script."""
    argv, folders = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, folders


def exit_code(error: SystemExit) -> int:
    """The status that `sys.exit` was given; a message is printed, and means 1."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    sys.stderr.write(f"{error.code}\n")
    return 1


def script_traceback(report: Report) -> str:
    """The traceback of what ended the script, from the script's first line on and without the lines of minifuse."""
    error = report.failure
    if error is None:
        return ""
    told = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = told
    while part is not None:
        kept = [frame for frame in part.stack if not frame.filename.startswith(INTERNAL_PREFIXES)]
        part.stack = traceback.StackSummary.from_list(kept)
        part = part.__cause__ or part.__context__
    return "".join(told.format())


def array_arguments(arguments: Sequence[Any]) -> Iterator[Any]:
    """The arrays among the arguments of a launch."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from array_arguments(argument)
        elif isinstance(argument, DeviceArray | np.ndarray):
            yield argument


def snapshot(arrays: Sequence[Any]) -> list[NDArray[Any]]:
    """Copies of the elements, and of what is known to be written."""
    return [part.copy() for array in arrays for part in array_parts(array)]


def restore(arrays: Sequence[Any], copies: Sequence[NDArray[Any]]) -> None:
    """Put the copies back; arrays that share memory stay what they are."""
    for part, saved in zip((part for array in arrays for part in array_parts(array)), copies, strict=True):
        part[...] = saved


def array_parts(array: Any) -> tuple[NDArray[Any], ...]:
    """The NumPy arrays that an argument is made of."""
    return (array.data, array.written) if isinstance(array, DeviceArray) else (array,)


def finding_as_dict(finding: HazardFinding) -> dict[str, Any]:
    """A hazard in types that JSON has."""
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


def pluralize(number: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{number} {one if number == 1 else many or one + 's'}"
