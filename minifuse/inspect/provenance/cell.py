"""The provenance of one cell of an output: the launches of a call run again, on value IDs instead of numbers.

A call is traced and planned as usual, by a backend that records its launches. Then the launches run from the last to the
first, each only for the elements that later launches read: whole blocks of a GPU kernel in the interpreter, whole chunks
of a CPU kernel as Python text, the loops of the python backend for one element. The code is the backend's own; only its
operators and its memory are replaced (see `traced_values`). How LLVM transforms the text of a CPU kernel is not visible
here.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_float
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ... import simt
from ...backends.registry import get_backend
from ...compiler.plan import Plan
from ...compiler.trace_result import PlannedFunction
from ...core.errors import MinifuseError
from ...core.overlap import Interval, address_range
from ...tensors.tensor import Tensor
from .on_cpu import RecordingParallelBackend, RecordingPythonBackend
from .on_cuda import RecordingCudaBackend
from .recorded_launches import ITEMSIZE, LaunchTrace, RecordedLaunch
from .traced_values import ProvenanceNode, ProvenanceTree, ThreadId, ValueId

CellBackend = RecordingCudaBackend | RecordingParallelBackend | RecordingPythonBackend
RECORDING_BACKENDS: dict[str, type[CellBackend]] = {
    "cuda": RecordingCudaBackend,
    "parallel": RecordingParallelBackend,
    "python": RecordingPythonBackend,
}
BACKENDS = tuple(RECORDING_BACKENDS)
MAX_INTERPRETED_ELEMENTS = 1 << 13  # elements of a call; larger ones take the slow backends too long


class CellRead(NamedTuple):
    """An element of an input that was read to compute the cell."""

    array: str
    element: int
    launch: int
    thread: ThreadId
    read_index: int
    line: int = 0
    """The line of the kernel's text that reads; 0 without a text."""


@dataclass(frozen=True)
class CellProvenance:
    """The elements, operators and launches that compute one cell of an output."""

    backend: str
    cell: int
    tree: ProvenanceTree
    launches: tuple[LaunchTrace, ...]
    """The launches in order, each with the elements that it computed."""
    reads: tuple[CellRead, ...]
    """The reads in order; threads of a GPU read at the same time."""
    launch_numbers: tuple[int, ...] = ()
    """The number of each launch in the tree and in the reads; launches that the cell does not need are omitted."""


def trace_cell(function: PlannedFunction, arrays: Sequence[np.ndarray], backend: str, cell: int) -> CellProvenance:
    """Trace one cell of a function's output to the elements and operators that it is computed from.

    Parameters
    ----------
    function
        A function of tensors that returns one tensor.
    arrays : ndarrays of float32
        Its arguments.
    backend : str
        One of BACKENDS.
    cell : int
        The index of the cell in the flattened output, the last dim fastest.

    Raises
    ------
    MinifuseError
        The cell does not exist, or an element type is not float32.

    Examples
    --------
    >>> import minifuse as mf
    >>> found = trace_cell(lambda x: x.sum(), [np.ones(3, np.float32)], "python", 0)
    >>> found.tree.text(len(found.tree.nodes) - 1)
    '((0 + in0[0]) + in0[1]) + in0[2]'
    """
    call = RecordedCall(function, arrays, backend, cell)
    with disable_gc():
        return trace_back(call.recorder.launches(), call.inputs, call.address, backend, cell)


@contextmanager
def disable_gc() -> Iterator[None]:
    """Disable the garbage collector in a block: there are no cycles, and it would visit 100,000 nodes many times."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class RecordedCall:
    """A call whose launches were recorded, and the address at which it would store one cell."""

    def __init__(self, function: PlannedFunction, arrays: Sequence[np.ndarray], backend: str, cell: int) -> None:
        if any(array.dtype != np.float32 for array in arrays):
            raise MinifuseError(
                f"a cell can be traced in float32 only, got {', '.join(str(array.dtype) for array in arrays)}"
            )
        self.recorder = RECORDING_BACKENDS[backend]()
        tensors = [Tensor.from_numpy(array, self.recorder) for array in arrays]
        self.result = Plan(function, tensors).run(*tensors)
        layout = self.result.meta.layout
        if not 0 <= cell < layout.size:
            cells = f"cells 0 to {layout.size - 1:,}" if layout.size else "no cells"
            raise MinifuseError(f"cell {cell} does not exist: the output has shape {layout.shape}, which has {cells}")
        index = np.unravel_index(cell, layout.shape) if layout.shape else ()
        self.address = self.result.address + ITEMSIZE * layout.position(int(i) for i in index)
        self.inputs = {f"in{k}": address_range(x.address, x.meta.layout, ITEMSIZE) for k, x in enumerate(tensors)}
        self.inputs_alive = tensors  # keeps the memory alive that the launches read


def compute_cell(function: PlannedFunction, arrays: Sequence[np.ndarray], backend: str, cell: int) -> float | None:
    """Compute a cell as the backend does; return None if that would take too long.

    Kernels of cuda run in the interpreter, kernels of the parallel backend as machine code.
    """
    if backend != "parallel" and sum(array.size for array in arrays) > MAX_INTERPRETED_ELEMENTS:
        return None
    if backend == "cuda":
        call = RecordedCall(function, arrays, backend, cell)
        assert isinstance(call.recorder, RecordingCudaBackend)
        for plan in call.recorder.device.plans:
            simt.run(plan, loop_limit=None)
        return c_float.from_address(call.address).value
    result = function(*[Tensor.from_numpy(array, get_backend(backend)) for array in arrays])
    return float(np.reshape(result.numpy(), -1)[cell])


def trace_back(
    launches: Sequence[RecordedLaunch], inputs: dict[str, Interval], cell_address: int, backend: str, cell: int
) -> CellProvenance:
    """Run launches from the last to the first, each for the elements that later ones read, and build one tree."""

    def writer(address: int, before: int) -> int | None:
        return next((k for k in range(before - 1, -1, -1) if launches[k].writes_to(address)), None)

    requested, ran = [set[int]() for _ in launches], dict[int, LaunchTrace]()
    writer_of_cell = writer(cell_address, len(launches))
    if writer_of_cell is not None:
        requested[writer_of_cell].add(cell_address)
    for k in range(len(launches) - 1, -1, -1):
        if requested[k]:
            ran[k] = launches[k].run(requested[k])
            for read in ran[k].reads:
                if (writer_index := writer(read.address, k)) is not None:
                    requested[writer_index].add(read.address)

    nodes, node_of_value, reads = list[ProvenanceNode](), dict[tuple[int, int], int](), list[CellRead]()

    def find_input(address: int) -> tuple[str, int]:
        """Return the input that contains an address, and the index of the element; "" for a number that the host stored."""
        matches = ((name, (address - low) // ITEMSIZE) for name, (low, end) in inputs.items() if low <= address < end)
        return next(matches, ("", 0))

    def element(address: int, before: int) -> int:
        writer_index = writer(address, before)
        if writer_index is not None:
            return node_of_value[writer_index, address]
        array, index_in_array = find_input(address)
        number = 0.0 if array else c_float.from_address(address).value
        nodes.append(ProvenanceNode(array=array, element=index_in_array, number=number, launch=before))
        return len(nodes) - 1

    for k in sorted(ran):
        log, node_of_id = ran[k].log, dict[ValueId, int]()
        for value_id in ran[k].ancestors:
            op = log.op_of(value_id)
            if op is None and (at := log.address_of(value_id)) is not None:
                node_of_id[value_id] = element(at, k)
                continue
            node = ProvenanceNode(number=0.0 if isinstance(value_id, int) else value_id[0], launch=k)
            if op is not None:
                node = ProvenanceNode(
                    op.operator,
                    tuple([node_of_id[p] for p in op.operands]),
                    launch=k,
                    thread=op.thread,
                    exchange=op.exchange,
                    line=op.line,
                )
            node_of_id[value_id] = len(nodes)
            nodes.append(node)
        node_of_value |= {(k, address): node_of_id[value_id] for address, value_id in ran[k].id_at_address.items()}
        for read in ran[k].reads:
            array, index_in_array = find_input(read.address)
            if array and writer(read.address, k) is None:
                reads.append(CellRead(array, index_in_array, k, read.thread, read.read_index, read.line))
    root = node_of_value[writer_of_cell, cell_address] if writer_of_cell is not None else element(cell_address, 0)
    if root != len(nodes) - 1:
        nodes.append(nodes[root])
    tree, numbers = ProvenanceTree(tuple(nodes)), tuple(sorted(ran))
    return CellProvenance(backend, cell, tree, tuple(ran[k] for k in numbers), tuple(reads), numbers)
