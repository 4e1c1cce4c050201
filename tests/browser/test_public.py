"""A public server in a real browser: two visitors, of whom one waits for the other, who leaves."""

import re

import pytest

from project import public
from project.screenshots import serve_app
from tests.sources import ROOT

SLOW = "train?train_backend=python&train_hidden=64&train_epochs=200&train_data=spiral"  # a training of minutes
WAIT_MS = 60_000


@pytest.fixture(scope="module")
def public_app(logs):
    """Serve the app in public, and yield its address."""
    pytest.importorskip("streamlit", reason='the app needs: pip install "minifuse[app]"')
    with serve_app(ROOT / "project" / "app.py", logs / "public.log", {public.VARIABLE: "1"}) as address:
        yield address
    assert "Traceback" not in (logs / "public.log").read_text()


def test_who_leaves_frees_the_place_of_the_next_visitor(public_app, visit):
    one, two, three = visit(f"{public_app}/{SLOW}"), visit(f"{public_app}/race"), visit(f"{public_app}/race")
    one.page.get_by_role("button", name="Train", exact=True).click()
    one.page.get_by_text(" of 200 epochs, ").filter(has_not_text=" 0 steps").wait_for()
    places = [seen.page.get_by_text(re.compile(r"You are number \d+ in the line")) for seen in (two, three)]
    for number, seen in enumerate((two, three)):
        seen.page.get_by_role("button", name="Race", exact=True).click()
        places[number].filter(has_text=f"number {number + 1} in").wait_for(timeout=WAIT_MS)
    two.page.get_by_role("button", name="Leave the line").click()
    places[0].wait_for(state="detached", timeout=WAIT_MS)
    places[1].filter(has_text="number 1 in").wait_for(timeout=WAIT_MS)
    one.page.close()
    places[1].wait_for(state="detached", timeout=WAIT_MS)
    three.page.get_by_text("time of a call in us").wait_for(timeout=WAIT_MS)


def test_the_address_of_a_page_that_is_off_says_why(public_app, visit):
    seen = visit(f"{public_app}/own")
    assert seen.contents()["mistakes"] == [public.PUBLIC.hidden[public.OWN_CODE]]
    assert seen.page.get_by_role("heading", name="Your kernel").count() == 1
    assert seen.page.get_by_test_id("stTopNavLink").filter(has_text="Your kernel").count() == 0
