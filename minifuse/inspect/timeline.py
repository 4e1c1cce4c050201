"""What a profile found: launches and calls with their times, as records, rows of a table, and a Chrome trace."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .roofline import MachineLimits, machine_limits

TABLE_WIDTH = 100  # columns


@dataclass(frozen=True)
class LaunchWork:
    """What one launch does, as far as its plan knows."""

    function: str
    """What the user called."""
    formula: str
    form: str
    """What kind of kernel it is, and over which space."""
    backend: Any
    """What ran it."""
    nbytes: int | None
    """Distinct bytes read and written; None where only the kernel knows."""
    flops: int
    """Of a product; else 0."""
    dtype: str
    """Of what it computes first."""

    @property
    def is_synchronous(self) -> bool:
        """Whether a launch returns when it is done."""
        return bool(self.backend.is_host or not self.backend.has_roofline)

    def limits(self) -> MachineLimits | None:
        """What the machine can do at most."""
        return machine_limits(self.backend) if self.backend.has_roofline else None


@dataclass(frozen=True)
class LaunchEvent:
    """One launch."""

    work: LaunchWork
    start_us: float
    """Since the profile began."""
    duration_us: float

    @property
    def gbytes_per_s(self) -> float | None:
        """Bytes moved in the time; None where one of them is unknown."""
        return self.work.nbytes / self.duration_us / 1e3 if self.work.nbytes is not None and self.duration_us else None


@dataclass(frozen=True)
class CallEvent:
    """One call on the host, from the question which plan it is to its result."""

    function: str
    start_us: float
    duration_us: float
    planning_us: float
    """The part in which a plan was found, or captured, scheduled and compiled."""


@dataclass(frozen=True)
class ProfileRow:
    """All launches of one kernel by one function."""

    work: LaunchWork
    count: int
    total_us: float
    share: float
    """Of the time of all launches."""
    gbytes_per_s: float | None
    gflops: float | None
    """10^9 operations a second, of a product."""
    roofline: float | None
    """The time that memory or arithmetic needs at least on this machine, over the time that it took. More than 1 where data
    came from a cache."""


def flatten_record(record: ProfileRow | LaunchEvent) -> dict[str, Any]:
    """A record as one dict."""
    work = {**vars(record.work), "backend": str(record.work.backend)}
    return {**work, **{name: value for name, value in vars(record).items() if name != "work"}}


def group_launches(events: Sequence[LaunchEvent]) -> list[ProfileRow]:
    """A row for each kernel, the longest in all first."""
    groups: dict[LaunchWork, list[LaunchEvent]] = {}
    for event in events:
        groups.setdefault(event.work, []).append(event)
    everything = max(sum(event.duration_us for event in events), 1e-9)
    rows = [make_row(work, len(found), sum(e.duration_us for e in found), everything) for work, found in groups.items()]
    return sorted(rows, key=lambda row: -row.total_us)


def make_row(work: LaunchWork, count: int, total_us: float, everything: float) -> ProfileRow:
    """The launches of one kernel in a row of the table."""
    each_us, limits = total_us / count, work.limits()
    speed = work.nbytes / each_us / 1e3 if work.nbytes is not None and each_us else None
    gflops = work.flops / each_us / 1e3 if work.flops and each_us else None
    roofline = None
    if limits is not None and each_us and work.nbytes is not None:
        least_us = work.nbytes / limits.gbytes_per_s / 1e3
        peak = limits.peak(work.dtype) if work.flops else None
        least_us = max(least_us, work.flops / peak / 1e3) if peak else least_us
        roofline = least_us / each_us
    return ProfileRow(work, count, total_us, total_us / everything, speed, gflops, roofline)


def format_rows(rows: Sequence[ProfileRow]) -> Iterator[str]:
    """The rows in columns of text."""
    cells = [["kernel", "count", "total us", "share", "GB/s", "GFLOP/s", "roofline"]]
    cells += [
        [
            f"{row.work.function}: {row.work.formula}",
            f"{row.count:,}",
            f"{row.total_us:,.1f}",
            f"{row.share:.1%}",
            format_number(row.gbytes_per_s, ",.1f"),
            format_number(row.gflops, ",.1f"),
            format_number(row.roofline, ".0%"),
        ]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    first = max(20, min(widths[0], TABLE_WIDTH - sum(widths[1:]) - 2 * len(widths[1:])))
    for name, *others in cells:
        short = name if len(name) <= first else f"{name[: first - 3]}..."
        yield f"{short:{first}}" + "".join(f"  {text:>{n}}" for text, n in zip(others, widths[1:], strict=True))


def format_number(number: float | None, style: str) -> str:
    """A number, or a dash for none."""
    return "-" if number is None else format(number, style)


def chrome_trace_events(events: Sequence[LaunchEvent], calls: Sequence[CallEvent]) -> Iterator[dict[str, Any]]:
    """The events of Chrome's trace format: a line of calls, and a line of kernels for each backend. Times are in us."""
    backends = sorted({str(event.work.backend) for event in events})
    lines = {"host": 0} | {f"kernels on {name}": k for k, name in enumerate(backends, start=1)}
    for name, line in lines.items():
        yield {"ph": "M", "name": "thread_name", "pid": 1, "tid": line, "args": {"name": name}}
    for call in calls:
        span = {"ts": call.start_us, "dur": call.duration_us, "args": {"planning_us": call.planning_us}}
        yield {"ph": "X", "name": call.function, "cat": "call", "pid": 1, "tid": 0, **span}
    for event in events:
        work = event.work
        facts = {"formula": work.formula, "form": work.form, "bytes": work.nbytes, "flops": work.flops}
        span = {"ts": event.start_us, "dur": event.duration_us, "args": facts | {"GB/s": event.gbytes_per_s}}
        line = lines[f"kernels on {work.backend}"]
        yield {"ph": "X", "name": f"{work.function}: {work.formula[:60]}", "cat": "kernel", "pid": 1, "tid": line, **span}
