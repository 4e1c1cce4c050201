"""The visitors of a server, and their turns at its heavy work: what pages draw and call of `project.job_queue`.

On a server without limits every turn comes at once, so nothing of this is seen.
"""

import math
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st

from .frame import show_error
from .job_queue import JobQueue, RateLimit
from .public import AT_HOME, NotOfferedError, Policy, policy

EVERY_S = 1.0  # seconds between two questions for the place in the line
JOB, REFUSED, PAGE = "turn_job", "turn_refused", "turn_page"  # keys of the session's state


class Lobby:
    """The visitors of a server, and the queue for its heavy work."""

    def __init__(self, rules: Policy) -> None:
        self.rules = rules
        self.queue = JobQueue(rules)
        self._lock = threading.Lock()
        self._visitors: set[Visitor] = set()

    def admit(self, visitor: "Visitor") -> None:
        """Let a visitor in.

        Raises
        ------
        NotOfferedError
            The server is full.
        """
        with self._lock:
            if visitor not in self._visitors and len(self._visitors) >= self.rules.max_visitors:
                raise NotOfferedError(
                    f"{len(self._visitors)} visitors are here, and this server has room for {self.rules.max_visitors:g}; "
                    f"load the page again in some minutes, or use minifuse {AT_HOME}"
                )
            self._visitors.add(visitor)

    def leave(self, visitor: "Visitor") -> None:
        """Free the places of a visitor."""
        with self._lock:
            self._visitors.discard(visitor)
        self.queue.leave(visitor)


class Visitor:
    """A session of a browser."""

    def __init__(self, lobby: Lobby) -> None:
        self.lobby = lobby
        self.draws = RateLimit(lobby.rules.draws_per_minute)
        self.jobs = RateLimit(lobby.rules.jobs_per_minute)
        self._is_working = False

    def is_working(self) -> bool:
        """Return True while a job of this visitor runs."""
        return self._is_working

    def run(self, job: Callable[[], object]) -> None:
        """Run a job, and free the place in the line."""
        self._is_working = True
        try:
            job()
        finally:
            self._is_working = False
            self.lobby.queue.leave(self)

    def leave(self) -> None:
        """Free all places of this visitor."""
        self.lobby.leave(self)


find_lobby = cache(Lobby)  # one for each policy, so one for each server


@st.cache_resource(scope="session", max_entries=1, on_release=Visitor.leave, hash_funcs={Policy: hash}, show_spinner=False)
def find_visitor(rules: Policy) -> Visitor:
    """Return the visitor of this session. Streamlit releases it when the browser disconnects."""
    return Visitor(find_lobby(rules))


def this_visitor() -> Visitor:
    """Return the visitor of this session, by the policy of this server."""
    return find_visitor(policy())


def admit(page: str) -> None:
    """Let the visitor draw a page, or draw why not and stop. Whoever opens another page leaves the line."""
    visitor = this_visitor()
    try:
        visitor.lobby.admit(visitor)
        visitor.draws.count("pages and changes")
    except NotOfferedError as error:
        show_error(error)
        st.stop()
    if st.session_state.get(PAGE) != page:
        st.session_state[PAGE] = page
        leave_line()


def line_up() -> bool:
    """Begin heavy work: return True if the visitor has a turn or a place in the line. `show_line` draws why not."""
    visitor = this_visitor()
    try:
        visitor.jobs.count("races and trainings")
        visitor.lobby.queue.ask(visitor, visitor.is_working)
    except NotOfferedError as error:
        st.session_state[REFUSED] = error
        return False
    return True


def submit(act: Callable[..., object], *arguments: Any) -> None:
    """Call a function when the visitor's turn has come: now, or while the page draws `show_line`."""
    if line_up():
        st.session_state[JOB] = lambda: act(*arguments)
        run_in_turn()


def run_in_turn() -> int:
    """Run the submitted job if its turn has come. Return the place of the visitor in the line, 0 if nothing waits."""
    state, visitor = st.session_state, this_visitor()
    place = visitor.lobby.queue.ask(visitor, visitor.is_working) if JOB in state else 0
    if place == 0 and JOB in state:
        visitor.run(state.pop(JOB))
    return place


def has_turn(is_busy: Callable[[], bool]) -> bool:
    """Return True if the visitor's turn has come or goes on, and draw the place in the line otherwise.

    Parameters
    ----------
    is_busy
        Function that returns True while the visitor's work is under way. The turn does not end before.
    """
    visitor = this_visitor()
    place = visitor.lobby.queue.ask(visitor, is_busy)
    if place:
        st.info(describe_place(place))
    return place == 0


def leave_line() -> None:
    """Free the place of this visitor in the line, and forget the submitted job."""
    visitor = this_visitor()
    st.session_state.pop(JOB, None)
    visitor.lobby.queue.leave(visitor)


def show_line(key: str) -> None:
    """Draw why work did not begin, or the place of the visitor in the line until the turn comes.

    Parameters
    ----------
    key : str
        Key of the button that leaves the line.
    """
    if error := st.session_state.pop(REFUSED, None):
        show_error(error)
    if JOB in st.session_state:
        st.fragment(show_place, run_every=EVERY_S)(key)


def show_place(key: str) -> None:
    """Run the submitted job if its turn has come, and draw the place in the line otherwise."""
    place = run_in_turn()
    if place == 0:
        st.rerun()
    text, button = st.columns([5, 1], vertical_alignment="center")
    text.info(describe_place(place))
    button.button("Leave the line", on_click=leave_line, key=key, width="stretch")


def describe_place(place: int) -> str:
    """Say where in the line a visitor is."""
    rules = this_visitor().lobby.rules
    turn = f"A turn takes at most {rules.turn_s:g} s if others wait. " if rules.turn_s < math.inf else ""
    return (
        f"You are number {place} in the line. {turn}This page goes on by itself; whoever opens another one leaves the line."
    )
