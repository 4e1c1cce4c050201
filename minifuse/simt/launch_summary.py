"""Count the sectors and wavefronts of the launches of a script, for `minifuse check --summary`."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from .bytecode_locations import Line
from .trace import Trace

COUNTED: Final = ("sectors", "ideal_sectors", "wavefronts", "bank_conflicts")


@dataclass
class LaunchSummary:
    """The memory requests of all launches of a kernel at one line of a script."""

    kernel: str
    launch: int  # number of the first launch, from 1
    line: Line  # of the script
    count: int = 0  # launches
    total: Counter[str] = field(default_factory=Counter)  # of the names in COUNTED
    lines: dict[Line, Counter[str]] = field(default_factory=dict)  # line of the kernel -> the same

    def worst_lines(self, count: int = 2) -> list[tuple[Line, Counter[str]]]:
        """Return the lines with the most sectors and wavefronts beyond the ideal numbers; none without any."""
        ranked = sorted(self.lines.items(), key=lambda item: excess(item[1]), reverse=True)
        return [(line, numbers) for line, numbers in ranked[:count] if excess(numbers) > 0]

    def to_dict(self) -> dict[str, object]:
        """Return the numbers in types that JSON represents."""
        lines = [{"file": file, "line": line, **numbers} for (file, line), numbers in self.lines.items()]
        launches = {"launch": self.launch, "launched_at": list(self.line), "count": self.count}
        return {"kernel": self.kernel, **launches, **self.total, "lines": lines}


def add_summary(summaries: list[LaunchSummary], kernel: str, launch: int, line: Line, trace: Trace) -> None:
    """Add the numbers of a launch to the summary of its kernel and line, or begin one."""
    summary = next((one for one in summaries if (one.kernel, one.line) == (kernel, line)), None)
    if summary is None:
        summary = LaunchSummary(kernel, launch, line)
        summaries.append(summary)
    summary.count += 1
    facts = trace.summary()
    for space in facts["spaces"].values():
        summary.total.update(count(space))
    for row in facts["lines"]:
        place = row["file"], row["line"]
        summary.lines.setdefault(place, Counter()).update(count(row))


def count(row: dict[str, Any]) -> Counter[str]:
    """Return the counted numbers of a row of `Trace.summary`."""
    return Counter({name: row["DERIVED"][name] for name in COUNTED})


def excess(numbers: Counter[str]) -> int:
    """Return the sectors and wavefronts beyond the ideal numbers. Lanes that share elements need fewer sectors."""
    return max(0, numbers["sectors"] - numbers["ideal_sectors"]) + numbers["bank_conflicts"]
