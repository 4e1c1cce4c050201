"""The tools of module 3: recorded runs, cached compiled code, kernels for a GPU."""

import math
import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("greenlet", reason="needs minifuse[course]")

from minifuse.backends.cuda import compiler
from minifuse.backends.cuda.device import driver
from minifuse.course import (
    access_counting,
    compiled,
    launches,
    parallel,
    parallel_checks,
    speed,
)
from minifuse.course.oracle import module3
from minifuse.course.questions import kernels
from minifuse.course.registry import BY_ID, TASKS
from minifuse.course.report import format_result
from minifuse.course.student import Student
from minifuse.course.student_process import StudentProcess
from minifuse.course.task import Effort
from minifuse.course.tasks import task3_3, task3_4, task3_5, task3_6
from minifuse.course.verdicts import Wrong
from tests.course.folder import judge

REFERENCE = Path(__file__).with_name("reference")


@pytest.fixture
def student():
    """The reference solutions, as tasks of module 3 see them."""
    return lambda task, folder=REFERENCE: Student(folder, TASKS, BY_ID[task])


@pytest.fixture
def process():
    """The process of the reference solutions, as tasks of module 3 ask it."""
    with ExitStack() as stack:
        yield lambda task, folder=REFERENCE: stack.enter_context(StudentProcess(folder, TASKS, BY_ID[task], seconds=600))


def with_more(tmp_path, file, text):
    """Create a folder of the reference solutions with code appended to one file."""
    folder = Path(shutil.copytree(REFERENCE, tmp_path / "more"))
    (folder / file).write_text((folder / file).read_text() + "\n\n" + text)
    return folder


def test_constants_of_the_stub_are_those_of_the_judge(student):
    module = student("3.3").module("kernels.py")
    assert (module.THREADS, module.TILE) == (module3.THREADS, module3.TILE)


def test_a_counted_run_knows_reads_writes_and_arrays(student, tmp_path):
    folder = with_more(
        tmp_path,
        "parallel.py",
        "def parallel_map(fn, out, a):\n"
        "    scratch = np.zeros(7)\n"
        "    scratch[-1] = a.shape[-1]\n"
        "    out.storage[1] = fn(a.storage[0]) + a.storage[2] + scratch[6]",
    )
    a, out = parallel.row_major((3,)), parallel.row_major((3,))
    record = access_counting.run(student("3.1", folder), "parallel_map", lambda x: 10 * x, out, a)
    assert out.storage[1] == 10 * 1 + 3 + 3
    assert (record.reads["a.storage"], record.reads["shape"], record.writes["out.storage"]) == (2, 1, 1)
    assert record.made == [7]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("out.shape.prod()", 6),
        ("np.prod(out.shape)", 6),
        ("np.sum(out.shape + a.shape)", 10),
        ("(out.strides == a.strides).all()", False),
        ("np.array_equal(out.shape, a.shape)", True),
        ("(out.shape[1:] * 2)[0]", 6),
        ("np.where(a.shape == 2, 7, a.strides)[0]", 7),
        ("out.shape.copy().size", 2),
        ("3 in out.shape", True),
    ],
)
def test_sizes_and_strides_are_arrays_as_the_page_of_3_1_says(student, tmp_path, words, found):
    body = f"def parallel_map(fn, out, a):\n    out.storage[0] = {words}"
    folder = with_more(tmp_path, "parallel.py", body)
    a, out = parallel.row_major((2, 3)), parallel.gapped((2, 3))
    access_counting.run(student("3.1", folder), "parallel_map", None, out, a)
    assert out.storage[0] == found


def test_an_operation_on_all_sizes_reads_each_of_them(student, tmp_path):
    folder = with_more(tmp_path, "parallel.py", "def parallel_map(fn, out, a):\n    return (out.shape + out.strides).prod()")
    record = access_counting.run(student("3.1", folder), "parallel_map", None, *[parallel.row_major((2, 3))] * 2)
    assert (record.reads["shape"], record.reads["strides"], record.made) == (2, 2, [2])


def test_a_slice_of_scratch_memory_is_written_element_by_element(student, tmp_path):
    body = "    found = np.zeros(4, np.int64)\n    found[1:3] = a.shape\n    out.storage[:4][2] = found[2]"
    folder = with_more(tmp_path, "parallel.py", f"def parallel_map(fn, out, a):\n{body}")
    a, out = parallel.row_major((2, 3)), parallel.row_major((2, 3))
    record = access_counting.run(student("3.1", folder), "parallel_map", None, out, a)
    assert out.storage[2] == 3
    assert record.writes["an array of np.zeros"] == 2


@pytest.mark.parametrize("words", ["a.storage * 2", "np.sum(a.storage)", "out.storage == a.storage", "a.storage.sum()"])
def test_no_operation_takes_the_elements_of_an_operand_at_once(student, tmp_path, words):
    folder = with_more(tmp_path, "parallel.py", f"def parallel_map(fn, out, a):\n    return {words}")
    with pytest.raises((TypeError, AttributeError), match=r"storage.* is read and written element by element"):
        access_counting.run(student("3.1", folder), "parallel_map", None, *[parallel.row_major((2, 3))] * 2)


ARRAYS = """
def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    if np.array_equal(out.strides, a.strides) and is_row_major(out.shape, out.strides):
        for k in prange(out.shape.prod()):
            to[out.offset + k] = fn(source[a.offset + k])
    else:
        for k in prange(np.prod(out.shape)):
            x = source[place_of(k, a.shape, a.strides, a.offset)]
            to[place_of(k, out.shape, out.strides, out.offset)] = fn(x)


def parallel_zip(fn, out, a, b):
    to, left, right = out.storage, a.storage, b.storage
    first = broadcast_strides(a.shape, a.strides, out.shape)
    second = broadcast_strides(b.shape, b.strides, out.shape)
    is_plain = (first == out.strides).all() and (second == out.strides).all()
    if is_plain and is_row_major(out.shape, out.strides):
        for k in prange(out.shape.prod()):
            to[out.offset + k] = fn(left[a.offset + k], right[b.offset + k])
    else:
        for k in prange(out.shape.prod()):
            x = left[place_of(k, out.shape, first, a.offset)]
            to[place_of(k, out.shape, out.strides, out.offset)] = fn(x, right[place_of(k, out.shape, second, b.offset)])
"""


def test_a_right_solution_that_uses_sizes_as_arrays_passes(tmp_path):
    folder = with_more(tmp_path, "parallel.py", ARRAYS)
    result = judge(folder, BY_ID["3.1"], Effort(5), time_s=600)
    assert result.verdict == "passed", format_result(BY_ID["3.1"], result)


@pytest.mark.parametrize(("index", "error"), [("-1", IndexError), ("5", IndexError), ("1 / 2", TypeError)])
def test_a_counted_run_wraps_no_index_of_a_storage(student, tmp_path, index, error):
    folder = with_more(tmp_path, "parallel.py", f"def parallel_map(fn, out, a):\n    out.storage[{index}] = 1.0")
    with pytest.raises(error, match=r"out\.storage"):
        access_counting.run(student("3.1", folder), "parallel_map", None, *[parallel.row_major((3,))] * 2)


def test_iterations_that_share_memory_through_two_views_race(student, tmp_path):
    body = "    to = np.zeros(4)\n    for k in prange(2):\n        part = to[k:]\n        part[1 - k] = k"
    folder = with_more(tmp_path, "parallel.py", f"def parallel_map(fn, out, a):\n{body}")
    record = access_counting.run(student("3.1", folder), "parallel_map", None, *[parallel.row_major((3,))] * 2)
    with pytest.raises(Wrong, match="meet at an array") as caught:
        parallel_checks.check_races("parallel_map", record.facts(), "")
    assert caught.value.kind == "race on a buffer"
    assert {line for _, line in caught.value.lines} == {len((folder / "parallel.py").read_text().splitlines())}


def test_compiled_code_is_cached_by_content(student, tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "folder", lambda: tmp_path / "kept")
    compiled.cache_class.cache_clear()
    case = parallel.call_arguments(parallel.typical_cases("parallel_map")[0])
    first = student("3.1").raw("parallel_map")
    compiled.compile_slot(student("3.1"), "parallel_map", *case)
    copy = student("3.1", Path(shutil.copytree(REFERENCE, tmp_path / "copy")))
    again = compiled.cached_jit(copy.raw("parallel_map"), parallel=True)
    compiled.call_compiled(again, *case)
    assert sum(again.stats.cache_hits.values()) == 1
    helper = (tmp_path / "copy" / "parallel.py").read_text().replace("return place", "return place + 0", 1)
    (tmp_path / "copy" / "parallel.py").write_text(helper)
    changed = student("3.1", tmp_path / "copy").raw("parallel_map")
    assert compiled.key_of(first) == compiled.key_of(copy.raw("parallel_map")) != compiled.key_of(changed)
    compiled.cache_class.cache_clear()


def test_another_file_of_the_folder_is_part_of_the_content(student, tmp_path):
    body = "import sizes\n\n\ndef parallel_map(fn, out, a):\n    out.storage[0] = sizes.LARGE"
    folder = with_more(tmp_path, "parallel.py", body)
    keys = []
    for value in (1, 2):
        (folder / "sizes.py").write_text(f"LARGE = {value}")
        keys.append(compiled.key_of(student("3.1", folder).raw("parallel_map")))
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("old", "new"),
    [("n=2", "n=3"), ("LARGE[0]", "LARGE[1]"), ("5.0]", "6.0]"), ("    # nothing\n", "    # nothing\n\n")],
    ids=["the default of a parameter", "a constant", "an element of an array", "the line of a loop"],
)
def test_a_change_of_what_compiled_code_depends_on_is_another_content(student, tmp_path, old, new):
    text = (
        "LARGE = (7, 8)\nTABLE = np.array([4.0, 5.0])\n\n\n@njit\ndef more(x, n=2):\n    return x * n + TABLE[1]\n\n\n"
        "def parallel_map(fn, out, a):\n    # nothing\n    for k in prange(3):\n        out.storage[k] = more(LARGE[0])"
    )
    assert text.count(old) == 1
    keys = []
    for written in (text, text.replace(old, new)):
        folder = with_more(tmp_path / str(len(keys)), "parallel.py", written)
        keys.append(compiled.key_of(student("3.1", folder).raw("parallel_map")))
    assert keys[0] != keys[1]


def test_compiled_callbacks_are_cached(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "folder", lambda: tmp_path)
    compiled.cache_class.cache_clear()
    made = [compiled.function_pointer.__wrapped__(lambda x, y: 3 * x - y) for _ in range(2)]
    assert [one.cache_hits for one in made] == [0, 1]
    assert [one.ctypes(2.0, 1.0) for one in made] == [5.0, 5.0]
    compiled.cache_class.cache_clear()


def test_cache_of_compiled_code_is_bounded_and_has_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path))
    monkeypatch.setattr(compiled, "MAX_CACHED_FUNCTIONS", 2)
    for k in range(4):
        (compiled.folder() / str(k)).mkdir()
        os.utime(compiled.folder() / str(k), (k, k))
    compiled.evict_oldest()
    assert {path.name for path in (tmp_path / "course").iterdir()} == {"2", "3"}
    (tmp_path / "file").touch()
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "file"))
    assert compiled.folder() == Path(compiled.process_folder().name)


def test_errors_of_numba_are_explained(process, tmp_path):
    body = "    to = out.storage\n    for k in prange(3):\n        i = k\n        i //= 2\n        to[i] = 1.0"
    folder = with_more(tmp_path, "parallel.py", f"def parallel_map(fn, out, a):\n{body}")
    with pytest.raises(Wrong, match="do that in another function") as caught:
        parallel_checks.check_compiles_in_parallel(process("3.1", folder), ["parallel_map"])
    assert (caught.value.kind, caught.value.lines[0][0]) == ("index", "parallel.py")


def test_a_general_path_on_one_core_is_found(process, tmp_path):
    """Numba sees a prange; the counted run sees that it does not write everything."""
    solved = (REFERENCE / "parallel.py").read_text()
    assert solved.count("    else:\n        for k in prange(size):") == 2
    folder = with_more(tmp_path, "parallel.py", "")
    text = solved.replace("    else:\n        for k in prange(size):", "    else:\n        for k in range(size):", 1)
    (folder / "parallel.py").write_text(text)
    with pytest.raises(Wrong, match="outside of any prange") as caught:
        parallel_checks.check_compiles_in_parallel(process("3.1", folder), ["parallel_map"])
    assert caught.value.kind == "serial"


def test_naive_loops_are_right():
    for slot, loop in speed.NAIVE.items():
        out, *rest = [x[:9] if x.ndim == 1 else x[:9, :9].copy() for x in speed.inputs(slot)]
        expected = np.zeros_like(out)
        loop(out, *rest)
        getattr(module3, slot).__wrapped__(expected, *rest)
        np.testing.assert_allclose(out, expected)


ROUNDS = [(0, 1), (0, 4), (0, 2)], [(0, 2), (0, 3), (0, 5)], [(0, 2), (0, 3), (0, 5)], [(0, 2), (0, 6), (0, 3)]
"""Begin and end of yours, the naive loop and NumPy, round by round."""


def timed(monkeypatch, rounds):
    """Replace the clock; return the list of times that it has returned."""
    times = []
    clock = iter([time for one in rounds for pair in one for time in pair])
    monkeypatch.setattr(speed, "inputs", lambda slot: ())
    monkeypatch.setattr(speed, "cached_jit", lambda loop: lambda: None)
    monkeypatch.setattr(speed, "time", SimpleNamespace(perf_counter=lambda: times.append(next(clock)) or times[-1]))
    return times


def best_ratio(is_enough):
    """The ratio of a loop whose calls are counted, to others that do nothing."""
    return speed.best_ratio("fast_chain", lambda times: None, lambda: None, is_enough)


def test_a_ratio_is_that_of_the_best_rounds(monkeypatch):
    first = [(0, 0), (0, 0), (0, 0)]  # which does not count
    times = timed(monkeypatch, [first, *ROUNDS])
    assert best_ratio(lambda ratio: True) == (speed.REPEATS * 3 / 1, speed.REPEATS * 2 / 1)
    assert len(times) == 6 * (1 + speed.MIN_ROUNDS)


def test_slow_loops_get_more_rounds(monkeypatch):
    faster = [(0, 0.5), (0, 9), (0, 9)]
    rounds = [ROUNDS[0], *ROUNDS, *ROUNDS, faster, *[ROUNDS[0]] * speed.MAX_ROUNDS]
    times = timed(monkeypatch, rounds)
    found = best_ratio(lambda ratio: ratio.to_naive > 4 * speed.REPEATS)
    assert found == (speed.REPEATS * 3 / 0.5, speed.REPEATS * 2 / 0.5)
    assert len(times) == 6 * (1 + 2 * speed.MIN_ROUNDS + 1)
    times = timed(monkeypatch, rounds)
    best_ratio(lambda ratio: False)
    assert len(times) == 6 * (1 + speed.MAX_ROUNDS)


LAUNCHES = [
    (task, case, module.expected_of(case))
    for task, module in (("3.3", task3_3), ("3.4", task3_4), ("3.6", task3_6))
    for slot in BY_ID[task].slots
    for case in module.cases(slot)
]
"""Every launch of the two tasks, with what it writes."""


def test_kernels_compile_for_a_gpu(student):
    pytest.importorskip("numba_cuda", reason="needs minifuse[cuda13] or [cuda12]")
    from numba import typeof
    from numba.cuda import compile_ptx

    seen = set()
    for task, case, _ in LAUNCHES:
        if case.slot not in seen:
            seen.add(case.slot)
            with compiler.compiling_for((9, 0)):
                kernel = compiler.rebind_for_numba(kernels.kernel_of(student(task), case))
                ptx, _ = compile_ptx(kernel, tuple(typeof(x) for x in case.arguments), cc=(9, 0))
            assert ".visible .entry" in ptx
            assert ("bar.sync" in ptx) == (case.slot not in ("cuda_map", "cuda_zip", "cuda_thread_tile_matmul"))
    assert len(seen) == 8


@pytest.mark.gpu
def test_kernels_compute_the_same_on_a_gpu(process):
    if not driver.query_driver().gpus:
        pytest.skip(driver.query_driver().reason)
    for task in ("3.3", "3.4", "3.6"):
        pairs = [(case, expected) for of, case, expected in LAUNCHES if of == task]
        assert launches.note_of_gpu(process(task), pairs).endswith("too, with equal results.")
        note = launches.note_of_gpu(process(task), [(case, expected + 1) for case, expected in pairs])
        assert "returns other numbers than in the interpreter" in note


def test_gpu_that_does_not_start_fails_no_task(student, process, monkeypatch):
    assert launches.note_of_gpu(process("3.3"), []) == "" or driver.query_driver().gpus
    monkeypatch.setattr(driver, "query_driver", lambda: driver.DriverInfo(1, 13000, ""))

    def broken():
        raise RuntimeError("the driver is asleep\nand more")

    monkeypatch.setattr(compiler, "numba_cuda", broken)
    assert kernels.launch_on_gpu(student("3.3"), []) == ("a GPU", "RuntimeError: the driver is asleep", [])


def test_points_grow_with_the_ratio_to_numpy(monkeypatch):
    for part, share in ((0.0, 0.5), (0.5, 0.75), (1.0, 1.0), (3.0, 1.0)):
        monkeypatch.setattr(
            speed, "best_ratio", lambda slot, *a, part=part: speed.Ratio(task3_5.NEEDED, part * task3_5.FULL[slot])
        )
        one = SimpleNamespace(notes=[])
        task3_5.is_fast(one)
        assert math.isclose(one.share, share)
    monkeypatch.setattr(speed, "best_ratio", lambda *a: speed.Ratio(1.1, 100.0))
    slow = SimpleNamespace(notes=[])
    with pytest.raises(Wrong, match=r"1\.1 times as fast"):
        task3_5.is_fast(slow)
    assert slow.share == 0.5  # or the points of the other checks would be more than those of a slow pass


GOOD_ORDERS = {
    "four rows at a time": """
        n = a.shape[0] - a.shape[0] % 4
        for column in prange(a.shape[1]):
            out[column] = 0.0
        for piece in prange((a.shape[1] + 7) // 8):
            part, sums = a[:, piece * 8 : piece * 8 + 8], out[piece * 8 : piece * 8 + 8]
            for row in range(0, n, 4):
                for column in range(len(sums)):
                    sums[column] += part[row, column] + part[row + 1, column] + part[row + 2, column] + part[row + 3, column]
            for row in range(n, a.shape[0]):
                for column in range(len(sums)):
                    sums[column] += part[row, column]
    """,
    "a line of columns at a time": """
        for piece in prange((a.shape[1] + 7) // 8):
            sums = out[piece * 8 : piece * 8 + 8]
            for column in range(len(sums)):
                sums[column] = 0.0
            for row in range(a.shape[0]):
                for column in range(len(sums)):
                    sums[column] += a[row, piece * 8 + column]
    """,
}


@pytest.mark.parametrize("name", GOOD_ORDERS)
def test_orders_that_use_whole_lines_are_good(process, tmp_path, name):
    text = "def fast_column_sums(out, a):" + GOOD_ORDERS[name]
    folder = with_more(tmp_path, "speed.py", text)
    task3_5.is_right(task3_5.SUMS)(process("3.5", folder), None)
    task3_5.in_order(process("3.5", folder))


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_compiled_code_in_a_folder_of_all_is_not_executed(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "cache"))
    assert compiled.folder() == tmp_path / "cache" / "course"
    assert compiled.folder().stat().st_mode & 0o777 == 0o700
    (tmp_path / "cache").chmod(0o777)
    assert compiled.folder() == Path(compiled.process_folder().name)
    assert compiled.folder().stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_compiled_code_that_others_may_have_written_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "folder", lambda: tmp_path / "kept")
    locator = compiled.cache_class("a key")._impl_class._locator_classes[0]
    path = Path(locator.from_function(None, "").get_cache_path())
    for name, mode in {"mine.nbi": 0o644, "theirs.nbi": 0o666}.items():
        (path / name).write_bytes(b"")
        (path / name).chmod(mode)
    locator.from_function(None, "")
    assert [file.name for file in path.iterdir()] == ["mine.nbi"]
