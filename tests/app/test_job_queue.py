"""The queue of a public server: order, turns, visitors who leave without a word, and many threads at once."""

import threading
from dataclasses import replace

import pytest

from project.job_queue import PATIENCE_S, JobQueue, RateLimit
from project.public import PUBLIC, NotOfferedError

RULES = replace(PUBLIC, jobs_at_once=1, max_waiting=3, turn_s=100.0)
THREADS, ROUNDS = 8, 25


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def queue(clock):
    return JobQueue(RULES, clock)


def places(queue, names):
    return [queue.ask(name) for name in names]


def test_visitors_are_served_in_the_order_in_which_they_came(queue):
    assert places(queue, "abc") == [0, 1, 2]
    assert places(queue, "cba") == [2, 1, 0]
    queue.leave("a")
    assert places(queue, "cb") == [1, 0]


def test_several_may_work_at_once(clock):
    queue = JobQueue(replace(RULES, jobs_at_once=2), clock)
    assert places(queue, "abcd") == [0, 0, 1, 2]


def test_who_waits_and_leaves_frees_a_place(queue):
    places(queue, "abc")
    queue.leave("b")
    assert places(queue, "ac") == [0, 1]
    assert len(queue) == 2


def test_leaving_twice_or_uninvited_changes_nothing(queue):
    queue.leave("nobody")
    places(queue, "ab")
    queue.leave("b")
    queue.leave("b")
    assert len(queue) == 1


def test_who_is_silent_has_left(queue, clock):
    places(queue, "ab")
    clock.now = PATIENCE_S
    assert queue.ask("b") == 1
    clock.now = PATIENCE_S + 1
    assert queue.ask("b") == 0


def test_work_under_way_keeps_the_turn_of_who_left(queue, clock):
    busy = [True]
    queue.ask("a", lambda: busy[0])
    assert queue.ask("b") == 1
    queue.leave("a")
    clock.now = PATIENCE_S / 2
    assert queue.ask("b") == 1
    clock.now = PATIENCE_S + 1
    assert queue.ask("b") == 1
    busy[0] = False
    assert queue.ask("b") == 0


def test_who_left_and_comes_back_during_the_work_keeps_the_turn(queue):
    queue.ask("a", lambda: True)
    queue.leave("a")
    assert queue.ask("a") == 0
    assert queue.ask("b") == 1


def test_a_long_turn_passes_on_if_others_wait(queue, clock):
    for clock.now in range(0, 101, 10):
        assert places(queue, "ab") == [0, 1]
    clock.now = 101
    assert places(queue, "ab") == [1, 0]
    for clock.now in range(110, 200, 10):
        assert places(queue, "ba") == [0, 1]
    clock.now = 202
    assert places(queue, "ba") == [1, 0]


def test_a_long_turn_goes_on_if_nobody_waits(queue, clock):
    for clock.now in range(0, 500, 10):
        assert queue.ask("a") == 0


def test_a_turn_does_not_pass_on_during_the_work(queue, clock):
    for clock.now in range(0, 300, 10):
        assert queue.ask("a", lambda: True) == 0
        assert queue.ask("b") == 1


def test_a_full_line_says_how_many_wait_and_what_to_do(queue):
    assert places(queue, "abcd") == [0, 1, 2, 3]
    with pytest.raises(
        NotOfferedError, match=r"3 visitors wait already, and at most 3 may; try again in a minute, or .*pip"
    ):
        queue.ask("e")
    assert places(queue, "abcd") == [0, 1, 2, 3]
    queue.leave("d")
    assert queue.ask("e") == 3


def test_threads_work_one_at_a_time_and_none_waits_for_ever():
    queue, inside, most, done = JobQueue(replace(RULES, max_waiting=THREADS, turn_s=1e9)), [], [], []

    def visit(name):
        for _ in range(ROUNDS):
            while queue.ask(name):
                pass
            inside.append(name)
            most.append(len(inside))
            inside.remove(name)
            queue.leave(name)
        done.append(name)

    threads = [threading.Thread(target=visit, args=(name,), daemon=True) for name in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == list(range(THREADS))
    assert max(most) == 1
    assert len(queue) == 0


def test_a_rate_limit_counts_the_last_minute(clock):
    limit = RateLimit(2, clock)
    limit.count("races")
    clock.now = 20
    limit.count("races")
    clock.now = 30
    with pytest.raises(
        NotOfferedError, match=r"races: got 3 in a minute, and a visitor of this server has 2; wait 30 s, or"
    ):
        limit.count("races")
    clock.now = 60
    limit.count("races")
    with pytest.raises(NotOfferedError, match="wait 20 s"):
        limit.count("races")
