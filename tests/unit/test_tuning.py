"""backends.cuda.tuning and tuned_schedules: what is timed, where the winners are kept, and who uses them.

The interpreter takes the part of the GPU, and times are made up: the fewer threads, the faster.
"""

import json
from copy import deepcopy
from math import prod

import numpy as np
import pytest
from typer.testing import CliRunner

import minifuse as mf
from minifuse.backends.cuda import tuning
from minifuse.backends.cuda.backend import CudaBackend
from minifuse.backends.cuda.device.simulated_device import SimulatedDevice
from minifuse.backends.cuda.tuned_schedules import TunedSchedules
from minifuse.backends.registry import get_backend
from minifuse.cli.commands import app
from minifuse.core.errors import FuseError

X = np.random.default_rng(0).random((6, 256), np.float32)
FASTER = "found by timing"


def gpu(name="GPU of the tests"):
    """Return a backend on a device with schedules of its own, as in a new process."""
    backend = CudaBackend.__new__(CudaBackend)
    backend.name, backend.device = "cuda", SimulatedDevice(0)
    backend.allocate, backend.has_reduced_precision = backend.device.pool.allocate, True
    backend.device.schedules = TunedSchedules(name, (9, 0), 132)
    backend.device.find_schedule = backend.device.schedules.find
    return backend


@pytest.fixture
def timed(monkeypatch, tmp_path):
    """Keep schedules in an empty folder. Return the list of all launches that are timed."""
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path))
    launches = []

    def time_launches(device, ready):
        launches.extend(ready)
        for x in ready[:2]:
            x.run(*x.arguments)
        return [float(prod(x.run.geometry.block)) for x in ready]

    monkeypatch.setattr(tuning, "time_launches", time_launches)
    return launches


def schedule_of(f, *inputs):
    """Return the schedule of the only kernel of a call, in words."""
    (kernel,) = f.explain(*inputs).forward.kernels
    return kernel.schedule


def test_the_winner_is_used_from_the_first_call_on(timed):
    x = mf.tensor(X, backend=gpu())
    f = mf.fuse(lambda x: x.sum(1), tune=True)
    assert FASTER not in schedule_of(f, x)
    assert timed == []
    results = [f(x).numpy() for _ in range(3)]
    np.testing.assert_allclose(results[0], X.sum(1), rtol=1e-5)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
    assert FASTER in schedule_of(f, x)
    count = len(timed)
    assert count > 3
    assert FASTER in schedule_of(mf.fuse(lambda x: x.sum(1)), x)  # without `tune`, too
    assert len(timed) == count


def test_another_process_finds_the_schedule_on_disk_and_times_nothing(timed):
    f = mf.fuse(lambda x: x.softmax(1), tune=True)
    x = mf.tensor(X, backend=gpu())
    first, words = f(x).numpy(), schedule_of(f, x)
    timed.clear()
    x = mf.tensor(X, backend=gpu())  # it reads the file
    assert schedule_of(f, x) == words
    assert f(x).numpy().tobytes() == first.tobytes()
    assert timed == []
    x = mf.tensor(X, backend=gpu("another GPU"))
    assert FASTER not in schedule_of(f, x)
    f(x)
    assert timed


def test_sizes_and_alignment_have_schedules_of_their_own(timed):
    backend = gpu()
    f = mf.fuse(lambda x: x * 2, tune=True)
    x = mf.tensor(X, backend=backend)
    f(x)
    assert FASTER not in schedule_of(f, x[:, :128])
    count = len(backend.device.schedules.results)
    unaligned = mf.tensor(X.reshape(-1)[:1025], backend=backend)[1:].reshape(4, 256)
    np.testing.assert_array_equal(f(unaligned).numpy(), X.reshape(-1)[1:1025].reshape(4, 256) * 2)
    assert len(backend.device.schedules.results) == count + 1


def test_operands_are_changed_once(timed):
    x = mf.tensor(X, backend=gpu())

    @mf.fuse(tune=True)
    def accumulate(x):
        x += x.sum(1, keepdim=True)

    accumulate(x)
    assert timed
    np.testing.assert_allclose(x.numpy(), X + X.sum(1, keepdims=True), rtol=1e-5)


def test_the_backward_pass_is_tuned(timed):
    x = mf.tensor(X, backend=gpu()).requires_grad_()
    y = mf.fuse(lambda x: (mf.exp(x) * x).sum(1), tune=True)(x)
    count = len(timed)
    y.sum().backward()
    assert len(timed) > count
    np.testing.assert_allclose(x.grad.numpy(), np.exp(X) * (X + 1), rtol=1e-5)


def test_each_launch_of_a_split_reduction_is_tuned(timed):
    backend = gpu()
    a = np.random.default_rng(0).random((2, 40_000), np.float32)
    x = mf.tensor(a, backend=backend)
    f = mf.fuse(lambda x: x.sum(1), tune=True)
    np.testing.assert_allclose(f(x).numpy(), a.sum(1), rtol=1e-5)
    assert len(backend.device.schedules.results) == 2
    assert schedule_of(f, x).count("timed schedules") + schedule_of(f, x).count(FASTER) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: "[]",
        lambda text: '{"schedules": {"a": [[], 1]}}',
        lambda text: '{"schedules": []}',
        lambda text: text.replace("[[[", "[[", 1),
    ],
)
def test_a_damaged_file_is_ignored_and_replaced(timed, tmp_path, damage):
    f = mf.fuse(lambda x: x.sum(1), tune=True)
    f(mf.tensor(X, backend=gpu()))
    (file,) = tmp_path.glob("schedules_*.json")
    text = file.read_text()
    assert json.loads(text)["gpu"] == "GPU of the tests, sm_90, 132 multiprocessors"
    file.write_text(damage(text))
    x = mf.tensor(X, backend=gpu())
    assert FASTER not in schedule_of(f, x)
    f(x)
    assert file.read_text() == text


def test_searches_of_several_processes_are_kept_together(timed):
    one, other = (mf.tensor(X, backend=gpu()) for _ in range(2))
    assert one.meta.backend.device.schedules.results == other.meta.backend.device.schedules.results == {}
    mf.fuse(lambda x: x.sum(1), tune=True)(one)
    mf.fuse(lambda x: x.sum(0), tune=True)(other)
    assert len(gpu().device.schedules.results) == 2


def test_without_a_folder_the_winner_is_kept_in_memory(timed, monkeypatch):
    monkeypatch.setenv("MINIFUSE_CACHE_LIMIT_MB", "0")
    x, f = mf.tensor(X, backend=gpu()), mf.fuse(lambda x: x.sum(1), tune=True)
    f(x)
    assert FASTER in schedule_of(f, x)
    assert gpu().device.schedules.results == {}


def test_a_kernel_that_cannot_be_compiled_is_not_chosen(timed, monkeypatch):
    variants = []

    def load(launch, schedule):
        variants.append(schedule)
        return launch.variant(True, lambda *_: schedule) if len(variants) % 2 else None

    monkeypatch.setattr(tuning, "load_candidate", load)
    x = mf.tensor(X, backend=gpu())
    np.testing.assert_allclose(mf.fuse(lambda x: x.sum(1), tune=True)(x).numpy(), X.sum(1), rtol=1e-5)
    assert len(timed) < len(variants)


def test_copies_of_a_function_are_tuned_too(timed):
    class Scale:
        def __call__(self, x):
            return x * 2

    f = mf.fuse(Scale(), tune=True)
    copied = deepcopy(f)
    assert copied is not f
    copied(mf.tensor(X, backend=gpu()))
    assert timed
    assert f.__reduce__()[1][1:] == ("auto", True)


@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_it_has_no_effect_on_other_backends(timed, backend):
    f = mf.fuse(lambda x: x.sum(1), tune=True)
    x = mf.tensor(X, backend=backend)
    for _ in range(2):
        np.testing.assert_allclose(f(x).numpy(), X.sum(1), rtol=1e-5)
    assert timed == []


def test_tune_is_a_bool():
    with pytest.raises(FuseError, match="got tune='yes', expected a bool; write tune=True"):
        mf.fuse(tune="yes")(lambda x: x)


# The command.

FILE = """
import minifuse as mf

def score(x, y):
    print("called")
    return (x * y).sum(1)

EXAMPLE = mf.ones(5, 256), mf.ones(256)
"""


@pytest.fixture
def tune(timed, monkeypatch, tmp_path):
    """Return the command, on a GPU whose part the interpreter takes."""
    device = get_backend("cuda").device
    if not device.is_simulated:
        pytest.skip("there is a GPU: tests/cuda runs the command on it")
    (tmp_path / "model.py").write_text(FILE)
    schedules = TunedSchedules("GPU of the tests", (9, 0), 132)
    monkeypatch.setattr(device, "schedules", schedules, raising=False)
    monkeypatch.setattr(device, "find_schedule", schedules.find, raising=False)
    monkeypatch.setattr("minifuse.cli.tune.is_simulated", lambda backend: False)
    return lambda *words: CliRunner().invoke(app, ["tune", *[str(tmp_path / x) if ".py" in x else x for x in words]])


def test_the_command_prints_a_row_for_each_kernel(tune, timed):
    found = tune("model.py:score")
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[0].split() == ["kernel", "closed", "form", "us", "best", "us", "timed", "schedule"]
    assert "sum(x * y)" in found.stdout
    assert "schedules for GPU of the tests" in lines[-1]
    assert max(map(len, lines)) <= 80
    assert "called" in found.stderr
    count = len(timed)
    assert tune("model.py:score").stdout == found.stdout
    assert len(timed) == count


def test_the_command_tunes_the_backward_pass(tune):
    facts = json.loads(tune("model.py:score", "--grad", "--json").stdout)
    assert len(facts["kernels"]) > 1
    for kernel in facts["kernels"]:
        assert kernel["us"] <= kernel["first_us"]


def test_the_command_removes_all_schedules(tune, timed):
    tune("model.py:score")
    count = len(timed)
    assert "1 schedule removed" in tune("--clear").stdout
    assert "0 schedules removed" in tune("--clear").stdout
    tune("model.py:score")
    assert len(timed) == 2 * count


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ([], "got no function; write minifuse tune FILE.py:function"),
        (["nowhere.py:f"], "nowhere.py is not a file"),
        (["model.py:score", "--backend", "parallel"], "the parallel backend has no schedules to search"),
    ],
)
def test_a_request_without_sense(tune, words, answer):
    found = tune(*words)
    assert found.exit_code == 2
    assert answer in found.stderr


def test_without_a_gpu_there_is_nothing_to_time():
    if not get_backend("cuda").device.is_simulated:
        pytest.skip("there is a GPU")
    found = CliRunner().invoke(app, ["tune", "model.py:score"])
    assert found.exit_code == 2
    assert "No GPU here" in found.stderr
