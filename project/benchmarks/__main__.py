"""The command line: choose rows and peers, measure, report, keep."""

import argparse
import json
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from . import peers

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and report; the exit status is 1 where a result is wrong."""
    options = parser().parse_args(arguments)
    peers.prepare()
    if options.page:
        from .page import write

        return write(RESULTS)
    is_on_gpu = bool(options.rows) and options.rows[0].startswith("gpu")
    if is_on_gpu:
        from . import gpu

        if reason := gpu.absence():
            print(f"rows of a GPU: nothing is measured, since {reason}", file=sys.stderr)
            return 1
    known, load = (gpu.KNOWN, gpu.load) if is_on_gpu else (peers.KNOWN, peers.load)
    names = [name.strip() for name in options.against.split(",") if name.strip()] if options.against else list(known)
    if unknown := [name for name in names if name not in known]:
        parser().error(f"--against: {', '.join(unknown)} is none of {', '.join(known)}")
    return measure(options, is_on_gpu, *load(names))


def measure(options: argparse.Namespace, is_on_gpu: bool, modules: dict[str, ModuleType], missing: dict[str, str]) -> int:
    """Run the chosen rows, show them, and write the JSON."""
    from . import gpu, machine, report
    from .rows import GPU_ROWS, ROWS
    from .run import choose, run

    all_rows, known = (GPU_ROWS, gpu.KNOWN) if is_on_gpu else (ROWS, peers.KNOWN)
    try:
        rows = choose(all_rows, options.rows)
    except ValueError as error:
        parser().error(str(error))
    seed = secrets.randbits(32) if options.seed is None else options.seed
    found = run(rows, modules, missing, seed, options.quick, report.progress, is_on_gpu)
    report.show(found)
    is_complete = len(rows) == len(all_rows) and not options.quick and {*modules, *missing} == set(known)
    name = f"gpu-{gpu.slug(found['device']['name'])}" if is_on_gpu else f"cpu-{machine.slug()}"
    path = options.json or (RESULTS / f"{name}.json" if is_complete else None)
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
        help="parts of names or groups of rows; all rows of the CPU if left out, all of a GPU if the only word is gpu",
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    made.add_argument(
        "--against",
        metavar="PEERS",
        help=f"some of {','.join(peers.KNOWN)}, or, of a GPU, torch,cupy; all if left out",
    )
    made.add_argument(
        "--quick", action="store_true", help="small sizes and one call each: shows that the rows work, not how fast"
    )
    made.add_argument("--seed", type=int, help="of the random numbers; a new one if left out")
    made.add_argument("--page", action="store_true", help="measure nothing; write the kept results into docs/guide/speed.md")
    return made


if __name__ == "__main__":
    sys.exit(main())
