"""Counting kernels: results are checked, and the nodes of a captured CUDA graph are counted by kind."""

from types import SimpleNamespace

import numpy as np
import pytest

from project.benchmarks import kernel_counts
from project.benchmarks.fusion_corpus import TWENTY
from project.benchmarks.kernel_counts import (
    CannotFuseError,
    cell,
    count_kernels,
    facts,
    kernels_of,
    load_counts,
    main,
    store_counts,
    table,
)


def right(function, inputs):
    """Return the results of NumPy, as three kernels. Matrix products are not supported."""
    if "@" in function.name:
        raise CannotFuseError("TypeError: no products")
    return 3, [np.asarray(x, np.float32) for x in function.exact(inputs)]


def wrong(function, inputs):
    """Return slightly wrong results."""
    count, (first, *rest) = right(function, inputs)
    return count, [first + 1e-3, *rest]


def test_each_function_has_a_count_or_a_reason():
    found = count_kernels(right)
    assert list(found) == [function.name for function in TWENTY]
    assert {count for name, count in found.items() if "@" not in name} == {3}
    assert {count for name, count in found.items() if "@" in name} == {"TypeError: no products"}


def test_wrong_results_are_not_counted():
    with pytest.raises(AssertionError, match="chain of 8"):
        count_kernels(wrong)


@pytest.mark.parametrize("function", [pytest.param(function, id=function.name) for function in TWENTY])
def test_reference_functions_do_not_change_their_inputs(function):
    inputs = function.inputs(np.random.default_rng(0))
    copies = [x.copy() for x in inputs]
    function.exact(inputs)
    assert all(np.array_equal(x, y) for x, y in zip(inputs, copies, strict=True))


def test_counts_of_several_libraries_are_saved(tmp_path, monkeypatch, capsys):
    path = tmp_path / "counts.json"
    monkeypatch.setattr(kernel_counts, "load_counts", lambda path=path: load_counts(path))
    monkeypatch.setattr(kernel_counts, "store_counts", lambda library, counts: store_counts(library, counts, path))
    monkeypatch.setattr(kernel_counts, "version", lambda library: f"{library} 1.2")
    monkeypatch.setitem(kernel_counts.COUNTERS, "minifuse", right)
    store_counts("cupy", {function.name: kernel_counts.NOT_COUNTED for function in TWENTY}, path)
    assert main(["minifuse"]) == 0
    found = load_counts(path)
    assert list(found) == ["minifuse", "cupy"]
    assert found["minifuse"]["kernels"] == count_kernels(right)
    header, first, *_ = table(found)
    assert header == ["", "minifuse", "cupy.fuse"]
    assert first == ["chain of 8", "3", "not counted"]
    assert "minifuse, gelu(x @ w + b): TypeError: no products" in facts(found)
    printed = capsys.readouterr().out
    assert all(function.name in printed for function in TWENTY)
    assert main(["torch"]) == 2


def test_cell_shows_a_count_or_a_reason():
    assert [cell(count) for count in (2, "TypeError: no", "not counted: RuntimeError")] == ["2", "cannot", "not counted"]


class Driver:
    """A driver whose captured graph has the nodes in `nodes`."""

    CUresult = SimpleNamespace(CUDA_SUCCESS=0)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)
    CUgraphNodeType = SimpleNamespace(CU_GRAPH_NODE_TYPE_KERNEL="kernel")

    def __init__(self):
        self.told, self.nodes = [], []

    def cuStreamBeginCapture(self, stream, mode):  # noqa: N802  # the driver's names
        self.told.append(("begin", stream, mode))
        return (0,)

    def cuStreamEndCapture(self, stream):  # noqa: N802
        self.told.append(("end", stream))
        return 0, "graph"

    def cuGraphGetNodes(self, graph, count=0):  # noqa: N802
        return 0, self.nodes[:count] or None, len(self.nodes)

    def cuGraphNodeGetType(self, node):  # noqa: N802
        return 0, node

    def cuGraphDestroy(self, graph):  # noqa: N802
        self.told.append(("destroy", graph))
        return (0,)


@pytest.mark.parametrize(("nodes", "count"), [([], 0), (["kernel", "memset", "kernel"], 2)])
def test_kernels_are_counted_among_graph_nodes(monkeypatch, nodes, count):
    driver, stream = Driver(), SimpleNamespace(ptr=5)
    monkeypatch.setattr(kernel_counts, "import_module", lambda name: driver)
    assert kernels_of(lambda: driver.nodes.extend(nodes), stream) == count
    assert driver.told == [("begin", 5, 2), ("end", 5), ("destroy", "graph")]


def test_failed_work_ends_the_stream_capture(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(kernel_counts, "import_module", lambda name: driver)
    with pytest.raises(ZeroDivisionError):
        kernels_of(lambda: 1 / 0, SimpleNamespace(ptr=5))
    assert driver.told[-1] == ("end", 5)
