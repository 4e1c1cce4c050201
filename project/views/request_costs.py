"""The cost of requests to memory, by line and by step: sectors of global memory, wavefronts of shared memory."""

from collections.abc import Collection, Mapping

import numpy as np

from minifuse.simt import Trace
from minifuse.simt.metrics import number_requests

from .cited_facts import DERIVED, Fact

UNITS = ("sectors", "wavefronts")
Counts = dict[str, int]
"""requests, sectors, wavefronts, and the least of both that the bytes asked for need: ideal sectors, ideal wavefronts."""


class RequestCosts:
    """The cost of any accesses of a launch."""

    def __init__(self, trace: Trace) -> None:
        requests = trace.requests()
        self.request_of, _ = number_requests(trace.events)
        self.columns = {
            "requests": np.ones_like(requests.block),
            "sectors": requests.sectors,
            "ideal sectors": requests.ideal_sectors,
            "wavefronts": requests.wavefronts,
            "ideal wavefronts": requests.ideal_wavefronts,
        }

    def count(self, events: Collection[int]) -> Counts:
        """Return the cost of the requests of these events of the trace."""
        rows = np.unique(self.request_of[np.array([*events], np.int64)])
        return {name: int(column[rows].sum()) for name, column in self.columns.items()}


def count_by_line(trace: Trace) -> dict[int, Counts]:
    """Return the cost of each line, in the order of execution."""
    costs, counts = RequestCosts(trace), dict[int, Counts]()
    for row, instruction in enumerate(trace.requests().instruction.tolist()):
        line_counts = counts.setdefault(trace.instructions[instruction].line, dict.fromkeys(costs.columns, 0))
        for name, column in costs.columns.items():
            line_counts[name] += int(column[row])
    return counts


def line_facts(trace: Trace, texts: Mapping[int, str]) -> list[Fact]:
    """Return a fact for each line that accesses memory: the cost of its requests, and the ideal cost."""
    known = []
    for line, counts in count_by_line(trace).items():
        parts = [f"{counts[unit]} {unit}, {counts[f'ideal {unit}']} at best" for unit in UNITS if counts[unit]]
        why = f"{counts['requests']} {'request' if counts['requests'] == 1 else 'requests'}"
        known.append(Fact(f"line {line}: {texts.get(line, '').strip()}", "; ".join(parts), DERIVED, why))
    return known


def describe_excess(counts: Counts) -> str:
    """Describe what costs more than it must: ": 32 wavefronts, 1 at best"; empty if nothing does."""
    parts = [
        f"{counts[unit]} {unit}, {counts[f'ideal {unit}']} at best"
        for unit in UNITS
        if counts[unit] > counts[f"ideal {unit}"]
    ]
    return f": {'; '.join(parts)}" if parts else ""
