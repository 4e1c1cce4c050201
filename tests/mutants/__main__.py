"""Measure what the tests find: mutants of the engine, 300 drawn once by a seed, each run by the tests that execute its line.

    python -m tests.mutants draw                   write tests/mutants/drawn.json (once)
    python -m tests.mutants trace FOLDER [-n 2]    run the suite once; write which tests execute each mutant's line
    python -m tests.mutants run FOLDER [-j 2]      run the mutants; write FOLDER/results.json; goes on where it was stopped
    python -m tests.mutants table FOLDER           count by module: killed, survived, not executed, gone

A mutant is killed if a test fails, if the tests cannot be collected, or if they take longer than the limit. Tests run from
the shortest to the longest, as many as fit in two minutes.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from .drawn import draw, drawn, located, write
from .sites import ROOT, Site, mutated

ALLOWED_SECONDS = 120  # of the tests of a mutant, by what they take without it
HANG_SECONDS = 3 * ALLOWED_SECONDS  # of the process
STATES = ("killed", "survived", "not executed", "gone")


def trace(folder: Path, processes: str) -> int:
    """Run the whole suite and record which tests execute which mutant."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.trace", "-n", processes, "--dist", "loadfile"]
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"MINIFUSE_MUTANTS": str(folder)}, check=False).returncode


def tests_by_mutant(folder: Path) -> dict[int, list[str]]:
    """Read the traces: for each mutant its tests, the shortest first, as many as fit in the time."""
    tests, seconds = defaultdict[int, set[str]](set), dict[str, float]()
    for path in folder.glob("trace-*.json"):
        found = json.loads(path.read_text())
        seconds |= found["seconds"]
        for number, names in found["tests"].items():
            tests[int(number)] |= set(names)
    chosen: dict[int, list[str]] = {}
    for number, names in tests.items():
        left, chosen[number] = float(ALLOWED_SECONDS), []
        for name in sorted(names, key=lambda name: (seconds.get(name, 0.0), name)):
            left -= seconds.get(name, 0.0) + 0.01
            if left < 0:
                break
            chosen[number].append(name)
    return chosen


def run_mutant(tree: Path, site: Site, tests: list[str]) -> dict[str, str]:
    """Run tests against one mutant, in a copy of the repository that is as it was afterwards."""
    path = tree / site.mutant.path
    original = path.read_text()
    path.write_text(mutated(site))
    names = tree / "mutant-tests.txt"
    names.write_text("\n".join(tests))
    try:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", f"@{names}"]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OMP_WAIT_POLICY": "passive"}
        environment["PYTHONPATH"] = os.pathsep.join([str(tree), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
        environment.setdefault("MINIFUSE_CACHE", str(tree / "kernels"))
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=HANG_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"state": "killed", "by": "the limit of time"}
    finally:
        path.write_text(original)
    if done.returncode == 0:
        return {"state": "survived"}
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return {"state": "killed", "by": failed[0].split(" - ")[0] if failed else f"exit code {done.returncode}"}


def run(folder: Path, processes: int) -> None:
    """Run all mutants that have no result yet."""
    results_path = folder / "results.json"
    results: dict[str, dict[str, str]] = json.loads(results_path.read_text()) if results_path.exists() else {}
    tests, trees = tests_by_mutant(folder), Queue[Path]()
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(processes) as pool:
        for k in range(processes):
            tree = Path(scratch, str(k))
            shutil.copytree(
                ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".*_cache", ".hypothesis")
            )
            trees.put(tree)

        def work(number: int, site: Site | None) -> None:
            if site is None:
                result = {"state": "gone"}
            elif not tests.get(number):
                result = {"state": "not executed"}
            else:
                tree = trees.get()
                result = run_mutant(tree, site, tests[number])
                trees.put(tree)
            results[str(number)] = result
            print(number, result["state"], drawn()[number].path, result.get("by", ""), flush=True)
            results_path.write_text(json.dumps(dict(results), indent=1) + "\n")

        left = [(number, site) for number, site in enumerate(located()) if str(number) not in results]
        for done in [pool.submit(work, number, site) for number, site in left]:
            done.result()


def table(folder: Path) -> None:
    """Print the counts of each module of the engine."""
    counts = defaultdict[str, Counter[str]](Counter)
    for number, result in json.loads((folder / "results.json").read_text()).items():
        counts[drawn()[int(number)].path][result["state"]] += 1
    print(f"{'module':60} " + " ".join(f"{state:>12}" for state in STATES))
    for path, states in [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]:
        print(f"{path:60} " + " ".join(f"{states[state]:12}" for state in STATES))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("draw")
    for name in ("trace", "run", "table"):
        command = commands.add_parser(name)
        command.add_argument("folder", type=Path)
        command.add_argument("-n", "-j", dest="processes", default="2")
    given = parser.parse_args()
    match given.command:
        case "draw":
            write(draw())
        case "trace":
            return trace(given.folder, given.processes)
        case "run":
            run(given.folder, int(given.processes))
        case "table":
            table(given.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
