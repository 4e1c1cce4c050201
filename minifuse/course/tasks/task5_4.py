"""Task 5.4: a cache of kernels with the right keys."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import oracle
from ..call_lists import MAKERS, FreeCall, draw_calls, draw_distinct_calls
from ..call_pairs import Builds, Call, Pair, Requests, Tensor, request_kernels
from ..call_sessions import Session, SessionFacts, draw_session, run_session
from ..check import agreement, check_each, current, in_turn
from ..drawn_calls import characteristic_pairs, pairs
from ..oracle.module5 import key
from ..questions.task5_4 import compare_keys, group_calls, use_cache, use_caches
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

WRONG_HIT = "calls that need two kernels have two keys"
NEEDLESS = "calls that one kernel serves have one key"
ANY = "so it is for any number of arguments, and for any values that a function reads"
BUILDS = "a kernel is built when its key is new, and never else"
ROOM = "the cache keeps the kernels that were asked for last"
FREED = "the cache keeps no function and no array of a call alive"
ERRORS = "a kernel that could not be built leaves nothing behind"
NESTED = "inner", "innermost", "many_deep"  # functions that read functions: names in MAKERS


def read_comparison(pair: Pair, answer: tuple[bool, object, str | None]) -> bool:
    """Return whether the student's keys of two calls are equal; keys must be hashable."""
    is_equal, unhashable, error = answer
    if error is not None:
        raise Wrong(f"the key cannot be in a dict: {error}", case_text=current[0], got=unhashable, kind="unhashable")
    return is_equal


def right(pair: Pair, **mistake: str) -> bool:
    """Return whether two calls share a kernel; with a mistake, whether their wrong keys are equal."""
    made = [call.build() for call in pair]  # keep both alive, so that ids are distinct
    one, other = [key(*call, mistake.get("without", ""), mistake.get("having", "")) for call in made]
    return one == other


def differing(is_shared: bool) -> Callable[[], "SearchStrategy[Pair]"]:
    """Return a strategy of pairs that share a kernel, or that do not."""

    def cases() -> "SearchStrategy[Pair]":
        return pairs().filter(lambda pair: right(pair) is is_shared)

    return cases


def compares(name: str, cases: Callable[[], "SearchStrategy[Pair]"], share: float = 1.0) -> Check:
    """Return a check that keys of pairs are equal if and only if the calls share a kernel."""
    return agreement(name, cases, compare_keys, right, read=read_comparison, draw=drawing, share=share, at_once=True)


def drawing(pair: Pair, got: object, expected: bool) -> list[str]:
    """List the differences of the two calls."""
    parts = [
        f"{name}: {a}  then  {b}"
        for name, a, b in zip(Call._fields, *pair, strict=True)
        if repr(a) != repr(b) and not (name == "y" and "apart" not in (pair.first.alias, pair.second.alias))
    ]
    verdict = "one kernel serves both" if expected else "they need two kernels"
    return [*(parts or ["nothing differs but the objects: the function and the arrays are made anew"]), verdict]


Groups = tuple[list[int], object, str | None]


def groups_of(calls: list[FreeCall]) -> list[int]:
    """Return, for each call, the first one that one kernel serves too."""
    first: dict[str, int] = {}
    return [first.setdefault(repr(key(*call.build())), at) for at, call in enumerate(calls)]


def check_groups(is_shared: bool, calls: list[FreeCall], answer: Groups) -> None:
    """Raise `Wrong` if two calls that need two kernels have one key, or if two calls that one kernel serves have two."""
    groups, unhashable, error = answer
    if error is not None:
        raise Wrong(f"the key cannot be in a dict: {error}", case_text=current[0], got=unhashable, kind="unhashable")
    right = groups_of(calls)
    for at, group in enumerate(groups):
        k = at % len(calls)
        other = right[k] if is_shared else group
        if is_shared and group != groups[other] and groups[k] == groups[other]:
            raise Wrong("a call has another key when it is asked for again", case_text=str(calls[k]), kind="again")
        if group != groups[other] if is_shared else group >= 0 and right[group] != right[k]:
            raise Wrong(
                "two calls have different keys, and one kernel serves both" if is_shared else "two calls have one key",
                case_text=f"first {calls[other]}\nthen  {calls[k]}",
                expected=is_shared,
                got=not is_shared,
                kind="nested" if is_shared and calls[k].function in NESTED else "",
            )


def call_again() -> "SearchStrategy[Pair]":
    """Draw one call twice: only the objects are others."""
    from hypothesis import strategies as st

    call = Call("scaled", 2.0, Tensor((4, 5)), Tensor((4, 5)), 1.0)
    return st.just(Pair(call, call))


def calls_again() -> "SearchStrategy[list[FreeCall]]":
    """Draw one call twice, for each way in which a function can read values."""
    from hypothesis import strategies as st

    return st.sampled_from([[FreeCall(name, 2.0, 3, (), (1.0,))] * 2 for name in MAKERS])


def grouped(name: str, is_shared: bool, few: Callable[[], "SearchStrategy[list[FreeCall]]"] | None = None) -> Check:
    """Return a check of the keys of many calls, or of `few`. Objects of shared kernels are kept: their ids differ."""

    def drawn(make: Callable[[int, int], list[FreeCall]], least: int, most: int) -> "SearchStrategy[list[FreeCall]]":
        from hypothesis import strategies as st

        return st.builds(make, st.integers(0, 2**32), st.integers(least, most))

    return check_each(
        name,
        few or (lambda: drawn(draw_calls, 2, 20)),
        group_calls,
        partial(check_groups, is_shared),
        large=None if is_shared else lambda: drawn(draw_distinct_calls, 150, 150),
        send=lambda calls: (calls, is_shared),
        describe=lambda calls: f"{len(calls)} calls",
        at_once=True,
    )


def request_counts() -> "SearchStrategy[int]":
    """Draw how many requests a session has."""
    from hypothesis import strategies as st

    return st.sampled_from([4, 8, 14, 40])


def sessions() -> "SearchStrategy[Session]":
    """Draw sessions."""
    from hypothesis import strategies as st

    return st.builds(draw_session, st.integers(0, 2**32), st.sampled_from([2, 1, 3, 5, 0, 2000]), request_counts())


def large_sessions() -> "SearchStrategy[Session]":
    """Draw sessions with large caches and many requests."""
    from hypothesis import strategies as st

    return st.builds(draw_session, st.integers(0, 2**32), st.sampled_from([130, 40, 1500]), st.just(400))


def failing_sessions() -> "SearchStrategy[Session]":
    """Draw sessions with small caches, in which a third of the builds raise errors."""
    from hypothesis import strategies as st

    rooms = st.sampled_from([2, 3, 1, 5])
    return st.builds(draw_session, st.integers(0, 2**32), rooms, request_counts(), st.just(1 / 3))


class ForgetfulCache:
    """A cache that builds a kernel again if it is None, or if it is false."""

    def __init__(self, most: int, has_kernel: Callable[[object], bool]) -> None:
        self.most, self.has_kernel, self.kernels = most, has_kernel, dict[str, object]()

    def kernel(self, function: Any, arguments: Any, build: Callable[[], object]) -> object:
        """Return the kernel of a call."""
        place = repr(key(function, arguments))
        if not self.has_kernel(self.kernels.get(place)):
            self.kernels[place] = build()
        self.kernels[place] = kernel = self.kernels.pop(place)
        while len(self.kernels) > self.most:
            del self.kernels[next(iter(self.kernels))]
        return kernel


FORGETFUL = partial(ForgetfulCache, has_kernel=bool), partial(ForgetfulCache, has_kernel=lambda x: x is not None)


plays_sessions = partial(check_each, ask=use_caches, share=0.5, at_once=True)


def check_session(session: Session, answer: SessionFacts) -> None:
    """Raise `Wrong` if a request builds or returns something else than it should, or if a cache keeps too much."""
    right = run_session(oracle.function("KernelCache"), session)
    is_forgetful = any(answer.results == run_session(cache, session).results for cache in FORGETFUL)
    kind = "forgets" if is_forgetful else "session"
    for at, (got, expected) in enumerate(zip(answer.results, right.results, strict=False)):
        if got == expected:
            continue
        message = (
            f"request {at} to end, for k = {expected[0]}: {expected[1]} builds were expected during it, {got[1]} were made"
        )
        if got[:2] == expected[:2]:
            message = f"request {at} to end, for k = {expected[0]}, does not return the kernel that was built for it"
        raise Wrong(message, case_text=str(session), expected=expected[1], got=got[1], kind=kind)
    if len(answer.results) != len(right.results):
        message = f"{len(answer.results)} requests were made, those of builds included; expected {len(right.results)}"
        raise Wrong(message, case_text=str(session), kind=kind)
    if answer.is_over:
        raise Wrong("more kernels are kept than there is room for", case_text=str(session), kind="session")


def check_freed(session: Session, answer: SessionFacts) -> None:
    """Raise `Wrong` if functions or arguments of calls stay in memory."""
    if answer.is_holding:
        raise Wrong(
            "functions or arrays of calls are in memory after the calls: keep the key and the kernel, not the arguments",
            case_text=str(session),
            kind="holding",
        )


def sequences() -> "SearchStrategy[Requests]":
    """Draw (capacity, a sequence of calls): calls repeat, and differ in k."""
    from hypothesis import strategies as st

    return st.builds(Requests, st.integers(1, 4), st.lists(st.integers(0, 4), min_size=1, max_size=12).map(tuple))


def asked_again() -> "SearchStrategy[Requests]":
    """Draw sequences in which a kernel is used again just before the cache is full."""
    from hypothesis import strategies as st

    return st.sampled_from([Requests(2, (0, 1, 0, 2, 0)), Requests(3, (0, 1, 2, 0, 3, 0)), Requests(2, (1, 2, 1, 0, 1, 2))])


def describe_requests(case: Requests) -> str:
    """Return a sequence as text."""
    text = (
        f"room for {case.room} kernels; calls of f with k = {', '.join(f'{k}.0' for k in case.calls)}, one after the other"
    )
    return text if case.failing is None else f"{text}; the first build for k = {case.failing}.0 ends in an error"


def plays(name: str, room: int | None = None, failing: int | None = None) -> Check:
    """Return a check that compares the student's cache with the oracle's, with as much room as drawn or with this room."""

    def adapt(case: Requests) -> Requests:
        return case._replace(room=room or case.room, failing=failing)

    agrees = partial(
        agreement,
        name,
        ask=use_cache,
        expect=lambda c: request_kernels(oracle.function("KernelCache")(adapt(c).room), adapt(c)),
        send=adapt,
        describe=lambda c: describe_requests(adapt(c)),
        draw=lambda c, got, expected: [
            f"call {k}: expected build {a}, got {b}" for k, (a, b) in enumerate(zip(expected, got, strict=True))
        ],
        share=0.5,
        at_once=True,
    )
    return in_turn(name, [agrees(cases=sequences), agrees(cases=asked_again)])


def first_in_first_out(case: Requests) -> Builds:
    """Answer like a first-in-first-out cache."""
    kernels: dict[int, int] = {}
    found: Builds = []
    builds = 0
    for k in case.calls:
        if k not in kernels:
            kernels[k] = builds
            builds += 1
        found.append(kernels[k])
        if len(kernels) > case.room:
            del kernels[next(iter(kernels))]
    return found


def without(part: str) -> Callable[[Pair], bool]:
    """Return an answer whose key lacks a part."""
    return lambda pair: right(pair, without=part)


def having(part: str) -> Callable[[Pair], bool]:
    """Return an answer whose key has a superfluous part."""
    return lambda pair: right(pair, having=part)


TASK = Task(
    id="5.4",
    title="A kernel cache with a right key",
    file="kernel_cache.py",
    slots=("call_key", "KernelCache"),
    points=6,
    text=(
        "To make a kernel takes milliseconds, to run one microseconds, so kernels are cached under a key. A key that leaves "
        "something out gives a wrong kernel, sooner or later; one that has too much in it makes kernels again and again. "
        "Write the key that the head of the file describes, and a cache of limited size."
    ),
    hints=(
        "Ask of each fact about a call: would the text of the kernel be another one? If yes, it is in the key; if not, not.",
        "For each tensor dtype and classes of strides; for each number its type; for each two arguments how they alias; of "
        "the function its code, and repr of its closure and defaults, since 2 == 2.0 == 2 + 0j. The cache: a dict keeps the "
        "order of insertion, so take out and put back what was asked for.",
        "docs/guide/fusion.md, 'Cache keys and guards'.",
    ),
    reads=("docs/course/5.4-kernel-cache.md", "docs/guide/fusion.md"),
    checks=(
        in_turn(
            WRONG_HIT,
            [
                compares(WRONG_HIT, differing(False)),
                compares(WRONG_HIT, partial(characteristic_pairs, False)),
            ],
        ),
        in_turn(
            NEEDLESS,
            [
                compares(NEEDLESS, call_again, 0.1),
                compares(NEEDLESS, differing(True), 0.5),
                compares(NEEDLESS, partial(characteristic_pairs, True)),
            ],
        ),
        in_turn(ANY, [grouped(ANY, True, calls_again), grouped(ANY, True), grouped(ANY, False)]),
        plays(BUILDS, 5),
        in_turn(ROOM, [plays(ROOM), plays_sessions(ROOM, sessions, examine=check_session, large=large_sessions)]),
        in_turn(ERRORS, [plays(ERRORS, 5, failing=2), plays_sessions(ERRORS, failing_sessions, examine=check_session)]),
        plays_sessions(FREED, sessions, examine=check_freed, large=large_sessions),
    ),
    mistakes=(
        Mistake(
            "the dtype is left out",
            "A kernel for float32 reads the bytes of a float64 as two numbers.",
            wrong_answer=without("dtype"),
            check=WRONG_HIT,
        ),
        Mistake(
            "a dim of size 1 does not count as stride 0",
            "It may be broadcast, so the kernel does not step there, whatever its stride is.",
            wrong_answer=without("ones"),
            check=WRONG_HIT,
        ),
        Mistake(
            "strides are left out",
            "A kernel that steps by 1 cannot read a transposed tensor, nor one that is repeated.",
            wrong_answer=without("strides"),
            check=WRONG_HIT,
        ),
        Mistake(
            "it is left out which arguments share memory",
            "f(x, x) loads once, and f(x, x one further) must load before it stores: both differ from f(x, y).",
            wrong_answer=without("aliases"),
            check=WRONG_HIT,
        ),
        Mistake(
            "values from outside are compared by ==, without their types",
            "2 == 2.0, True == 1, and 0.0 == -0.0. repr tells them apart, or the type beside the value.",
            wrong_answer=without("types"),
            check=WRONG_HIT,
        ),
        Mistake(
            "what the function reads from around it is left out",
            "k is a number in the kernel's text. insides(function) has the closure, and the defaults.",
            wrong_answer=without("closure"),
            check=WRONG_HIT,
        ),
        Mistake(
            "the function is known by its name",
            "Two functions may be called f. insides(function).code is what they do.",
            wrong_answer=without("code"),
            check=WRONG_HIT,
        ),
        Mistake(
            "the key has objects in it that are made anew",
            "Put insides(function) into the key, not the function; and of a tensor what the kernel depends on.",
            when=lambda w: not w.kind and w.case.first == w.case.second,
            check=NEEDLESS,
        ),
        Mistake(
            "a function that is read from around another one counts by its address",
            "`repr` of a function has its address, also inside of a tuple. Describe it by its own insides.",
            when=lambda w: w.kind == "nested",
            check=ANY,
        ),
        Mistake(
            "the strides themselves are in the key",
            "Of a stride only its class counts: 0, 1, or another number, which the kernel is told.",
            wrong_answer=having("strides"),
            check=NEEDLESS,
        ),
        Mistake(
            "sizes are in the key",
            "The kernel is told its sizes when it runs; a new size needs no new kernel. Only whether a size is 1 counts.",
            wrong_answer=having("sizes"),
            check=NEEDLESS,
        ),
        Mistake(
            "values of arguments are in the key",
            "A number that is an argument travels with the call; only its type is in the kernel.",
            wrong_answer=having("numbers"),
            check=NEEDLESS,
        ),
        Mistake(
            "a kernel that is None or false counts as none",
            "A kernel may be any value. Ask whether the key is in the dict: `key in self.kernels`.",
            when=lambda w: w.kind == "forgets",
        ),
        Mistake(
            "the kernel that was built first goes first",
            "It may be the one that is used most. What is asked for becomes the newest: take it out, and put it back at "
            "the end.",
            wrong_answer=first_in_first_out,
            check=ROOM,
        ),
    ),
    allows=frozenset({"minifuse.course.fusion"}),
)
