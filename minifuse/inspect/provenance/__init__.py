"""Trace one element of an output to the inputs it is computed from, by running the launches again on value IDs.

    traced_values       floats whose bits are IDs, and the log of the value of each ID
    recorded_launches   the elements that one launch reads and stores
    on_cpu              loops of the python backend and kernels of the parallel backend
    on_cuda             kernels of the cuda backend, in the interpreter
    cell                the provenance of one cell of an output

The visualizer and the command line use this package; tensors and backends do not.
"""

from .cell import BACKENDS, CellProvenance, CellRead, compute_cell, trace_cell
from .recorded_launches import LaunchTrace
from .traced_values import ProvenanceNode, ProvenanceStage, ProvenanceTree, all_stages

__all__ = [
    "BACKENDS",
    "CellProvenance",
    "CellRead",
    "LaunchTrace",
    "ProvenanceNode",
    "ProvenanceStage",
    "ProvenanceTree",
    "all_stages",
    "compute_cell",
    "trace_cell",
]
