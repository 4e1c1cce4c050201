"""The timer: players take turns, so that other load of the machine affects all of them alike.

A round is one block of calls of each player. The median of many rounds is reported, with its quartiles; players are compared
by the ratios within each round, which depend less on the machine's load than the times. An untimed call precedes each block:
it loads the player's data into the caches and wakes its threads.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

BLOCK_S = 0.004  # calls are repeated until a block takes this long
BUDGET_S = 1.5  # for the rounds of a row, where that is at least FEWEST_ROUNDS
MIN_ROUNDS, MAX_ROUNDS, QUICK_ROUNDS = 5, 41, 2
LONG_CALL_S = 0.05  # longer calls have no untimed call before a block
WARM_S = 0.03  # of untimed rounds on a device, whose clocks rise with its load
CLOCKED_S = 6.0  # for rounds of players that measure themselves in other processes; at least one runs
REST_S = 0.12  # after a product the threads of OpenBLAS look for more work for 2^28 cycles, some 100 ms, each on a core

Player = Callable[[], object]


class Spread(NamedTuple):
    """Median, lower and upper quartile."""

    median: float
    q1: float
    q3: float


class Times(NamedTuple):
    """Seconds per call of each player, round by round, and the number of calls of a block."""

    rounds: dict[str, list[float]]
    calls: dict[str, int]


def take_turns(
    players: dict[str, Player],
    is_quick: bool = False,
    rests: bool = False,
    settle: Callable[[], None] = lambda: None,
    budget_s: float = BUDGET_S,
) -> Times:
    """Time players that were called before, in turn.

    Parameters
    ----------
    players
        Each a call without arguments.
    is_quick
        One call of each in two rounds, which shows that they run.
    rests
        Whether to sleep before each block, until no thread of the player before is looking for work.
    settle
        Called before each block, untimed: waits until a device is idle.
    budget_s
        How long the rounds go on.
    """
    first = {who: time_block(player, 1) for who, player in players.items()}
    calls = {who: 1 if is_quick else calls_in_a_block(player, settle) for who, player in players.items()}
    rounds: dict[str, list[float]] = {who: [] for who in players}
    started, count = time.perf_counter(), 0
    while goes_on(count, time.perf_counter() - started, is_quick, budget_s):
        for who in in_turn(players, count):
            if rests and not is_quick:
                time.sleep(REST_S)
            settle()
            if first[who] < LONG_CALL_S:
                players[who]()
            rounds[who].append(time_block(players[who], calls[who]))
        count += 1
    return Times(rounds, calls)


def take_turns_on(events: Any, players: dict[str, Player], is_quick: bool = False) -> Times:
    """Time players that were called before, in turn, by the clock of a device.

    Parameters
    ----------
    events
        The clock: `record()` puts a mark into the device's queue, `seconds(mark, mark)` reads two that it has passed,
        `synchronize()` waits for it, and `flush()`, before each call, empties its cache.
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
        marks = {}
        for who in in_turn(players, count):
            events.flush()
            start = events.record()
            players[who]()
            marks[who] = start, events.record()
        events.synchronize()
        for who, (start, end) in marks.items():
            rounds[who].append(events.seconds(start, end))
        count += 1
    return Times(rounds, dict.fromkeys(players, 1))


def read_clocks(players: dict[str, Callable[[], float]], is_quick: bool = False) -> Times:
    """Call, in turn, players that measure their own seconds."""
    rounds: dict[str, list[float]] = {who: [] for who in players}
    started = time.perf_counter()
    for count in range(1 if is_quick else MIN_ROUNDS):
        if count and time.perf_counter() - started > CLOCKED_S:
            break
        for who in in_turn(players, count):
            rounds[who].append(players[who]())
    return Times(rounds, dict.fromkeys(players, 1))


def in_turn(players: Iterable[str], count: int) -> list[str]:
    """Return the order of a round, forward and then backward, so that no player always follows the same one.

    On a busy machine whoever follows a long block waits for the processes that waited meanwhile.

    Examples
    --------
    >>> [in_turn("abc", count) for count in range(2)]
    [['a', 'b', 'c'], ['c', 'b', 'a']]
    """
    return list(players)[:: -1 if count % 2 else 1]


def goes_on(count: int, elapsed_s: float, is_quick: bool, budget_s: float = BUDGET_S) -> bool:
    """Return True if there is another round."""
    if is_quick or count < MIN_ROUNDS:
        return count < (QUICK_ROUNDS if is_quick else MIN_ROUNDS)
    return count < MAX_ROUNDS and elapsed_s < budget_s


def time_block(player: Player, calls: int) -> float:
    """Return seconds per call, including the loop and the call of a Python function: some 50 ns."""
    start = time.perf_counter()
    for _ in repeat(None, calls):
        player()
    return (time.perf_counter() - start) / calls


def calls_in_a_block(player: Player, settle: Callable[[], None] = lambda: None) -> int:
    """Return how many calls take as long as a block should."""
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
