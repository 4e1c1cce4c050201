"""The timer: players take turns, so that other load of the machine affects all of them alike.

A round is one block of calls of each player. The median and the quartiles of many rounds are reported. Players are compared
by the ratios of their times within a round, which depend less on the machine's load than the times. An untimed call precedes
each block: it loads the player's data into the caches and wakes its threads.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

BLOCK_S = 0.004  # seconds: calls are repeated until a block takes this long
BUDGET_S = 1.5  # seconds for the rounds of a row, if these are at least MIN_ROUNDS
MIN_ROUNDS, MAX_ROUNDS, QUICK_ROUNDS = 5, 41, 2
LONG_CALL_S = 0.05  # before a block of calls longer than this, there is no untimed call
WARM_S = 0.03  # seconds of untimed rounds on a device, whose clock rate rises with its load
CLOCKED_S = 6.0  # no further round of players that measure themselves starts after this many seconds
REST_S = 0.12  # sleep before a block: after a product, OpenBLAS threads wait actively for 2^28 cycles, some 100 ms

Player = Callable[[], object]


class Spread(NamedTuple):
    """The median, the lower and the upper quartile."""

    median: float
    q1: float
    q3: float


class Times(NamedTuple):
    """The seconds per call of each player in each round, and the number of calls in its blocks."""

    rounds: dict[str, list[float]]
    calls: dict[str, int]


def take_turns(
    players: dict[str, Player],
    is_quick: bool = False,
    rests: bool = False,
    settle: Callable[[], None] = lambda: None,
    budget_s: float = BUDGET_S,
) -> Times:
    """Time players in turn. Each player was called before, so that it is compiled.

    Parameters
    ----------
    players
        Functions without arguments, by the names of the players.
    is_quick
        Whether to do only two rounds of one call per player, to check that the players run.
    rests
        Whether to sleep for REST_S before each block, until the threads of the previous player are idle.
    settle
        Waits until a device is idle; called before each block, untimed.
    budget_s
        No further round starts after this many seconds, if there were at least MIN_ROUNDS.
    """
    first_call_s = {who: time_block(player, 1) for who, player in players.items()}
    calls = {who: 1 if is_quick else calls_in_a_block(player, settle) for who, player in players.items()}
    rounds: dict[str, list[float]] = {who: [] for who in players}
    started, count = time.perf_counter(), 0
    while goes_on(count, time.perf_counter() - started, is_quick, budget_s):
        for who in in_turn(players, count):
            if rests and not is_quick:
                time.sleep(REST_S)
            settle()
            if first_call_s[who] < LONG_CALL_S:
                players[who]()
            rounds[who].append(time_block(players[who], calls[who]))
        count += 1
    return Times(rounds, calls)


def take_turns_on(events: Any, players: dict[str, Player], is_quick: bool = False) -> Times:
    """Time players in turn by the clock of a device. Each player was called before, so that it is compiled.

    Parameters
    ----------
    events
        The clock of the device. `record()` puts an event into its queue, `seconds(start, end)` returns the time between two
        completed events, `synchronize()` waits for the device, and `flush()`, called before each call, empties its cache.
    """
    started = time.perf_counter()
    while not is_quick and time.perf_counter() - started < WARM_S:
        for player in players.values():
            player()
        events.synchronize()
    rounds: dict[str, list[float]] = {who: [] for who in players}
    started, count = time.perf_counter(), 0
    while goes_on(count, time.perf_counter() - started, is_quick):
        next(iter(players.values()))()  # untimed, because the first player would find an idle device
        events_of = {}
        for who in in_turn(players, count):
            events.flush()
            start = events.record()
            players[who]()
            events_of[who] = start, events.record()
        events.synchronize()
        for who, (start, end) in events_of.items():
            rounds[who].append(events.seconds(start, end))
        count += 1
    return Times(rounds, dict.fromkeys(players, 1))


def read_clocks(players: dict[str, Callable[[], float]], is_quick: bool = False) -> Times:
    """Call in turn players that measure their own time and return it in seconds."""
    rounds: dict[str, list[float]] = {who: [] for who in players}
    started = time.perf_counter()
    for count in range(1 if is_quick else MIN_ROUNDS):
        if count and time.perf_counter() - started > CLOCKED_S:
            break
        for who in in_turn(players, count):
            rounds[who].append(players[who]())
    return Times(rounds, dict.fromkeys(players, 1))


def in_turn(players: Iterable[str], count: int) -> list[str]:
    """Return the order of the players in round number `count`. Odd rounds are reversed, so that predecessors vary.

    On a busy machine, the player after a long block is delayed by processes that waited for a core during the block.

    Examples
    --------
    >>> [in_turn("abc", count) for count in range(2)]
    [['a', 'b', 'c'], ['c', 'b', 'a']]
    """
    return list(players)[:: -1 if count % 2 else 1]


def goes_on(count: int, elapsed_s: float, is_quick: bool, budget_s: float = BUDGET_S) -> bool:
    """Return True if another round shall be done after `count` rounds."""
    if is_quick or count < MIN_ROUNDS:
        return count < (QUICK_ROUNDS if is_quick else MIN_ROUNDS)
    return count < MAX_ROUNDS and elapsed_s < budget_s


def time_block(player: Player, calls: int) -> float:
    """Return seconds per call, including some 50 ns for the loop and the call of a Python function."""
    start = time.perf_counter()
    for _ in repeat(None, calls):
        player()
    return (time.perf_counter() - start) / calls


def calls_in_a_block(player: Player, settle: Callable[[], None] = lambda: None) -> int:
    """Return the number of calls that take BLOCK_S in all."""
    calls = 1
    settle()
    while (seconds := time_block(player, calls)) * calls < BLOCK_S:
        settle()
        calls = max(2 * calls, min(10 * calls, int(BLOCK_S / max(seconds, 1e-9))))
    return calls


def spread(values: Sequence[float]) -> Spread:
    """Return the median and the quartiles.

    Examples
    --------
    >>> spread([4.0, 1.0, 2.0, 3.0, 5.0])
    Spread(median=3.0, q1=2.0, q3=4.0)
    """
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, q1, q3)
