"""Pictures of a timeline: what each device computes and sends, as rows of text, and as plain data for pages.

A picture shows how an algorithm works: the chunks of a ring move along diagonals, a pipeline has bubbles at both ends, and
buckets of gradients travel under the backward pass.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from .cost import Event, Timeline


def format_seconds(seconds: float) -> str:
    """Return a time in us, ms or s, with one decimal."""
    scale, unit = next(((x, unit) for x, unit in ((1, "s"), (1e3, "ms")) if seconds * x >= 1), (1e6, "us"))
    return f"{seconds * scale:,.1f} {unit}"


class Span(NamedTuple):
    """Something that a device does from one time to another, in seconds."""

    start: float
    end: float
    label: str
    to: int | None = None
    """The device that a message goes to; None for work."""
    nbytes: int = 0


@dataclass(frozen=True)
class DeviceRow:
    """All that one device computes, or all that it sends."""

    device: int
    kind: str
    """`work` or `send`."""
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class DevicesPicture:
    """The model of a picture of many devices: rows over one axis of time, and what was counted."""

    title: str
    seconds: float
    rows: tuple[DeviceRow, ...]
    bytes_sent: tuple[int, ...]
    """By device."""
    idle_share: float | None
    """The share of the time in which devices do not compute; None if no device computes."""
    holdings: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """What devices keep in memory: its name -> bytes by device."""

    def to_dict(self) -> dict[str, Any]:
        """Return the picture as dicts, lists, strings and numbers."""
        rows = [{**asdict(row), "spans": [span._asdict() for span in row.spans]} for row in self.rows]
        holdings = {name: list(nbytes) for name, nbytes in self.holdings.items()}
        return {**asdict(self), "rows": rows, "bytes_sent": list(self.bytes_sent), "holdings": holdings}

    def of_kind(self, kind: str) -> "DevicesPicture":
        """Return the picture with the rows of one kind only: `work` or `send`."""
        return replace(self, rows=tuple(row for row in self.rows if row.kind == kind))

    def to_text(self, width: int = 72) -> str:
        """Return a line for each row: time runs to the right over `width` characters.

        A span begins with its label and is filled with `=` for work, and with `-` for a message.
        """
        names = [f"device {row.device} {row.kind}" for row in self.rows]
        indent = max(map(len, names), default=0)
        lines = [f"{name:{indent}} |{self._draw(row, width)}|" for name, row in zip(names, self.rows, strict=True)]
        for name, nbytes in self.holdings.items():
            lines.append(f"{name}: {', '.join(f'{n:,}' for n in nbytes)} bytes")
        return "\n".join([self.summary(), *lines])

    def summary(self) -> str:
        """Return the title with what was counted, in one line."""
        parts = [format_seconds(self.seconds)]
        if any(self.bytes_sent):
            parts.append(f"{max(self.bytes_sent):,} bytes sent by a device at most")
        if self.idle_share is not None:
            parts.append(f"{self.idle_share:.0%} idle")
        return f"{self.title}: {', '.join(parts)}"

    def _draw(self, row: DeviceRow, width: int) -> str:
        """Return one row of characters. A span has at least one, and a later span may cover the end of an earlier one."""
        line, scale = [" "] * width, width / self.seconds if self.seconds else 0
        for span in row.spans:
            start = min(round(span.start * scale), width - 1)
            length = max(min(round(span.end * scale), width) - start, 1)
            line[start : start + length] = span.label.ljust(length, "=" if row.kind == "work" else "-")[:length]
        return "".join(line)


def make_picture(
    timeline: Timeline, title: str, devices: int | None = None, holdings: Mapping[str, Sequence[int]] | None = None
) -> DevicesPicture:
    """Describe a timeline as rows.

    Parameters
    ----------
    timeline : Timeline
    title : str
    devices : int, optional
        The number of devices, if one runs several programs: rank r is on device r % devices. Default: one a rank. Messages
        within a device are left out.
    holdings : mapping of str to sequence of int, optional
        What devices keep in memory: its name -> bytes by device.

    Examples
    --------
    >>> import numpy as np
    >>> from minifuse.engines.algorithms import ring_all_gather
    >>> from minifuse.engines.cost import play
    >>> x = np.zeros(1000, np.float32)
    >>> print(make_picture(play([ring_all_gather(k, 4, x) for k in range(4)]), "ring all-gather").to_text(24))
    ring all-gather: 16.2 us, 12,000 bytes sent by a device at most
    device 0 send |0-------3-------2-------|
    device 1 send |1-------0-------3-------|
    device 2 send |2-------1-------0-------|
    device 3 send |3-------2-------1-------|
    """
    devices = devices or len(timeline.results)
    spans = defaultdict[tuple[int, str], list[Span]](list)
    sent, busy = [0] * devices, 0.0
    for event in timeline.events:
        device = event.rank % devices
        if event.to is None:
            spans[device, "work"].append(Span(event.start, event.end, event.name))
            busy += event.end - event.start
        elif event.to % devices != device:
            spans[device, "send"].append(_message(event, devices))
            sent[device] += event.nbytes
    kinds = [kind for kind in ("work", "send") if any(kind == row for _, row in spans)]
    rows = [DeviceRow(device, kind, tuple(spans[device, kind])) for device in range(devices) for kind in kinds]
    idle = 1 - busy / (timeline.seconds * devices) if busy else None
    return DevicesPicture(title, timeline.seconds, tuple(rows), tuple(sent), idle, holdings or {})


def _message(event: Event, devices: int) -> Span:
    """Return a message as a span, with the number of its chunk."""
    assert event.to is not None
    return Span(event.start, event.end, str(event.chunk), event.to % devices, event.nbytes)
