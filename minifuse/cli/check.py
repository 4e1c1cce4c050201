"""`minifuse check`: find hazards in the kernels of a script, and print each with its source lines."""

import linecache
import sys
import textwrap
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ..simt.check import HazardFinding, Report, check, script_traceback
from ..simt.diagnostics import pluralize
from ..simt.host import format_line
from .output import new_console, print_json


def run(
    script: Path, arguments: list[str], trace: Path | None, schedules: int, limit: int, loop_limit: int, json: bool
) -> int:
    """Run the script, print the hazards found, and return the exit status."""
    if not script.is_file():
        sys.stderr.write(f"minifuse check: {script} is not a file\n")
        return 2
    with redirect_stdout(sys.stderr) if json else nullcontext():
        report = check(script, arguments, schedules=schedules, limit=limit, loop_limit=loop_limit, trace=trace)
    sys.stdout.flush()
    sys.stderr.write(script_traceback(report))
    if json:
        print_json(report.to_dict())
    else:
        show(report, new_console(), trace, limit)
    return report.status


def show(report: Report, console: Console, trace: Path | None, limit: int) -> None:
    """Print each hazard, then results that depend on the order of execution, then the verdict."""
    for finding in report.findings:
        show_finding(finding, console)
    for schedule in report.schedules:
        others_text = (
            f" and {pluralize(schedule.count - 1, 'more launch', 'more launches')} from there" if schedule.count > 1 else ""
        )
        verb = "differ" if others_text else "differs"
        print_wrapped(
            f"the result of {schedule.kernel} in launch {schedule.launch} at {format_line(schedule.line)}{others_text} "
            f"{verb} in {len(schedule.seeds)} of {schedule.tried} schedules; seed {schedule.seeds[0]} replays it.\n",
            console,
        )
    if report.tried > 1 and report.launches and not (report.schedules or report.findings or report.unrecorded):
        print_wrapped(f"no results differ in {report.tried} schedules of each launch", console)
    if report.unrecorded:
        launches_have = pluralize(len(report.unrecorded), "launch has", "launches have")
        print_wrapped(
            f"{launches_have} more than {limit} memory accesses; only these were checked for races (--limit)", console
        )
    for hint in report.hints:
        print_wrapped(f"hint: {hint}", console)
    if trace is not None and report.launches:
        console.print(f"trace in {trace}", soft_wrap=True)
    console.print(Text(report.verdict(), style="red" if report.findings else "green"))


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
            f", and in {pluralize(finding.count - 1, 'more launch', 'more launches')}" if finding.count > 1 else ""
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
