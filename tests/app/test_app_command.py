"""`minifuse app` and `minifuse layout`: the server starts, prints its address, and ends; the wheel contains the pages."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from contextlib import closing
from http.client import HTTPConnection
from zipfile import ZipFile

import numpy as np
import pytest
from typer.testing import CliRunner

import minifuse as mf
from minifuse.cli import app as server
from minifuse.cli import files
from minifuse.cli.commands import app
from minifuse.core.errors import MinifuseError, MissingPartError
from tests.sources import ROOT

KERNEL = """
from numba import cuda

@cuda.jit
def scale(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = 2 * x[i]
"""


def invoke(*arguments):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})


@pytest.fixture
def used_port():
    """Return a port on which another socket listens."""
    with socket.socket() as other:
        other.bind((server.HOST, 0))
        other.listen()
        yield other.getsockname()[1]


# minifuse app


def test_app_serves_on_the_next_free_port_until_sigterm(tmp_path, used_port):
    """The working directory is a folder of the user, and the requested port is in use."""
    pytest.importorskip("streamlit", reason="needs minifuse[app]")
    process = subprocess.Popen(
        [sys.executable, "-m", "minifuse", "app", "--port", str(used_port)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        first, second = process.stdout.readline(), process.stdout.readline()
        assert first.startswith(f"port {used_port} is in use; using port ")
        address = re.search(r"http://127\.0\.0\.1:(\d+) ", second)
        assert address, second
        assert get(int(address[1]), "/").count('id="root"') == 1
        assert get(int(address[1]), "/strides").count('id="root"') == 1
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in errors
    with pytest.raises(ConnectionRefusedError):
        get(int(address[1]), "/")


def get(port, path):
    with closing(HTTPConnection(server.HOST, port, timeout=30)) as connection:
        connection.request("GET", path)
        return connection.getresponse().read().decode()


def test_free_port_skips_used_ports(used_port):
    assert server.free_port(used_port) != used_port
    assert server.free_port(server.free_port(used_port)) == server.free_port(used_port)


def test_no_free_port_is_an_error(monkeypatch, used_port):
    monkeypatch.setattr(server, "MAX_PORTS", 1)
    with pytest.raises(MinifuseError, match=f"--port {used_port}: .*choose another one"):
        server.free_port(used_port)


def test_server_command_passes_all_settings_of_config_toml():
    line = server.server_command(ROOT, 8600)
    settings = dict(option.removeprefix("--").split("=") for option in line if option.startswith("--"))
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert settings["server.address"] == config["server"]["address"] == "127.0.0.1"
    assert settings["browser.gatherUsageStats"] == "false"
    assert settings["server.headless"] == "true"
    assert settings["runner.postScriptGC"] == "false"
    assert settings["server.port"] == "8600"
    assert settings["theme.dark.primaryColor"] == config["theme"]["dark"]["primaryColor"]
    assert dict(server.flatten_settings(config)).keys() <= settings.keys()


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("192.0.2.1", "--host 192.0.2.1 is no address of this machine"),
        ("no.such.host.invalid", "--host no.such.host.invalid: "),
    ],
)
def test_a_host_that_is_not_here_is_an_error(monkeypatch, host, message):
    monkeypatch.setattr(server, "run_server", None)
    result = invoke("app", "--host", host)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_own_kernel_of_a_public_server_is_an_error(monkeypatch):
    monkeypatch.setattr(server, "run_server", None)
    result = invoke("app", "--public", "--kernel", "mine.py:scale")
    assert result.exit_code == 2
    assert "--kernel cannot be used with --public" in " ".join(result.stderr.split())


def serve_nothing(monkeypatch):
    """Let `minifuse app` start a program that ends at once, and return the variables that it was started with."""
    given = []
    monkeypatch.setattr(server, "server_command", lambda *_: [sys.executable, "-c", "raise SystemExit(3)"])
    run_server = server.run_server
    monkeypatch.setattr(
        server, "run_server", lambda command, variables: given.append(variables) or run_server(command, variables)
    )
    return given


def test_other_machines_with_the_rights_of_the_owner_are_announced(monkeypatch):
    given = serve_nothing(monkeypatch)
    assert "Other machines can use this server with your rights" in invoke("app", "--host", "0.0.0.0").stdout
    assert "Other machines" not in invoke("app").stdout
    assert "Other machines" not in invoke("app", "--host", "0.0.0.0", "--public").stdout
    assert [server.PUBLIC_VARIABLE in variables for variables in given] == [False, False, True]


def test_addresses_of_both_families_are_printed_as_a_browser_takes_them():
    assert server.address_of("192.0.2.1", 8501) == "http://192.0.2.1:8501"
    assert server.address_of("::1", 8501) == "http://[::1]:8501"


def test_nested_settings_have_dotted_names():
    assert list(server.flatten_settings({"a": {"b": {"c": True}, "d": 3}})) == [("a.b.c", "true"), ("a.d", "3")]


def test_user_kernel_is_resolved_to_an_absolute_path(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    assert server.resolve_kernel("mine.py:scale") == f"{tmp_path / 'mine.py'}:scale"
    assert server.resolve_kernel("project/views/kernels.py:scan") == f"{ROOT / 'project/views/kernels.py'}:scan"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mine.py:scal", "mine.py has no kernel or function 'scal'; it has scale"),
        ("other.py:scale", "--kernel: other.py is not a file"),
        ("scale", "--kernel: got scale, expected a kernel in a file, as in --kernel my_kernels.py:scale"),
        ("mine.cu:scale", "--kernel: mine.cu is CUDA C++; minifuse runs kernels written in Python"),
        ("broken.py:scale", "importing broken.py:1 raised ZeroDivisionError"),
    ],
)
def test_invalid_kernel_is_an_error_before_the_server_starts(tmp_path, monkeypatch, text, message):
    (tmp_path / "mine.py").write_text(KERNEL)
    (tmp_path / "broken.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(server, "run_server", None)
    result = invoke("app", "--kernel", text)
    assert result.exit_code == 2
    assert message in result.stderr


def test_missing_streamlit_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    result = invoke("app")
    assert result.exit_code == 2
    assert 'pip install "minifuse[app]"' in result.stderr


def test_missing_pages_error_names_their_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "VISUALIZER_FOLDERS", (tmp_path,))
    with pytest.raises(MissingPartError, match=re.escape(str(tmp_path))):
        files.find_visualizer()


def test_server_exit_is_reported_as_failure(monkeypatch):
    monkeypatch.setattr(server, "server_command", lambda *_: [sys.executable, "-c", "raise SystemExit(3)"])
    result = invoke("app")
    assert result.exit_code == 1
    assert "the server ended" in result.stderr


# minifuse layout


@pytest.mark.parametrize(
    ("shape", "views", "of_numpy"),
    [
        ("3,4", "", lambda x: x),
        ("3,4", ".T", lambda x: x.T),
        ("3,8", "[1:, ::-2]", lambda x: x[1:, ::-2]),
        ("2,3,4", ".permute(2, 0, 1)[1].flip(0)", lambda x: x.transpose(2, 0, 1)[1][::-1]),
        ("1,5", ".expand(4, 5)", lambda x: np.broadcast_to(x, (4, 5))),
        ("", ".unsqueeze(0)", lambda x: x[None]),
        ("0,3", ".T", lambda x: x.T),
    ],
)
def test_layout_command_agrees_with_numpy(shape, views, of_numpy):
    result = invoke("layout", "--shape", shape, "--views", views, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    sizes = tuple(map(int, shape.split(","))) if shape else ()
    expected = of_numpy(np.arange(np.prod(sizes, dtype=int), dtype=np.int64).reshape(sizes))
    last = report["steps"][-1]
    assert tuple(last["shape"]) == expected.shape
    assert report["positions"] == expected.ravel().tolist()
    if expected.size:
        assert [n * 8 for n, size in zip(last["strides"], last["shape"], strict=True) if size > 1] == [
            n for n, size in zip(expected.strides, expected.shape, strict=True) if size > 1
        ]
    assert {fact["truth"] for fact in report["facts"]} <= {"TRACED", "DERIVED", "MEASURED", "THEORY"}
    assert [fact["value"] for fact in report["facts"] if fact["fact"] == "shape"] == [list(expected.shape)]


def test_layout_fits_a_terminal():
    result = invoke("layout", "--shape", "20,24", "--views", ".T")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "  0   24   48" in result.stdout
    assert "... 20 of them" in result.stdout
    assert lines[-1] == "rows 0..15 of 24; --json has all"


@pytest.mark.parametrize(
    ("shape", "views", "message"),
    [
        ("3,-4", "", "a size is -4"),
        ("3,4", ".Tx", "'Tx' is no view that is known here"),
        ("3,4", ".permute(0)", "permute"),
        ("3,4", "[__import__('os')]", f"\n    {' ' * len('[__import__(')}^"),
        ("1000,1000", "", "1,000,000 elements"),
        ("9,9,9,9,9,9,9,9,9", "", "9 dims"),
    ],
)
def test_invalid_layout_request_is_an_error(shape, views, message):
    result = invoke("layout", "--shape", shape, "--views", views)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("minifuse layout: ")
    assert message in result.stderr


def test_user_folder_named_project_is_not_imported(tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "__init__.py").write_text("raise RuntimeError('not this one')")
    line = [sys.executable, "-m", "minifuse", "layout", "--shape", "3"]
    process = subprocess.run(
        line, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr


def test_layout_command_copied_from_the_page_runs():
    """The page "Storage and strides" shows this command for copying."""
    result = invoke("layout", "--shape", "2,2", "--views", ".unsqueeze(0)[0]")
    assert result.exit_code == 0, result.output
    assert "x.unsqueeze(0)[0]" in result.stdout


# Installed files


def test_wheel_contains_the_visualizer(tmp_path):
    """The wheel is built from a source archive, as by `pip install`, so files missing in the archive are missing here."""
    pytest.importorskip("setuptools")
    sources, unpacked = tmp_path / "sources", tmp_path / "unpacked"
    for name in ("minifuse", "project", ".streamlit"):
        shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "LICENSE", "README.md", "pytest_minifuse.py"):
        shutil.copy(ROOT / name, sources / name)
    (sources / COUNTERS_FILE).parent.mkdir(parents=True)
    shutil.copy(ROOT / COUNTERS_FILE, sources / COUNTERS_FILE)
    build(sources, "build_sdist", tmp_path)
    (archive,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, unpacked, filter="data")
    build(next(unpacked.iterdir()), "build_wheel", tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as found:
        names = set(found.namelist())
        found.extractall(tmp_path / "installed")
    packaged = {str(path.relative_to(ROOT)) for path in (ROOT / "project").rglob("*") if path.suffix in PACKAGED_SUFFIXES}
    assert {
        f"minifuse/_visualizer/{name}"
        for name in packaged | {".streamlit/config.toml", ".streamlit/public.toml", COUNTERS_FILE}
    } <= names
    assert not [name for name in names if name.startswith(("project", "tests")) or "__pycache__" in name]
    script = (
        "from minifuse.cli.files import find_visualizer; from minifuse.cli.layout import describe_views; "
        "print(find_visualizer(), describe_views('2', ''))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed"), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert process.stdout.startswith(str(tmp_path / "installed" / "minifuse" / "_visualizer") + " ViewChain("), (
        process.stderr
    )
    line = [sys.executable, "-m", "minifuse", "bench", "a.sum()", "--quick", "--against", "numpy", "--json"]
    process = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert [row["name"] for row in json.loads(process.stdout)["rows"]] == ["a.sum()"]


COUNTERS_FILE = "docs/guide/counters-h200.json"
PACKAGED_SUFFIXES = (".py", ".html", ".css", ".js", ".json")


def build(sources, hook, target):
    line = f"from setuptools import build_meta; build_meta.{hook}({str(target)!r})"
    subprocess.run([sys.executable, "-c", line], cwd=sources, capture_output=True, check=True)


def test_core_imports_neither_streamlit_nor_project():
    """`import minifuse` and the other commands need no streamlit, and add no public name."""
    assert not hasattr(mf, "visualizer")
    script = "import sys; from minifuse.cli.commands import app; print('streamlit' in sys.modules, 'project' in sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.split() == ["False", "False"]
