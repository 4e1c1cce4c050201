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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

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
from ..runtime.script_environment import script_environment
from . import run as run_kernel
from . import trace as trace_kernel
from .diagnostics import pluralize
from .host import DeviceArray, HostOrDevice, Line, ScriptLaunch, format_line, stand_in_modules, substitute_modules
from .machine import LOOP_LIMIT
from .trace import Trace

MAX_RECORDED_ACCESSES = 1_000_000  # per launch: about 3 s and 50 MB
EXIT_HAZARDS, EXIT_FAILED = 1, 2  # exit statuses
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
    exit_status: int = 0  # of the script itself

    @property
    def status(self) -> int:
        """The exit status of the command: 1 for a hazard, 2 for an exception, otherwise the script's own."""
        if self.findings:
            return EXIT_HAZARDS
        return EXIT_FAILED if self.failure is not None else self.exit_status

    def verdict(self) -> str:
        """Return the last line of the report: `3 launches of 2 kernels: 1 hazard`."""
        if not self.launches and not self.findings:
            return "no kernel was launched"
        hazards = f"{pluralize(len(self.findings), 'hazard')}" if self.findings else "no hazards"
        return f"{pluralize(self.launches, 'launch', 'launches')} of {pluralize(len(self.kernels), 'kernel')}: {hazards}"

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
            "exception": None if self.failure is None else f"{type(self.failure).__name__}: {self.failure}",
            "status": self.status,
        }


class Checker:
    """Run the launches of a script and collect their hazards: the launch handler of `simt.host`.

    If a launch cannot continue (an access out of bounds, a barrier that not all threads reach), the hazard is raised where
    the script launched it, because later results would be meaningless.
    """

    def __init__(self, report: Report, limit: int, loop_limit: int, keeps_trace: bool) -> None:
        self.report, self.limit, self.loop_limit, self.keeps_trace = report, limit, loop_limit, keeps_trace
        self.trace: Trace | None = None  # the trace of the first launch with a hazard, otherwise of the last launch
        self._trace_has_hazard = False
        self._seen: dict[tuple[object, ...], HazardFinding] = {}
        self._kernels: set[Callable[..., object]] = set()

    def launch(self, launch: ScriptLaunch) -> None:
        """Run one launch, collect its hazards, and try other schedules."""
        report, name = self.report, launch.kernel.py_func.__name__
        report.launches += 1
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
            self.trace, self._trace_has_hazard = replace(trace, outputs=outputs), bool(hazards)
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

    Unsupported names and exceeded limits are limits of the interpreter, not of the kernel. An output that a launch leaves
    unwritten may be written by another launch.
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
        Raise LoopLimitError in the script if a launch runs this many loop iterations and calls, counted over all threads,
        without a thread ending.
    trace
        Save the trace of the first launch with a hazard to this file, or of the last launch if there is no hazard.

    Returns
    -------
    Report

    Notes
    -----
    The script runs in this process, as `__main__`. Afterwards `sys.modules`, `sys.argv` and `sys.path` are restored.
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
            is_reported = isinstance(error, SimtError) and is_kernel_hazard(error) and bool(report.findings)
            report.failure = None if is_reported else error
    if trace is not None and checker.trace is not None:
        checker.trace.save(trace)
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


def array_arguments(arguments: Sequence[object]) -> Iterator[HostOrDevice]:
    """Yield the arrays among the arguments of a launch."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from array_arguments(argument)
        elif isinstance(argument, DeviceArray | np.ndarray):
            yield argument


def snapshot(arrays: Sequence[HostOrDevice]) -> list[np.ndarray]:
    """Copy the elements of the arrays, and the flags that record which of them are written."""
    return [part.copy() for array in arrays for part in array_parts(array)]


def restore(arrays: Sequence[HostOrDevice], copies: Sequence[np.ndarray]) -> None:
    """Restore the arrays from the copies, in place."""
    for part, saved in zip((part for array in arrays for part in array_parts(array)), copies, strict=True):
        part[...] = saved


def array_parts(array: HostOrDevice) -> tuple[np.ndarray, ...]:
    """Return the NumPy arrays of an argument."""
    return (array.data, array.written) if isinstance(array, DeviceArray) else (array,)


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
