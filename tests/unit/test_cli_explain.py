"""`minifuse explain FILE.py:function`: the kernels of a function, arguments from the command line or a file, errors."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from minifuse.cli.commands import app
from minifuse.compiler.pipeline import PASSES

FILE = """
import minifuse as mf

offset = mf.ones(33)

@mf.fuse
def normal(x, k=2.0):
    centred = x - x.mean(1, keepdim=True)
    return centred * k + offset

def attention(q, k, v):
    return (q @ k.T * 0.125).softmax(1) @ v

def branches(x):
    if x.sum() > 0:
        return x
    return -x

class Model:
    def forward(self, x):
        return x * offset

model = Model()
print("read")
EXAMPLE = {"attention": (mf.ones(64, 32), mf.ones(50, 32), mf.ones(50, 20)), "branches": mf.ones(3)}

if __name__ == "__main__":
    raise SystemExit("not a script")
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "user.py"
    path.write_text(FILE)
    return path


def invoke(*arguments):
    return CliRunner().invoke(app, ["explain", *map(str, arguments)], env={"COLUMNS": "80"})


def facts(*arguments):
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_fused_function_with_shapes_on_the_line(file):
    found = facts(f"{file}:normal", "--shape", "40x33")
    assert found["function"] == "normal"
    assert found["backend"] == "parallel"
    assert found["forward"]["nbytes"] == 2 * 40 * 33 * 4 + 33 * 4
    assert {node["name"] for node in found["nodes"]} - {""} == {"x", "offset"}
    lines = {node["line"] for node in found["nodes"] if node["line"]}
    assert lines <= {f"{file}:{k}" for k in (8, 9)}


def test_numbers_dtypes_and_backends_on_the_line(file):
    found = facts(f"{file}:normal", "--shape", "40x33,0.5", "--dtype", "float64", "--backend", "python")
    assert found["backend"] == "python"
    kinds = {node["name"]: node["dtype"] for node in found["nodes"] if node["name"]}
    assert kinds["x"] == "float64"
    assert "k" in kinds


def test_a_plain_function_with_the_example_of_the_file(file):
    found = facts(f"{file}:attention")
    products = [kernel for kernel in found["forward"]["kernels"] if kernel["flops"]]
    assert len(products) == 2
    assert found["refusals"]
    assert len(found["unfused"]["kernels"]) > len(found["forward"]["kernels"])


def test_a_method_of_an_object(file):
    found = facts(f"{file}:model.forward", "--shape", "33")
    assert len(found["forward"]["kernels"]) == 1


def test_gradients_where_they_are_asked_for(file):
    assert facts(f"{file}:normal", "--shape", "40x33")["backward"] is None
    backward = facts(f"{file}:normal", "--shape", "40x33", "--grad")["backward"]
    assert backward["run"]["launches"] >= 1


def test_schedule_of_a_gpu_is_printed_and_part_of_the_json(file):
    arguments = f"{file}:normal", "--shape", "40x33", "--backend", "cuda"
    (kernel,) = facts(*arguments)["forward"]["kernels"]
    assert kernel["schedule"].startswith("i0 (40): blocks")
    assert "schedule: i0 (40): blocks" in invoke(*arguments).stdout


def test_the_page_fits_80_columns(file):
    result = invoke(f"{file}:attention", "--source", "--grad")
    assert result.exit_code == 0
    page = result.stdout.partition("\nsource\n")
    text = page[0].replace("read\n", "", 1)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.splitlines()[0].startswith("attention on parallel: ")
    assert [line for line in text.splitlines() if line in ("graph", "kernels", "not fused", "backward")] == [
        "graph", "kernels", "not fused", "backward"
    ]  # fmt: skip
    assert page[2].lstrip().startswith("def run(q, k, v):")


def test_steps_are_printed_on_request(file):
    assert "step by step" not in invoke(f"{file}:attention").stdout
    result = invoke(f"{file}:attention", "--steps")
    lines = result.stdout.partition("\nstep by step\n")[2].partition("\nkernels\n")[0].splitlines()
    assert all(len(line) <= 80 for line in lines)
    told = " ".join(" ".join(lines).split())
    for k, step in enumerate(facts(f"{file}:attention")["steps"], 1):
        assert f"{k} {step['text']}" in told


def test_passes_are_printed_on_request(file):
    assert "\npasses\n" not in invoke(f"{file}:attention").stdout
    result = invoke(f"{file}:attention", "--passes")
    lines = result.stdout.partition("\npasses\n")[2].partition("\nkernels\n")[0].splitlines()
    assert all(len(line) <= 80 for line in lines)
    told = " ".join(" ".join(lines).split())
    found = facts(f"{file}:attention")["passes"]
    assert [(x["name"], x["summary"]) for x in found] == [(x.__name__, x.__doc__.partition("\n")[0]) for x in PASSES]
    for x in found:
        block = [f"{x['name']}: {x['summary']}", *(x["changes"] or ["no change"])]
        assert " ".join(" ".join(block).split()) in told
    assert sum("no change" in line for line in lines) == sum(not x["changes"] for x in found) > 0


def test_source_prints_the_compiled_text(file):
    found = facts(f"{file}:normal", "--shape", "40x33", "--source")
    assert "def run(x, offset):" in found["source"] or "def run(x):" in found["source"]
    assert "def kernel(" in found["source"]


FAULTS = {
    "no file": ("nowhere.py:f", [], "nowhere.py is not a file"),
    "no python file": ("normal", [], "expected FILE.py:function"),
    "no name": ("{file}", [], "choose one: user.py:function"),
    "a name that is near": ("{file}:atention", [], "did you mean attention?"),
    "an unknown name": ("{file}:zzz", [], "it has normal, attention, branches"),
    "no arguments": ("{file}:normal", [], "missing a required argument: 'x'"),
    "too many": ("{file}:normal", ["--shape", "3,3,3"], "too many positional arguments"),
    "a shape in other words": ("{file}:normal", ["--shape", "4;5"], "expected sizes separated by x"),
    "a shape that is huge": ("{file}:normal", ["--shape", "99999x99999"], "expected at most 1,073,741,824 bytes"),
    "dtypes that do not fit": ("{file}:normal", ["--shape", "3", "--dtype", "float32,float64"], "2 for 1 arguments"),
    "a dtype that is unknown": ("{file}:normal", ["--shape", "3", "--dtype", "float8"], "float8"),
    "a dtype without shapes": ("{file}:attention", ["--dtype", "float64"], "--dtype only applies to arguments of --shape"),
    "a branch": ("{file}:branches", [], "user.py:15"),
    "shapes that do not fit": ("{file}:attention", ["--shape", "3x4,5x6,7x8"], "inner sizes differ"),
    "a backend that is unknown": ("{file}:normal", ["--shape", "40x33", "--backend", "tpu"], "tpu"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_errors_are_sentences(fault, file):
    what, options, message = FAULTS[fault]
    result = invoke(what.format(file=file), *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("minifuse explain: ")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_like_it", "importing broken.py:1 raised ModuleNotFoundError"),
        ("def f(:", "broken.py is not valid Python"),
    ],
)
def test_a_file_that_cannot_be_imported(tmp_path, text, message):
    path = tmp_path / "broken.py"
    path.write_text(text)
    result = invoke(f"{path}:f")
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_command_itself(file):
    command = [sys.executable, "-m", "minifuse", "explain", f"{file}:normal", "--shape", "40x33", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["function"] == "normal"
    assert result.stderr == "read\n", "what the file prints is not part of the facts"
