"""Results of a profile: launches and calls with their times, as records, as rows of a table, and as a Chrome trace."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..backends.base import Backend
from .report import Column, ReportTable, make_table, number_column
from .roofline import MachineLimits, machine_limits


@dataclass(frozen=True)
class LaunchWork:
    """The work of one launch, as far as its plan describes it."""

    function: str
    """The function that the user called."""
    formula: str
    form: str
    """The kind of kernel, and the space that it iterates over."""
    backend: Backend
    """The backend that ran it."""
    nbytes: int | None
    """Distinct bytes read and written; None if they depend on the data."""
    flops: int
    """Floating-point operations of a matmul; 0 for any other kernel."""
    dtype: str
    """The element type of the first output."""

    @property
    def is_synchronous(self) -> bool:
        """Return True if a launch returns only when its kernel has finished."""
        return bool(self.backend.is_host or not self.backend.has_roofline)

    def limits(self) -> MachineLimits | None:
        """Return the measured limits of the backend; None if it has none."""
        return machine_limits(self.backend) if self.backend.has_roofline else None


@dataclass(frozen=True)
class LaunchEvent:
    """One launch and its time."""

    work: LaunchWork
    start_us: float
    """Microseconds since the start of the profile."""
    duration_us: float

    @property
    def gbytes_per_s(self) -> float | None:
        """Return the memory throughput; None if the bytes or the duration are unknown."""
        return self.work.nbytes / self.duration_us / 1e3 if self.work.nbytes is not None and self.duration_us else None


@dataclass(frozen=True)
class CallEvent:
    """One call on the host, from the lookup of its plan to its result."""

    function: str
    start_us: float
    duration_us: float
    planning_us: float
    """The part of the duration in which the plan was looked up, or traced, scheduled and compiled."""


@dataclass(frozen=True)
class ProfileRow:
    """All launches of one kernel by one function."""

    work: LaunchWork
    count: int
    """How many launches there were."""
    total_us: float
    share: float
    """`total_us` divided by the total time of all launches."""
    gbytes_per_s: float | None
    gflops: float | None
    """10^9 floating-point operations per second of a matmul."""
    roofline: float | None
    """The least time in which this machine can move the bytes and compute the flops, divided by the measured time. The
    ratio exceeds 1 if data were in a cache.
    """


def flatten_record(record: ProfileRow | LaunchEvent) -> dict[str, object]:
    """Convert a record to one flat dict."""
    work = {**vars(record.work), "backend": str(record.work.backend)}
    return {**work, **{name: value for name, value in vars(record).items() if name != "work"}}


def group_launches(events: Sequence[LaunchEvent]) -> list[ProfileRow]:
    """Return a row for each kernel, sorted by total time, the longest first."""
    groups: dict[LaunchWork, list[LaunchEvent]] = {}
    for event in events:
        groups.setdefault(event.work, []).append(event)
    all_us = max(sum(event.duration_us for event in events), 1e-9)
    rows = [make_row(work, len(launches), sum(e.duration_us for e in launches), all_us) for work, launches in groups.items()]
    return sorted(rows, key=lambda row: -row.total_us)


def make_row(work: LaunchWork, count: int, total_us: float, all_us: float) -> ProfileRow:
    """Summarize the launches of one kernel in a row of the table."""
    mean_us, limits = total_us / count, work.limits()
    gbytes_per_s = work.nbytes / mean_us / 1e3 if work.nbytes is not None and mean_us else None
    gflops = work.flops / mean_us / 1e3 if work.flops and mean_us else None
    roofline = None
    if limits is not None and mean_us and work.nbytes is not None:
        least_us = work.nbytes / limits.gbytes_per_s / 1e3
        peak = limits.peak(work.dtype) if work.flops else None
        least_us = max(least_us, work.flops / peak / 1e3) if peak else least_us
        roofline = least_us / mean_us
    return ProfileRow(work, count, total_us, total_us / all_us, gbytes_per_s, gflops, roofline)


def profile_table(rows: Sequence[ProfileRow]) -> ReportTable:
    """Return the table of a profile."""
    columns = (
        Column("kernel", wraps=True),
        number_column("count"),
        number_column("total", "us", ",.1f"),
        number_column("share", spec=".1%"),
        number_column("GB/s", spec=",.1f"),
        number_column("GFLOP/s", spec=",.1f"),
        number_column("roofline", spec=".0%"),
    )
    return make_table(
        columns,
        [
            (f"{x.work.function}: {x.work.formula}", x.count, x.total_us, x.share, x.gbytes_per_s, x.gflops, x.roofline)
            for x in rows
        ],
    )


def chrome_trace_events(events: Sequence[LaunchEvent], calls: Sequence[CallEvent]) -> Iterator[dict[str, object]]:
    """Yield events in Chrome's trace format: a track of calls, and a track of kernels for each backend. Times are in us."""
    backends = sorted({str(event.work.backend) for event in events})
    tracks = {"host": 0} | {f"kernels on {name}": k for k, name in enumerate(backends, start=1)}
    for name, track in tracks.items():
        yield {"ph": "M", "name": "thread_name", "pid": 1, "tid": track, "args": {"name": name}}
    for call in calls:
        span = {"ts": call.start_us, "dur": call.duration_us, "args": {"planning_us": call.planning_us}}
        yield {"ph": "X", "name": call.function, "cat": "call", "pid": 1, "tid": 0, **span}
    for event in events:
        work = event.work
        facts = {"formula": work.formula, "form": work.form, "bytes": work.nbytes, "flops": work.flops}
        span = {"ts": event.start_us, "dur": event.duration_us, "args": facts | {"GB/s": event.gbytes_per_s}}
        track = tracks[f"kernels on {work.backend}"]
        yield {"ph": "X", "name": f"{work.function}: {work.formula[:60]}", "cat": "kernel", "pid": 1, "tid": track, **span}
