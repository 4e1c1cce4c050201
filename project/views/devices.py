"""Many devices: the programs of collectives, buckets of gradients and pipelines, played by a cost model.

The programs are the generators of `minifuse.engines`. A `Log` notes what each requests, on which line, and what it holds
after each message; `play` gives the times, and `make_picture` the rows of spans.
"""

import inspect
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from minifuse.core.errors import MinifuseError
from minifuse.engines import algorithms, buckets, schedules
from minifuse.engines.cost import COSTS, Link, Timeline, play
from minifuse.engines.messages import Array, RankProgram, Recv, Send, Work
from minifuse.engines.timeline import DevicesPicture, format_seconds, make_picture

from .cited_facts import DERIVED, Fact, Line

RING, TREE, BUCKETS = "ring all-reduce", "tree all-reduce", "buckets of gradients"
KINDS = {RING: "ring", TREE: "tree"}
PIPELINES = {"pipeline: gpipe": "gpipe", "pipeline: 1f1b": "1f1b"}
SUBJECTS: dict[str, tuple[Callable[..., Any], ...]] = {
    RING: (algorithms.ring_all_reduce, algorithms.ring_reduce_scatter, algorithms.ring_all_gather),
    TREE: (algorithms.tree_all_reduce, algorithms.tree_reduce, algorithms.tree_broadcast),
    BUCKETS: (buckets.backward_pass, buckets.reduce_buckets),
    "pipeline: gpipe": (schedules.gpipe, schedules.run_stage),
    "pipeline: 1f1b": (schedules.one_forward_one_backward, schedules.run_stage),
}
"""What is shown, and the generators whose source is beside it."""
LETTERS = "abcdefgh"  # devices
MIN_DEVICES, MAX_DEVICES, MAX_PIECES = 2, 8, 8
ELEMENTS = 1000  # float32 numbers of a part of a ring
LAYERS, LAYER_S, LAYER_BYTES = 8, 1e-3, 4_000_000
FORWARD_S, BACKWARD_S = 1e-3, 2e-3  # of a micro-batch in a stage


class Asked(NamedTuple):
    """A request of a program, and the line of the generator that made it."""

    request: Send | Recv | Work
    line: int


@dataclass
class Log:
    """What the programs of all ranks requested, and what each held after each message."""

    functions: tuple[Callable[..., Any], ...]
    """Those whose lines are noted."""
    asked: dict[int, list[Asked]] = field(default_factory=lambda: defaultdict(list))
    held: dict[int, list[Array]] = field(default_factory=lambda: defaultdict(list))
    """Rank -> what it holds after each message that it received: the sum, if it has added, or the message."""
    total: Array | None = None

    def add(self, received: Array, own: Array) -> Array:
        """Add two arrays, as a program of a collective requests it."""
        self.total = received + own
        return self.total

    def watch(self, rank: int, program: RankProgram[Any]) -> RankProgram[Any]:
        """Run a program, and note its requests."""
        received: Array | None = None
        while True:
            self.total = None
            try:
                request = program.send(received)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as stop:
                return stop.value
            finally:
                if received is not None:
                    self.held[rank].append(received if self.total is None else self.total)
            self.asked[rank].append(Asked(request, self.line(program)))
            received = yield request

    def line(self, program: Any) -> int:
        """Return the line at which a generator waits: of the innermost function that is shown, after `yield from`."""
        shown, line = {function.__code__ for function in self.functions}, 0
        while getattr(program, "gi_frame", None) is not None:
            line = program.gi_frame.f_lineno if program.gi_code in shown else line
            program = program.gi_yieldfrom
        return line


@dataclass(frozen=True)
class Seen:
    """Programs that have run."""

    subject: str
    devices: int
    pieces: int
    timeline: Timeline
    rows: DevicesPicture
    log: Log


def run_programs(subject: str, devices: int, pieces: int) -> Seen:
    """Run the programs of all devices by the cost model. `pieces` counts buckets, or micro-batches.

    Raises
    ------
    MinifuseError
        The subject is unknown, or a number is out of its range.
    """
    if subject not in SUBJECTS:
        raise MinifuseError(f"what is {subject!r}; expected one of {', '.join(SUBJECTS)}")
    for name, low, value, high in (("devices", MIN_DEVICES, devices, MAX_DEVICES), ("pieces", 1, pieces, MAX_PIECES)):
        if not low <= value <= high:
            raise MinifuseError(f"{name} is {value}; expected {low} to {high}")
    log = Log(SUBJECTS[subject])
    if subject == BUCKETS:
        groups = [list(map(int, part)) for part in np.array_split(np.arange(LAYERS)[::-1], pieces)]
        nbytes = [LAYER_BYTES * len(group) for group in groups]
        programs = buckets.data_parallel(devices, [LAYER_S] * LAYERS, groups, nbytes)
    elif subject in PIPELINES:
        x, times = np.zeros(ELEMENTS, np.float32), (FORWARD_S, BACKWARD_S)
        programs = [
            schedules.run_stage(k, devices, order, lambda *_: x, lambda *_: x, times)
            for k, order in enumerate(orders(subject, devices, pieces))
        ]
    else:
        run = algorithms.ALGORITHMS["all_reduce"][KINDS[subject]]
        xs = [np.full(ELEMENTS * devices, 1 << rank, np.float32) for rank in range(devices)]
        programs = [run(rank, devices, x, log.add) for rank, x in enumerate(xs)]
    link = buckets.between_devices(devices, Link(0, 0) if subject in PIPELINES else Link())
    timeline = play([log.watch(rank, program) for rank, program in enumerate(programs)], link)
    return Seen(subject, devices, pieces, timeline, make_picture(timeline, subject, devices), log)


def orders(subject: str, stages: int, micro_batches: int) -> list[list[schedules.MicroStep]]:
    """Return the order of the micro-batches of each stage."""
    return [schedules.SCHEDULES[PIPELINES[subject]](stage, stages, micro_batches) for stage in range(stages)]


def letters(x: Array) -> str:
    """Name the devices whose arrays are in a sum: the array of rank r has the value 2 ** r."""
    return "".join(letter for rank, letter in enumerate(LETTERS) if int(x[0]) >> rank & 1)


def source(seen: Seen) -> list[Line]:
    """Return the source of the generators, with how often a device came to each line."""
    counts = Counter(asked.line for rank in seen.log.asked if rank % seen.devices == 0 for asked in seen.log.asked[rank])
    lines = list[Line]()
    for function in SUBJECTS[seen.subject]:
        text, first = inspect.getsourcelines(function)
        ran = ((("ran", counts[k]),) if counts[k] else () for k in range(first, first + len(text)))
        lines += [Line(k, row.rstrip("\n"), count) for k, (row, count) in enumerate(zip(text, ran, strict=True), first)]
    return lines


def facts(seen: Seen) -> list[Fact]:
    """Return what was counted, and what the formulas of the cost model say."""
    n, rows = seen.devices, seen.rows
    why = (
        "latency 5 us, 10 GB/s, one message a device at a time" if seen.subject not in PIPELINES else "messages cost nothing"
    )
    between = [event for event in seen.timeline.messages if event.rank % n != (event.to or 0) % n]
    known = [
        Fact("devices", n, DERIVED),
        Fact("time", format_seconds(seen.timeline.seconds), DERIVED, f"by the cost model: {why}"),
        Fact("messages", len(between), DERIVED, "between devices"),
        Fact("bytes that a device sends", f"{max(rows.bytes_sent):,}", DERIVED, "at most"),
    ]
    if rows.idle_share is not None:
        known.append(Fact("idle share", f"{rows.idle_share:.1%}", DERIVED, "of the time in which devices could compute"))
    if seen.subject in PIPELINES:
        kept = [schedules.kept_activations(order) for order in orders(seen.subject, n, seen.pieces)]
        known += [
            Fact("idle share by formula", f"{(n - 1) / (seen.pieces + n - 1):.1%}", DERIVED, "(p - 1) / (m + p - 1)"),
            Fact("micro-batches that a stage keeps", ", ".join(map(str, kept)), DERIVED, "at most at a time, by stages"),
        ]
    elif seen.subject != BUCKETS:
        cost = COSTS["all_reduce"][KINDS[seen.subject]]
        by_formula = format_seconds(cost.seconds(n, ELEMENTS * n * 4, Link()))
        known.append(Fact("time by formula", by_formula, DERIVED, f"{cost.count(n)} rounds"))
    return known
