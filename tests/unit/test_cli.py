"""cli: facts as JSON, tables that fit a terminal, exit codes."""

import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import minifuse as mf
from minifuse.backends.cuda.device import driver
from minifuse.cli import demo, doctor, equivalence
from minifuse.cli.commands import app
from minifuse.cli.simulation import is_simulated
from minifuse.core.operators import TABLE
from minifuse.runtime import processors


def invoke(*arguments, **environment):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "80", **environment})


@pytest.fixture
def simulated():
    """A machine without a GPU, or one that is told to do as if."""
    if not is_simulated("cuda"):
        pytest.skip("there is a GPU; MINIFUSE_CUDA=simulated runs this too")


def test_the_demo_learns_and_compares(monkeypatch):
    monkeypatch.setattr(demo, "COMPARED_DIGITS", 8)
    monkeypatch.setattr(demo, "SIMULATED_DIGITS", 2)
    result = invoke("demo", "--epochs", "8", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["accuracy"] > 0.95
    assert facts["losses"][-1] < facts["losses"][0] / 3
    assert facts["course"] == {"hidden": 128, "digits": 1437, "batch_size": 64, "epochs": 8}
    rows = {row["backend"]: row for row in facts["backends"]}
    assert set(rows) == set(mf.backends())
    assert all(0 < row["gradients"] < 1e-4 for row in rows.values())
    raced = {name: row["times_as_fast"] for name, row in rows.items() if not row["is_simulated"]}
    assert raced["python"] == 1 < raced["parallel"]
    assert rows["parallel"]["digits"] == 8
    assert rows["cuda"]["digits"] == (2 if is_simulated("cuda") else 8)


def test_the_demo_reports_that_cuda_is_simulated(simulated, monkeypatch):
    monkeypatch.setattr(demo, "SIMULATED_SIZE", demo.DemoSize(8, 16, 8, 1))
    monkeypatch.setattr(demo, "COMPARED_DIGITS", 5)
    result = invoke("demo", "--backend", "cuda")
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    told = " ".join(result.stdout.split())
    assert "a 64-8-10 network No GPU here (" in told
    assert "trains for 1 epoch on 16 of 1,437 digits" in told
    assert "of test digits classified correctly; 1 epoch took" in told
    assert "lane by lane in the interpreter, on 4 digits instead of 5" in told
    (row,) = [line for line in result.stdout.splitlines() if line.startswith("cuda (simulated)")]
    assert row.rstrip().endswith("-")  # no race
    assert "parallel is" in told.partition("The backends agree.")[2]


@pytest.mark.parametrize(
    ("path", "script", "name"),
    [
        (True, ".venv/bin/minifuse", "minifuse"),
        (False, ".venv/bin/minifuse", str(pathlib.PurePath(".venv/bin/minifuse"))),
        (False, "minifuse/__main__.py", f"{sys.executable} -m minifuse"),
    ],
)
def test_the_demo_names_commands_that_this_terminal_has(monkeypatch, path, script, name):
    monkeypatch.setattr("shutil.which", lambda command: command if path else None)
    monkeypatch.setattr(sys, "argv", [script])
    report = demo.describe_comparison([demo.BackendResult("python", 0.0, 0.0, 1.0, 1.0)])
    lines = ["".join(text for text, _ in line) for line in report.lines(200)]
    commands = [line.strip() for line in lines[lines.index("Next") + 1 :] if f"{name} " in line]
    assert [line.removeprefix(f"{name} ").split()[0] for line in commands] == [
        "app",
        "course",
        "doctor",
        "equivalence",
        "trace",
    ]


@pytest.mark.parametrize("name", ["minifuse", ".venv/bin/minifuse", "/home/a/folder/that/has/a/long/path/bin/minifuse"])
def test_the_demo_fits_a_terminal(monkeypatch, name):
    monkeypatch.setattr(demo, "program_name", lambda: name)
    monkeypatch.setattr(demo, "COMPARED_DIGITS", 5)
    monkeypatch.setattr(demo, "SIMULATED_DIGITS", 1)
    result = invoke("demo", "--epochs", "1", "--digits", "100")
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "of test digits classified correctly; 1 epoch took" in result.stdout
    assert "The backends agree" in result.stdout


def test_an_unknown_backend_is_one_line():
    run = subprocess.run(
        [sys.executable, "-m", "minifuse", "demo", "--backend", "cude"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert run.stderr.strip() == "minifuse: backend 'cude' does not exist; choose one of python, parallel, cuda"


def test_doctor_finds_this_machine():
    result = invoke("doctor", "--json")
    findings = {finding["topic"]: finding for finding in json.loads(result.stdout)}
    assert result.exit_code == 0
    assert findings["numpy"]["found"] == np.__version__
    assert findings["a kernel"]["ok"]
    assert findings["a CUDA kernel"]["ok"]
    assert ("(simulated)" in findings["a CUDA kernel"]["found"]) is is_simulated("cuda")


def test_doctor_shows_the_quota_of_processors(monkeypatch):
    monkeypatch.setattr(processors, "cpu_quota", lambda: 1.5)
    (found,) = [finding.found for finding in doctor.describe_machine() if finding.topic == "processor"]
    assert "a quota of 1.5 processors" in found


@pytest.mark.parametrize(
    ("setting", "found", "is_fine"), [("3", "at most 3", True), ("0", "none", True), ("many", "expected a number", False)]
)
def test_doctor_shows_the_compile_workers(monkeypatch, setting, found, is_fine):
    monkeypatch.setenv("MINIFUSE_COMPILE_WORKERS", setting)
    finding = doctor.check_compile_workers()
    assert found in finding.found
    assert finding.ok is is_fine


def test_doctor_names_the_line_that_helps(tmp_path):
    file = tmp_path / "file"
    file.write_text("a file where the folder should be")
    result = invoke("doctor", MINIFUSE_CACHE=str(file))
    assert result.exit_code == 1
    assert "set MINIFUSE_CACHE to a writable folder" in " ".join(result.stdout.split())


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(doctor.EXTRAS, "no-such-package", "cli")
    finding = next(f for f in doctor.check_packages() if f.topic == "no-such-package")
    assert (finding.ok, finding.needed, finding.advice) == (False, False, 'pip install "minifuse[cli]"')


def look(monkeypatch, gpus, version, reason="", *missing):
    """Let the driver say this, and let these packages be missing; what doctor finds of CUDA, by topic."""

    def version_of(name):
        if name in missing:
            raise doctor.metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(driver, "query_driver", lambda: driver.DriverInfo(gpus, version, reason))
    monkeypatch.setattr(doctor.metadata, "version", version_of)
    monkeypatch.setattr(doctor, "describe_gpu", lambda index: f"GPU of number {index}, compute capability 9.0")
    monkeypatch.setattr(doctor, "check_compilation", lambda: doctor.DoctorFinding("to PTX", "compiled"))
    monkeypatch.setattr(doctor, "check_cuda_kernel", lambda found: doctor.DoctorFinding("a CUDA kernel", "run"))
    return {finding.topic: finding for finding in doctor.check_cuda()}


def test_no_gpu_is_no_fault(monkeypatch):
    found = look(monkeypatch, 0, 0, "no NVIDIA driver is installed", "numba-cuda", "cuda-core", "cuda-bindings")
    assert found["GPU"].found == "none: no NVIDIA driver is installed"
    assert found["cuda-core"].found == "not installed; only a GPU needs it"
    assert all(finding.ok for finding in found.values())
    assert "a CUDA kernel" in found
    assert "to PTX" not in found


def test_without_gpu_and_lanes_the_line_that_installs_them_is_named(monkeypatch):
    found = look(monkeypatch, 0, 0, "no NVIDIA driver is installed", "greenlet")
    assert (found["greenlet"].ok, found["greenlet"].needed) == (False, False)
    assert found["greenlet"].advice == 'pip install "minifuse[simt]"'
    assert "a CUDA kernel" not in found


@pytest.mark.parametrize(("version", "extra"), [(13000, "cuda13"), (12080, "cuda12"), (14010, "cuda13")])
def test_a_gpu_with_a_part_of_the_cuda_packages_is_a_fault(monkeypatch, version, extra):
    found = look(monkeypatch, 2, version, "", "cuda-core")
    assert found["GPU 1"].found == "GPU of number 1, compute capability 9.0"
    assert found["NVIDIA driver"].found == f"for CUDA {version // 1000}.{version % 1000 // 10}"
    assert (found["cuda-core"].ok, found["cuda-core"].needed) == (False, True)
    assert found["cuda-core"].advice == f'pip install "minifuse[{extra}]"'
    assert "a CUDA kernel" not in found


def test_a_gpu_without_any_cuda_package_is_no_fault(monkeypatch):
    found = look(monkeypatch, 1, 13000, "", "numba-cuda", "cuda-core", "cuda-bindings")
    assert found["numba-cuda"].advice == 'pip install "minifuse[cuda13]"'
    assert not any(finding.needed for finding in found.values() if not finding.ok)


def test_an_old_driver_is_a_fault(monkeypatch):
    found = look(monkeypatch, 1, 11080)
    assert (found["NVIDIA driver"].ok, found["NVIDIA driver"].found) == (False, "for CUDA 11.8")


def test_doctor_fails_only_for_required_checks(monkeypatch):
    missing = doctor.DoctorFinding("part", "not installed", False, "pip install part")
    for needed, status in ((True, 1), (False, 0)):
        finding = doctor.replace(missing, needed=needed)
        monkeypatch.setattr(doctor, "examine", lambda finding=finding: {"CUDA": [finding]})
        result = invoke("doctor")
        assert result.exit_code == status
        assert "pip install part" in result.stdout


def test_a_failing_compiler_is_reported_in_one_line(monkeypatch):
    from minifuse.backends.cuda import compiler

    def fail(*_, **__):
        raise OSError("libnvvm.so\nand more")

    monkeypatch.setattr(compiler, "compile_ptx", fail)
    finding = doctor.check_compilation()
    assert (finding.ok, finding.found) == (False, "OSError: libnvvm.so")
    assert finding.advice.startswith("pip install")


@pytest.fixture
def few(monkeypatch):
    """A small part of the equivalence table."""
    monkeypatch.setattr(equivalence, "cases", lambda: iter([("add", TABLE["add"], 2, "float"), WRONG[0]]))


WRONG = [("relu", mf.relu, 1, "float")]


def test_check_lists_agreeing_backends(few, tmp_path):
    page = tmp_path / "page.html"
    result = invoke("equivalence", "--html", str(page))
    assert result.exit_code == 0, result.output
    assert "all agree" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert page.read_text().count("<td>") == 2 * len(equivalence.LAYOUTS) * len(mf.backends())
    if is_simulated("cuda"):
        assert "cuda (simulated)" in result.stdout
        assert "<br>cuda (simulated)" in page.read_text()
        assert "CUDA kernels run lane by lane in the interpreter" in " ".join(result.stdout.split())


def test_equivalence_writes_a_file_of_its_cells(few, tmp_path):
    out = tmp_path / "equivalence.json"
    printed = json.loads(invoke("equivalence", "--backends", "parallel,python", "--json", "--out", str(out)).stdout)
    found = json.loads(out.read_text(), parse_constant=pytest.fail)
    assert found["cells"] == printed
    assert (found["format"], found["minifuse"], found["simulated"]) == (equivalence.FORMAT, mf.__version__, [])
    assert str(datetime.datetime.now(datetime.UTC).year) in found["date"]


def test_equivalence_of_cuda_alone(few):
    cells = json.loads(invoke("equivalence", "--backends", "cuda", "--json").stdout)
    assert {cell["backend"] for cell in cells} == {"cuda"}
    assert not any(cell["failure"] for cell in cells)


def test_an_error_in_one_cell_ends_no_comparison(few, monkeypatch):
    def refuse(x):
        raise mf.SimtError("no such word")

    monkeypatch.setitem(globals(), "WRONG", [("relu", refuse, 1, "float")])
    result = invoke("equivalence", "--backends", "python")
    assert result.exit_code == 1
    assert "no such word" in result.stdout
    assert "14 comparisons" in result.stdout


def test_check_lists_disagreeing_backends(few, monkeypatch):
    from minifuse.backends.registry import get_backend

    backend = get_backend("parallel")

    def off_by_one(x):
        return mf.relu(x) + (1 if x.backend == backend.name else 0)

    monkeypatch.setitem(globals(), "WRONG", [("relu", off_by_one, 1, "float")])
    result = invoke("equivalence", "--backends", "parallel,python")
    assert result.exit_code == 1
    assert "wrong: plain, permuted" in " ".join(result.stdout.split())
    cells = json.loads(invoke("equivalence", "--json").stdout, parse_constant=pytest.fail)
    wrong = [cell for cell in cells if cell["failure"]]
    assert {cell["backend"] for cell in wrong} == {"parallel"}
    for cell in wrong:
        assert (cell["value"], cell["gradient"], cell["first"]["what"]) == (None, None, "output 0")
        assert not any(cell["first"]["index"])  # off by one from the first element on
        assert float(cell["first"]["got"]) == pytest.approx(float(cell["first"]["expected"]) + 1)


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT from outside on Windows")
def test_ctrl_c_stops_cleanly():
    command = [sys.executable, "-m", "minifuse", "demo", "--epochs", "100000"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell ignores it for what runs behind it
    )
    assert "handwritten digits" in process.stdout.readline()
    time.sleep(3)  # the training is under way
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "minifuse: stopped"
    assert "Traceback" not in errors


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_doctor_explains_a_cache_that_is_not_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "kernels"))
    assert doctor.check_cache_folder().ok
    assert "0 kernels" in doctor.check_cache_folder().found
    (tmp_path / "kernels").chmod(0o777)
    found = doctor.check_cache_folder()
    assert not found.ok
    assert f"in memory only, since other users may write to {tmp_path / 'kernels'} (mode 0777" in found.found
    assert "MINIFUSE_CACHE" in found.advice
    monkeypatch.setenv("MINIFUSE_CACHE_LIMIT_MB", "0")
    assert doctor.check_cache_folder().found == "in memory only, since MINIFUSE_CACHE_LIMIT_MB is 0"


def test_the_help_imports_no_command_of_the_course():
    script = "import sys; from minifuse.cli.commands import app; app(['--help'], standalone_mode=False)"
    script += "; print([name for name in sys.modules if name.startswith('minifuse.course')])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "course" in result.stdout
    assert result.stdout.splitlines()[-1] == "[]"
