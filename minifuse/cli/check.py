"""`minifuse check`: find hazards in the kernels of a script, and print each with its source lines."""

import linecache
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ..core.errors import RaceError
from ..core.wording import format_count
from ..simt.check import HazardFinding, Report, check, script_traceback
from ..simt.host import format_line
from ..simt.launch_summary import LaunchSummary
from .files import RequestError, refuse_cuda_cpp
from .output import new_console, print_json, report_error


@dataclass(frozen=True)
class CheckRequest:
    """The options, as given on the command line."""

    script: Path
    arguments: Sequence[str]
    trace: Path | None
    schedules: int
    limit: int
    loop_limit: int
    summary: bool  # print sectors and wavefronts
    all: bool  # print each race
    json: bool

    def validate(self) -> None:
        """Raise RequestError if the request cannot run."""
        if not self.script.is_file():
            raise RequestError(f"{self.script} is not a file")
        refuse_cuda_cpp(str(self.script))
        if self.trace is not None and not self.trace.resolve().parent.is_dir():
            raise RequestError(f"--trace {self.trace}: the folder {self.trace.parent} does not exist")


def run(request: CheckRequest) -> int:
    """Run the script, print the hazards found, and return the exit status."""
    try:
        request.validate()
    except RequestError as error:
        return report_error("check", error)
    with redirect_stdout(sys.stderr) if request.json else nullcontext():
        report = check(
            request.script,
            request.arguments,
            schedules=request.schedules,
            limit=request.limit,
            loop_limit=request.loop_limit,
            keeps_trace=request.trace is not None,
            summarizes=request.summary,
        )
    sys.stdout.flush()
    sys.stderr.write(script_traceback(report))
    console = new_console(is_quiet=request.json)
    show(report, console, request)
    if request.trace is not None and report.trace is not None:
        try:
            report.trace.save(request.trace)
        except OSError as error:
            return report_error("check", RequestError(f"--trace {request.trace}: {error.strerror}; choose another path"))
        console.print(f"trace in {request.trace}; minifuse trace {request.trace} prints it", soft_wrap=True)
    if request.json:
        print_json(report.to_dict())
    else:
        show_verdict(report, console)
    return report.status


def show(report: Report, console: Console, request: CheckRequest) -> None:
    """Print each hazard, then results that depend on the order of execution, then the summaries."""
    for group in group_findings(report.findings, request.all):
        show_finding(group[0], console)
        if len(group) > 1:
            lines = sorted({line for finding in group for _, line in finding.error.lines})
            pairs = format_count(len(group) - 1, "more pair of lines", "more pairs of lines")
            race_with = f"races of array '{group[0].error.array}' in lines {lines[0]} to {lines[-1]} (--all)"
            print_wrapped(f"and {pairs} with {race_with}\n", console)
    for schedule in report.schedules:
        others = format_count(schedule.count - 1, "more launch", "more launches")
        others_text = f" and {others} from there" if schedule.count > 1 else ""
        verb = "differ" if others_text else "differs"
        print_wrapped(
            f"the result of {schedule.kernel} in launch {schedule.launch} at {format_line(schedule.line)}{others_text} "
            f"{verb} in {len(schedule.seeds)} of {schedule.tried} schedules; seed {schedule.seeds[0]} replays it.\n",
            console,
        )
    if report.tried > 1 and report.launches and not (report.schedules or report.findings or report.unrecorded):
        print_wrapped(f"no results differ in {report.tried} schedules of each launch", console)
    if report.unrecorded:
        launches_have = format_count(len(report.unrecorded), "launch has", "launches have")
        print_wrapped(
            f"{launches_have} more than {request.limit} memory accesses; only these were checked for races (--limit)",
            console,
        )
    for hint in report.hints:
        print_wrapped(f"hint: {hint}", console)
    for summary in report.summaries:
        show_summary(summary, console)


def show_verdict(report: Report, console: Console) -> None:
    """Print where the script ended, if not at its end, and the number of hazards."""
    if report.end():
        print_wrapped(report.end(), console)
    is_complete = report.failure is None and not report.is_stopped
    console.print(Text(report.verdict(), style="red" if report.findings else "green" if is_complete else "yellow"))


def group_findings(findings: Sequence[HazardFinding], shows_all: bool) -> list[list[HazardFinding]]:
    """Group the races of a launch at one array: missing synchronization often makes a race of each pair of lines."""
    groups: dict[object, list[HazardFinding]] = {}
    for number, finding in enumerate(findings):
        is_race = isinstance(finding.error, RaceError) and not shows_all
        key = (finding.kernel, finding.launch, finding.error.array) if is_race else number
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def show_summary(summary: LaunchSummary, console: Console) -> None:
    """Print the sectors and wavefronts of the launches of a kernel, and the lines that need too many."""
    count = format_count(summary.count, "launch", "launches")
    print_wrapped(
        f"kernel {summary.kernel}, {count} at {format_line(summary.line)}: {format_requests(summary.total)}", console
    )
    for line, numbers in summary.worst_lines():
        source = linecache.getline(*line).strip()
        console.print(Text(f"  {format_line(line)}  {source}"), style="cyan", overflow="ellipsis", no_wrap=True)
        print_wrapped(f"    {format_requests(numbers)}", console)
    console.print()


def format_requests(numbers: Counter[str]) -> str:
    """Format sectors and wavefronts, those that are not 0."""
    parts = [f"{numbers['sectors']:,} sectors, ideal {numbers['ideal_sectors']:,}"] if numbers["sectors"] else []
    if numbers["wavefronts"]:
        parts.append(f"{numbers['wavefronts']:,} wavefronts, of which {numbers['bank_conflicts']:,} for bank conflicts")
    return "; ".join(parts) or "no access to global or shared memory"


def show_finding(finding: HazardFinding, console: Console) -> None:
    """Print one hazard: its message, the source lines, and the launch."""
    error = finding.error
    print_wrapped(f"{type(error).__name__}: {error}", console, head_style="bold red")
    lines = list(dict.fromkeys(error.lines))
    width = max((len(format_line(line)) for line in lines), default=0)
    for line in lines:
        source = linecache.getline(*line).strip()
        console.print(Text(f"  {format_line(line):{width}}  {source}"), style="cyan", overflow="ellipsis", no_wrap=True)
    if finding.kernel is not None:
        other_launches = (
            f", and in {format_count(finding.count - 1, 'more launch', 'more launches')}" if finding.count > 1 else ""
        )
        print_wrapped(
            f"  kernel {finding.kernel}, launch {finding.launch} at {format_line(finding.line)}{other_launches}", console
        )
    console.print()


def print_wrapped(sentence: str, console: Console, head_style: str = "") -> None:
    """Print a wrapped sentence; the part before the colon is printed in the style `head_style`."""
    lines = [
        textwrap.fill(line, console.width, break_long_words=False, break_on_hyphens=False) for line in sentence.split("\n")
    ]
    first, colon, rest = "\n".join(lines).partition(":")
    console.print(Text.assemble((first + colon, head_style), rest), soft_wrap=True)
