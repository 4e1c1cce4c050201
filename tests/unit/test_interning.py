"""core.interning: equal nodes are one object, and a topological order has inputs before users."""

import gc
from threading import Barrier, Thread

from minifuse.core.interning import MAX_KEPT_ALIVE, Interned, toposort


class Pair(metaclass=Interned):
    def __init__(self, a, b):
        self.a, self.b = a, b


class Other(metaclass=Interned):
    def __init__(self, a, b):
        self.a, self.b = a, b


def test_equal_nodes_are_one_object():
    assert Pair(1, "x") is Pair(1, "x")
    assert Pair(Pair(1, 2), 3) is Pair(Pair(1, 2), 3)
    assert Pair(1, 2) is not Pair(2, 1)


def test_classes_do_not_mix():
    assert type(Pair(1, 2)) is Pair
    assert type(Other(1, 2)) is Other


def test_only_the_most_recent_nodes_are_kept_alive():
    pair, kept = Pair("only", "here"), Pair("kept", "here")
    for k in range(MAX_KEPT_ALIVE):
        Pair("another", k)
    assert ("only", "here") in Pair.instances
    del pair
    gc.collect()
    assert ("only", "here") not in Pair.instances
    assert Pair("kept", "here") is kept
    assert len(Pair.recent) == MAX_KEPT_ALIVE


def test_threads_get_the_same_object():
    found, barrier = [], Barrier(8)

    def make():
        for k in range(200):
            barrier.wait()
            found.append((k, Pair("thread", k)))

    threads = [Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(200):
        assert len({id(pair) for j, pair in found if j == k}) == 1


GRAPH = {"a": [], "b": [], "sum": ["a", "b"], "square": ["sum", "sum"], "root": ["square", "a"], "stray": ["a"]}


def test_inputs_precede_users_and_appear_once():
    assert toposort(["root"], GRAPH.__getitem__) == ["a", "b", "sum", "square", "root"]


def test_several_roots_share_their_inputs():
    assert toposort(["stray", "sum", "stray"], GRAPH.__getitem__) == ["a", "stray", "b", "sum"]
    assert toposort([], GRAPH.__getitem__) == []


def test_the_walk_stops_at_the_given_inputs():
    assert toposort(["root"], lambda x: GRAPH[x] if x != "square" else []) == ["square", "a", "root"]


def test_a_graph_may_be_any_number_of_nodes_deep():
    depth = 100_000
    assert toposort([0], lambda n: [n + 1] if n < depth else []) == list(range(depth, -1, -1))


def test_a_graph_of_many_paths_is_walked_once():
    """Each node uses the next one twice: 2 ** 60 paths, 61 nodes."""
    assert len(toposort([0], lambda n: [n + 1, n + 1] if n < 60 else [])) == 61
