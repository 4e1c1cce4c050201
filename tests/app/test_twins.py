"""The command that a page shows reports the numbers of the page.

A test opens the page, sets its controls, runs the command that the page shows, and compares. For the pages that measure
("Race", "Train"), `unit/test_cli_race_and_train.py` does this.
"""

import json
import shlex
from math import prod

import numpy as np
import pytest

pytest.importorskip("streamlit", reason="the pages need minifuse[app]")
pytest.importorskip("greenlet", reason="the interpreter needs greenlet: minifuse[simt]")

import streamlit
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from minifuse.cli import doctor
from minifuse.cli.commands import app as command_line
from project.screens import PAGES, user_kernel
from project.views import autodiff, broadcasting, functions, machine, matmul, strides, threads
from project.views.cited_facts import MEASURED
from project.views.thread_timelines import COUNTS
from tests.app.tables import facts_tables, tables

from ..sources import ROOT

KERNELS = """
from numba import cuda

@cuda.jit
def scale(x, y, n=50):
    i = cuda.grid(1)
    if i < n:
        y[i] = 2 * x[i]

@cuda.jit
def race(x, y):
    y[0] = cuda.grid(1)
"""


def invoke(*arguments):
    return CliRunner().invoke(command_line, arguments, env={"COLUMNS": "80"})


def draw(module):
    from importlib import import_module

    import_module(f"project.screens.{module}").page()


def open_page(module, choices):
    """Open a page, and set its controls in the order of `choices`: setting one may add others."""
    app = AppTest.from_function(draw, kwargs={"module": module}, default_timeout=30).run()
    for key, value in choices.items():
        app.session_state[key] = value
        app.run()
        assert not app.exception
    return app


def facts_of(app):
    """Return the table of facts as a dict: the name -> value, label and reason."""
    [table] = facts_tables(app)
    return {row["fact"]: (row["value"], row["truth"], row["why"]) for row in table.to_dict("records")}


def commands_of(app):
    """Return the commands that the page shows."""
    return [block.value for block in app.get("code") if block.language == "console"]


def command_of(app):
    """Return the only command that the page shows."""
    [command] = commands_of(app)
    return command


def run_json(line):
    """Run a command with --json, and return its output."""
    name, *arguments = shlex.split(line)
    assert name == "minifuse"
    result = invoke(*arguments, "--json")
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)


@pytest.fixture(autouse=True)
def in_repository_root(monkeypatch, tmp_path):
    """Run in the root of the repository, because commands contain paths relative to it."""
    monkeypatch.chdir(ROOT)
    (tmp_path / "my kernels.py").write_text(KERNELS)
    monkeypatch.setenv(user_kernel.KERNEL, f"{tmp_path / 'my kernels.py'}:scale")


# Comparisons of a page with its command


def assert_same_facts(facts, found):
    """Check that all facts are equal: names, values, labels and reasons."""

    def shown(value):
        return str(tuple(value)) if isinstance(value, list) else str(value)

    assert {row["fact"]: (shown(row["value"]), row["truth"], row["why"]) for row in found["facts"]} == facts
    assert len(found["facts"]) == len(facts)


def line_costs(launch):
    """Return the sectors and wavefronts of each line of a launch, as a page words them."""
    lines = {}
    for line in launch["lines"]:
        derived = line["DERIVED"]
        pairs = [
            ("sectors", derived["sectors"], derived["ideal_sectors"]),
            ("wavefronts", derived["wavefronts"], derived["wavefronts"] - derived["bank_conflicts"]),
        ]
        parts = [f"{number} {unit}, {ideal} at best" for unit, number, ideal in pairs if number]
        lines[f"line {line['line']}: {line['text']}"] = "; ".join(parts)
    return lines


def lines_of(facts):
    """Return the facts about lines."""
    return {name: value for name, (value, *_) in facts.items() if name.startswith("line ")}


def assert_same_request(facts, found):
    """Check the sectors and wavefronts of each line of a kernel, and the bytes of its last load."""
    if facts["lanes that take part"][0] == "0":  # the page shows nothing else
        assert not [line for line in found["launches"][0]["lines"] if line["text"].startswith("x = ")]
        return
    [launch] = found["launches"]
    assert lines_of(facts) == line_costs(launch)
    [load] = [line for line in launch["lines"] if line["text"].startswith("x = ")]
    assert facts["bytes asked for"][0] == str(load["TRACED"]["bytes_requested"])
    assert facts["lanes that take part"][0] == f"{load['DERIVED']['active_lanes']} of 32"
    for name, key in (("sectors", "sectors"), ("wavefronts", "wavefronts"), ("bank conflicts", "bank_conflicts")):
        if name in facts:
            assert facts[name][0] == str(load["DERIVED"][key])
    if "bytes fetched" in facts:
        assert facts["bytes fetched"][0] == str(load["DERIVED"]["bytes_moved"])


def assert_same_product(facts, found):
    """Check loads per output, barriers, sectors and hazards of a matmul."""
    [launch] = found["launches"]
    shapes = {row["name"]: row["shape"] for row in launch["arrays"]}
    blocks, outputs = prod(launch["grid"]), prod(shapes["out"])
    assert facts["blocks"][0] == f"{blocks} of {prod(launch['block'])} threads"
    assert facts["hazards"][0] == (str(len(launch["hazards"])) if launch["hazards"] else "none")
    assert {hazard["error"] for hazard in launch["hazards"]} == {name for name in facts if name.endswith("Error")}
    if "end" in facts:
        return
    for space in ("global", "shared"):
        loads = launch["spaces"][space]["TRACED"]["loads"]
        assert facts[f"{space} loads per output"][0] == f"{loads / outputs:.4g}"
    assert facts["barriers per block"][0] == str(launch["TRACED"]["barriers"].get("syncthreads", 0) // blocks)
    memory = launch["spaces"]["global"]["DERIVED"]
    assert facts["sectors"][0::2] == (str(memory["sectors"]), f"{memory['ideal_sectors']} at best")


def assert_same_launch(facts, found):
    """Check the grid, the block, the cost of each line and the hazards of a launch."""
    [launch] = found["launches"]
    assert facts["grid"][0] == " x ".join(map(str, launch["grid"]))
    assert facts["block"][0] == " x ".join(map(str, launch["block"]))
    assert lines_of(facts) == line_costs(launch)
    assert {hazard["error"] for hazard in launch["hazards"]} == {name for name in facts if name.endswith("Error")}


def assert_same_gradients(facts, found):
    """Check all facts and the steps of a backward pass."""
    assert_same_facts(facts, found)
    added = {sent["to"] for step in found["steps"] for sent in step["sends"] if sent["is_added"]}
    assert set(facts["accumulated"][0].split(", ")) == (added or {"nothing"})
    summed = {sent["to"] for step in found["steps"] for sent in step["sends"] if sent["sums"]}
    assert set(facts["summed"][0].split(", ")) == (summed or {"nothing"})
    for name in found["gradients"]:
        assert np.allclose(found["gradients"][name], found["differences"][name], rtol=1e-5, atol=1e-6)


CHOICES = {
    "strides": (
        assert_same_facts,
        [
            {},
            *[{"idiom": name} for name in strides.EXAMPLES],
            {"shape": "2, 6", "views": ".T.reshape(3, 4)[1:]", "after": "1 .T", "element": "3, 1"},
            {"shape": "()", "element": "()"},
            {"shape": "0, 3", "views": ".T"},
            {"shape": "2, 3, 4", "views": "[:, ::-1].permute(2, 0, 1)", "element": "1, 1, 0"},
        ],
    ),
    "broadcasting": (
        assert_same_facts,
        [
            {},
            {"broadcasting_x": "3, 1", "broadcasting_y": "4, 1, 5"},
            {"broadcasting_operation": "x * y", "broadcasting_element": "1, 2"},
            {"broadcasting_x": "()", "broadcasting_y": "()", "broadcasting_element": "()"},
            {"broadcasting_x": "0", "broadcasting_y": "2, 1"},
            {"broadcasting_x": "2, 3", "broadcasting_y": "3, 2"},
            {"broadcasting_x": "1, 1", "broadcasting_y": "1", "broadcasting_operation": "x * y"},
        ],
    ),
    "memory": (
        assert_same_request,
        [
            {},
            {"memory_stride": 64},
            {"memory_offset": 1, "memory_dtype": "float64", "memory_lanes": 7},
            {"memory_stride": 0, "memory_dtype": "int8"},
            {"memory_lanes": 0},
            {"memory_space": "shared"},
            {"memory_space": "shared", "memory_width": 33, "memory_dtype": "float64", "memory_lanes": 17},
            {"memory_space": "shared", "memory_reads": "row", "memory_which": 31, "memory_dtype": "int16"},
            {"memory_space": "shared", "memory_lanes": 0},
        ],
    ),
    "matmul": (
        assert_same_product,
        [
            *[{"matmul_kernel": name} for name in matmul.KERNELS],
            {"matmul_tile": "9", "matmul_kernel": "strips", "matmul_M": 10, "matmul_N": 7, "matmul_K": 5},
            {"matmul_tile": "16", "matmul_kernel": "naive", "matmul_M": 16, "matmul_N": 16, "matmul_K": 16},
            {"matmul_tile": "9", "matmul_kernel": "guard missing", "matmul_M": 9, "matmul_N": 9, "matmul_K": 9},
            {"matmul_M": 1, "matmul_N": 1, "matmul_K": 1},
        ],
    ),
    "threads": (
        assert_same_launch,
        [
            *[{"threads_kernel": name} for name in threads.SUBJECTS],
            {"threads_elements": 1, "threads_block": 1},
            {"threads_kernel": "the same without its guard", "threads_elements": 64},
            {"threads_kernel": "a matrix, in two dims", "threads_rows": 1, "threads_columns": 16, "threads_along_x": 16},
            {"threads_kernel": "minifuse: sum of each row", "threads_rows": 16, "threads_columns": 3},
        ],
    ),
    "autodiff": (
        assert_same_gradients,
        [{"autodiff_function": found.name} for found in functions.DIFFERENTIATED]
        + [{"autodiff_size": size} for size in autodiff.SIZES],
    ),
    "user_kernel": (
        assert_same_launch,
        [
            {},
            {"own_grid": "3, 1", "own_block": "20", "own_arguments": "x=60:float32 y=60:float32 n=60"},
            {"own_block": "64", "own_arguments": "x=64:float64 y=30:float64 n=50"},
        ],
    ),
}


@pytest.mark.sampled(3, each="module")
@pytest.mark.parametrize(
    ("module", "choices"),
    [
        pytest.param(module, choices, id=f"{module}-{k}")
        for module, (_, cases) in CHOICES.items()
        for k, choices in enumerate(cases)
    ],
)
def test_command_agrees_with_the_page(module, choices):
    app = open_page(module, choices)
    facts = {name: found for name, found in facts_of(app).items() if found[1] != MEASURED}
    CHOICES[module][0](facts, run_json(command_of(app)))


def test_trace_command_counts_each_line_as_the_page_does():
    """The kernels include those that the library generates."""
    for subject, shape, block in (
        ("a thread for each element", (50,), (32,)),
        ("two elements for each thread", (77,), (16,)),
        ("a matrix, in two dims", (6, 10), (8, 4)),
        ("minifuse: exp(x)", (50,), (32,)),
        ("minifuse: x * y + 1, y in one row", (6, 10), (1,)),
        ("minifuse: sum of each row", (6, 10), (1,)),
    ):
        seen = threads.run_launch(subject, shape, block)
        [launch] = run_json(threads.command(seen))["launches"]
        counted = {
            line["line"]: {
                kind: number for kind, number in (line["TRACED"] | line["DERIVED"]).items() if number and kind in COUNTS
            }
            for line in launch["lines"]
            if line["file"] == launch["file"]
        }
        shown = {
            line.number: {kind: number for kind, number in line.counts if kind != "lanes"} for line in threads.source(seen)
        }
        assert {number: counts for number, counts in shown.items() if counts} == counted, subject


def test_race_of_a_user_kernel_is_on_the_page_and_in_the_command(monkeypatch, tmp_path):
    monkeypatch.setenv(user_kernel.KERNEL, f"{tmp_path / 'my kernels.py'}:race")
    app = open_page("user_kernel", {})
    facts, found = facts_of(app), run_json(command_of(app))
    assert "RaceError" in facts
    assert_same_launch(facts, found)


def test_empty_launch_has_no_command():
    app = open_page("threads", {"threads_elements": 0})
    assert not commands_of(app)
    assert facts_of(app)["launches"][0] == "0"


def test_map_agrees_with_the_doctor_command(monkeypatch):
    report = {
        "A heading": [
            doctor.DoctorFinding("a part", "version 1"),
            doctor.DoctorFinding("another", "none", False, "install it"),
        ]
    }
    monkeypatch.setattr(doctor, "examine", lambda runs_kernels=True: report)
    monkeypatch.setattr(machine, "examine", lambda runs_kernels=True: report)
    streamlit.cache_resource.clear()  # results of other tests
    app = AppTest.from_function(draw, kwargs={"module": "map"}, default_timeout=30).run()
    streamlit.cache_resource.clear()
    assert not app.exception
    [table] = tables(app)
    assert [(row["what"], row["found"]) for row in table.to_dict("records")] == [
        (finding["topic"], finding["found"]) for finding in run_json(command_of(app))
    ]
    assert set(table["part"]) == set(report)


def test_command_of_every_page_is_compared_here_or_elsewhere():
    elsewhere = {"map", "race", "train", "folds", "fusion"}  # the map above, the others in their own tests
    compared = {*CHOICES, *elsewhere} - {"user_kernel"}
    modules = {page.module for page in PAGES}
    assert modules >= compared
    for module in modules - compared:
        assert not commands_of(open_page(module, {})), f"{module} shows a command: add it to CHOICES"


# minifuse layout --with, minifuse grad


def test_failed_broadcast_is_reported_with_exit_status_1():
    result = invoke("layout", "--shape", "3,1", "--with", "4,2,5")
    assert result.exit_code == 1
    assert "look at dim -2" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_broadcast_json_has_shape_dims_strides_and_sums():
    found = json.loads(invoke("layout", "--shape", "3,1", "--with", "4,1,5", "--json").stdout)
    assert found["result"] == [4, 3, 5]
    assert [(row["dim"], row["x"], row["y"], row["result"]) for row in found["dims"]] == [
        (-3, None, 4, 4),
        (-2, 3, 1, 3),
        (-1, 1, 5, 5),
    ]
    assert found["strides"] == {"x": [0, 1, 0], "y": [5, 0, 1]}
    assert found["sums"] == {"x": [0, 2], "y": [1]}
    assert set(broadcasting.OPERATIONS) == {"x + y", "x * y"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--with", "4", "--views", ".T"], "got --views and --with, expected one"),
        (["--with", "4", "--operation", "x - y"], 'expected one of "x + y", "x * y"'),
        (["--with", "4,"], None),
        (["--with", "x"], "^"),
        (["--with", "4", "--element", "9,9"], "9 in dim 0 of shape (3, 4); expected less than 3"),
        (["--element", "1"], "1 numbers for shape (3, 4); expected one a dim"),
        (["--with", "999,1,4"], "(999, 1, 4) has 3,996 elements"),
    ],
)
def test_invalid_layout_options_are_errors(options, message):
    result = invoke("layout", "--shape", "3,1" if "999,1,4" in options else "3,4", *options)
    if message is None:
        assert result.exit_code == 0
        return
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.fixture
def functions_file(tmp_path):
    path = tmp_path / "functions.py"
    path.write_text(
        "import minifuse as mf\n"
        "@mf.fuse\ndef fused(x): return (x * x).exp()\n"
        "def pair(x): return x, x\n"
        "def still(x): return x.detach()\n"
        "def kinked(x): return mf.relu(x - 0.5)\n"
    )
    return path


def test_grad_command_accepts_a_fused_function(functions_file):
    result = invoke("grad", f"{functions_file}:fused", "--shape", "2x3")
    assert result.exit_code == 0, result.output
    assert "all gradients match" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    found = json.loads(invoke("grad", f"{functions_file}:fused", "--shape", "2x3", "--json").stdout)
    assert [step["call"].split()[-1] for step in found["steps"]] == ["sum", "exp", "mul"]
    assert found["steps"][-1]["sends"][1]["is_added"], "x is used twice"


def test_wrong_gradient_ends_with_exit_status_1(functions_file):
    """The first argument is exactly 0.5, where relu(x - 0.5) has no derivative."""
    result = invoke("grad", f"{functions_file}:kinked", "--shape", "2")
    assert result.exit_code == 1
    assert "a gradient differs from the finite differences" in result.stdout


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("{file}:pair", "2", "pair returned tuple, expected one tensor"),
        ("{file}:still", "2", "depends on no argument"),
        ("{file}:fused", "2,2", "too many positional arguments; --shape 2,2 makes 2 arguments"),
        ("{file}:fused", "2x", "expected sizes separated by x"),
        ("{file}:fused", "40x40", "1,600 elements"),
        ("{file}:none", "2", "has no function 'none'"),
        ("{file}", "2", "choose one"),
        ("nowhere.py:f", "2", "nowhere.py is not a file"),
        ("f", "2", "expected FILE.py:function"),
    ],
)
def test_invalid_grad_requests_are_errors(functions_file, name, shape, message):
    result = invoke("grad", name.format(file=functions_file), "--shape", shape)
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_trace_command_runs_a_tensor_function_of_a_file():
    result = invoke("trace", "project/views/kernels.py:multiply_add", "--shape", "4,5", "--shape", "5", "--json")
    [launch] = json.loads(result.stdout)["launches"]
    assert launch["TRACED"]["events"] == 4 * 5 * 3
    for options, message in (
        (["--shape", "4", "--shape", "4", "--shape", "4"], "one --shape for all 2 arguments, or one for each; got 3"),
        (["--shape", "4", "--grid", "1"], "--grid only applies to kernels; write --shape for a function"),
        (["--shape", "4", "--dim", "0"], "--dim only applies to reductions"),
    ):
        result = invoke("trace", "project/views/kernels.py:multiply_add", *options)
        assert result.exit_code == 2
        assert message in result.stderr
