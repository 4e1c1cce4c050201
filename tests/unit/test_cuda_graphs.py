"""backends.cuda.device.cuda_graphs: launches replayed as one CUDA graph, with a fake driver that counts."""

import ctypes
import sys
import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest

import minifuse as mf
from minifuse.backends.base import Backend
from minifuse.backends.cuda.device import cuda_graphs
from minifuse.backends.cuda.device.cuda_graphs import MAX_CACHED_REPLAYS, MAX_MISSES, graph_launcher
from minifuse.backends.cuda.geometry import LaunchGeometry
from minifuse.backends.cuda.launch_plan import ReadyLaunch
from minifuse.compiler.plan import Plan
from minifuse.core.errors import CudaError

from ..cuda.simulated import simulated

FIELDS = {"f32": ctypes.c_float, "f64": ctypes.c_double, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "u8": ctypes.c_uint8}


class Status(int):
    """What a call of the driver says."""

    name = "CUDA_ERROR_UNKNOWN"


class Driver:
    """The part of the driver that knows graphs. `done` is what has run: (name of the kernel, its arguments)."""

    CUDA_KERNEL_NODE_PARAMS = SimpleNamespace
    CUstream = int

    def __init__(self):
        self.done, self.counts, self.status = [], {"nodes": 0, "made": 0, "set": 0, "launched": 0, "destroyed": 0}, 0

    def cuGraphCreate(self, flags):  # noqa: N802
        return Status(), []

    def cuGraphAddKernelNode(self, graph, dependencies, count, params):  # noqa: N802
        assert len(dependencies) == count == bool(graph)
        assert dependencies == graph[-1:]  # a chain
        node = SimpleNamespace()
        self.set(node, params)
        graph.append(node)
        self.counts["nodes"] += 1
        return Status(), node

    def set(self, node, params):
        """Copy the arguments, as the driver does: the memory of the caller may change afterwards."""
        kernel = params.kern
        assert (params.gridDimX, params.gridDimY, params.gridDimZ) == kernel.grid
        assert (params.blockDimX, params.blockDimY, params.blockDimZ) == (32, 2, 1)
        assert params.sharedMemBytes == 64
        places = (ctypes.c_void_p * len(kernel.kinds)).from_address(params.kernelParams)
        fields = [FIELDS.get(kind, ctypes.c_uint64) for kind in kernel.kinds]
        node.kernel = kernel.name
        node.arguments = tuple(field.from_address(at).value for field, at in zip(fields, places, strict=True))

    def cuGraphInstantiate(self, graph, flags):  # noqa: N802
        self.counts["made"] += 1
        return Status(), [SimpleNamespace(**vars(node), origin=node) for node in graph]

    def cuGraphExecKernelNodeSetParams(self, executable, node, params):  # noqa: N802
        time.sleep(1e-5)  # others may come
        (mine,) = [x for x in executable if x.origin is node]
        self.set(mine, params)
        self.counts["set"] += 1
        return (Status(),)

    def cuGraphLaunch(self, executable, stream):  # noqa: N802
        assert stream == 1
        if self.status:
            return (Status(self.status),)
        self.counts["launched"] += 1
        self.done += [(node.kernel, node.arguments) for node in executable]
        return (Status(),)

    def cuGraphExecDestroy(self, executable):  # noqa: N802
        self.counts["destroyed"] += 1

    def cuGraphDestroy(self, graph):  # noqa: N802
        pass


class Launch:
    """A launcher of one kernel, or of two, over the values that it is given and a constant."""

    def __init__(self, driver, name, kinds, workspace=False):
        self.driver, self.name, self.kinds, self.workspace, self.version = driver, name, kinds, workspace, 0
        self.owners, self.called, self.runs = [], 0, {}

    def run(self, k):
        """What `device.prepare` gives: the same object for the same kernel."""
        kernel = SimpleNamespace(name=f"{self.name}{k}", kinds=(*self.kinds, "i64"), grid=(k + 1, 2, 3))
        made = SimpleNamespace(
            kernel=SimpleNamespace(handle=kernel),
            geometry=LaunchGeometry(kernel.grid, (32, 2, 1)),
            shared=64,
            name=kernel.name,
        )
        return self.runs.setdefault(k, made)

    def ready_launches(self, *values):
        if values[0] % 16:  # other addresses, another kernel
            return [ReadyLaunch(self.run(7), (*self.kinds, "i64"), [*values, -5])]
        owner = bytearray(1) if self.workspace else None
        self.owners.append(owner)
        return [ReadyLaunch(self.run(k), (*self.kinds, "i64"), [*values, -5], owner) for k in range(1 + self.workspace)]

    def __call__(self, *values):
        self.called += 1
        self.driver.done += [(launch.run.name, tuple(launch.arguments)) for launch in self.ready_launches(*values)]


class Device:
    """A GPU on which kernels are taken note of."""

    is_simulated = False

    def __init__(self):
        self.bindings, self.stream, self.used, self.recovered = Driver(), SimpleNamespace(handle=1), 0, 0

    def use(self):
        self.used += 1

    def recover(self, run, arguments, error):
        self.recovered += 1
        raise error


KINDS = [("*f32", "*f32", "f32"), ("*f32", "i64"), ("*u8", "u8", "f64"), ("*f32", "i32")]
COUNTS = [len(kinds) for kinds in KINDS]
VALUES = (256, 512, 0.5, 1024, -3, 2048, 1, 0.25, 4096, -7)
TWICE = (VALUES, VALUES)  # one by one, then made


@pytest.fixture
def device():
    return Device()


@pytest.fixture
def launches(device):
    return [Launch(device.bindings, "abcd"[k], kinds, workspace=k == 1) for k, kinds in enumerate(KINDS)]


@pytest.fixture
def launcher(device, launches):
    return graph_launcher(device, launches, COUNTS)


def changed(values, *changes):
    """Values with some of them others."""
    found = list(values)
    for k, value in changes:
        found[k] = value
    return tuple(found)


def run(device, launcher, values):
    """What a call has run."""
    start = len(device.bindings.done)
    launcher(*values)
    return device.bindings.done[start:]


def expected(launches, values):
    """What should run: each launch with its part of the values."""
    found, rest = [], list(values)
    for launch in launches:
        mine, rest = rest[: len(launch.kinds)], rest[len(launch.kinds) :]
        names = [7] if mine[0] % 16 else range(1 + launch.workspace)
        found += [(f"{launch.name}{k}", (*mine, -5)) for k in names]
    return found


def counts(device):
    return device.bindings.counts


# When there is a graph


def test_repeated_calls_are_replayed(device, launches, launcher):
    for k in range(5):
        assert run(device, launcher, VALUES) == expected(launches, VALUES)
        assert counts(device)["launched"] == k
    assert counts(device) == {"nodes": 5, "made": 1, "set": 0, "launched": 4, "destroyed": 0}
    assert [launch.called for launch in launches] == [1] * 4
    assert device.used == 5


def test_separate_launches_use_the_fast_call(device, launches):
    """While no graph is made, and where none is looked for any more."""
    short = []
    for launch in launches[1:]:
        launch.fast_entry = lambda launch=launch: lambda *values: short.append((launch.name, values))
    launcher = graph_launcher(device, launches, COUNTS)
    launcher(*VALUES)
    assert [launch.called for launch in launches] == [1, 0, 0, 0]
    assert short == [("b", (1024, -3)), ("c", (2048, 1, 0.25)), ("d", (4096, -7))]


def test_arguments_arrive_as_their_types(device, launcher):
    for values in TWICE:
        (first, *_, last) = run(device, launcher, values)
    assert first == ("a0", (256, 512, 0.5, -5))
    assert last == ("d0", (4096, -7, -5))


def test_only_several_kernel_launches_become_a_graph(device, launches):
    assert graph_launcher(device, launches[:1], COUNTS[:1]) is None
    assert graph_launcher(device, [*launches[:1], lambda *values: None], COUNTS[:2]) is None


def test_the_interpreter_and_other_backends_have_none():
    assert simulated().join is None
    assert Backend().join is None


def test_launchers_of_the_backend_describe_their_kernels():
    """Those of kernels and those of products, with as many types as arguments."""
    backend = simulated()
    x = mf.ones(40, 40, backend=backend)
    for step in Plan(lambda x: (x @ x).softmax(1), (x,)).steps:
        bound = backend.compile(step).load()
        addresses = [256 * (k + 1) for k in range(len(step.outputs) + len(step.inputs))]
        for launch in bound.ready_launches(*addresses):
            assert len(launch.kinds) == len(launch.arguments)
            assert all(kind.lstrip("*") in FIELDS for kind in launch.kinds)


# Other values


def test_a_number_that_changes_in_each_call_changes_one_node(device, launches, launcher):
    for step in range(20):
        values = changed(VALUES, (2, 1.5 + step))
        assert run(device, launcher, values) == expected(launches, values)
    assert counts(device) == {"nodes": 5, "made": 1, "set": 18, "launched": 19, "destroyed": 0}


def test_a_few_other_addresses_change_their_nodes(device, launches, launcher):
    for values in (*TWICE, changed(VALUES, (0, 272), (8, 4112))):
        assert run(device, launcher, values) == expected(launches, values)
    assert counts(device)["set"] == 2
    assert counts(device)["made"] == 1


def test_values_that_take_turns_have_a_replay_each(device, launches, launcher):
    other = changed(VALUES, (0, 272), (3, 1040), (5, 2064))  # most of the launches
    for values in (VALUES, other, VALUES, other, VALUES, other):
        assert run(device, launcher, values) == expected(launches, values)
    assert counts(device) == {"nodes": 10, "made": 2, "set": 0, "launched": 4, "destroyed": 0}


def test_close_values_that_take_turns_have_a_replay_each_too(device, launches, launcher):
    other = changed(VALUES, (0, 272))
    for values in (VALUES, VALUES, other, VALUES, other, VALUES):
        assert run(device, launcher, values) == expected(launches, values)
    assert counts(device)["made"] == 2
    assert counts(device)["set"] == 1
    for number in (1.5, 2.5, 1.5, 2.5, 1.5):  # one replay changes twice, then there are two
        launcher(*changed(VALUES, (2, number)))
    assert counts(device)["made"] == 3
    assert counts(device)["set"] == 3


def test_parameters_with_equal_bits_are_not_updated(device, launches, launcher):
    for values in TWICE:
        launcher(*values)
    launcher(*changed(VALUES, (2, 0.5 + 1e-12)))  # a float32
    assert counts(device) == {"nodes": 5, "made": 1, "set": 0, "launched": 2, "destroyed": 0}


def test_turns_with_a_number_that_changes(device, launches, launcher):
    """Two sets of addresses, and a learning rate: each set has a replay, whose number is changed."""
    other = changed(VALUES, (0, 272), (3, 1040), (5, 2064))
    for step in range(12):
        values = changed((VALUES, other)[step % 2], (9, step))
        assert run(device, launcher, values) == expected(launches, values)
    assert counts(device)["made"] == 2
    assert counts(device)["launched"] == 10
    assert [launch.called for launch in launches] == [2] * 4


def test_arguments_that_never_repeat_end_the_attempts_to_record(device, launches, launcher):
    for step in range(MAX_MISSES + 9):
        values = changed(VALUES, *[(k, 16 * step + 65536 * (k + 1)) for k in (0, 3, 5, 8)])
        assert run(device, launcher, values) == expected(launches, values)
    assert launcher.misses == MAX_MISSES + 9
    for values in TWICE:
        launcher(*values)
    assert counts(device)["made"] == 0


def test_plus_and_minus_zero_are_other_numbers(device, launches, launcher):
    for zero in (0.0, 0.0, -0.0, -0.0, 0.0):
        (first, *_) = run(device, launcher, changed(VALUES, (2, zero)))
        assert str(first[1][2]) == str(zero)


def test_addresses_that_take_another_kernel_make_another_graph(device, launches, launcher):
    odd = changed(VALUES, (3, 1025))
    for values in (*TWICE, odd, odd, VALUES):
        assert run(device, launcher, values) == expected(launches, values)
    assert counts(device)["set"] == 0


def test_a_number_that_does_not_fit_is_refused_and_the_next_call_runs(device, launches, launcher):
    for values in TWICE:
        launcher(*values)
    with pytest.raises(Exception, match="format"):  # what packs it says so here; launchers refuse it before
        launcher(*changed(VALUES, (9, 1 << 40)))
    assert run(device, launcher, VALUES) == expected(launches, VALUES)


# Memory


def test_there_are_a_few_replays_and_the_least_used_goes(device, launches, launcher):
    def far(k):
        return changed(VALUES, *[(at, 65536 * (k + 1) + 16 * at) for at in (0, 3, 5, 8)])

    for k in range(MAX_CACHED_REPLAYS + 2):
        for _ in range(2):
            assert run(device, launcher, far(k)) == expected(launches, far(k))
    assert len(launcher.replays) == MAX_CACHED_REPLAYS
    assert counts(device)["destroyed"] == 2
    assert counts(device)["made"] == MAX_CACHED_REPLAYS + 2


def test_a_workspace_lives_as_long_as_its_replay(device, launches, launcher):
    for values in TWICE:
        launcher(*values)
    (replay,) = launcher.replays.values()
    assert launches[1].owners[-1] in [owner for part in replay.owners for owner in part]
    launcher(*changed(VALUES, (2, 7.0)))  # does not reach the launch with the workspace
    assert all(owner is launches[1].owners[-1] for owner in replay.owners[1])
    assert len(launches[1].owners) == 2
    launcher(*changed(VALUES, (3, 1040)))  # a new one in the place of the old one
    assert all(owner is launches[1].owners[-1] for owner in replay.owners[1])
    assert len(launches[1].owners) == 3


def test_graphs_go_with_their_launcher(device, launches):
    launcher = graph_launcher(device, launches, COUNTS)
    for values in TWICE:
        launcher(*values)
    del launcher
    assert counts(device)["destroyed"] == 1


# Errors and threads


def test_an_error_of_a_replay_names_the_call(device, launcher):
    for values in TWICE:
        launcher(*values)
    device.bindings.status = 999
    with pytest.raises(CudaError, match="CUDA_ERROR_UNKNOWN"):
        launcher(*VALUES)
    assert device.recovered == 1


def test_threads_take_turns(device, launches, request):
    """Between the change of a graph and its launch nobody comes."""
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)
    launcher = graph_launcher(device, launches, COUNTS)
    for values in TWICE:
        launcher(*values)
    start, turns = len(device.bindings.done), threading.Barrier(2)

    def work(number):
        for step in range(200):
            if step % 50 == 0:
                turns.wait()
            launcher(*changed(VALUES, (2, float(number + step))))

    threads = [threading.Thread(target=work, args=(number,)) for number in (1000, 2000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = sorted(arguments[2] for name, arguments in device.bindings.done[start:] if name == "a0")
    assert numbers == [float(n + step) for n in (1000, 2000) for step in range(200)]
    assert counts(device)["made"] == 1
    assert counts(device)["set"] == 400


def test_formats_fill_a_slot_each():
    for kind in cuda_graphs.SLOT_FORMATS.values():
        assert cuda_graphs.struct.calcsize("=" + kind) == cuda_graphs.SLOT_BYTES
