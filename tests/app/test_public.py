"""The app with `--public`: what its pages do not say, what visitors may not do, and their turns at the heavy work."""

import math
import re
import socket
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("streamlit", reason="needs minifuse[app]")

import streamlit as st
from streamlit.testing.v1 import AppTest

from minifuse.cli import app as server
from minifuse.core.errors import MinifuseError
from project import public, turns
from project.public import PRIVATE, PUBLIC, NotOfferedError
from project.screens import OWN, PAGES, PASTED
from project.screens import race as race_screen
from tests.sources import ROOT

SLOW_S = 60  # a limit for a page that hangs, not for one that is slow
BAD = ("x", "1e400", "../../etc/passwd")  # texts in an address
TABLES = ("table", "dataframe")
SOFTWARE = ("python", "numpy", "numba", "llvm", "llvmlite", "streamlit", "cuda", "driver", "torch", "linux")
VERSION = re.compile(rf"\b(?:{'|'.join(SOFTWARE)})(?: v?\d+\.\d+|\W{{1,3}}v?\d+\.\d+\.\d+)", re.IGNORECASE)

each_page = pytest.mark.parametrize("page", [pytest.param(page, id=page.module) for page in PAGES])


class Server:
    """A public server, and its visitors by the name that their session has."""

    def __init__(self, rules):
        self.lobby = turns.Lobby(rules)
        self.visitors = {}

    def this_visitor(self):
        name = st.session_state.get("name", "somebody")
        return self.visitors.setdefault(name, turns.Visitor(self.lobby))


@pytest.fixture(autouse=True)
def serve(monkeypatch):
    """Serve in public. Return a function that does so by other rules."""
    monkeypatch.setenv(public.VARIABLE, "1")

    def by(rules):
        server = Server(rules)
        monkeypatch.setattr(public, "PUBLIC", rules)
        monkeypatch.setattr(turns, "this_visitor", server.this_visitor)
        return server

    by(PUBLIC)
    return by


def draw(module):
    from project.screens import OWN, PAGES, PASTED

    next(page for page in (*PAGES, OWN, PASTED) if page.module == module).load()()


def open_page(page, **parameters):
    app = AppTest.from_function(draw, kwargs={"module": page.module}, default_timeout=SLOW_S)
    for name, value in parameters.items():
        app.query_params[name] = value
    return app.run()


def texts(app):
    """Return all that a page shows, as text. The bytes of tables name the libraries that wrote them, so cells are read."""
    tables = [table.value.to_csv().replace("\\", "") for table in (*app.table, *app.dataframe)]
    others = [str(node.proto) for node in app.main if getattr(node, "proto", None) is not None and node.type not in TABLES]
    return "\n".join(tables + others)


def private_words():
    """Return folders of this machine, its name, and the version of Python."""
    folders = {str(ROOT), sys.prefix, sys.base_prefix, str(Path.home()), tempfile.gettempdir(), str(Path.cwd())}
    return {f"{folder}/" for folder in folders} | {socket.gethostname(), sys.version.split()[0]}


def leaks(app):
    said = texts(app)
    assert len(said) > 100
    found = [word for word in private_words() if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", said)]
    return found + VERSION.findall(said)


# What pages say


@pytest.mark.usefixtures("wait_for_first_picture")
@each_page
def test_no_page_names_a_path_a_version_or_the_machine(page):
    app = open_page(page)
    assert not app.exception
    assert leaks(app) == []
    for text in BAD:
        keys = [
            key
            for kind in ("selectbox", "slider", "number_input", "text_input", "multiselect")
            for key in keys_of(app, kind)
        ]
        assert leaks(open_page(page, **dict.fromkeys(keys, text))) == []


def keys_of(app, kind):
    return [element.key for element in app.get(kind)]


def test_the_words_are_found_where_they_are_said(monkeypatch):
    monkeypatch.delenv(public.VARIABLE)
    assert leaks(open_page(PAGES[0]))


@pytest.mark.parametrize("page", [OWN, PASTED], ids=["own", "pasted"])
def test_own_code_is_off_and_the_page_says_why(page, monkeypatch):
    monkeypatch.setenv("MINIFUSE_APP_KERNEL", f"{ROOT}/project/views/kernels.py:scale")
    app = open_page(page)
    assert [error.value.replace("\\", "") for error in app.error] == [PUBLIC.hidden[public.OWN_CODE]]
    assert "runs no code of its visitors" in app.error[0].value
    assert "minifuse app" in app.error[0].value
    assert not [*app.get("text_area"), *app.get("file_uploader"), *app.get("text_input"), *app.get("bidi_component")]
    assert leaks(app) == []


def test_own_code_has_no_entry_in_the_navigation(monkeypatch):
    from project.screens import page_of

    assert page_of(PASTED).visibility == page_of(OWN).visibility == "hidden"
    assert page_of(PAGES[1]).visibility == "visible"
    monkeypatch.delenv(public.VARIABLE)
    assert page_of(PASTED).visibility == page_of(OWN).visibility == "visible"


@each_page
def test_no_page_takes_a_file(page):
    app = open_page(page)
    assert not app.get("file_uploader")
    assert not app.get("chat_input")
    assert not app.get("camera_input")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("/srv/app/project/views/kernels.py:12 has no kernel", "kernels.py:12 has no kernel"),
        ("cannot read '/home/somebody/x.json'", "cannot read 'x.json'"),
        (r"C:\Users\me\app\x.py is no file", "x.py is no file"),
        ("a / b is 8 GB/s, row/column, 1/2/3", "a / b is 8 GB/s, row/column, 1/2/3"),
        ("x[::2].T", "x[::2].T"),
    ],
)
def test_messages_name_files_without_their_folders(text, cleaned):
    assert PUBLIC.clean_message(text) == cleaned
    assert PRIVATE.clean_message(text) == text


def test_errors_are_cleaned_before_they_are_drawn(monkeypatch):
    damaged = raise_error(MinifuseError(f"{ROOT}/results/x.json is damaged"))
    monkeypatch.setattr(race_screen.saved_results, "load_results", damaged)
    app = open_page(next(page for page in PAGES if page.module == "race"), race_file="cpu-znver5.json")
    assert [error.value for error in app.error] == ["x.json is damaged"]


def raise_error(error):
    def act(*_):
        raise error

    return act


# Limits


def test_nothing_is_limited_or_hidden_in_private(monkeypatch):
    monkeypatch.delenv(public.VARIABLE)
    rules = public.policy()
    assert rules is PRIVATE
    assert {value for value in vars(rules).values() if isinstance(value, float)} == {math.inf}
    assert not rules.hidden
    assert not rules.most
    rules.check_size("epochs", 10**9)
    for part in PUBLIC.hidden:
        rules.check_part(part)


def test_a_setting_above_its_limit_says_what_is_allowed():
    with pytest.raises(
        NotOfferedError, match=r"epochs: got 500, and a visitor of this server may choose at most 200; .*pip"
    ):
        PUBLIC.check_size("epochs", 500)
    PUBLIC.check_size("epochs", 200)
    PUBLIC.check_size("other", 10**9)


def test_train_refuses_more_epochs_than_allowed():
    app = open_page(next(page for page in PAGES if page.module == "train"), train_epochs="500")
    assert "epochs: got 500" in app.error[0].value
    assert not app.get("bidi_component")


def test_a_full_server_says_so_and_a_place_that_is_freed_is_taken(serve):
    server = serve(replace(PUBLIC, max_visitors=1))
    one, two = visit("one"), visit("two")
    assert not one.error
    assert "1 visitors are here, and this server has room for 1; load the page again in some minutes" in two.error[0].value
    assert not two.title
    server.visitors["one"].leave()
    assert not two.run().error
    assert two.title


def test_who_draws_too_often_is_told_to_wait(serve):
    serve(replace(PUBLIC, draws_per_minute=2))
    app = visit("one").run()
    assert not app.error
    assert re.search(r"pages and changes: got 3 in a minute, .* has 2; wait \d+ s", app.run().error[0].value)


def visit(name, module="map"):
    """Open a page through the door of app.py, as the visitor of this name."""

    def draw(module):
        from project import turns
        from project.screens import PAGES

        turns.admit(module)
        next(page for page in PAGES if page.module == module).load()()

    app = AppTest.from_function(draw, kwargs={"module": module}, default_timeout=SLOW_S)
    app.session_state["name"] = name
    return app.run()


# Turns


@pytest.fixture
def races(monkeypatch):
    """Let a race end at once; return the list of those that ran."""
    ran = []
    monkeypatch.setattr(race_screen.race, "run_race", lambda *of: ran.append(of) or raise_error(MinifuseError("it ran"))())
    return ran


def place_of(app):
    """Return the place in the line that a page shows."""
    found = [re.match(r"You are number (\d+) in the line\. ", info.value) for info in app.info]
    return next((int(match[1]) for match in found if match), 0)


def test_races_run_one_after_another_in_the_order_of_the_clicks(serve, races):
    server = serve(PUBLIC)
    server.lobby.queue.ask("another")
    one, two = visit("one", "race"), visit("two", "race")
    for app in (one, two):
        app.button(key="race_run").click().run()
    assert (place_of(one), place_of(two)) == (1, 2)
    assert races == []
    server.lobby.queue.leave("another")
    assert place_of(two.run()) == 1
    one.run()
    assert len(races) == 1
    assert one.error[0].value == "it ran"
    assert place_of(one) == 0
    two.run()
    assert len(races) == 2
    assert len(server.lobby.queue) == 0


def test_a_race_runs_at_once_if_nobody_is_before(serve, races):
    server = serve(PUBLIC)
    app = visit("one", "race")
    app.button(key="race_run").click().run()
    assert len(races) == 1
    assert place_of(app) == 0
    assert len(server.lobby.queue) == 0


@pytest.mark.parametrize("leave", ["button", "page", "session"])
def test_who_leaves_frees_the_place_and_runs_nothing(serve, races, leave):
    server = serve(PUBLIC)
    server.lobby.queue.ask("another")
    one, two = visit("one", "race"), visit("two", "race")
    for app in (one, two):
        app.button(key="race_run").click().run()
    if leave == "button":
        one.button(key="race_leave").click().run()
    elif leave == "page":
        one.session_state[turns.PAGE] = "train"  # the page before
        one.run()
    else:
        server.visitors["one"].leave()  # called by Streamlit when the browser disconnects
    assert place_of(two.run()) == 1
    assert len(server.lobby.queue) == 2
    server.lobby.queue.leave("another")
    two.run()
    assert len(races) == 1


def test_a_race_of_who_left_keeps_the_turn_until_it_ends(serve, monkeypatch):
    server = serve(PUBLIC)
    seen = []

    def run_race(*_):
        server.visitors["one"].leave()
        seen.append(server.lobby.queue.ask("two"))
        raise MinifuseError("it ran")

    monkeypatch.setattr(race_screen.race, "run_race", run_race)
    visit("one", "race").button(key="race_run").click().run()
    assert seen == [1]
    assert server.lobby.queue.ask("two") == 0


def test_a_race_that_raises_frees_the_place(serve, monkeypatch):
    server = serve(PUBLIC)
    monkeypatch.setattr(race_screen.race, "run_race", raise_error(ZeroDivisionError("broken")))
    visit("one", "race").button(key="race_run").click().run()
    assert len(server.lobby.queue) == 0


def test_too_many_races_of_a_visitor_are_refused_and_others_may_run(serve, races):
    serve(replace(PUBLIC, jobs_per_minute=1))
    one, two = visit("one", "race"), visit("two", "race")
    one.button(key="race_run").click().run()
    one.button(key="race_run").click().run()
    assert any("races and trainings: got 2 in a minute" in error.value for error in one.error)
    assert len(races) == 1
    two.button(key="race_run").click().run()
    assert len(races) == 2


def test_a_full_line_is_told_at_the_click(serve, races):
    server = serve(replace(PUBLIC, max_waiting=0))
    server.lobby.queue.ask("another")
    app = visit("one", "race")
    app.button(key="race_run").click().run()
    assert "0 visitors wait already, and at most 0 may" in app.error[0].value
    assert races == []


@pytest.mark.usefixtures("wait_for_first_picture")
def test_training_waits_for_its_turn_and_stop_frees_the_place(serve):
    server = serve(PUBLIC)
    server.lobby.queue.ask("another")
    app = visit("one", "train")
    app.button(key="train_start").click().run()
    (training,) = app.session_state["train_runs"].values()
    assert place_of(app) == 1
    training.wait(None)
    assert training.run.steps == 0
    server.lobby.queue.leave("another")
    app.run()
    assert place_of(app) == 0
    training.wait(None)
    assert training.run.steps > 0
    app.button(key="train_stop").click().run()
    training.wait(None)
    assert len(server.lobby.queue) == 0


@pytest.mark.usefixtures("wait_for_first_picture")
def test_other_settings_end_the_turn_of_a_training(serve):
    server = serve(PUBLIC)
    app = visit("one", "train")
    app.button(key="train_start").click().run()
    assert len(server.lobby.queue) == 1
    app.slider(key="train_hidden").set_value(8).run()
    for training in app.session_state["train_runs"].values():
        training.wait(None)
    assert len(server.lobby.queue) == 0


# minifuse app --public


def test_the_command_passes_the_settings_of_a_public_server():
    settings = dict(
        option.removeprefix("--").split("=")
        for option in server.server_command(ROOT, 8600, "0.0.0.0", True)
        if "=" in option
    )
    assert settings["server.address"] == "0.0.0.0"
    assert settings["server.maxUploadSize"] == "0"
    assert settings["client.showErrorDetails"] == "none"
    assert settings["client.toolbarMode"] == "minimal"
    assert not {"server.enableCORS", "server.enableXsrfProtection"} & set(settings), "on, unless a setting says otherwise"
