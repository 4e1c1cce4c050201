"""Ctrl-C during long calls: child processes send themselves the signal while a kernel runs."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="this platform sends no signal to a process alone")

PROGRAM = """
import ctypes, os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts jobs with & ignores SIGINT in them
import numpy as np
import minifuse as mf
from minifuse.backends.parallel import driver as driver_module
from minifuse.backends.parallel.driver import CpuKernelLauncher
from minifuse.backends.parallel.compiler import compile_kernel_text
from minifuse.backends.parallel.driver import driver

def word(name, index=0):
    return driver_module._pool()._word(name, index).value

def send(when):  # a signal as soon as this is true
    def watch():
        while not when():
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=watch)
    thread.start()
    return thread

# Each point takes some milliseconds, or none once `hurry` was called, and notes that it is done.
STEPS = 1_000_000
slow = compile_kernel_text(f'''
def kernel(start, stop, args):
    for i in range(start, stop):
        x = i
        if args[0] == 0:
            for _ in range({STEPS}):
                x = mul(x, 6364136223846793005) ^ (x >> 7)
        args[1 + i] = x | 1
''')

def new(points):  # arguments of the slow kernel
    return bytes(8 + 8 * points)

def hurry(args):
    ctypes.c_int64.from_address(ctypes.cast(args, ctypes.c_void_p).value).value = 1

def done(args):  # how many points
    return np.count_nonzero(np.frombuffer(args, np.int64)[1:])

def is_interrupted(call):
    try:
        call()
    except KeyboardInterrupt:
        return True
    return False

def assert_pool_is_right():
    args = new(16)
    driver()(slow, 16, 8, args)
    assert done(args) == 16
    assert word("busy") == 0
    x = mf.tensor(np.arange(1 << 20, dtype=np.float64))
    assert (x * 2 + 1).sum().item() == float((1 << 20) * ((1 << 20) - 1) + (1 << 20))
"""


def run(script, threads=2):
    """Run a script behind PROGRAM in a child process."""
    environment = os.environ | {"MINIFUSE_THREADS": str(threads)}
    command = [sys.executable, "-c", PROGRAM + script]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "right\n"


MANY = 100_000  # points of the slow kernel: minutes, if nothing stops it


@pytest.mark.parametrize("threads", [1, 3])
def test_a_signal_stops_a_call_between_its_chunks(threads):
    run(
        f"""
for _ in range(2):
    args = new({MANY})
    watcher = send(lambda: done(args))
    assert is_interrupted(lambda: driver()(slow, {MANY}, {MANY} // 2, args))
    assert 0 < done(args) < {MANY}
    watcher.join()
assert_pool_is_right()
print("right")
""",
        threads,
    )


def test_a_call_that_finds_the_pool_busy_stops_alone():
    run(f"""
Kernel = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
inside, finished = threading.Event(), threading.Event()
wait = Kernel(lambda start, stop, args: (inside.set(), finished.wait(60)))
other = threading.Thread(target=lambda: driver()(ctypes.cast(wait, ctypes.c_void_p).value, 4, 4, bytes(100)))
other.start()
assert inside.wait(60)
args = new({MANY})
send(lambda: done(args))
assert is_interrupted(lambda: driver()(slow, {MANY}, {MANY} // 2, args))
assert 0 < done(args) < {MANY}
finished.set()
other.join()
assert_pool_is_right()
print("right")
""")


def test_a_signal_during_a_call_of_another_thread_is_the_main_threads():
    """The call goes on: Python runs handlers on its main thread."""
    run(f"""
args, finished = new({MANY}), threading.Event()
other = threading.Thread(target=lambda: (driver()(slow, {MANY}, {MANY} // 2, args), finished.set()))
send(lambda: done(args))
assert is_interrupted(lambda: (other.start(), finished.wait(60)))
assert done(args) < {MANY}
hurry(args)
assert finished.wait(60) and done(args) == {MANY}
assert_pool_is_right()
print("right")
""")


def test_a_handler_that_raises_nothing_runs_and_the_call_ends_right():
    run(f"""
seen = []
def handle(number, frame):
    seen.append((done(args), word("busy")))
    hurry(args)
signal.signal(signal.SIGINT, handle)
args = new({MANY})
send(lambda: done(args))
driver()(slow, {MANY}, {MANY} // 2, args)
(points, busy), = seen
assert 0 < points < {MANY} and busy == 1 and done(args) == {MANY}
print("right")
""")


def test_a_handler_may_compute_and_raise_an_error_of_its_own():
    run(f"""
class Stop(Exception):
    pass
def handle(number, frame):
    assert (mf.ones(1 << 20) + 1).sum().item() == 2.0**21
    raise Stop
signal.signal(signal.SIGINT, handle)
args = new({MANY})
send(lambda: done(args))
try:
    driver()(slow, {MANY}, {MANY} // 2, args)
except Stop:
    assert 0 < done(args) < {MANY}
    assert_pool_is_right()
    print("right")
""")


def test_no_handler_and_no_wakeup_descriptor_is_installed():
    run("""
before = signal.getsignal(signal.SIGINT)
assert before is signal.default_int_handler
args = new(64)
driver()(slow, 64, 32, args)
assert signal.getsignal(signal.SIGINT) is before
assert signal.set_wakeup_fd(-1) == -1
print("right")
""")


# Whole operations

OPERATIONS = {
    "pointwise": ("x ** y", "line(1 << 24), line(1 << 24)"),
    "two rows": ("x ** y", "line(1 << 24).reshape(2, -1), mf.tensor([[1.3], [1.7]], dtype=mf.float64)"),
    "fused": ("mf.sin(mf.cos(x ** y)) ** x", "line(1 << 23), line(1 << 23)"),
    "reduction": ("(x ** y).sum(1)", "line(1 << 24).reshape(1 << 13, -1), line(1 << 11)"),
    "product": ("x @ y", "line(9_000_000).reshape(3000, 3000), line(9_000_000).reshape(3000, 3000)"),
    "product of one tile": ("x @ y.T", "line(1 << 22).expand(64, -1), line(1 << 22).expand(64, -1)"),
    "epilogue": ("mf.relu(x @ y + 1)", "line(9_000_000).reshape(3000, 3000), line(9_000_000).reshape(3000, 3000)"),
    "convolution": ("mf.nn.functional.conv2d(x, y)", "mf.rand(16, 64, 128, 128), mf.rand(128, 64, 3, 3)"),
}
WHOLE = """
calls = []
drive = driver()
def note(kernel, count, chunks, args):
    calls.append(chunks)
    drive(kernel, count, chunks, args)
    calls.append("finished")
bound = CpuKernelLauncher.__init__
def init(self, *args, **options):
    bound(self, *args, **options)
    self.drive = note
CpuKernelLauncher.__init__ = init

def line(n):
    return mf.tensor(np.linspace(0.5, 1.5, n))

def is_inside():
    return word("busy") and calls and calls[-1] != "finished" and calls[-1] > 1

def check(name, f, x, y):
    f.compile(x, y)
    calls.clear()
    watcher, results = send(is_inside), []
    assert is_interrupted(lambda: results.append(f(x, y))), name
    assert not results and calls[-1] != "finished", name
    watcher.join()
"""


def run_operations(threads):
    """Interrupt each operation in one child process."""
    checks = [f"check({name!r}, mf.fuse(lambda x, y: {f}), {inputs})" for name, (f, inputs) in OPERATIONS.items()]
    run("\n".join([WHOLE, *checks, "assert_pool_is_right()", 'print("right")']), threads)


def test_an_interrupted_operation_returns_no_result():
    run_operations(2)


@pytest.mark.thorough
@pytest.mark.parametrize("threads", [1, 3])
def test_it_returns_none_with_any_number_of_threads(threads):
    run_operations(threads)
