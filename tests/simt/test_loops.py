"""Loops and recursion that never end: each is stopped after counted iterations, with its line, thread and kernel."""

import sys
import textwrap
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from minifuse import simt
from minifuse.cli.commands import LOOP_LIMIT as LIMIT_OF_COMMANDS
from minifuse.core.errors import LimitError, LoopLimitError, SimtError
from minifuse.simt import cuda
from minifuse.simt.check import check
from minifuse.simt.loops import add_loop_counters
from minifuse.simt.machine import LOOP_LIMIT

LIMIT = 20_000


def passes(a):
    while True:  # here
        pass


def computes(a):
    x = 1
    while x > 0:  # here
        x = (x * 3 + 1) % 1000 + 1


def counts_long(a):
    for _ in range(10**18):  # here
        pass


def counts_nested(a):
    for _ in range(10**18):
        for _ in range(10**9):  # here
            pass


def restarts(a):
    x = 0
    while x < 10:  # here
        x += 1
        if x == 5:
            x = 0
            continue


def polls(a):
    while a[0] == 0:  # here
        pass


def polls_shared(a):
    tile = cuda.shared.array(1, np.int64)
    tile[0] = 0
    while tile[0] == 0:  # here
        pass


def syncs_block(a):
    while True:  # here
        cuda.syncthreads()


def syncs_warp(a):
    while True:  # here
        cuda.syncwarp()


def polls_activemask(a):
    while cuda.activemask():  # here
        pass


def adds(a):
    while True:  # here
        cuda.atomic.add(a, 0, 1)


def locks(a):
    while cuda.atomic.cas(a, 0, 0, 1) != 0:  # here
        pass


def sleeps(a):
    while a[0] == 0:  # here
        cuda.nanosleep(100)


def loop_of_device(a):
    while a[1] >= 0:  # here
        a[1] += 1


def calls_a_loop(a):
    loop_of_device(a)


def fibonacci(n):  # here
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def recurses_exponentially(a):
    a[0] = fibonacci(60)


ENDLESS = [
    *(passes, computes, counts_long, counts_nested, restarts, polls, polls_shared, syncs_block, syncs_warp),
    *(polls_activemask, adds, locks, sleeps, calls_a_loop, recurses_exponentially),
]
WHERE = {calls_a_loop: loop_of_device, recurses_exponentially: fibonacci}


def marked_line(function):
    code = function.__code__
    lines = Path(code.co_filename).read_text(encoding="utf-8").splitlines()
    return next(k for k, line in enumerate(lines, 1) if k >= code.co_firstlineno and line.endswith("# here"))


@pytest.mark.parametrize("kernel", ENDLESS, ids=lambda kernel: kernel.__name__)
def test_endless_kernel_is_stopped_at_its_loop(kernel):
    with pytest.raises(LoopLimitError, match=rf"kernel {kernel.__name__}: 20,000 loop iterations") as info:
        simt.run(kernel, 2, 4, np.zeros(4, np.int64), loop_limit=LIMIT)
    assert info.value.block == (0,)
    assert info.value.threads in {((t,),) for t in range(4)}
    if kernel is not recurses_exponentially:
        assert info.value.lines == ((__file__, marked_line(WHERE.get(kernel, kernel))),)
    assert f"thread {info.value.threads[0][0]} of block 0" in str(info.value)
    assert "loop_limit" in str(info.value)


def test_trace_of_an_endless_kernel_ends_with_loop_limit_error():
    trace = simt.trace(passes, 1, 1, np.zeros(1), loop_limit=LIMIT)
    assert not trace.is_complete
    assert isinstance(trace.hazards()[-1], LoopLimitError)


def recurse_forever(n):
    return recurse_forever(n + 1)


def recurses(a):
    a[0] = recurse_forever(0)


def test_endless_recursion_error_names_kernel_and_line():
    with pytest.raises(LoopLimitError, match=r"kernel recurses: thread 0 of block 0 .* at test_loops.py:\d+; check") as info:
        simt.run(recurses, 1, 1, np.zeros(1))
    assert info.value.lines == ((__file__, recurse_forever.__code__.co_firstlineno + 1),)


def grows(a):
    x = 3
    for i in range(10**6):
        x = x * 31 + i
    a[0] = x


def test_endlessly_growing_integer_is_stopped():
    with pytest.raises(SimtError, match=r"'x' has more than 4,096 bits in the loop at test_loops.py:\d+"):
        simt.run(grows, 1, 1, np.zeros(1))


def iterates(a, n):
    for _ in range(n):
        pass
    a[cuda.grid(1)] = 1


def test_loop_limit_is_exact_and_repeatable():
    for _ in range(3):
        simt.run(iterates, 1, 1, np.zeros(1), 999, loop_limit=1000)  # one more is the call
        with pytest.raises(LoopLimitError):
            simt.run(iterates, 1, 1, np.zeros(1), 1000, loop_limit=1000)


def test_loop_count_restarts_when_a_thread_ends():
    a = np.zeros(64)
    simt.run(iterates, 2, 32, a, 3000, loop_limit=5000)
    assert a.all()


def test_loop_limit_none_lets_a_long_loop_end():
    a = np.zeros(1)
    simt.run(iterates, 1, 1, a, LOOP_LIMIT + 1, loop_limit=None)
    assert a[0] == 1


def test_stopped_launch_does_not_limit_the_next_one():
    a = np.zeros(1)
    with pytest.raises(LoopLimitError):
        simt.run(iterates, 1, 1, a, 5000, loop_limit=100)
    simt.run(iterates, 1, 1, a, 5000)
    assert a[0] == 1


def test_access_limit_error_names_kernel_thread_and_line():
    finding = simt.trace(polls, 1, 1, np.zeros(1), limit=100).findings[-1]
    assert type(finding) is LimitError
    assert str(finding).startswith("kernel polls: more than 100 events")
    assert f"thread 0 of block 0 was at test_loops.py:{marked_line(polls)}" in str(finding)
    assert finding.lines == ((__file__, marked_line(polls)),)


def test_schedules_obey_the_loop_limit():
    with pytest.raises(LoopLimitError):
        simt.schedules(passes, 1, 2, np.zeros(1), count=2, loop_limit=LIMIT)


def test_commands_use_the_default_loop_limit():
    assert LIMIT_OF_COMMANDS == LOOP_LIMIT


def test_script_with_endless_kernel_fails_with_its_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import numpy as np
        from numba import cuda

        @cuda.jit
        def waits(a):
            while True:
                pass

        waits[1, 1](np.zeros(1))
        """),
        encoding="utf-8",
    )
    report = check(script, loop_limit=LIMIT)
    (finding,) = report.findings
    assert isinstance(finding.error, LoopLimitError)
    assert finding.error.lines == ((str(script), 7),)
    assert "poll with an atomic" not in str(finding.error)
    assert (report.failure, report.status) == (None, 1)


def test_unrecorded_polling_script_obeys_the_loop_limit(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom numba import cuda\n@cuda.jit\ndef waits(a):\n    while a[0] == 0:\n        pass\n"
        "waits[1, 1](np.zeros(1))\n",
        encoding="utf-8",
    )
    report = check(script, limit=100, loop_limit=LIMIT)
    (finding,) = report.findings
    assert isinstance(finding.error, LoopLimitError)
    assert finding.error.lines == ((str(script), 5),)
    assert "to wait for another thread, poll with an atomic, such as cuda.atomic.cas" in str(finding.error)


def every_construct(n):
    found, k = [], 0
    for i in range(n):
        for j in range(i):
            if j % 2:
                continue
            if j > 7:
                break
            found.append(i * j)
        else:
            found.append(-i)
    while k < n:
        k += 1
        if k == 3:
            continue
        found.append(sum([q for q in range(k) if q % 3]))
    while True:
        k -= 1
        if not k or k is None:
            break
    return found, [x if x else -1 for x in found], {**{}}, (lambda: [k for _ in range(3)])()


def test_counted_code_returns_the_same_results():
    copy = FunctionType(add_loop_counters(every_construct.__code__), globals())
    assert copy(20) == every_construct(20)


def test_counted_code_with_extended_jumps_returns_the_same_results():
    lines = "\n".join(f"        s += k * {i}" for i in range(300))
    names = {}
    exec(f"def f(n):\n    s = 0\n    for k in range(n):\n{lines}\n    return s\n", names)
    assert FunctionType(add_loop_counters(names["f"].__code__), {"range": range})(7) == names["f"](7)


def lines_run(function, *arguments):
    found = []

    def note(frame, event, argument):
        if event == "line":
            found.append(frame.f_lineno)
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return [line for line in found if line >= function.__code__.co_firstlineno]


def test_counted_code_runs_the_same_lines():
    copy = FunctionType(add_loop_counters(every_construct.__code__), globals())
    assert lines_run(copy, 6) == lines_run(every_construct, 6)
