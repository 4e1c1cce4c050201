"""Ranks that ask for different collectives, or wait for one that never comes, are named with what they asked for."""

import sys
import time
from functools import cache

import pytest

from minifuse.engines.base import Request
from minifuse.engines.board import KEPT_RECORDS, Board
from minifuse.engines.watcher import STUCK_SECONDS, Watcher

ALL = (0, 1)


@cache
def frame_at(line):
    """A frame that is at a line of a file train.py."""
    names = {"_getframe": sys._getframe}
    exec(compile("\n" * (line - 1) + "frame = _getframe()", "/home/me/train.py", "exec"), names)
    return names["frame"]


def ask(op="all_reduce add", shape=(3, 5), dtype="float32", line=12, ranks=ALL):
    return Request(op, (shape,), (dtype,)), ranks, frame_at(line)


def bucket(*shapes):
    return Request("all_reduce add", shapes, ("float32",) * len(shapes)), ALL, frame_at(20)


START = ask(line=10)

# name: (collectives of rank 0, of rank 1, words of the message). A name with "ended" or "three" says what else happens.
MISMATCHES = {
    "op": ([ask()], [ask("all_gather")], ["rank 0: all_reduce add of float32 (3, 5)", "rank 1: all_gather"]),
    "operator": ([ask()], [ask("all_reduce maximum")], ["all_reduce add", "all_reduce maximum"]),
    "shape": ([ask()], [ask(shape=(3, 4))], ["rank 0: all_reduce add of float32 (3, 5)", "(3, 4) at train.py:12"]),
    "dims": ([ask(shape=(15,))], [ask()], ["(15,)", "(3, 5)"]),
    "order of dims": ([ask(shape=(5, 3))], [ask()], ["(5, 3)", "(3, 5)"]),
    "scalar": ([ask(shape=())], [ask(shape=(1,))], ["float32 ()", "float32 (1,)"]),
    "dtype": ([ask()], [ask(dtype="float64")], ["float32 (3, 5)", "float64 (3, 5)"]),
    "dtype of one size": ([ask()], [ask(dtype="int32")], ["float32", "int32"]),
    "line": ([ask()], [ask(shape=(1,), line=99)], ["train.py:12", "train.py:99"]),
    "later": ([START] * 200 + [ask()], [START] * 200 + [ask(shape=(9,))], ["collective 201", "(9,)"]),
    "order": ([ask(), ask("broadcast from 0")], [ask("broadcast from 0"), ask()], ["collective 1 ", "broadcast from 0"]),
    "order of shapes": ([ask(), ask(shape=(2,))], [ask(shape=(2,)), ask()], ["collective 1 ", "(2,)"]),
    "source": ([ask("broadcast from 0")], [ask("broadcast from 1")], ["broadcast from 0", "broadcast from 1"]),
    "one more": ([START, START, ask("all_gather")], [START, ask("all_gather")], ["collective 2 ", "rank 1: all_gather"]),
    "bucket": ([bucket((4,), (3, 5))], [bucket((4,), (3, 6))], ["(3, 5) (array 2 of 2) at train.py:20", "(3, 6)"]),
    "bucket of fewer": ([bucket((4,), (3, 5))], [bucket((4,))], ["float32 (3, 5) (array 2 of 2)", "1 array"]),
    "bucket and array": ([bucket((4,), (3, 5))], [ask()], ["(4,) (array 1 of 2)", "(3, 5) at train.py:12"]),
    "seen late": ([ask()] + [START] * 50, [ask(shape=(1,))] + [START] * 50, ["collective 1 ", "(1,)"]),
    "ended before": (
        [ask()],
        [],
        ["rank 0 waits in all_reduce add of float32 (3, 5) at train.py:12", "rank 1, which ended"],
    ),
    "ended one short": ([START, ask()], [START], ["for rank 1, which ended after 1 collective"]),
}


def post_all(board, rank, calls):
    row = Board.open(board.address, rank)
    for call in calls:
        row.post(*call)
    return row


def message(watcher, ended=()):
    """Return the fault that the watcher reports in the time in which it would."""
    return next(filter(None, (watcher.look(k * STUCK_SECONDS, ended) for k in range(4))), "")


@pytest.mark.parametrize("name", MISMATCHES)
def test_a_mismatch_is_named(name):
    first, second, words = MISMATCHES[name]
    board = Board.create(2)
    post_all(board, 0, first)
    post_all(board, 1, second)
    found = message(Watcher(board, 2), [1] if "ended" in name else [])
    assert all(word in found for word in words), found
    assert max(map(len, found.splitlines())) <= 80


def test_ranks_that_wait_for_each_other_in_groups_are_named():
    board = Board.create(3)
    for rank, group in enumerate([(0, 1), (1, 2), (0, 2)]):
        post_all(board, rank, [ask(ranks=group)])
    found = message(Watcher(board, 3))
    assert found.startswith(
        "the ranks wait for each other\nrank 0 waits in all_reduce add of float32 (3, 5) at train.py:12\n"
    )
    assert found.count("  for rank ") == 3


def test_ranks_that_ask_alike_are_not_reported():
    board = Board.create(3)
    rows = [post_all(board, rank, [START] * (3 * KEPT_RECORDS) + [ask(line=rank)]) for rank in range(3)]
    rows[0].done()  # computes; rank 1 may be slower
    rows[0].post(*ask(ranks=(0, 1)))
    assert message(Watcher(board, 3)) == ""


def test_a_rank_that_computes_is_not_reported():
    board = Board.create(2)
    post_all(board, 0, [START, ask()])  # waits for rank 1
    post_all(board, 1, [START]).done()
    assert message(Watcher(board, 2)) == ""


def test_collectives_of_many_shapes_reuse_the_memory_of_texts():
    board = Board.create(2)
    calls = [bucket(*[(k, j) for j in range(300)]) for k in range(400)]
    post_all(board, 0, calls)
    post_all(board, 1, [*calls[:-1], ask()])
    assert "rank 0: all_reduce add of float32 (399, 0) (array 1 of 300)" in message(Watcher(board, 2))


def test_the_error_of_a_rank_is_kept_and_its_end_is_shortened_last():
    board = Board.create(2)
    Board.open(board.address, 1).fail("é" * 100_000 + "\nValueError: no\n")
    assert board.error(1).endswith("é\nValueError: no\n")
    assert board.error(0) == ""


@pytest.mark.thorough
def test_a_post_takes_about_a_microsecond():
    board = Board.create(2)
    row = Board.open(board.address, 0)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(1000):
            row.post(*START)
            row.done()
        times.append((time.perf_counter() - start) / 1000)
    assert min(times) < 4e-6  # measured: 1 us; the limit is for a busy machine
