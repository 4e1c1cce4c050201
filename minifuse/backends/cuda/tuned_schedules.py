"""Tuned schedules of one kind of GPU: kept on disk, and used by every kernel for which one is known.

The key of a schedule contains everything on which the best choice depends: the text of the kernel by the closed form, its
sizes and strides, the alignment of its operands, and the version of the generator. There is one file for each kind of GPU,
beside the compiled kernels, which a process reads once. A file that is damaged, or that another user may have written, is
ignored, and the next search replaces it. `tuning` searches the schedules.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from typing import Any

from ...core.errors import MinifuseError
from ...ir.kernel_ir import LoopNest
from ...runtime import file_trust
from ...runtime.kernel_cache import write_files
from ...runtime.kernel_files import cache_folder, hold_kernel_lock, limit_nbytes, remove_file
from ..codegen.schedule import LoopSchedule, Tile
from ..codegen.schedule_search import SearchResult
from .codegen.select import GeneratedKernel
from .compiler import compiler_fingerprint


class TunedSchedules:
    """The tuned schedules of a GPU with this name, compute capability and number of multiprocessors."""

    def __init__(self, name: str, capability: tuple[int, int], multiprocessors: int) -> None:
        self.capability = capability
        self.gpu = f"{name}, sm_{capability[0]}{capability[1]}, {multiprocessors} multiprocessors"
        self.file = f"schedules_{sha256(self.gpu.encode()).hexdigest()[:24]}"  # without the suffix

    @cached_property
    def results(self) -> dict[str, SearchResult]:
        """The results of all searches by key, those of other processes included."""
        return self.read()

    def find(self, generated: GeneratedKernel, nest: LoopNest, is_aligned: bool) -> LoopSchedule | None:
        """Return the tuned schedule of a kernel, given the kernel by the closed form; None if it was not tuned."""
        result = self.find_result(generated, nest, is_aligned)
        return None if result is None else result.schedule

    def find_result(self, generated: GeneratedKernel, nest: LoopNest, is_aligned: bool) -> SearchResult | None:
        """Return the result of the search for a kernel; None if it was not tuned."""
        return self.results.get(self.key(generated, nest, is_aligned)) if self.results else None

    def key(self, generated: GeneratedKernel, nest: LoopNest, is_aligned: bool) -> str:
        """Return the key of a kernel."""
        version = compiler_fingerprint(self.capability), LoopSchedule._fields, Tile._fields
        facts = version, generated.text, generated.parameters, tuple(nest.sizes), tuple(nest.strides), is_aligned
        return sha256(repr(facts).encode()).hexdigest()[:24]

    def put(self, key: str, result: SearchResult) -> None:
        """Keep the result of a search in memory and, if there is a cache folder, on disk."""
        with hold_kernel_lock(self.file), suppress(MinifuseError):
            self.results.update(self.read() | {key: result})
            data = {"gpu": self.gpu, "schedules": self.results}
            write_files({f"{self.file}.json": json.dumps(data).encode()})

    def read(self) -> dict[str, SearchResult]:
        """Return the results on disk; none if the file is missing, damaged or not trusted."""
        folder = cache_folder()
        if folder is None or not limit_nbytes() or file_trust.why_distrusted(folder):
            return {}
        try:
            schedules = json.loads(file_trust.read(folder / f"{self.file}.json"))["schedules"]
            return {key: decode(entry) for key, entry in schedules.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def clear(self) -> int:
        """Remove the tuned schedules in memory and on disk, and return their number."""
        count, folder = len(self.read()), cache_folder()
        self.results.clear()
        if folder is not None:
            remove_file(folder / f"{self.file}.json")
        return count


def decode(entry: Sequence[Any]) -> SearchResult:
    """Return the result of a search that JSON has as lists."""
    (tiles, *others), us, first_us, candidates = entry
    fields: list[Any] = [tuple(x) if isinstance(x, list) else x for x in others]
    schedule = LoopSchedule(tuple(Tile(*x) for x in tiles), *fields)
    return SearchResult(schedule, float(us), float(first_us), int(candidates))
