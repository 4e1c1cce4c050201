"""Try PyTorch's functions, as a user remembers them, with minifuse.

python -m tests.like_pytorch               run the 400 lines; print the counts and what differs or is missing
python -m tests.like_pytorch --json FILE   write the outcome of each line, too
python -m tests.like_pytorch --backend parallel   run them on another backend than `python`, which compiles nothing
python -m tests.like_pytorch --accept      add the lines that have PyTorch's answer now to same.txt, which only grows
python -m tests.like_pytorch --record      write answers.json; needs torch and no minifuse
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from .entries import NAMESPACES, namespace_of
from .run import ANSWERS, OUTCOMES, SAME, Outcome, installed_version, read_lines, read_same, record, run


def write_answers() -> None:
    """Record PyTorch's answers, one line of the file for each."""
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in record().items())
    ANSWERS.write_text(f'{{"torch": "{installed_version()}", "answers": {{\n{rows}\n}}}}\n')
    print(f"{ANSWERS.name}: {ANSWERS.stat().st_size / 1e3:.0f} kB, PyTorch {installed_version()}")


def accept(outcomes: dict[str, Outcome]) -> None:
    """Write the lines that are the same to same.txt, unless one of it no longer is."""
    if lost := [f"{name}: {outcomes[name].detail}" for name in read_same() if outcomes[name].kind != "same"]:
        sys.exit("no longer as in PyTorch, so same.txt stays as it is:\n  " + "\n  ".join(lost))
    names = [name for name, outcome in outcomes.items() if outcome.kind == "same"]
    print(f"{SAME.name}: {len(names)} lines, before {len(read_same())}")
    SAME.write_text("".join(f"{name}\n" for name in names))


def show(outcomes: dict[str, Outcome]) -> None:
    """Print the counts by namespace, then the lines that are not the same."""
    counts = Counter((namespace_of(name), outcome.kind) for name, outcome in outcomes.items())
    print(f"{'':20}" + "".join(f"{kind:>9}" for kind in OUTCOMES))
    for space in NAMESPACES:
        print(f"{space:20}" + "".join(f"{counts[space, kind]:9}" for kind in OUTCOMES))
    print(f"{'all':20}" + "".join(f"{sum(counts[space, kind] for space in NAMESPACES):9}" for kind in OUTCOMES))
    code = {line.name: line.code for line in read_lines()}
    for kind in OUTCOMES[1:]:
        print(f"\n{kind}:")
        for name, outcome in outcomes.items():
            if outcome.kind == kind:
                print(f"  {code[name]}\n      {outcome.detail}")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="tests.like_pytorch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write answers.json")
    parser.add_argument("--accept", action="store_true", help="add to same.txt")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcome of each line")
    parser.add_argument("--backend", default="python", metavar="NAME", help="backend that runs the lines")
    chosen = parser.parse_args()
    if chosen.record:
        return write_answers()
    outcomes = run(chosen.backend)
    if chosen.json:
        rows = {name: outcome._asdict() for name, outcome in outcomes.items()}
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n")
    if chosen.accept:
        return accept(outcomes)
    return show(outcomes)


if __name__ == "__main__":
    main()
