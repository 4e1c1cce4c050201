"""The mutants that were drawn, and where they are in today's sources."""

import json
import random
from dataclasses import asdict

from .sites import KINDS, ROOT, Mutant, Site, engine_files, sites

LIST = ROOT / "tests" / "mutants" / "drawn.json"
COUNT, SEED = 300, 20


def draw(count: int = COUNT, seed: int = SEED) -> list[Mutant]:
    """Draw mutants over all engine files: as many of each kind, each place equally likely."""
    chosen = random.Random(seed)
    everywhere = [site.mutant for path in engine_files() for site in sites(path)]
    drawn: list[Mutant] = []
    for kind in KINDS:
        drawn += chosen.sample([mutant for mutant in everywhere if mutant.kind == kind], count // len(KINDS))
    return drawn


def write(mutants: list[Mutant]) -> None:
    """Write the list."""
    LIST.write_text(json.dumps([asdict(mutant) for mutant in mutants], indent=1) + "\n")


def drawn() -> list[Mutant]:
    """Read the list."""
    return [Mutant(**fields) for fields in json.loads(LIST.read_text())]


def located() -> list[Site | None]:
    """Find each mutant of the list; None where its code is no longer there."""
    files = {
        path: {site.mutant: site for site in sites(ROOT / path)}
        for path in {x.path for x in drawn()}
        if (ROOT / path).exists()
    }
    return [files.get(mutant.path, {}).get(mutant) for mutant in drawn()]
