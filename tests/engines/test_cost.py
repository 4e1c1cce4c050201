"""engines.cost: when messages and work happen, which ports are busy, and errors that name ranks."""

import time

import numpy as np
import pytest

from minifuse.core.errors import DistributedError, IndexingError
from minifuse.engines.algorithms import direct_all_to_all, ring_all_reduce
from minifuse.engines.cost import Deadlock, Event, Link, MessageError, play
from minifuse.engines.messages import Recv, Send, Work

X = np.zeros(2, np.float32)


def test_a_rank_computes_while_it_sends():
    def first():
        yield Send(1, X)
        yield Work(5, "a")

    def second():
        yield Work(1, "b")
        yield Recv(0)
        yield Work(1, "c")

    timeline = play([first(), second()], Link(2, 0.125))
    assert timeline.events == [
        Event(0, 0, 5, "a"),
        Event(0, 0, 3, to=1, nbytes=8),
        Event(1, 0, 1, "b"),
        Event(1, 3, 4, "c"),
    ]
    assert (timeline.seconds, timeline.idle_share()) == (5, 1 - 7 / 10)


def test_the_earliest_event_is_next_whatever_the_rank():
    """Rank 2 sends to rank 0 before rank 1 does, though rank 1 has asked first."""

    def late():
        yield Work(2, "w")
        yield Send(0, X)

    def early():
        yield Work(1, "w")
        yield Send(0, X)

    def target():
        yield Recv(1)
        yield Recv(2)

    messages = play([target(), late(), early()], Link(3, 0)).messages
    assert [(event.rank, event.start, event.end) for event in messages] == [(2, 1, 4), (1, 4, 7)]


def test_messages_to_one_rank_follow_each_other():
    def target():
        for source in range(1, 4):
            yield Recv(source)

    def sender():
        yield Send(0, X)

    assert play([target(), sender(), sender(), sender()], Link(1, 0)).seconds == 3
    programs = [direct_all_to_all(rank, 4, [X] * 4) for rank in range(4)]
    assert play(programs, Link(1, 0)).seconds == 3  # each round sends all ranks one message


def test_the_link_may_depend_on_the_ranks():
    """Two nodes of two devices: each round of the ring waits for the slow link between them."""
    fast, slow = Link(1, 0), Link(10, 0)
    programs = [ring_all_reduce(rank, 4, X, np.add) for rank in range(4)]
    timeline = play(programs, lambda source, target: fast if source // 2 == target // 2 else slow)
    assert timeline.seconds == 60


def wait_for(source):
    yield Recv(source)


def return_at_once():
    yield from ()


def test_a_deadlock_names_all_ranks_and_what_they_wait_for():
    start = time.perf_counter()
    with pytest.raises(Deadlock) as caught:
        play([wait_for(1), wait_for(2), wait_for(0), return_at_once()])
    assert time.perf_counter() - start < 1
    for part in ("rank 0 waits for rank 1", "rank 1 waits for rank 2", "rank 2 waits for rank 0", "rank 3 has ended"):
        assert part in str(caught.value)
    assert isinstance(caught.value, DistributedError)


def test_a_rank_that_leaves_a_collective_early_is_a_deadlock():
    programs = [ring_all_reduce(rank, 64, np.zeros(64), np.add) for rank in range(63)]
    with pytest.raises(Deadlock, match=r"rank 0 waits for rank 63.*rank 62 waits for rank 61.*rank 63 has ended"):
        play([*programs, return_at_once()])


def send_to(*targets):
    for target in targets:
        yield Send(target, X)


def test_a_message_that_nobody_receives_is_an_error():
    with pytest.raises(MessageError, match="from rank 0 to rank 1 are never received"):
        play([send_to(1), return_at_once()])


def test_a_rank_that_does_not_exist_is_an_error():
    with pytest.raises(IndexingError, match="rank 0 sends to rank 2; there are ranks 0 to 1"):
        play([send_to(2), return_at_once()])


def test_messages_arrive_in_the_order_in_which_they_were_sent():
    def sender():
        for k in range(5):
            yield Send(1, np.full(5 - k, k))  # later ones are shorter

    def receiver():
        yield Work(3, "w")
        received = [None] * 5
        for k in range(5):
            received[k] = (yield Recv(0))[0]
        return received

    assert play([sender(), receiver()]).results == [None, [0, 1, 2, 3, 4]]


def test_the_same_programs_have_the_same_timeline():
    first, second = (play([ring_all_reduce(rank, 5, np.arange(7.0), np.add) for rank in range(5)]) for _ in range(2))
    assert first.events == second.events


def test_without_ranks_nothing_happens():
    assert play([]) == ([], [], 0)
