"""cli.base with NumPy and Numba alone: help, version, demo and doctor work; every other command names its extra."""

import json
import os
import re
import subprocess
import sys
import tomllib
from contextlib import suppress

import numpy as np
import pytest

import minifuse as mf
from minifuse import cli
from minifuse.backends.cuda import compiler
from minifuse.backends.cuda.device import driver
from minifuse.cli import base, doctor
from minifuse.cli.extras import EXTRAS, install_command
from minifuse.core.errors import MissingPartError
from tests.sources import ROOT

OPTIONAL = (
    "click cuda greenlet hypothesis matplotlib merge3 numba_cuda pytest rich safetensors scipy sklearn streamlit typer "
    "watchfiles"
)
WITHOUT = f"""
import sys
from importlib import metadata

sys.modules.update(dict.fromkeys({OPTIONAL.split()!r}))
installed = metadata.version


def version(name):
    if name in ("numpy", "numba", "llvmlite"):
        return installed(name)
    raise metadata.PackageNotFoundError(name)


metadata.version = version
from minifuse.cli import demo, main

demo.COMPARED_DIGITS = 2
"""


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command without some packages, as (exit status, standard output, standard error)."""

    def call(*arguments, without=("typer",)):
        for name in without:
            monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.setattr(sys, "argv", ["minifuse", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        told = capsys.readouterr()
        return ended.value.code, told.out, told.err

    return call


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"], ["demo", "--help"], ["doctor"], ["doctor", "--json"]])
def test_it_works_where_no_optional_package_can_be_imported(arguments):
    out = run_alone(*arguments)
    assert mf.__version__ in out or {"demo", "doctor"} & {*out.split()}


def run_alone(*arguments):
    """Run the command in a process that can import NumPy and Numba alone, and return its output."""
    command = [sys.executable, "-W", "error", "-c", f"{WITHOUT}sys.argv[1:] = {list(arguments)!r}\nmain()"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "80"})
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_the_demo_learns_with_numpy_and_numba_alone():
    lines = run_alone("demo", "--epochs", "5").splitlines()
    assert lines[0].startswith(f"minifuse {mf.__version__}: 1,797 handwritten digits")
    accuracy, _, rest = lines[1].partition("% of test digits classified correctly; 5 epochs took ")
    assert rest
    assert float(accuracy) > 90
    assert {"python", "parallel"} <= {line.split()[0] for line in lines[5:] if "±" in line}
    assert max(len(line) for line in lines if sys.executable not in line) <= 80


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_command_with_the_line_for_it(run, arguments):
    status, out, _ = run(*arguments)
    assert status == 0
    assert {"demo", "doctor", *EXTRAS} <= set(re.findall(r"[\w-]+", out))
    assert all(install_command(command) in out for command in EXTRAS)
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("missing", ["typer", "rich"])
@pytest.mark.parametrize("command", EXTRAS)
def test_a_command_that_needs_more_names_its_extra(run, command, missing):
    status, out, err = run(command, "--help", without=[missing])
    assert (status, out) == (2, "")
    assert err == f"minifuse {command} needs {missing}, which is not installed; run: {install_command(command)}\n"


@pytest.mark.parametrize("arguments", [["frobnicate"], ["--frob"], ["doctor", "--jso"], ["doctor", "x"]])
def test_a_wrong_command_line_is_a_usage_error_without_typer_too(run, arguments):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert arguments[-1] in err
    assert "usage: minifuse" in err


@pytest.mark.parametrize(
    ("word", "hint"), [("demmo", "did you mean demo?"), ("docter", "did you mean doctor?"), ("trian", "did you mean train?")]
)
def test_a_misspelled_command_names_the_nearest_of_all(run, word, hint):
    status, _, err = run(word)
    assert status == 2
    assert f"{word} is not a command; {hint} minifuse --help lists all" in err


def test_help_tells_the_option_from_the_commands(run):
    assert "\n  course, and the option --engine\n" in run("--help")[1]


def test_the_demo_says_what_its_next_commands_need(monkeypatch):
    from minifuse.cli import demo

    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == "greenlet" else name)
    monkeypatch.setattr(demo, "program_name", lambda: "minifuse")
    purposes = dict(demo.next_commands())
    assert purposes["minifuse trace matmul"].endswith('; run first: pip install "minifuse[cli,simt]"')
    assert not any("pip" in purposes[f"minifuse {name}"] for name in ("doctor", "equivalence"))


def test_commands_without_extras_are_listed_as_in_the_full_command():
    typer = pytest.importorskip("typer", reason="needs minifuse[cli]")
    from minifuse.cli.commands import app

    whole = typer.main.get_command(app)
    assert {"demo", "doctor", *EXTRAS} == {*whole.list_commands(None), "--engine"}
    assert "--engine" in {name for option in whole.params for name in option.opts}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {extra for names in EXTRAS.values() for extra in names.split(",")} <= extras.keys()


@pytest.mark.parametrize("command", ["demo", "doctor"])
def test_options_are_those_of_the_full_command(command):
    typer = pytest.importorskip("typer", reason="needs minifuse[cli]")
    from minifuse.cli.commands import app

    (commands,) = [action for action in base.build_parser()._actions if isinstance(action.choices, dict)]
    own = {a.option_strings[0]: (a.default or None, a.help) for a in commands.choices[command]._actions if a.dest != "help"}
    whole = typer.main.get_command(app).commands[command]
    defaults = {"--seed": " Default: 0."}  # which Typer adds
    assert own == {p.opts[0]: (p.default or None, p.help + defaults.get(p.opts[0], "")) for p in whole.params}
    assert commands.choices[command].description == whole.help


@pytest.mark.parametrize(("option", "smallest"), [("--epochs", 1), ("--digits", 8)])
def test_numbers_of_the_demo_have_a_smallest_value(run, option, smallest):
    for text in (str(smallest - 1), "many"):
        status, out, err = run("demo", option, text)
        assert (status, out) == (2, "")
        assert f"argument {option}: got {text}, expected an integer of at least {smallest}" in err
    assert base.at_least(smallest)(str(smallest)) == smallest


def test_the_full_help_names_each_command():
    pytest.importorskip("typer", reason="needs minifuse[cli]")
    from typer.testing import CliRunner

    from minifuse.cli.commands import app

    out = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    for command in ("demo", "doctor", *EXTRAS):
        assert re.search(rf"^\W*{command}  ", out, re.MULTILINE), command


def test_the_version_is_an_option(run):
    pytest.importorskip("typer", reason="needs minifuse[cli]")
    assert run("--version", without=()) == run("--version") == (0, f"minifuse {mf.__version__}\n", "")


def test_doctor_prints_the_same_with_and_without_typer(run, monkeypatch):
    pytest.importorskip("typer", reason="needs minifuse[cli]")
    monkeypatch.setattr(doctor, "examine", lambda: {"A heading": [doctor.DoctorFinding("a part", "[1]"), WRONG]})
    told = run("doctor", without=())
    assert told == run("doctor")
    assert told[:2] == (1, "A heading\nok  a part   [1]\n--  another  none\n             install it\n")
    assert json.loads(run("doctor", "--json")[1])[1]["advice"] == "install it"


WRONG = doctor.DoctorFinding("another", "none", False, "install it")


def test_doctor_wraps_long_lines(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    doctor.show({"A heading": [doctor.DoctorFinding("a part", "word " * 30, False, "install " * 10)]})
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(" ".join(lines).split()).endswith("word " * 30 + ("install " * 10).strip())


def test_doctor_names_the_version_of_minifuse():
    assert next(iter(doctor.describe_machine())) == doctor.DoctorFinding("minifuse", mf.__version__)


def test_doctor_reports_a_library_of_the_driver_that_cannot_be_loaded(monkeypatch):
    def refuse(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(doctor.ctypes, "CDLL", refuse)
    assert doctor.describe_gpu(0).startswith("does not answer: ")


# NumPy 2.5


@pytest.fixture
def new_numpy(monkeypatch):
    """NumPy says that it is 2.5.1, after Numba has looked at the version that is installed."""
    with suppress(MissingPartError):
        compiler.numba_cuda()
    monkeypatch.setattr(np, "__version__", "2.5.1")


@pytest.mark.parametrize(("version", "fits"), [("2.0.0", True), ("2.4.9", True), ("2.5.0", False), ("3.0.0", False)])
def test_numba_cuda_fits_versions_of_numpy_before_2_5(monkeypatch, version, fits):
    monkeypatch.setattr(np, "__version__", version)
    assert driver.is_numpy_supported() is fits


@pytest.mark.usefixtures("new_numpy")
def test_compiling_for_cuda_with_a_numpy_too_new_names_the_remedy():
    pytest.importorskip("numba_cuda", reason="needs minifuse[cuda13]")
    with pytest.raises(
        MissingPartError, match=r'older than 2\.5, and NumPy 2\.5\.1 is installed; run: pip install "numpy<2\.5"'
    ):
        compiler.numba_cuda()


@pytest.mark.usefixtures("new_numpy")
def test_a_gpu_with_a_numpy_too_new_names_the_remedy(monkeypatch):
    monkeypatch.setattr(driver, "import_module", lambda name: None)
    with pytest.raises(MissingPartError, match=r'pip install "numpy<2\.5", or set MINIFUSE_CUDA=simulated'):
        driver.require_cuda_packages(driver.DriverInfo(1, 13000, ""))


@pytest.mark.usefixtures("new_numpy")
@pytest.mark.parametrize("gpus", [0, 1])
def test_doctor_names_a_numpy_too_new_for_cuda(monkeypatch, gpus):
    monkeypatch.setattr(driver, "query_driver", lambda: driver.DriverInfo(gpus, 13000, ""))
    monkeypatch.setattr(doctor.metadata, "version", lambda name: "1.0")
    monkeypatch.setattr(doctor, "describe_gpu", lambda index: "a GPU")
    monkeypatch.setattr(doctor, "check_cuda_kernel", lambda found: doctor.DoctorFinding("a CUDA kernel", "run"))
    found = {finding.topic: finding for finding in doctor.check_cuda()}
    assert found["NumPy"].found == "2.5.1, too new for numba-cuda"
    assert (found["NumPy"].ok, found["NumPy"].needed) == (False, bool(gpus))
    assert found["NumPy"].advice == 'pip install "numpy<2.5"'
    assert "to PTX" not in found
    assert ("a CUDA kernel" in found) is (gpus == 0)
