"""Installs a wheel into new environments outside of the checkout, and checks what its user runs first.

    python3.13 tests/check_wheel.py WHEEL                  # with the newest versions of all packages
    python3.13 tests/check_wheel.py WHEEL numpy==2.1.0     # and what pip should install beside it

The Python that runs this file is checked. It needs venv and a registry of packages, and nothing else: this file imports
only the standard library. `make test-wheel PYTHON=python3.13` builds the wheel first.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path

EXTRAS = "app,bench,course,notebooks,test,train"
SOLUTION = Path(__file__).parent / "course" / "reference" / "operators.py"
SMALL_GPT = ["--epochs", "1", "--batch", "256", "--set", "layers=1", "--set", "heads=2", "--set", "width=16"]
COLUMNS = 80
SECONDS = 900  # for one command

CORE = {"minifuse", "numpy", "numba", "llvmlite"}
PACKAGES = "import importlib.metadata as m, json; print(json.dumps({d.name.lower(): d.version for d in m.distributions()}))"
FILES = """
import json, pathlib, minifuse
folder = pathlib.Path(minifuse.__file__).parent
names = ["py.typed", "data/images/digits.npz", "data/texts/sonnets.txt", "_visualizer/project/app.py"]
print(json.dumps([str(folder), [name for name in names if not (folder / name).is_file()]]))
"""
FUSED = """
import numpy as np
import minifuse as mf

def scaled(x, y):
    return (x * 2 + y).exp().sum(-1)

x = np.linspace(-1, 1, 6000, dtype=np.float32).reshape(20, 300)
tensors = mf.tensor(x, requires_grad=True), mf.tensor(x[::-1].copy())
fused, plain = mf.fuse(scaled)(*tensors), scaled(*tensors)
np.testing.assert_allclose(fused.detach().numpy(), np.exp(x * 2 + x[::-1]).sum(-1), rtol=1e-5)
np.testing.assert_allclose(fused.detach().numpy(), plain.detach().numpy(), rtol=1e-5)
fused.sum().backward()
np.testing.assert_allclose(tensors[0].grad.numpy(), 2 * np.exp(x * 2 + x[::-1]), rtol=1e-5)
print(len(mf.data.sonnets()))
"""
EXPLAINED = """
import minifuse as mf

def softmax(x):
    e = (x - x.max(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
"""
KERNEL = """
import numpy as np
from numba import cuda

@cuda.jit
def shift(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i + 1]

x = np.arange(32, dtype=np.float32)
shift[1, 32](x, np.zeros_like(x))
"""
TESTS = """
import minifuse as mf

def test_sum(backend):
    assert mf.ones(3).sum().item() == 3
    assert mf.ones(3).backend == backend
"""
PAGE = """
from streamlit.testing.v1 import AppTest
import minifuse, pathlib

page = pathlib.Path(minifuse.__file__).parent / "_visualizer" / "project" / "app.py"
app = AppTest.from_file(str(page), default_timeout=120).run()
assert not app.exception, app.exception
print(app.title[0].value if app.title else len(app.main))
"""


class Environment:
    """An environment with the wheel, and an empty folder in which its commands run."""

    def __init__(self, folder: Path, wheel: str, more: list[str]) -> None:
        self.folder, self.work = folder, folder / "work folder"
        self.work.mkdir(parents=True)
        hidden = ("PYTHON", "MINIFUSE", "STREAMLIT")
        self.variables = {name: text for name, text in os.environ.items() if not name.startswith(hidden)}
        self.variables |= {"COLUMNS": str(COLUMNS), "NO_COLOR": "1", "OMP_WAIT_POLICY": "passive"}
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.variables["PATH"] = os.pathsep.join([str(self.bin), os.environ["PATH"]])  # as in an activated environment
        self.run("python", "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", wheel, *more)
        self.variables["HOME"] = str(self.work)  # from here on: pip finds its cache in the real one

    def run(self, *command: str, status: int = 0) -> str:
        """Run a command of the environment; return its output. Raise AssertionError if it ends with another status."""
        words = [str(self.bin / command[0]), *command[1:]]
        done = subprocess.run(
            words, cwd=self.work, env=self.variables, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        text = done.stdout + done.stderr
        assert done.returncode == status, f"{' '.join(command)[:300]} ended with {done.returncode}:\n{text[-3000:]}"
        return text

    def python(self, code: str) -> str:
        """Run Python code, with warnings as errors."""
        return self.run("python", "-W", "error", "-c", code)

    def minifuse(self, *arguments: str, status: int = 0) -> str:
        """Run the command `minifuse`."""
        return self.run("minifuse", *arguments, status=status)

    def write(self, name: str, text: str) -> str:
        """Write a file into the folder, and return its name."""
        (self.work / name).write_text(text, encoding="utf-8")
        return name

    def versions(self) -> dict[str, str]:
        """Return the installed packages with their versions."""
        found: dict[str, str] = json.loads(self.python(PACKAGES))
        return found


class WheelCheck:
    """The checks that ran, with their seconds and results."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, str]] = []

    def __call__(self, name, function, *arguments):
        """Run a check, note how it ended, and return its result, or None."""
        start = time.monotonic()
        result, text = None, "ok"
        try:
            result = function(*arguments)
            text = result.partition("\n")[0] if isinstance(result, str) else text
        except Exception as error:
            sys.stderr.write(f"\n{name}: {type(error).__name__}: {error}\n")
            text = "FAILED"
        self.rows.append((name, time.monotonic() - start, text))
        print(f"{name:<34} {self.rows[-1][1]:6.1f} s  {text}", flush=True)
        return result

    def failures(self) -> int:
        """Return the number of checks that failed."""
        return sum(text == "FAILED" for _, _, text in self.rows)


# The wheel alone


def check_packages(core: Environment) -> str:
    versions = core.versions()
    more = versions.keys() - CORE - {"pip", "setuptools", "wheel"}
    assert not more, f"also installed: {more}"
    return ", ".join(f"{name} {versions[name]}" for name in ("numpy", "numba"))


def check_files(core: Environment) -> str:
    folder, missing = json.loads(core.python(FILES))
    assert Path(folder).is_relative_to(core.folder.resolve()), folder
    assert not missing, missing
    return f"{sum(path.stat().st_size for path in Path(folder).rglob('*.*') if path.is_file()) / 1e6:.1f} MB"


def check_output(core: Environment, *arguments: str) -> str:
    lines = core.minifuse(*arguments).splitlines()
    assert lines
    assert max(map(len, lines)) <= COLUMNS, max(lines, key=len)
    return f"{len(lines)} lines"


def check_demo(core: Environment) -> str:
    lines = core.minifuse("demo", "--epochs", "5").splitlines()
    assert max(map(len, lines)) <= COLUMNS, lines
    accuracy = re.match(r"([\d.]+)% of test digits", lines[1])
    assert accuracy, lines
    assert float(accuracy[1]) > 90, lines
    return lines[1]


def check_other_commands(core: Environment) -> str:
    text = core.minifuse("--help").partition("these commands need more packages:")[2]
    groups = re.findall(r"\n  (\S.*(?:\n  \S.*)*)\n      (pip install \S+)", text)
    commands = [(name, line) for names, line in groups for name in re.split(r",\s+(?:and\s+the\s+option\s+)?", names)]
    assert len(commands) > 10, text
    for name, line in commands:
        said = core.minifuse(name, status=2)
        assert said == f"minifuse {name} needs typer, which is not installed; run: {line}\n", said
    return f"{len(commands)} commands"


# With its extras


def check_app(whole: Environment) -> str:
    """Start the server, and get its page."""
    words = [str(whole.bin / "minifuse"), "app", "--port", "8750"]
    with subprocess.Popen(words, cwd=whole.work, env=whole.variables, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            line = next((line for line in server.stdout if "http://" in line), "")
            address = re.search(r"http://([^:/]+):(\d+)", line)
            assert address, line
            connection = HTTPConnection(address[1], int(address[2]), timeout=60)
            connection.request("GET", "/")
            answer = connection.getresponse()
            page = answer.read()
            assert answer.status == 200, answer.status
            assert b"<title>" in page
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(60)
    return f"HTTP {answer.status}, {len(page):,} bytes"


def check_course(whole: Environment) -> str:
    whole.minifuse("course", "init", "mine")
    whole.minifuse("course", "check", "0.1", "--dir", "mine", status=1)
    shutil.copy(SOLUTION, whole.work / "mine" / SOLUTION.name)
    whole.minifuse("course", "check", "0.1", "--dir", "mine")
    facts = json.loads(whole.minifuse("course", "status", "--dir", "mine", "--json"))
    assert '"0.1"' in json.dumps(facts)
    return "task 0.1 pending, then passed"


def check_training(whole: Environment, name: str, *arguments: str) -> str:
    out = whole.minifuse("train", name, "--out", f"run of {name}", *arguments)
    files = sorted(path.name for path in (whole.work / f"run of {name}").iterdir())
    assert any(file.endswith(".safetensors") for file in files), (files, out)
    return f"{len(files)} files"


def check_kernel(whole: Environment) -> str:
    out = whole.minifuse("check", whole.write("shift.py", KERNEL), status=1)
    assert "bounds" in out, out
    return "the read past the end is found"


def check_explain(whole: Environment) -> str:
    out = whole.minifuse("explain", whole.write("softmax.py", EXPLAINED) + ":softmax", "--shape", "64x1000")
    assert "1 kernel" in out, out
    return out.splitlines()[0].strip()


def check_plugin(whole: Environment) -> str:
    out = whole.run("python", "-m", "pytest", "-q", whole.write("test_sums.py", TESTS), "-p", "no:cacheprovider")
    return out.splitlines()[-1].strip()


def main(wheel: str, *more: str) -> int:
    """Check a wheel, print a table, and return 1 if something fails."""
    check, path = WheelCheck(), Path(wheel).resolve()
    print(f"Python {sys.version.split()[0]}, {path.name}, {path.stat().st_size / 1e6:.1f} MB, {' '.join(more) or 'newest'}")
    with tempfile.TemporaryDirectory(prefix="a wheel ") as folder:
        core = check("pip install minifuse", Environment, Path(folder, "core"), str(path), list(more))
        if core:
            check("packages", check_packages, core)
            check("files", check_files, core)
            check("minifuse --version", check_output, core, "--version")
            check("minifuse --help", check_output, core, "--help")
            check("minifuse doctor", check_output, core, "doctor")
            check("minifuse demo", check_demo, core)
            check("commands that need an extra", check_other_commands, core)
            check("tensors and mf.fuse", core.python, FUSED)
        requirement = f"minifuse[{EXTRAS}] @ {path.as_uri()}"
        whole = check("pip install minifuse[...]", Environment, Path(folder, "whole"), requirement, list(more))
        if whole:
            versions = whole.versions()
            print(
                "    " + ", ".join(f"{name} {versions[name]}" for name in ("numpy", "numba", "streamlit", "typer", "pytest"))
            )
            check("minifuse doctor, whole", check_output, whole, "doctor")
            check("minifuse demo, whole", check_demo, whole)
            check("minifuse app", check_app, whole)
            check("a page as a script", whole.run, "python", "-c", PAGE)
            check("minifuse course", check_course, whole)
            check("minifuse train mlp", check_training, whole, "mlp", "--epochs", "2")
            check("minifuse train gpt", check_training, whole, "gpt", *SMALL_GPT)
            check("minifuse check", check_kernel, whole)
            check("minifuse explain", check_explain, whole)
            check("the plugin of pytest", check_plugin, whole)
    print(f"{len(check.rows) - check.failures()} of {len(check.rows)} checks passed")
    return int(check.failures() > 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("expected a wheel: python3.13 tests/check_wheel.py dist/minifuse-0.1.0-py3-none-any.whl")
    sys.exit(main(*sys.argv[1:]))
