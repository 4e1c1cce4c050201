"""The command line: choose rows and peers, measure, report, keep."""

import argparse
import json
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from . import peers

if TYPE_CHECKING:
    from .row import Row

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and report; the exit status is 1 where a result is wrong."""
    options = parser().parse_args(arguments)
    peers.prepare()
    if options.page:
        from .page import write

        return write(RESULTS)
    suite = suite_of(options.rows[0] if options.rows else "")
    if suite.is_on_gpu:
        from . import gpu

        if reason := gpu.absence():
            print(f"rows of a GPU: nothing is measured, since {reason}", file=sys.stderr)
            return 1
    known, load = suite.peers, gpu.load if suite.is_on_gpu else peers.load
    names = [name.strip() for name in options.against.split(",") if name.strip()] if options.against else list(known)
    if unknown := [name for name in names if name not in known]:
        parser().error(f"--against: {', '.join(unknown)} is none of {', '.join(known)}")
    return measure(options, suite, *load(names))


class Suite(NamedTuple):
    """Rows that are measured together, and kept in one file."""

    is_on_gpu: bool
    kind: str
    """One of peers.KINDS, or "" for all other rows."""

    @property
    def peers(self) -> Sequence[str]:
        """Who may take part."""
        from . import gpu

        if self.kind == "networks":
            return peers.TRAINING
        if self.kind == "fusion":
            return gpu.FUSING if self.is_on_gpu else peers.FUSING
        return gpu.KNOWN if self.is_on_gpu else peers.KNOWN

    @property
    def rows(self) -> "Sequence[Row]":
        """All of its rows."""
        from . import rows

        return rows.SUITES[self.is_on_gpu, self.kind]

    def file(self, found: dict[str, Any]) -> str:
        """The name of the file of its results."""
        from . import gpu, machine

        place = f"gpu-{gpu.slug(found['device']['name'])}" if self.is_on_gpu else f"cpu-{machine.slug()}"
        return f"{place}{'-' * bool(self.kind)}{self.kind}.json"


def suite_of(word: str) -> Suite:
    """The suite of the first group that is asked for: fusion..., networks..., each perhaps after gpu-, or anything else."""
    kind = next((kind for kind in peers.KINDS if word.removeprefix("gpu-").startswith(kind)), "")
    return Suite(word.startswith("gpu"), kind)


def measure(options: argparse.Namespace, suite: Suite, modules: dict[str, ModuleType], missing: dict[str, str]) -> int:
    """Run the chosen rows, show them, and write the JSON."""
    from . import report
    from .run import choose, run

    all_rows = suite.rows
    try:
        rows = choose(all_rows, options.rows)
    except ValueError as error:
        parser().error(str(error))
    seed = secrets.randbits(32) if options.seed is None else options.seed
    found = run(rows, modules, missing, seed, options.quick, report.progress, suite.is_on_gpu)
    report.show(found)
    is_complete = len(rows) == len(all_rows) and not options.quick and {*modules, *missing} == set(suite.peers)
    path = options.json or (RESULTS / suite.file(found) if is_complete else None)
    if path:
        keep(path, found)
    return int(any("wrong" in result for result in found["rows"]))


def keep(path: Path, found: dict[str, Any]) -> None:
    """Write the results, with as many digits as say something, and a line for each row."""
    head = {key: value for key, value in rounded(found).items() if key != "rows"}
    rows = ",\n".join(f"  {json.dumps(row)}" for row in rounded(found["rows"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(head, indent=1).removesuffix("\n}") + f',\n "rows": [\n{rows}\n ]\n}}\n', encoding="utf-8")
    print(f"written to {path}", file=sys.stderr)


def rounded(value: Any) -> Any:
    """The same with floats of four digits."""
    if isinstance(value, dict):
        return {key: rounded(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(x) for x in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="python -m project.benchmarks",
        description="minifuse side by side with NumPy, torch and others; a complete run is kept in its folder results",
    )
    made.add_argument(
        "rows",
        nargs="*",
        help="parts of names or groups of rows; all rows of the CPU if left out, all of a GPU if the only word is gpu, all "
        "in which functions are fused if it is fusion, or gpu-fusion, whole networks if it is networks, or gpu-networks",
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    made.add_argument(
        "--against",
        metavar="PEERS",
        help=f"some of {','.join(peers.KNOWN)}; where functions are fused, of {','.join(peers.FUSING)}; of a GPU, "
        "torch,torch.compile,cupy,cupy.fuse; all if left out",
    )
    made.add_argument(
        "--quick", action="store_true", help="small sizes and one call each: shows that the rows work, not how fast"
    )
    made.add_argument("--seed", type=int, help="of the random numbers; a new one if left out")
    made.add_argument("--page", action="store_true", help="measure nothing; write the kept results into docs/guide/speed.md")
    return made


if __name__ == "__main__":
    sys.exit(main())
