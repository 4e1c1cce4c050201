"""Pasted kernels run in a process that can only compute: 300 hostile texts have no effect outside it."""

import json
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from textwrap import indent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minifuse.core.errors import MinifuseError
from project.sandbox import run
from project.sandbox.run import PastedRun, run_pasted
from project.views import plain
from project.views.cited_facts import TRACED, Fact, Line
from project.views.picture import LOAD, Cell, Edge, Frame, Grid, Hull, Picture
from tests.sources import ROOT

pytestmark = pytest.mark.skipif(not run.is_supported(), reason="needs Linux with seccomp")

KERNEL = """from numba import cuda

@cuda.jit
def scale(x, y, n=50):
    i = cuda.grid(1)
    if i < n:
        y[i] = 2 * x[i]
"""

SLACK_SECONDS = 60  # for a busy machine, beside the time that a kernel may take

# Statements that try to leave the process, or to use up the machine.
ATTACKS = {
    "fork": "import os\nwhile True: os.fork()",
    "spawn": "import os\nos.posix_spawn('/bin/touch', ['touch', CANARY], {})",
    "shell": "import os\nassert os.system(f'touch {CANARY}') == 0",
    "subprocess": "import subprocess\nsubprocess.run(['touch', CANARY], check=True)",
    "exec": "import os\nos.execv('/bin/touch', ['touch', CANARY])",
    "threads": "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,)).start()",
    "tcp": "import socket\nsocket.create_connection(('127.0.0.1', 22))",
    "unix socket": "import socket\nsocket.socket(socket.AF_UNIX)",
    "url": "import urllib.request\nurllib.request.urlopen('http://127.0.0.1')",
    "read": "open('/etc/passwd').read()",
    "write": "open(CANARY, 'w').write('x')",
    "write here": "open('x', 'w').write('x' * 10**9)",
    "make folder": "import os\nos.mkdir(CANARY)",
    "remove": "import os\nos.remove(VICTIM)",
    "rename": "import os\nos.rename(VICTIM, CANARY)",
    "link": "import os\nos.symlink('/etc/passwd', CANARY)",
    "change mode": "import os\nos.chmod(VICTIM, 0)",
    "list": "import os\nos.listdir('/')",
    "kill parent": "import os\nos.kill(os.getppid(), 9)",
    "kill all": "import os\nos.kill(-1, 9)",
    "become root": "import os\nos.setuid(0)",
    "raise limits": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "system call": "import ctypes\nassert ctypes.CDLL(None).mkdir(CANARY.encode(), 511) == 0",
    "memory": "x = []\nwhile True: x.append(bytearray(10**7))",
    "one array": "import numpy as np\nnp.ones(10**10)",
    "endless": "while True: pass",
    "recursion": "def f(): return f()\nf()",
    "large number": "x = 10 ** 10 ** 8",
    "print": "print('x' * 10**8)",
    "leave": "import os\nos._exit(0)",
}

# Where a text may have a statement.
PLACES = {
    "text": lambda code: f"{code}\n{KERNEL}",
    "end": lambda code: f"{KERNEL}\n{code}",
    "function": lambda code: f"def run():\n{indent(code, '    ')}\nrun()\n{KERNEL}",
    "class": lambda code: f"class A:\n    def __init__(self):\n{indent(code, '        ')}\nA()\n{KERNEL}",
    "caught": lambda code: f"try:\n{indent(code, '    ')}\nexcept BaseException:\n    pass\n{KERNEL}",
    "decorator": lambda code: f"def run(f):\n{indent(code, '    ')}\n    return f\n@run\ndef other(): pass\n{KERNEL}",
    "default": lambda code: f"def run():\n{indent(code, '    ')}\ndef other(x=run()): pass\n{KERNEL}",
    "string": lambda code: f"exec({code!r})\n{KERNEL}",
    "kernel": lambda code: f"def run():\n{indent(code, '    ')}\n{KERNEL.replace('y[i] = 2', 'run(); y[i] = 2')}",
    "later": lambda code: f"import atexit\ndef run():\n{indent(code, '    ')}\natexit.register(run)\n{KERNEL}",
}


@pytest.fixture(autouse=True)
def _end_spare():
    """Leave no process to the next test, which counts them."""
    yield
    run.end_spare()


def processes():
    """The ids of the processes that this one has started, or that are left of them."""
    threads = Path(f"/proc/{os.getpid()}/task").iterdir()
    return {int(x) for thread in threads for x in (thread / "children").read_text().split()}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_text_has_no_effect_outside(attack, place, tmp_path):
    canary, victim = tmp_path / "canary", tmp_path / "victim"
    victim.write_text("whole")
    before, start = processes(), time.monotonic()
    names = f"CANARY, VICTIM = {str(canary)!r}, {str(victim)!r}\n"
    with suppress(MinifuseError):
        assert isinstance(run_pasted(PLACES[place](names + ATTACKS[attack])), PastedRun)
    assert time.monotonic() - start < run.START_SECONDS + run.RUN_SECONDS + SLACK_SECONDS
    assert not canary.exists()
    assert not canary.is_symlink()
    assert victim.read_text() == "whole"
    assert victim.stat().st_mode & 0o400
    assert processes() <= before


def test_a_kernel_is_run_and_shown():
    found = run_pasted(KERNEL, "2", "32", "", (1, 20))
    assert (found.name, found.example) == ("scale", "x=64:float32 y=64:float32")
    assert "50 of 64 threads touch memory" in found.picture.sentence
    counts = {line.text.strip(): dict(line.counts) for line in found.lines}
    assert counts["y[i] = 2 * x[i]"] == {"lanes": 18, "loads": 50, "stores": 50, "sectors": 14}
    assert Fact("lines that it ran", "2", TRACED) in found.facts


def test_the_launch_of_a_kernel_of_two_dims_follows_from_its_text():
    text = "from numba import cuda\n\n@cuda.jit\ndef copy(o, a):\n    x, y = cuda.grid(2)\n    o[y, x] = a[y, x]\n"
    found = run_pasted(text)
    assert found.example == "o=16,16:float32 a=16,16:float32"
    assert found.picture.sentence.startswith("4 blocks of 64 threads: 256 of 256 threads touch memory")


def test_a_prepared_process_answers_one_request_and_is_replaced():
    before = processes()
    run.prepare_child()
    run.prepare_child()
    (spare,) = run._spares
    child = spare.result()
    assert processes() - before == {child.pid}
    assert run_pasted(KERNEL).name == "scale"
    assert child.poll() is not None
    assert processes() <= before
    assert run_pasted(KERNEL).name == "scale"


def test_a_prepared_process_that_died_is_replaced():
    run.prepare_child()
    (spare,) = run._spares
    spare.result().kill()
    spare.result().wait()
    assert run_pasted(KERNEL).name == "scale"


def test_a_prepared_process_has_given_up_its_rights():
    run.prepare_child()
    (spare,) = run._spares
    status = Path(f"/proc/{spare.result().pid}/status").read_text()
    assert re.search(r"^Seccomp:\s+2$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
    assert not re.search(r"^Uid:.*\b0\b", status, re.MULTILINE)
    assert not Path(f"/proc/{spare.result().pid}/cwd").resolve().exists()


def test_a_process_ends_with_the_app_even_if_that_is_killed():
    script = "from project.sandbox import run; run.prepare_child(); print(run._spares[0].result().pid, flush=True); input()"
    app = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    child = Path(f"/proc/{int(app.stdout.readline())}")
    assert child.exists()
    app.kill()
    app.communicate()
    for _ in range(600):
        if not child.exists() or "(zombie)" in (child / "status").read_text():
            return
        time.sleep(0.1)
    raise AssertionError("the process goes on without the app")


@pytest.mark.parametrize("example", ["a kernel", "exercise: the index formula"])
def test_the_page_runs_its_examples(example):
    pytest.importorskip("streamlit", reason="needs minifuse[app]")
    from streamlit.testing.v1 import AppTest

    from project.screens import pasted_kernel

    def draw():
        from project.screens.pasted_kernel import page

        page()

    app = AppTest.from_function(draw, default_timeout=60).run()
    app.selectbox(key="pasted_example").set_value(example).run()
    assert not app.exception
    assert not app.error
    assert app.get("bidi_component")
    assert app.text_area(key="pasted_text").value == pasted_kernel.EXAMPLES[example]
    if "exercise" in example:
        assert any(caption.value.startswith("Not yet: 0 of 64 elements") for caption in app.caption)
        app.text_area(key="pasted_text").set_value(pasted_kernel.KERNEL).run()
        assert any(caption.value.startswith("Solved: each of the 64 elements") for caption in app.caption)
    [box] = [place for place in app.expander if place.label == "The text that runs"]
    verdict = box.caption[0].value.replace("\\", "")
    assert verdict.startswith("scale (x=64:float32 y=64:float32): 2 blocks of 32 threads: ")
    app.text_area(key="pasted_text").set_value("import os").run()
    assert "the text has no kernel" in app.error[0].value


def test_the_text_is_not_run_by_this_process(monkeypatch):
    ran = []
    monkeypatch.setattr("builtins.exec", ran.append)
    monkeypatch.setattr("builtins.eval", ran.append)
    assert run_pasted(KERNEL).name == "scale"
    assert ran == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text has no kernel; write a function with @cuda.jit"),
        ("def f(:", "line 1: invalid syntax"),
        ("__global__ void k(float *a) { a[threadIdx.x] = 1; }", "this is CUDA C++; expected Python for numba.cuda, as in\n"),
        ("1 / 0", "the text raised ZeroDivisionError: division by zero"),
        ("x" * 20_000, "a text of 20,000 characters; expected at most 10,000"),
        (KERNEL.replace("y[i]", "z[i]"), "z at pasted.py:7 is not supported"),
    ],
)
def test_a_bad_text_says_what_is_wrong(text, message):
    with pytest.raises(MinifuseError, match=re.escape(message)):
        run_pasted(text)


@pytest.mark.parametrize(
    ("grid", "message"),
    [("0", "grid 0: expected one to three positive sizes"), ("999", "999 blocks of 32 threads are 31,968 threads")],
)
def test_a_bad_launch_says_what_was_expected(grid, message):
    with pytest.raises(MinifuseError, match=message):
        run_pasted(KERNEL, grid)


def test_without_seccomp_no_text_is_run(monkeypatch):
    monkeypatch.setattr(run, "is_supported", lambda: False)
    with pytest.raises(MinifuseError, match="this system cannot run a text safely; it needs Linux with seccomp"):
        run_pasted(KERNEL)


PICTURES = st.builds(
    Picture,
    st.text(max_size=5),
    st.just((Grid("a", "t", 1, 2, (Cell(0, 0, "1", "l", LOAD, ("x",)), Cell(0, 1, "", "")), offsets=(0.5, 2.0)),)),
    st.lists(st.builds(Frame, st.text(max_size=5), line=st.none() | st.integers(0, 9)), max_size=2).map(tuple),
    edges=st.just((Edge(("a", 0, 0), ("a", 0, 1), LOAD, "7"),)),
    hulls=st.just((Hull(("a", 0, 0), 1, 2),)),
    numbers=st.just((("7", "loads"),)),
)


@given(PICTURES)
@settings(derandomize=True, max_examples=30, deadline=None)
def test_pictures_cross_the_border_unchanged(picture):
    sent = json.loads(json.dumps(plain.as_plain(picture)))
    assert plain.from_plain(Picture, sent) == picture


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"number": "3", "text": ""},
        {"number": 3},
        {"number": 3, "text": "", "counts": [["a"]]},
        {"number": 3, "text": "", "other": 1},
        {"number": True, "text": ""},
    ],
)
def test_data_of_another_form_is_refused(value):
    with pytest.raises((TypeError, ValueError)):
        plain.from_plain(Line, value)
