"""Records of module 3's loops: the iterations that write an output in compiled code, and divisions in Python."""

import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("greenlet", reason="needs minifuse[course]")

from minifuse.course import parallel, parallel_checks
from minifuse.course.access_counting import some_of
from minifuse.course.counted_ints import CountedInt, Divisions
from minifuse.course.parallel_checks import call_arguments
from minifuse.course.questions import parallel as questions
from minifuse.course.registry import BY_ID, TASKS
from minifuse.course.student_process import StudentProcess
from minifuse.course.verdicts import Wrong

REFERENCE = Path(__file__).with_name("reference")


def pranges(folder, *cases):
    """Record the compiled map of a folder for each case."""
    first, *given = [call_arguments(case) for case in (cases[0], *cases)]
    with StudentProcess(folder, TASKS, BY_ID["3.1"], seconds=600) as student:
        return student.ask(partial(questions.pranges, "parallel_map"), (first, given))


def test_a_compiled_prange_is_recorded_by_iterations_or_groups_of_them():
    short, long = [parallel.of_map(x, x) for x in (parallel.row_major((2, 3), 1, 1), parallel.row_major((640,)))]
    (first,), (second,) = [run.pranges for run in pranges(REFERENCE, short, long)]
    assert (first.iterations, first.groups, first.writer.tolist()) == (6, 6, [-1, 0, 1, 2, 3, 4, 5, -1, -1])
    assert (second.iterations, second.groups) == (640, 64)
    assert second.writer[:640].tolist() == [k // 10 for k in range(640)]


CHUNKS = """
from numba import get_num_threads


def parallel_map(fn, out, a):
    to, source = out.storage, a.storage
    scratch = np.zeros(3)
    threads = get_num_threads()
    for k in prange(threads):
        scratch[0] = 1.0
        for i in range(np.int64(k) * 2, np.int64(k) * 2 + 2):
            to[i] = fn(source[i])
    to[16] = 1.0
"""


def test_a_recorded_call_sees_eight_threads_and_what_no_prange_writes(tmp_path):
    folder = Path(shutil.copytree(REFERENCE, tmp_path / "mine"))
    (folder / "parallel.py").write_text((folder / "parallel.py").read_text() + CHUNKS)
    x = parallel.row_major((17,))
    (run,) = pranges(folder, parallel.of_map(x, x))
    (loop,) = [loop for loop in run.pranges if (loop.writer >= 0).any()]
    assert loop.iterations == 8
    assert loop.writer[:17].tolist() == [k // 2 for k in range(16)] + [-1]
    with pytest.raises(Wrong, match="1 of 17 elements of out are written outside of any prange") as caught:
        parallel_checks.check_share("parallel_map", run, "", 1)
    assert caught.value.kind == "serial"


@pytest.mark.parametrize(
    ("compute", "count"),
    [
        (lambda k: k // 2 % 3, 2),
        (lambda k: 100 // k, 1),
        (lambda k: divmod(k * 2 + 1, 4)[0] - 5 % k, 2),
        (lambda k: int(k / 2), 1),
        (lambda k: (k << 2) + -k, 0),
        (lambda k: np.arange(9)[k] // 2, 0),
    ],
)
def test_divisions_of_counted_ints_are_counted(compute, count):
    divisions = Divisions()
    assert compute(CountedInt(7, divisions)) == compute(7)
    assert divisions.count == count


def test_counted_ints_have_64_bits():
    largest = CountedInt(2**63 - 1, Divisions())
    assert (largest + 1, largest * 2, 0 - largest - 2) == (-(2**63), -2, 2**63 - 1)


def test_a_sample_has_the_first_and_the_last_iteration():
    assert list(some_of(range(3), 6)) == [0, 1, 2]
    assert some_of(range(5, 105), 4) == [5, 38, 71, 104]


def test_exact_answers_differ_by_the_sign_of_a_zero():
    right = np.array([0.0, np.nan, 1.0])
    assert parallel_checks.is_exact(right.copy(), right)
    assert not parallel_checks.is_exact(np.array([-0.0, np.nan, 1.0]), right)
    assert not parallel_checks.is_exact(np.array([0.0, np.nan, np.nextafter(1.0, 2.0)]), right)
