"""Where a number comes from: the launches of a call run once more, on names instead of numbers.

    told       names, and the ledger of what they are made of       launched   what one launch reads and stores
    on_cpu     loops and kernels of the CPU                          on_cuda    kernels of a GPU, in the interpreter
    cell       what one cell of an output is made of

For looking, by the visualizer and the command line; nothing that computes knows of it.
"""

from .cell import BACKENDS, CellProvenance, CellRead, compute_cell, trace_cell
from .traced_values import ProvenanceNode, ProvenanceStage, ProvenanceTree, all_stages, earlier_results

__all__ = [
    "BACKENDS",
    "CellProvenance",
    "CellRead",
    "ProvenanceNode",
    "ProvenanceStage",
    "ProvenanceTree",
    "all_stages",
    "compute_cell",
    "earlier_results",
    "trace_cell",
]
