"""The command line: choose rows and peers, measure, report, store. `minifuse bench` runs the same."""

import argparse
import json
import secrets
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from . import partial_runs, peers
from .partial_runs import Part
from .suites import Suite, listing, suite_of
from .timing_lock import TimingLock

RESULTS = Path(__file__).parent / "results"
STDOUT = "-"
NAME = "python -m project.benchmarks"


class RequestError(ValueError):
    """The arguments make no sense; the message says why."""


def part_of(text: str) -> Part:
    """Convert the text of --part."""
    try:
        return partial_runs.parse_part(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def lock_of(text: str) -> TimingLock:
    """Convert the text of --timing-lock."""
    try:
        return TimingLock(Path(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


class Parser(argparse.ArgumentParser):
    """A parser that raises, so that all mistakes are reported in the same way."""

    def error(self, message: str) -> NoReturn:
        """Raise the message as an error."""
        raise RequestError(message)


def main(arguments: Sequence[str] | None = None, name: str = NAME) -> int:
    """Measure and report; the exit status is 1 if a result is wrong, 2 if the request is invalid."""
    peers.prepare()
    try:
        return run_request(parser(name).parse_args(arguments))
    except RequestError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\n{name}: stopped", file=sys.stderr)
        return 130


def run_request(options: argparse.Namespace) -> int:
    """Run the requested suites, or print what was requested."""
    if options.page:
        from .page import write

        return write(RESULTS)
    if options.list:
        from .terminal import wrap_lines

        print("\n".join(wrap_lines(line, shutil.get_terminal_size().columns) for line in listing()))
        return 0
    suite = suite_of(options.rows[0] if options.rows else "")
    if suite.is_on_gpu:
        from . import gpu

        if reason := gpu.absence():
            print(f"rows of a GPU: nothing is measured, since {reason}", file=sys.stderr)
            return 1
    known, load = suite.peers, gpu.load if suite.is_on_gpu else peers.load
    names = [name.strip() for name in options.against.split(",") if name.strip()] if options.against else list(known)
    if unknown := [name for name in names if name not in known]:
        raise RequestError(f"--against {', '.join(unknown)}: expected some of {', '.join(known) or 'nobody'}")
    return measure(options, suite, *load(names))


def measure(options: argparse.Namespace, suite: Suite, modules: dict[str, ModuleType], missing: dict[str, str]) -> int:
    """Run the chosen rows, show them, and write the JSON."""
    from . import report, terminal
    from .run import run

    try:
        rows = suite.chosen(options.rows)
    except ValueError as error:
        raise RequestError(f"{error}; --list has all suites") from error
    seed = secrets.randbits(32) if options.seed is None else options.seed
    is_silent = options.json == STDOUT
    is_complete = len(rows) == len(suite.rows) and not options.quick and {*modules, *missing} == set(suite.peers)
    is_kept = is_complete and options.keep and not options.json
    path = Path(options.json) if options.json and not is_silent else None
    if options.part:
        rows = options.part.select(rows)
        path = RESULTS / suite.file(device_of(suite)) if is_kept else path
        read_earlier(path, options.part, options.quick)  # a torn file is reported before anything is measured
    merged = partial(merge_into_file, path, suite, options.part)

    def save(found: dict[str, Any]) -> None:
        if path:
            with options.timing_lock.alone():  # another part may be merged into the same file
                store(path, merged(found))

    found = run(rows, modules, missing, seed, options.quick, report.progress, suite.is_on_gpu, save, options.timing_lock)
    if is_silent:
        print(as_text(found), end="")
    else:
        terminal.show(found)
    if path or is_kept:
        with options.timing_lock.alone():
            keep(path or RESULTS / suite.file(found), merged(found))
    if options.picture:
        draw(options.picture, found)
    return int(any("wrong" in result for result in found["rows"]))


def merge_into_file(path: Path | None, suite: Suite, part: Part | None, found: dict[str, Any]) -> dict[str, Any]:
    """Return the contents of the file of results: with --part, the rows of the other parts too."""
    return partial_runs.merge(read_earlier(path, part, found["quick"]), found, suite.rows) if part and path else found


def read_earlier(path: Path | None, part: Part, is_quick: bool) -> dict[str, Any] | None:
    """Return the results that the file contains, if there is one."""
    try:
        return partial_runs.read_results(path, is_quick) if path else None
    except ValueError as error:
        raise RequestError(f"--part {part.k}/{part.n}: {error}") from error


def device_of(suite: Suite) -> dict[str, Any]:
    """Return the entry of the results that describes the GPU; empty for a suite of the CPU."""
    if not suite.is_on_gpu:
        return {}
    from minifuse.backends.registry import get_backend

    from . import gpu

    return {"device": gpu.describe(get_backend(gpu.BACKEND).device)}


def as_text(found: dict[str, Any]) -> str:
    """Return the results as JSON with rounded numbers, and a line per row."""
    head = {key: value for key, value in round_floats(found).items() if key != "rows"}
    rows = ",\n".join(f"  {json.dumps(row)}" for row in round_floats(found["rows"]))
    return json.dumps(head, indent=1).removesuffix("\n}") + f',\n "rows": [\n{rows}\n ]\n}}\n'


def keep(path: Path, found: dict[str, Any]) -> None:
    """Write the results, and print the path."""
    store(path, found)
    print(f"written to {path}", file=sys.stderr)


def store(path: Path, found: dict[str, Any]) -> None:
    """Write the results atomically: a concurrent reader gets the old file or the new one."""
    from minifuse.runtime.atomic_files import replace_content  # here, since this process only starts those that measure

    path.parent.mkdir(parents=True, exist_ok=True)
    replace_content(path, as_text(found))


def draw(path: Path, found: dict[str, Any]) -> None:
    """Write the pictures of a run as SVG: curves and roofline."""
    from .pictures import draw_charts

    text = draw_charts(found)
    if not text:
        print("no picture: none of these rows is of a curve, or has a place under the roof", file=sys.stderr)
        return
    path.write_text(text, encoding="utf-8")
    print(f"written to {path}", file=sys.stderr)


def round_floats(value: Any) -> Any:
    """Return the same data with floats of four digits."""
    if isinstance(value, dict):
        return {key: round_floats(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [round_floats(x) for x in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def parser(name: str = NAME) -> Parser:
    """Return the parser of the options."""
    made = Parser(prog=name, description="minifuse side by side with NumPy, torch and others")
    made.add_argument(
        "rows",
        nargs="*",
        help="parts of names or groups of rows; all of the main suite of the processor if left out. The first one names the "
        "suite: fusion, networks, sweeps, costs; gpu, gpu-fusion, ...; words behind it choose among its rows",
    )
    made.add_argument("--list", action="store_true", help="say which rows there are, and against whom; measure nothing")
    made.add_argument("--against", metavar="PEERS", help="some of those that --list names, with commas; all if left out")
    made.add_argument(
        "--quick", action="store_true", help="small sizes and one call each: shows that the rows work, not how fast"
    )
    made.add_argument("--json", metavar="FILE", help="write the results there; - prints them, and nothing else")
    made.add_argument("--picture", type=Path, metavar="FILE", help="draw curves, and rows under the roof, as SVG")
    made.add_argument(
        "--part",
        type=part_of,
        metavar="K/N",
        help="run the k-th of n parts of the rows, and merge the results by row into the file of --json or the kept one",
    )
    made.add_argument(
        "--timing-lock",
        type=lock_of,
        default=TimingLock(),
        metavar="FILE",
        help="lock this file, so that processes can run parts at the same time: each compiles and checks all of its rows "
        "first, and then they measure in turn",
    )
    made.add_argument("--seed", type=int, help="of the random numbers; a new one if left out")
    made.add_argument(
        "--keep",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether a complete run is kept in project/benchmarks",
    )
    made.add_argument("--page", action="store_true", help="measure nothing; write the kept results into docs/guide/speed")
    return made


if __name__ == "__main__":
    sys.exit(main())
