"""Eighty programs from papers, books and notebooks, written without regard to how minifuse fuses.

Each file contains programs of one kind, as entries of its table PROGRAMS. `rows/held_out.py` makes rows of them.
"""

from . import (
    activations,
    convolutions,
    distances,
    indexing,
    joining,
    losses,
    norms,
    optimizers,
    scans,
    sequences,
    signals,
    statistics,
    stencils,
)
from .program import Program

KINDS = {
    "norms": norms,
    "losses": losses,
    "stencils": stencils,
    "distances": distances,
    "signals": signals,
    "convolutions": convolutions,
    "sequences": sequences,
    "activations": activations,
    "optimizers": optimizers,
    "statistics": statistics,
    "joining": joining,
    "indexing": indexing,
    "scans": scans,
}
PROGRAMS: tuple[Program, ...] = tuple(program for module in KINDS.values() for program in module.PROGRAMS)
