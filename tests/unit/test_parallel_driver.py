"""backends.parallel.driver: which thread runs which chunk. Most kernels here are Python functions called through ctypes."""

import ctypes
import os
import struct
import subprocess
import sys
import threading
from itertools import pairwise

import llvmlite.binding as llvm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minifuse.backends.parallel import driver as driver_module
from minifuse.backends.parallel.compiler import compile_kernel_text, link
from minifuse.backends.parallel.driver import (
    CHUNKS_PER_THREAD,
    MAX_CHUNK_WORK,
    PARALLEL_WORK,
    THREADS,
    count_chunks,
    count_threads,
    driver,
)
from minifuse.core.errors import MinifuseError

Kernel = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


def address_of(kernel):
    return ctypes.cast(kernel, ctypes.c_void_p).value


def chunks_run(count, chunks):
    """Which ranges a kernel is called for."""
    ranges = []
    kernel = Kernel(lambda start, stop, args: ranges.append((start, stop)))
    driver()(address_of(kernel), count, chunks, b"")
    return ranges


# On one thread


def test_one_chunk_is_all_of_it_on_this_thread():
    threads = []
    kernel = Kernel(lambda start, stop, args: threads.append((start, stop, threading.get_ident())))
    for chunks in (1, 0, -1):
        driver()(address_of(kernel), 1000, chunks, b"")
    assert threads == [(0, 1000, threading.get_ident())] * 3


def test_the_kernel_sees_the_arguments():
    seen = []
    kernel = Kernel(lambda start, stop, args: seen.append(ctypes.string_at(args, 16)))
    for chunks in (1, 2):
        driver()(address_of(kernel), 2, chunks, b"sixteen bytes...")
    assert seen == [b"sixteen bytes..."] * 3


@pytest.mark.parametrize("arguments", [(), (0, 1, 1), (0, 1, 1, b"", 1), ("0", 1, 1, b""), (0, 1.5, 1, b""), (0, 1, 1, "")])
def test_wrong_arguments_are_errors_and_call_nothing(arguments):
    with pytest.raises(TypeError):
        driver()(*arguments)


def test_numbers_beyond_64_bits_are_errors():
    with pytest.raises(OverflowError):
        driver()(1 << 64, 1, 1, b"")


def test_nothing_is_leaked():
    args, kernel = bytes(100), Kernel(lambda start, stop, args: None)
    before = sys.getrefcount(args), sys.getrefcount(None)
    for chunks in (1, 3) * 500:
        driver()(address_of(kernel), 100, chunks, args)
    assert sys.getrefcount(args) == before[0]
    assert abs(sys.getrefcount(None) - before[1]) < 100


# In chunks


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.one_of(st.integers(0, 40), st.integers(0, 1 << 40)), st.integers(2, 300))
def test_chunks_are_cut_evenly_and_each_is_run_once(count, chunks):
    cuts = [count * k // chunks for k in range(chunks + 1)]
    assert sorted(chunks_run(count, chunks)) == sorted(pairwise(cuts))


def test_a_compiled_kernel_in_chunks_is_the_same_as_in_one():
    kernel = compile_kernel_text(
        "def kernel(start, stop, args):\n    for i in range(start, stop):\n        args[i] += i * i + 1\n"
    )
    for count in (1, 31, 1023, 1025, 65537):
        results = [bytes(8 * count) for _ in range(2)]
        for chunks, result in zip((1, 7), results, strict=True):
            driver()(kernel, count, chunks, result)
        assert results[0] == results[1]
        assert int.from_bytes(results[0][-8:], sys.byteorder) == (count - 1) ** 2 + 1


HOLDS_LOCK = """
declare i32 @PyGILState_Check()
define void @kernel(i64 %start, i64 %stop, ptr %args) {
  %holds = call i32 @PyGILState_Check()
  %place = getelementptr i32, ptr %args, i64 %start
  store i32 %holds, ptr %place
  ret void
}
"""


def test_other_python_threads_may_run_during_a_call_with_several_chunks():
    library = llvm.JITLibraryBuilder().add_ir(HOLDS_LOCK)
    library.import_symbol("PyGILState_Check", address_of(ctypes.pythonapi.PyGILState_Check))
    kernel = link(library, ["kernel"])["kernel"]
    for chunks, expected in ((1, [1, 2, 2, 2]), (4, [0, 0, 0, 0])):
        holds = struct.pack("=4i", 2, 2, 2, 2)
        driver()(kernel, 4, chunks, holds)
        assert list(struct.unpack("=4i", holds)) == expected


def test_work_is_cut_only_where_that_pays():
    assert count_chunks(10**6, PARALLEL_WORK) == 1
    assert count_chunks(10**6, PARALLEL_WORK + 1) == CHUNKS_PER_THREAD * THREADS
    assert count_chunks(1, 1e12) == count_chunks(0, 1e12) == 1
    assert count_chunks(2, 1e12) == 2


def test_long_work_is_cut_so_that_signals_are_handled_between_chunks():
    assert count_chunks(10**6, 1e4 * MAX_CHUNK_WORK) == 10**4
    assert count_chunks(100, 1e4 * MAX_CHUNK_WORK) == 100


@pytest.mark.parametrize(("variables", "threads"), [("3 5", 3), (" 5", 5), ("1000 ", 256), ("1 8", 1)])
def test_the_environment_decides_how_many_threads(monkeypatch, variables, threads):
    for name, value in zip(("MINIFUSE_THREADS", "NUMBA_NUM_THREADS"), variables.split(" "), strict=True):
        monkeypatch.setenv(name, value)
    assert count_threads() == threads


def test_by_default_there_are_as_many_threads_as_processors(monkeypatch, tmp_path):
    for name in ("MINIFUSE_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert count_threads(tmp_path) == min(processors, 256)


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_a_number_of_threads_that_is_none_explains_itself(monkeypatch, value):
    monkeypatch.setenv("MINIFUSE_THREADS", value)
    with pytest.raises(
        MinifuseError, match=f"MINIFUSE_THREADS is '{value}', expected a number of threads; write MINIFUSE_THREADS=4"
    ):
        count_threads()


def test_where_no_thread_can_be_started_the_caller_does_all(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    pool = driver_module._Pool()
    monkeypatch.setattr(driver_module.Thread, "start", refuse)
    threads = set()
    kernel = Kernel(lambda start, stop, args: threads.add(threading.get_ident()))
    pool.drive(address_of(kernel), 100, 8, b"")
    assert threads == {threading.get_ident()}


# On several threads: in processes of their own, with four threads whatever the machine has, and a limit of time

PROGRAM = """
import ctypes, os, sys, threading, time
from minifuse.backends.parallel.driver import driver

Kernel = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
failures = []

def drive(function, count, chunks):
    def run(start, stop, args):
        try:
            function(start, stop)
        except BaseException as error:
            failures.append(error)
    driver()(ctypes.cast(kernel := Kernel(run), ctypes.c_void_p).value, count, chunks, b"")
    assert not failures, failures

def meet():  # four threads meet in the kernel, or it fails
    barrier = threading.Barrier(4)
    drive(lambda start, stop: barrier.wait(60), 4, 4)

def start(*functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    return threads
"""


def run_process(script, threads=4):
    environment = os.environ | {"MINIFUSE_THREADS": str(threads), "PYTHONWARNINGS": "ignore"}  # of a fork with threads
    command = [sys.executable, "-c", PROGRAM + script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
    return done


def test_chunks_run_at_once_and_the_threads_start_when_needed():
    run_process("""
drive(lambda start, stop: None, 4, 1)
assert threading.active_count() == 1
for _ in range(100):
    meet()
assert threading.active_count() == 4 and all(thread.daemon for thread in threading.enumerate()[1:])
time.sleep(0.1)  # until they sleep
meet()
print("done")
""")


def test_more_chunks_than_threads_are_shared_by_all():
    run_process("""
seen = set()
barrier = threading.Barrier(4)
def kernel(start, stop):
    if threading.get_ident() not in seen:
        seen.add(threading.get_ident())
        barrier.wait(60)
drive(kernel, 1000, 64)
assert len(seen) == 4
print("done")
""")


def test_a_call_that_finds_the_pool_busy_runs_alone():
    run_process("""
inside, finished = threading.Event(), threading.Event()
def wait(start, stop):
    inside.set()
    assert finished.wait(60)
other, = start(lambda: drive(wait, 4, 4))
assert inside.wait(60)
threads = []
drive(lambda start, stop: threads.append((start, stop, threading.get_ident())), 8, 4)
assert threads == [(k, k + 2, threading.get_ident()) for k in range(0, 8, 2)]
finished.set()
other.join()
meet()
print("done")
""")


def test_a_kernel_may_start_another():
    run_process("""
counts = []
drive(lambda start, stop: drive(lambda start, stop: counts.append(stop - start), 100, 5), 6, 6)
assert sum(counts) == 600
meet()
print("done")
""")


def test_threads_that_launch_at_once_all_get_their_results():
    run_process("""
import struct
from minifuse.backends.parallel.compiler import compile_kernel_text
kernel = compile_kernel_text("def kernel(start, stop, args):\\n    for i in range(start, stop): args[i] += i + 1\\n")
ends = []
def launch():
    for k in range(2000):
        count, chunks = 1 + k % 97, 1 + k % 11
        args = bytes(8 * count)
        driver()(kernel, count, chunks, args)
        assert struct.unpack(f"={count}q", args) == tuple(range(1, count + 1)), (count, chunks)
    ends.append(True)
for thread in start(*[launch] * 4):
    thread.join()
assert len(ends) == 4
print("done")
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_child_has_threads_of_its_own():
    run_process("""
meet()
for _ in range(3):
    child = os.fork()
    if not child:
        assert threading.active_count() == 1
        meet()
        grandchild = os.fork()
        if not grandchild:
            meet()
            os._exit(0)
        os._exit(os.waitpid(grandchild, 0)[1])
    assert os.waitpid(child, 0)[1] == 0
meet()
print("done")
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_fork_may_happen_while_a_kernel_runs():
    run_process("""
inside, finished = threading.Event(), threading.Event()
def wait(start, stop):
    inside.set()
    assert finished.wait(60)
other, = start(lambda: drive(wait, 4, 4))
assert inside.wait(60)
child = os.fork()
if not child:
    meet()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
finished.set()
other.join()
meet()
print("done")
""")


def test_a_process_ends_while_its_threads_wait_or_work():
    run_process("""
meet()
forever = threading.Event()
inside = threading.Event()
def wait(start, stop):
    inside.set()
    forever.wait()
threading.Thread(target=lambda: drive(wait, 4, 4), daemon=True).start()
assert inside.wait(60)
print("done")
""")


def test_one_thread_is_enough():
    run_process(
        """
threads = set()
drive(lambda start, stop: threads.add(threading.get_ident()), 100, 8)
assert threads == {threading.get_ident()} and threading.active_count() == 1
print("done")
""",
        threads=1,
    )


# Where the threads run: the pool asks and tells functions of a test, instead of the system

PLACES = """
pool = driver.__wrapped__.__globals__["_Pool"]()
here, moves, me = {"then": 0}, [], threading.get_ident()
Get = ctypes.CFUNCTYPE(ctypes.c_int)
Set = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.POINTER(ctypes.c_uint64))
get = Get(lambda: here["caller" if threading.get_ident() == me else "worker"])
set_affinity = Set(lambda id, nbytes, words: moves.append((id, [words[k] for k in range(nbytes // 8)])) or 0)
barrier = threading.Barrier(2)

def meet(start, stop, args):  # each of the two takes one chunk
    barrier.wait(60)
    here["worker"] = here["then"]

kernel = Kernel(meet)

def job(caller, worker, then=None):  # the worker begins at one place and ends at another
    here.update(caller=caller, worker=worker, then=worker if then is None else then)
    moves.clear()
    pool.drive(ctypes.cast(kernel, ctypes.c_void_p).value, 2, 2, b"")
    while not pool._word("asleep", 1).value:  # until then the worker may still ask where it is
        time.sleep(0.001)
    return list(moves)

def bits(*processors):
    return [sum(1 << p % 64 for p in processors if p // 64 == k) for k in range(16)]

def give(*processors):
    for k, word in enumerate(bits(*processors)):
        pool._word("processors", k).value = word
"""


def test_worker_on_the_callers_cpu_is_moved_until_it_runs_elsewhere():
    run_process(
        PLACES
        + """
pool._set_processors = lambda: 1
job(0, 0)  # nobody is asked before the pool knows whom to ask
for name, function in (("get_cpu", get), ("set_affinity", set_affinity)):
    pool._word(name).value = ctypes.cast(function, ctypes.c_void_p).value
worker, = [thread.native_id for thread in threading.enumerate() if thread.ident != me]
give(3, 70, 1023)
assert job(70, 70) == []  # where the worker is becomes known
both = [(worker, bits(3, 1023)), (0, bits(3, 70, 1023))]
assert job(70, 70) == both
assert job(70, 3) == both
assert job(70, 3) == []
assert job(70, 3, then=70) == []
assert job(70, 3) == both
assert job(3, 1023) == [(worker, bits(70, 1023)), (0, bits(3, 70, 1023))]
assert job(1024, 1024) == job(1024, 1024) == job(-1, -1) == job(-1, -1) == []  # the tables end there, and this is not known
pool._word("ids", 1).value = 0
assert job(3, 3) == job(3, 3) == []
print("done")
""",
        threads=2,
    )


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system tells nobody where a thread runs")
def test_workers_have_all_processors_that_are_open_to_the_process():
    run_process(
        PLACES
        + """
open_to_us = os.sched_getaffinity(0)
count = pool._set_processors()
assert count == len(open_to_us) - 1
assert [pool._word("processors", k).value % 2**64 for k in range(16)] == bits(*open_to_us)
pool.drive(ctypes.cast(kernel, ctypes.c_void_p).value, 2, 2, b"")
worker, = [thread.native_id for thread in threading.enumerate() if thread.ident != me]
assert pool._word("ids", 1).value == (worker if count else 0)
here = min(open_to_us)
for _ in range(5 if count else 0):
    os.sched_setaffinity(0, {here})
    os.sched_setaffinity(worker, {here})
    pool.drive(ctypes.cast(kernel, ctypes.c_void_p).value, 2, 2, b"")  # both on one processor
    pool.drive(ctypes.cast(kernel, ctypes.c_void_p).value, 2, 2, b"")
    assert os.sched_getaffinity(worker) == open_to_us
print("done")
""",
        threads=2,
    )
