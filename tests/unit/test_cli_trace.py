"""`minifuse trace`: operators, matmul kernels and kernels in files, as text and as JSON, and errors in the request."""

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import minifuse as mf
from minifuse import simt
from minifuse.backends.cuda.matmul.ladder import LADDER
from minifuse.cli import subjects
from minifuse.cli.commands import app
from minifuse.cli.subjects import LAYOUTS, REDUCTIONS, RequestError, TraceRequest, plan_subject, random_arrays
from minifuse.core.operators import TABLE

FILE = """
from numba import cuda, float32
import numpy as np

@cuda.jit("void(float32[:], float32[:], int64)")
def double(out, x, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = twice(x[i])

@cuda.jit(device=True)
def twice(x):
    return 2 * x

@cuda.jit
def turn(out, x):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    out[t] = tile[63 - t]

@cuda.jit
def past(out, x):
    i = cuda.grid(1)
    out[i] = x[i]

print("read")
double[1, 32](np.zeros(8, np.float32), np.ones(8, np.float32), 8)
if __name__ == "__main__":
    raise SystemExit("not a script")
"""


def invoke(*arguments):
    return CliRunner().invoke(app, ["trace", *map(str, arguments)], env={"COLUMNS": "80"})


def facts(*arguments, status=0):
    result = invoke(*arguments, "--json")
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)


def refused(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout in ("", "read\n")
    assert result.stderr.startswith("minifuse trace: ")
    return " ".join(result.stderr.removeprefix("minifuse trace: ").split())


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(FILE)
    return path


def kernel(file, name, *more, n=64):
    return (f"{file}:{name}", "--grid", 1, "--block", 64, "--arg", f"out={n}:float32", "--arg", "x=64:float32", *more)


# Operations.


def test_a_product_is_traced_as_the_library_launches_it():
    found = facts("matmul", "--shape", "32,32,32")
    (launch,) = found["launches"]
    a, b = random_arrays([(32, 32)] * 2, ["float32"] * 2, None)
    (plan,) = subjects.launches_of(lambda x, y: x @ y, a, b)
    assert (launch["kernel"], launch["grid"]) == (plan.kernel.__name__, list(plan.grid))
    assert launch["arguments"]["K"] == 32
    assert launch["hazards"] == []
    assert {row["name"]: row["TRACED"]["bytes_requested"] for row in launch["arrays"] if row["name"] == "out"} == {
        "out": 4096
    }
    assert all(line["text"] for line in launch["lines"])
    assert launch["THEORY"]["occupancy"]["blocks"] > 0
    assert "cache hits" in launch["not_modelled"]


def test_sectors_and_ideal_follow_the_layout():
    def efficiency(layout):
        (launch,) = facts("exp", "--shape", "64,64", "--layout", layout)["launches"]
        (row,) = [row for row in launch["arrays"] if row["name"] == "in0"]
        return row["DERIVED"]["efficiency"]

    assert efficiency("plain") == 1
    assert efficiency("sliced") == 0.5
    assert efficiency("expanded") >= 1
    assert efficiency("shifted") < 1


def test_every_name_is_traced_and_right():
    names = [name for name in subjects.traceable_names() if not name.startswith("matmul:")]
    assert {*TABLE, *REDUCTIONS, "matmul"} == set(names)
    for name in names:
        shape = ["3,5,4"] if name == "matmul" else ["3,5"]
        for plan in plan_subject(TraceRequest(name, shape)).plans:
            trace = simt.trace(plan)
            assert trace.hazards() == [], name
            assert trace.outputs, name


@pytest.mark.parametrize("rung", LADDER)
def test_every_rung_of_the_ladder_is_traced(rung):
    found = facts(f"matmul:{rung}", "--shape", "20,12,8")
    (launch,) = found["launches"]
    assert found["title"] == f"matmul:{rung} of float32 (20, 8) and (8, 12), plain"
    assert launch["hazards"] == []
    assert launch["TRACED"]["events"] > 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_show_the_shape_that_was_asked_for(layout):
    (x,) = random_arrays([(3, 4)], ["int32"], layout)
    assert (x.shape, x.dtype) == ((3, 4), np.int32)
    assert x.flags.c_contiguous is (layout == "plain")
    assert random_arrays([(7,)], ["float32"], layout)[0].shape == (7,)


def test_reductions_run_along_one_dim_or_all():
    sizes = {dim: facts("sum", "--shape", "6,70", *dim)["launches"][0]["arrays"][0]["shape"] for dim in ((), ("--dim", 1))}
    assert sizes == {(): [1], ("--dim", 1): [6]}


def test_operands_have_a_shape_each():
    (launch,) = facts("add", "--shape", "5,70", "--shape", "70", "--dtype", "int32")["launches"]
    rows = {row["name"]: (row["shape"], row["dtype"]) for row in launch["arrays"]}
    assert rows == {"out0": ([350], "int32"), "in0": ([350], "int32"), "in1": ([70], "int32")}


def test_each_launch_is_printed(tmp_path):
    found = facts("matmul", "--shape", "32,32,512", "--save", tmp_path / "product.npz")
    assert [launch["kernel"] for launch in found["launches"]] == ["matmul", "add_parts"]
    traces = [simt.load(path) for path in found["saved"]]
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["product-1.npz", "product-2.npz"]
    out = traces[1].outputs["out"].reshape(32, 32)
    a, b = random_arrays([(32, 512), (512, 32)], ["float32"] * 2, None)
    np.testing.assert_allclose(out, a.astype(float) @ b, rtol=1e-5)


def test_an_empty_operation_launches_nothing():
    assert facts("exp", "--shape", "0,3")["launches"] == []
    assert "0 launches" in invoke("exp", "--shape", "0,3").stdout


# For people.


@pytest.mark.parametrize("what", ["gelu", "softmax", "matmul", "matmul:shared_tiles"])
def test_the_report_fits_a_terminal_and_labels_its_numbers(what):
    result = invoke(what, "--shape", "33,32,31" if "matmul" in what else "33,31")
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    for word in ("TRACED ", "DERIVED ", "THEORY ", "by array", "by line", "Not modeled: cache hits", "no hazards"):
        assert word in result.stdout
    assert ("fronts" in result.stdout) is ("matmul" in what)  # of shared memory


def test_numbers_are_aligned_with_their_headings():
    lines = invoke("exp", "--shape", "33,31").stdout.splitlines()
    head = next(line for line in lines if "requests" in line and "loads" in line)
    numbers = lines[next(k for k, line in enumerate(lines) if line.startswith("in0:")) + 1]
    for heading, value in (("loads", "258"), ("requests", "11"), ("sectors", "131"), ("ideal", "131"), ("moved", "4,192")):
        end = head.index(heading) + len(heading)
        assert numbers[:end].endswith(f" {value}")


def test_the_full_source_is_printed_on_request():
    assert "def kernel(" not in invoke("exp").stdout
    assert "def kernel(out0, in0, " in invoke("exp", "--source").stdout
    (launch,) = facts("gelu", "--source")["launches"]
    text = launch["source"]["text"].splitlines()
    for line in launch["lines"]:
        assert text[line["line"] - launch["source"]["first_line"]].strip() == line["text"]
    (launch,) = facts("matmul:naive", "--shape", "4,4,4", "--source")["launches"]
    assert launch["source"]["text"].startswith("def naive(")


def test_the_list_names_everything():
    told = " ".join(invoke("--list").stdout.split())
    assert all(f" {name} " in f" {told} " for name in (*subjects.traceable_names(), *LAYOUTS))
    assert max(map(len, invoke("--list").stdout.splitlines())) <= 80
    listed = json.loads(invoke("--list", "--json").stdout)
    assert listed["products"] == ["matmul", *(f"matmul:{rung}" for rung in LADDER)]


# Kernels of a file.


def test_a_kernel_of_a_file_is_traced(file, tmp_path):
    path = tmp_path / "double.npz"
    found = facts(*kernel(file, "double", "--arg", "n=60", "--save", path))
    (launch,) = found["launches"]
    assert (launch["kernel"], launch["block"], launch["arguments"]) == ("double", [64, 1, 1], {"n": 60})
    assert launch["TRACED"]["elements_not_written"] == {"out": 4}
    assert [line["text"] for line in launch["lines"]] == ["out[i] = twice(x[i])"]
    trace = simt.load(path)
    assert (trace.outputs["out"][:60] >= 0.5).all()


def test_a_hazard_is_a_sentence_and_an_exit_status(file):
    result = invoke(*kernel(file, "turn"))
    assert result.exit_code == 1
    told = " ".join(result.stdout.split())
    assert "RaceError: shared array 'tile' element" in told
    assert "kernels.py:20 out[t] = tile[63 - t]" in told
    assert max(map(len, result.stdout.splitlines())) <= 80
    (launch,) = facts(*kernel(file, "turn"), status=1)["launches"]
    race = next(hazard for hazard in launch["hazards"] if hazard["error"] == "RaceError")
    assert [line for _, line in race["lines"]] == [19, 20]
    assert race["array"] == "tile"


def test_shortened_output_is_marked(file):
    (launch,) = facts(*kernel(file, "past", n=60), status=1)["launches"]
    assert not launch["is_complete"]
    assert launch["hazards"][-1]["error"] == "OutOfBoundsError"
    result = invoke("matmul", "--shape", "64,64,512", "--limit", 100)
    assert result.exit_code == 1
    assert "Launch 1 was cut short, so 1 of 2 launches did not run." in result.stdout


def test_a_saved_trace_is_printed_as_it_was(file, tmp_path):
    path = tmp_path / "turn.npz"
    first = invoke(*kernel(file, "turn", "--save", path))
    again = invoke(path)
    assert (first.exit_code, again.exit_code) == (1, 1)
    assert again.stdout.startswith("turn in turn.npz\n1 launch, run lane by lane")
    assert again.stdout.split("launch 1 of 1")[1] == first.stdout.split("launch 1 of 1")[1].replace(f"trace in {path}\n", "")
    (launch,) = facts(path, status=1)["launches"]
    assert launch["kernel"] == "turn"


@pytest.mark.parametrize("decorator", ["", "@mf.fuse\n"])
def test_a_function_is_traced_whether_it_is_fused_or_not(tmp_path, decorator):
    path = tmp_path / "functions.py"
    path.write_text(f"import minifuse as mf\n{decorator}def double(x):\n    return 2 * x + 1\n")
    (launch,) = facts(f"{path}:double", "--shape", "8x10")["launches"]
    assert {row["name"]: row["shape"] for row in launch["arrays"]} == {"out0": [80], "in0": [80]}
    assert "double: expected --" in refused(f"{path}:double")


def test_a_faulty_launch_of_the_file_does_not_matter(tmp_path):
    path = tmp_path / "faulty.py"
    path.write_text(FILE.split("print(")[0] + "past[1, 64](np.zeros(3, np.float32), np.ones(64, np.float32))\n")
    assert facts(*kernel(path, "past"))["launches"][0]["kernel"] == "past"


def test_sizes_are_separated_by_commas_or_x(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text("from minifuse.simt import cuda\ndef fill(out):\n    i, j = cuda.grid(2)\n    out[i, j] = 1\n")
    commas, x = (facts(f"{path}:fill", "--grid", f"2{c}1", "--block", f"4{c}2", "--arg", f"out=8{c}2:int64") for c in ",x")
    assert commas == x


def test_a_plain_kernel_needs_no_numba(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text("from minifuse.simt import cuda\ndef fill(out, value=3):\n    out[cuda.grid(1)] = value\n")
    (launch,) = facts(f"{path}:fill", "--grid", "2", "--block", "4,2", "--arg", "out=8,2:int64", status=1)["launches"]
    assert launch["arguments"] == {"value": 3}
    (launch,) = facts(f"{path}:fill", "--grid", "2", "--block", "4", "--arg", "out=8:int64")["launches"]
    assert launch["TRACED"]["events"] == 8


def test_seeds_replay(file):
    one, again, other = (invoke(*kernel(file, "turn", "--seed", seed, "--json")).stdout for seed in (3, 3, 0))
    assert one == again
    assert json.loads(one)["launches"][0]["seed"] == 3
    assert json.loads(other)["launches"][0]["seed"] == 0


def test_the_script_prints_where_it_spoils_no_json(file):
    command = [sys.executable, "-m", "minifuse", "trace", *map(str, kernel(file, "double", "--arg", "n=64")), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["launches"][0]["kernel"] == "double"
    assert run.stderr == "read\n"


# What cannot be traced.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "got nothing to trace; minifuse trace --list prints all subjects"),
        (["sofmax"], "unknown subject 'sofmax'; did you mean softmax"),
        (["matmul:nave"], "unknown matmul kernel 'nave'; from slow to fast there are naive, coalesced"),
        (["exp", "--shape", "3;4"], "--shape 3;4: expected sizes separated by commas or x, as in --shape 32,32"),
        (["exp", "--shape", "-3"], "--shape -3: expected sizes separated by commas"),
        (["exp", "--shape", "5000,5000"], "25,000,000 elements"),
        (["exp", "--shape", "3", "--shape", "3"], "exp: expected one --shape; got 2"),
        (
            ["where", "--shape", "3", "--shape", "3"],
            "where: expected one --shape for all 3 operands, or one for each; got 2",
        ),
        (["add", "--shape", "3,4", "--shape", "5"], "do not broadcast"),
        (["matmul", "--shape", "3,4"], "matmul: expected --shape M,N,K, or --shape twice"),
        (["matmul", "--shape", "3,4", "--shape", "5,6"], "inner sizes differ"),
        (["matmul:naive", "--layout", "permuted"], "matmul:naive: expected contiguous float32 matrices; got"),
        (["matmul:naive", "--dtype", "float64"], "matmul:naive: expected contiguous float32 matrices; got"),
        (
            ["matmul:naive", "--shape", "2,3,4", "--shape", "2,4,3"],
            "matmul:naive: expected two matrices, (M, K) and (K, N); got (2, 3, 4) and (2, 4, 3)",
        ),
        (
            ["matmul:naive", "--shape", "2,3", "--shape", "4,5"],
            "matmul:naive: expected two matrices, (M, K) and (K, N); got (2, 3) and (4, 5)",
        ),
        (["exp", "--dtype", "float16"], "dtype 'float16' is not supported"),
        (["and_", "--dtype", "float32"], "and_: got float32"),
        (["exp", "--layout", "weird"], "--layout weird: expected one of plain, permuted"),
        (["exp", "--shape", "", "--layout", "flipped"], "a 0-d array only has the layout plain"),
        (["exp", "--dim", "0"], "--dim only applies to reductions, such as sum"),
        (["sum", "--dim", "5"], "dim 5 is out of range"),
        (["exp", "--grid", "4"], "--grid only applies to kernels in a file, not to exp"),
        (["exp", "--arg", "x=3"], "--arg only applies to kernels in a file"),
        (["sum", "--save", "no/such/folder/x.npz"], "--save no/such/folder/x.npz: "),
        (["nofile.py:kernel"], "nofile.py is not a file"),
        (["nofile.npz"], "nofile.npz: No such file or directory"),
        (["nofile.npz", "--shape", "3"], "--shape does not apply to a trace"),
        (["nofile.npz", "--source"], "--source does not apply to nofile.npz, which is saved already"),
    ],
)
def test_a_request_that_makes_no_sense_is_one_line(arguments, message):
    assert message in refused(*arguments)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("", [], "kernels.py has these kernels and functions: double, turn, past; choose one"),
        (":twice", [], "kernels.py has no kernel or function 'twice'; it has double, turn, past"),
        (":double", ["--shape", "3"], "--shape only applies to operations; write --arg for the arguments of a kernel"),
        (":double", [], "double: expected --grid and --block"),
        (":double", ["--grid", "0", "--block", "4"], "--grid 0: expected one to three positive sizes"),
        (
            ":double",
            ["--grid", "1", "--block", "4"],
            "double(out, x, n) needs --arg for out, x, n: an array as in --arg out=",
        ),
        (":double", ["--grid", "1", "--block", "4", "--arg", "y=3"], "double has no parameter 'y'; it has out, x, n"),
        (":double", ["--grid", "1", "--block", "4", "--arg", "x"], "--arg x: expected name=shape:dtype or name=number"),
        (":double", ["--grid", "1", "--block", "4", "--arg", "x=3:float3"], "unknown dtype 'float3', expected one of bool"),
        (":double", ["--grid", "1", "--block", "4", "--arg", "x=3:4:f"], "--arg x=3:4:f: unknown dtype '4:f'"),
        (":double", ["--grid", "1", "--block", "4", "--arg", "x=3;4:bool"], "--arg x=3;4: expected sizes separated by"),
        (":double", ["--grid", "1", "--block", "4", "--arg", "n=many"], "--arg n=many: expected shape:dtype or a number"),
    ],
)
def test_a_kernel_without_an_argument_names_it(file, name, options, message):
    assert message in refused(f"{file}{name}", *options)


def test_a_block_that_no_gpu_takes_is_refused(file):
    options = ["--grid", 1, "--block", 2048, "--arg", "out=4:float32", "--arg", "x=4:float32"]
    assert "a block of 2048 threads" in refused(f"{file}:past", *options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n1 / 0\n", "importing broken.py:2 raised ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", "importing broken.py:2 raised SystemExit: 3"),
        ("def f(:\n", "broken.py is not valid Python: invalid syntax"),
        ("import no_such_module\n", "importing broken.py:1 raised ModuleNotFoundError"),
    ],
)
def test_a_file_that_raises_names_the_line(tmp_path, text, message):
    path = tmp_path / "broken.py"
    path.write_text(text)
    assert message in refused(f"{path}:f")


def test_a_call_that_kernels_do_not_support_is_an_error(tmp_path):
    path = tmp_path / "strange.py"
    path.write_text("from minifuse.simt import cuda\ndef f(a):\n    a[0] = open('x')\n")
    assert "open" in refused(f"{path}:f", "--grid", 1, "--block", 1, "--arg", "a=1:int64")


def test_requests_are_errors_of_minifuse():
    assert issubclass(RequestError, mf.MinifuseError)
