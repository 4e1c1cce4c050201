"""The fusion rows, of the CPU and, in the interpreter, of a GPU: the results of all players agree."""

import json
import subprocess
import sys
from collections import Counter
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from minifuse.backends.cuda.device import driver
from project.benchmarks import fused, gpu, machine, peers, report, suites
from project.benchmarks.row import US, Bench, library, normal
from project.benchmarks.rows import rows_of
from project.benchmarks.run import measure, run
from tests.benchmarks.test_benchmarks import check_fields
from tests.benchmarks.test_gpu_benchmarks import FakeEvents, check_gpu_fields
from tests.sources import ROOT

FUSION_ROWS, GPU_FUSION_ROWS = rows_of(False, "fusion"), rows_of(True, "fusion")
GROUPS = {"fusion-host", "fusion-large", "fusion-matmul", "fusion-training"}
needs_no_gpu = pytest.mark.skipif(not driver.query_driver().reason, reason="with a GPU, rows do not run in the interpreter")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Run the rows of the CPU with --quick in a child process, and return the JSON."""
    path = tmp_path_factory.mktemp("benchmarks") / "quick.json"
    words = [sys.executable, "-m", "project.benchmarks", "fusion", "--quick", "--seed", "3", "--json", str(path)]
    process = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return json.loads(path.read_text(encoding="utf-8"))


def fuse(kernel_name):
    """Replace cupy.fuse."""
    assert kernel_name.isidentifier()  # it becomes the name of a kernel
    return lambda function: function


NAMES = ("exp", "log1p", "maximum", "amax", "sum", "sqrt")
CUPY = SimpleNamespace(asarray=np.asarray, fuse=fuse, **{name: getattr(np, name) for name in NAMES})


def peers_here():
    """Return NumPy in place of CuPy, and torch on the CPU if it is installed."""
    found = {"cupy": CUPY, "cupy.fuse": CUPY}
    try:
        return {"torch": import_module("torch"), "torch.compile": import_module("torch"), **found}
    except ImportError:
        return found


@pytest.fixture(scope="module")
def on_gpu():
    """Run the rows of a GPU in the interpreter, on tiny arrays. torch.compile is left out because it is slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("project.benchmarks.row.QUICK_SIZE", 5)
        patch.setattr(gpu, "Events", FakeEvents)
        patch.setenv("MINIFUSE_CUDA", "simulated")
        modules = {who: module for who, module in peers_here().items() if who != "torch.compile"}
        return json.loads(json.dumps(run(GPU_FUSION_ROWS, modules, {}, 3, is_quick=True, is_on_gpu=True)))


def test_all_rows_run_with_correct_results(quick):
    assert [(row["group"], row["name"]) for row in quick["rows"]] == [(row.group, row.name) for row in FUSION_ROWS]
    assert not [row for row in quick["rows"] if {"wrong", "broken"} & row.keys()]
    check_fields(quick, is_fusion=True)


def test_installed_peers_take_part(quick):
    present = {who for row in quick["rows"] for who in row["times"]}
    for name in peers.FUSING:
        assert (name in present) != (name in quick["missing"]), name
    assert all(fused.EAGER in row["times"] for row in quick["rows"])


def test_torch_compile_takes_part_where_torch_does(quick):
    if "torch" in quick["missing"]:
        pytest.skip("torch is not installed")
    for row in quick["rows"]:
        assert {"torch", "torch.compile"} <= set(row["times"]), row["name"]


@needs_no_gpu
def test_gpu_rows_have_correct_results(on_gpu):
    assert {row["group"] for row in on_gpu["rows"]} == {f"gpu-{group}".replace("large", "memory") for group in GROUPS}
    assert not [row for row in on_gpu["rows"] if {"wrong", "broken"} & row.keys()]
    check_gpu_fields(on_gpu)


@needs_no_gpu
def test_cupy_fuse_takes_part_without_matmul_and_gradients(on_gpu):
    without = {row["name"] for row in on_gpu["rows"] if "cupy.fuse" not in row["times"]}
    assert without == {
        row.name for row in GPU_FUSION_ROWS if any(x in row.name for x in ("@", "backward", "gradients", "step"))
    }
    judged = {row.name for row in GPU_FUSION_ROWS if any("cupy.fuse" in target.words for target in row.targets)}
    assert judged == {row.name for row in GPU_FUSION_ROWS} - without


def test_names_are_unique_and_groups_have_titles():
    for rows in (FUSION_ROWS, GPU_FUSION_ROWS):
        assert max(Counter((row.group, row.name) for row in rows).values()) == 1
    titled = {group for group in report.TITLES if "fusion" in group}
    assert {row.group for row in (*FUSION_ROWS, *GPU_FUSION_ROWS)} == titled
    assert {row.group for row in FUSION_ROWS} == GROUPS


def test_wrong_results_of_a_player_are_reported(tmp_path):
    row = fused.fused("r", "fusion-host", normal((5,)), lambda x: x * 2, lambda np, width: lambda x: x * np.float32(2.001))
    bench = Bench({"numpy": np}, np.random.default_rng(0), tmp_path, is_quick=True)
    assert set(measure(row, bench)["wrong"]) == {US, fused.EAGER}


def test_torch_recompiles_for_each_row(tmp_path):
    told = []
    torch = SimpleNamespace(
        _dynamo=SimpleNamespace(reset=lambda: told.append("reset")),
        compile=lambda work, **how: (told.append(how), work)[1],
    )
    for is_quick in (True, False):
        bench = Bench({"torch.compile": torch}, np.random.default_rng(0), tmp_path, is_quick)
        assert fused.torch_compiled(abs, bench) is abs
    fused.torch_compiled(abs, bench, "reduce-overhead")
    assert told == [
        "reset",
        {"dynamic": False, "backend": "eager"},
        "reset",
        {"dynamic": False, "mode": None},
        "reset",
        {"dynamic": False, "mode": "reduce-overhead"},
    ]


@pytest.mark.parametrize(
    ("word", "is_on_gpu", "kind"),
    [
        ("", False, ""),
        ("matmul", False, ""),
        ("fusion", False, "fusion"),
        ("fusion-large", False, "fusion"),
        ("networks", False, "networks"),
        ("gpu", True, ""),
        ("gpu-matmul", True, ""),
        ("gpu-fusion", True, "fusion"),
        ("gpu-fusion-host", True, "fusion"),
        ("held-out", False, "held-out"),
        ("held-out-gradients", False, "held-out"),
        ("gpu-held-out", True, "held-out"),
        ("gpu-loop-nests", True, "loop-nests"),
        ("gpu-networks", True, "networks"),
    ],
)
def test_first_word_selects_the_suite(word, is_on_gpu, kind):
    suite = suites.suite_of(word)
    assert suite == (is_on_gpu, kind)
    place = "gpu-h200" if is_on_gpu else f"cpu-{machine.slug()}"
    assert suite.file({"device": {"name": "NVIDIA H200"}}) == place + f"-{kind}" * bool(kind) + ".json"
    assert ("torch.compile" in suite.peers) == bool(kind)
    assert ("cupy" in suite.peers) == (is_on_gpu and kind not in ("networks", "held-out", "loop-nests"))
    assert any(word in row.group for row in suite.rows)


def test_words_of_only_one_suite_select_it():
    assert suites.suite_of("cross-entropy, forward") == (False, "fusion")
    assert suites.suite_of("chain of 8") == (False, ""), "the main suite has one"
    assert suites.suite_of("no such word") == (False, "")


def test_all_suites_are_listed_with_their_groups_and_peers():
    lines = suites.listing()
    assert len(lines) == 2 * (1 + len(peers.KINDS))
    assert lines[0].startswith("(no word): host (9), large (")
    assert any(line.startswith("gpu-sweeps: gpu-sweeps (55); against torch, torch.compile, cupy, ") for line in lines)


def test_variant_of_a_library_needs_the_library(monkeypatch):
    monkeypatch.setenv("MINIFUSE_THREADS", "1")
    monkeypatch.setitem(sys.modules, "torch", None)
    found, missing = peers.load(["numpy", "torch.compile"])
    assert list(found) == ["numpy"]
    assert missing == {"torch.compile": "torch cannot be imported (ModuleNotFoundError); pip install torch"}
    assert [library(who) for who in ("torch.compile", "torch.compile, graphs", "cupy.fuse", "numpy")] == [
        "torch",
        "torch",
        "cupy",
        "numpy",
    ]
