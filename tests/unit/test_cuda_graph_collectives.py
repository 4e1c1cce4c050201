"""Collectives in CUDA graphs: child graphs on a branch beside the kernels. The driver is a record of the graph's edges."""

from types import SimpleNamespace

import pytest

from minifuse.backends.cuda.device.cuda_graphs import GraphLauncher, GraphReplay, graph_launcher

from .test_cuda_graphs import Device, Driver, Launch


class Branches(Driver):
    """A driver that keeps the edges of a graph, and captures streams."""

    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)

    def __init__(self):
        super().__init__()
        self.edges, self.captured, self.streams = {}, None, 0

    def cuGraphAddKernelNode(self, graph, dependencies, count, params):  # noqa: N802
        return self.add(graph, dependencies, count, params.kern.name)

    def cuGraphAddChildGraphNode(self, graph, dependencies, count, child):  # noqa: N802
        return self.add(graph, dependencies, count, child[0])

    def add(self, graph, dependencies, count, name):
        assert len(dependencies) == count
        self.edges[name] = sorted(node.kernel for node in dependencies)
        graph.append(SimpleNamespace(kernel=name, arguments=()))
        return 0, graph[-1]

    def cuStreamCreate(self, flags):  # noqa: N802
        self.streams += 1
        return 0, 100 + self.streams

    def cuStreamBeginCapture(self, stream, mode):  # noqa: N802
        assert (self.captured, mode) == (None, 2)
        self.captured = []
        return (0,)

    def cuStreamEndCapture(self, stream):  # noqa: N802
        child, self.captured = self.captured, None
        return 0, child

    def cuStreamDestroy(self, stream):  # noqa: N802
        self.streams -= 1
        return (0,)

    def cuGraphDestroy(self, graph):  # noqa: N802
        return (0,)


class Collective:
    """A launcher that enqueues in a stream."""

    def __init__(self, driver, name):
        self.driver, self.name, self.announced, self.called = driver, name, 0, 0

    def __call__(self, *values):
        self.announce()
        self.called += 1

    def announce(self):
        self.announced += 1

    def enqueue(self, stream, *values):
        self.driver.captured.append(f"{self.name}{values}")


@pytest.fixture
def device():
    made = Device()
    made.bindings = Branches()
    return made


@pytest.fixture
def launches(device):
    """Kernels a, b, c, d, and collectives s after a, t after b."""
    a, b, c, d = (Launch(device.bindings, name, ("*f32", "*f32")) for name in "abcd")
    return [a, Collective(device.bindings, "s"), b, Collective(device.bindings, "t"), c, d]


VALUES = tuple(range(16, 16 * 13, 16))


def test_collectives_run_beside_the_kernels_that_need_not_wait(device, launches):
    launcher = graph_launcher(device, launches, [2] * 6, {1: 4, 3: 5})
    for _ in range(3):
        launcher(*VALUES)
    s, t = "s(48, 64)", "t(112, 128)"
    assert device.bindings.edges == {"a0": [], s: ["a0"], "b0": ["a0"], t: ["b0", s], "c0": ["b0", s], "d0": ["c0", t]}
    assert device.bindings.counts["launched"] == 2
    assert [launch.announced for launch in launches if isinstance(launch, Collective)] == [3, 3]
    assert [launch.called for launch in launches if isinstance(launch, Collective)] == [1, 1]
    assert device.bindings.streams == 0


def test_a_kernel_waits_once_for_the_last_of_several_collectives(device, launches):
    launcher = graph_launcher(device, launches, [2] * 6, {1: 4, 3: 4})
    for _ in range(2):
        launcher(*VALUES)
    assert device.bindings.edges["c0"] == ["b0", "t(112, 128)"]
    assert device.bindings.edges["d0"] == ["c0"]


def test_a_collective_with_other_addresses_is_captured_again(device, launches):
    launcher = graph_launcher(device, launches, [2] * 6, {1: 4, 3: 5})
    moved = (*VALUES[:2], 480, *VALUES[3:])
    for values in (VALUES, VALUES, moved):
        launcher(*values)
    assert isinstance(launcher, GraphLauncher)
    assert device.bindings.counts["made"] == 2
    assert "s(480, 64)" in device.bindings.edges


def test_an_error_while_capturing_ends_the_capture(device, launches):
    launches[1].enqueue = lambda stream, *values: 1 / 0
    with pytest.raises(ZeroDivisionError):
        GraphReplay(device, [lambda stream: launches[1].enqueue(stream)])
    assert (device.bindings.captured, device.bindings.streams) == (None, 0)
