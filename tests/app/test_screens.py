"""Every page of the visualizer, as a user has it, without a browser: controls, odd addresses, odd texts, two users at once.

The pages come from PAGES, so a new one is tested by being there. What they show is judged in the tests of their views.
"""

import gc
import random
import threading
import tracemalloc
from itertools import count

import pytest

pytest.importorskip("streamlit", reason="needs minifuse[app]")

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from minifuse.backends.cuda.device import driver
from project.screens import PAGES
from project.warm_up import BUSY

SLOW_S = 60  # a limit for a page that hangs, not for one that is slow
MOST_CHOICES = 8  # of a control, of which each is tried
INPUTS = 200
CHOOSERS = ("selectbox", "radio", "select_slider", "button_group", "multiselect")
NUMBERS = ("slider", "number_input")
SWITCHES = ("checkbox", "toggle")
TEXTS = ("text_input", "text_area")
BOUND = (*CHOOSERS, *NUMBERS, *SWITCHES, *TEXTS)

each_page = pytest.mark.parametrize("page", [pytest.param(page, id=page.module) for page in PAGES])
each_page_with_facts = pytest.mark.parametrize("page", [pytest.param(page, id=page.module) for page in PAGES if page.path])


@pytest.fixture(autouse=True, scope="module")
def few_packages():
    """What is installed is not searched for components before each page: the only one is our own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", list)
        yield


def draw(module):
    from project.screens import PAGES

    next(page for page in PAGES if page.module == module).load()()


def opened(page, **parameters):
    """A page as it is when its address is opened."""
    app = AppTest.from_function(draw, kwargs={"module": page.module}, default_timeout=SLOW_S)
    for name, value in parameters.items():
        app.query_params[name] = value
    return sound(app.run())


def sound(app):
    """The same page, if drawing it raised nothing."""
    assert not app.exception, [f"{error.message}\n{' '.join(error.stack_trace)}" for error in app.exception]
    return app


def controls(app, kinds=BOUND):
    """The widgets of a page, by their keys."""
    return {element.key: element for kind in kinds for element in app.get(kind)}


def buttons(app):
    return {element.key: element for element in app.get("button")}


def choices(control):
    """Values of a control at its ends and between, other than the one it has."""
    if control.type in SWITCHES:
        return [not control.value]
    if control.type in NUMBERS:
        low, high = control.min, control.max
        middle = type(low)((low + high) / 2) if control.type == "number_input" else low + (high - low) // 2
        values = [low, middle, high]
        return [(low, value) for value in values] if isinstance(control.value, list | tuple) else values
    if control.type in CHOOSERS:
        values = list(control.options)
        return values[:: max(1, len(values) // MOST_CHOICES)]
    return []


def shown(control):
    """The value of a control, as `put` takes it."""
    return control.options[control.index] if control.type == "selectbox" else control.value


def put(app, key, value):
    """Set a control, and what the page becomes by it."""
    control = controls(app)[key]
    if control.type in CHOOSERS:
        control.select_index(list(control.options).index(value)) if hasattr(control, "select_index") else control.set_value(
            value
        )
    else:
        control.set_value(value)
    return sound(app.run())


def facts(app):
    """The tables of a page, as text."""
    return [table.value.to_string() for table in (*app.table, *app.dataframe)]


def changes(page):
    """Choices of a page that alter its facts, one for each control that has some: the key, the choice, the page."""
    before = opened(page)
    for key, control in controls(before).items():
        for value in choices(control)[::-1]:
            app = put(opened(page), key, value)
            if facts(app) != facts(before) and not app.error:
                yield key, value, app
                break


# Drawn


@each_page
def test_it_draws(page):
    app = opened(page)
    assert [title.value for title in app.title]
    assert not app.error
    assert not app.warning


@pytest.mark.usefixtures("patient")
@each_page_with_facts
def test_it_has_a_picture_facts_and_something_to_take_along(page):
    app = opened(page)
    if not app.get("bidi_component"):  # it measures when it is asked to
        sound(next(iter(buttons(app).values())).click().run())
    assert app.get("bidi_component")
    assert any({"fact", "value", "truth", "why"} <= set(table.value.columns) for table in app.table)
    assert {button.label for button in app.get("download_button")} >= {"SVG", "CSV"}


def test_the_addresses_and_questions_differ():
    assert PAGES[0].path == ""
    for values in zip(*PAGES, strict=True):
        assert len(set(values)) == len(PAGES)


def test_the_map_leads_to_every_page():
    links = [link.proto.label for link in opened(PAGES[0]).get("page_link")]
    assert sorted(links) == sorted(page.title for page in PAGES[1:])


def test_keys_are_unique_and_say_their_page():
    owners = {}
    for page in PAGES:
        app = opened(page)
        for key in [*controls(app), *buttons(app)]:
            assert key, f"{page.module}: a control without a key"
            assert owners.setdefault(key, page.module) == page.module
            assert page.module == "strides" or key.startswith(f"{page.module}_")


# Controls


@each_page
def test_every_control_answers(page):
    """Each value of each control, those that another choice brings to light too."""
    seen = set()

    def turn(app, depth):
        for key in [key for key in controls(app) if key not in seen]:
            seen.add(key)
            control = controls(app)[key]
            for value in choices(control):
                put(app, key, value)
                if depth and set(controls(app)) - seen:
                    turn(app, depth - 1)
            if key in controls(app) and choices(control):
                put(app, key, shown(control))

    turn(opened(page), 2)
    assert seen >= set(controls(opened(page)))


@each_page
def test_every_button_answers(page):
    for key in buttons(opened(page)):
        button = buttons(opened(page))[key]
        if not button.disabled:
            sound(button.click().run())


@pytest.mark.usefixtures("patient")
@each_page
def test_the_address_holds_the_whole_state(page):
    """Each control is bound to the address under its key, and what it chose comes back with the address alone."""
    unbound = [key for key, control in controls(opened(page)).items() if control.proto.query_param_key != key]
    assert not unbound, f'give these bind="query-params": {unbound}'
    for key, value, app in changes(page):
        again = opened(page, **{key: str(value)})
        assert facts(again) == facts(app), f"{page.path}?{key}={value}"


@each_page
@pytest.mark.parametrize(
    "text", ["", "x", "-1", "99999999999999999999", "1e400", "nan", "../../etc", "<b>", "\x00", "٣", "a" * 5000]
)
def test_an_odd_address_shows_a_page(page, text):
    opened(page, **dict.fromkeys(controls(opened(page)), text))


# Texts

WORDS = [
    *("0", "1", "2", "3", "4", "-1", "7", "512", "999999999", "1e9", "0x10", "1.5", "٣", "nan", "True", "None"),
    *("(", ")", "[", "]", ",", ".", ":", "::", "...", " ", "\t", "\n", "+", "-", "*", "**", "@", "/", "=", "==", "<", ">"),
    *(".T", ".permute(", ".flip(", ".expand(", ".reshape(", ".view(", ".sum(", ".mean(", "x", "y", "w", "relu(", "exp("),
    *("__import__('os').system('id')", "__class__", "lambda: 0", "{}", "'", '"', "\\", "#", ";", "`", "$", "%s", "<script>"),
    *("é", "漢", "🦀", "\u202e", "\u0000", "\ufeff", "²", "₂", "½"),
]


def texts(what_is_right):
    """Odd inputs: words of every kind in a row, and what is right with a change."""
    chance = random.Random(0)
    yield from ("", " ", "," * 300, "(" * 300, "9" * 300, "[" * 150 + "]" * 150, ".T" * 150, "1," * 150, "a" * 10_000)
    for _ in count():
        text = list(chance.choices(WORDS, k=chance.randrange(1, 8)))
        if what_is_right and chance.random() < 0.5:
            cut = chance.randrange(len(what_is_right) + 1)
            text = [what_is_right[:cut], chance.choice(WORDS), what_is_right[cut + chance.randrange(2) :]]
        yield "".join(text)


@each_page
def test_no_text_breaks_a_page(page):
    """It shows a picture or says what is wrong with the text, and remembers nothing of it."""
    app = opened(page)
    for key, field in controls(app, TEXTS).items():
        before, answers = facts(app), set()
        for text, _ in zip(texts(field.value or field.placeholder), range(INPUTS), strict=False):
            put(app, key, text)
            answers.add(bool(app.error))
            assert app.error or app.get("bidi_component"), (key, text)
        assert answers == {True, False}, f"{key}: no text was wrong, or none was right"
        put(app, key, field.proto.default)
        assert facts(app) == before, key


def test_some_pages_ask_for_text():
    assert sum(bool(controls(opened(page), TEXTS)) for page in PAGES) > 1


# Machines and users


@each_page
def test_a_gpu_changes_nothing_that_is_traced(page, monkeypatch):
    """The pages ask the interpreter; they start nothing on a GPU, so a driver that says there is one is not asked more."""
    without = facts(opened(page))
    monkeypatch.setattr(driver, "query_driver", lambda: driver.DriverInfo(1, 13000, ""))
    app = opened(page)
    assert not app.error
    if page.path and page.module not in ("race", "train"):  # those measure
        assert facts(app) == without


@pytest.mark.usefixtures("patient")
@each_page_with_facts
def test_two_users_do_not_see_each_other(page):
    one = next((app for *_, app in changes(page)), None)
    if one is None:
        return
    chosen, home = facts(one), facts(opened(page))
    two = opened(page)
    for _ in range(2):
        assert facts(sound(one.run())) == chosen
        assert facts(sound(two.run())) == home


@each_page
def test_memory_does_not_grow_with_use(page):
    """A user who plays for long: what is kept is bounded, since it is kept by choice and for few choices."""
    app = opened(page)
    found = [(key, choices(control)[-1]) for key, control in controls(app).items() if choices(control)]

    def play(rounds):
        for _ in range(rounds):
            for key, value in found[:5]:
                if key in controls(app) and value in choices(controls(app)[key]):
                    put(app, key, value)
            sound(app.run())
        gc.collect()

    play(1)
    for thread in threading.enumerate():
        if thread.name in BUSY:  # what a page asks in the background comes once, and is kept
            thread.join(SLOW_S)
    tracemalloc.start()
    try:
        play(1)
        before, _ = tracemalloc.get_traced_memory()
        play(3)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2e6, "bytes that three more rounds left behind"
