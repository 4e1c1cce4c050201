"""Every page of the visualizer without a browser: controls, invalid addresses and texts, two sessions at once.

The pages come from PAGES, so a new page is tested automatically. The tests of views check the content of pages.
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
MAX_CHOICES = 8  # tried per control
FUZZ_TEXTS = 100
CHOOSERS = ("selectbox", "radio", "select_slider", "button_group", "multiselect")
NUMBERS = ("slider", "number_input")
SWITCHES = ("checkbox", "toggle")
TEXTS = ("text_input", "text_area")
BOUND = (*CHOOSERS, *NUMBERS, *SWITCHES, *TEXTS)

each_page = pytest.mark.parametrize("page", [pytest.param(page, id=page.module) for page in PAGES])
each_page_with_facts = pytest.mark.parametrize("page", [pytest.param(page, id=page.module) for page in PAGES if page.path])


@pytest.fixture(autouse=True, scope="module")
def skip_component_scan():
    """Do not search all installed packages for components before each page: only the app has one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", list)
        yield


def draw(module):
    from project.screens import PAGES

    next(page for page in PAGES if page.module == module).load()()


def open_page(page, **parameters):
    """Open a page at an address with these query parameters."""
    app = AppTest.from_function(draw, kwargs={"module": page.module}, default_timeout=SLOW_S)
    for name, value in parameters.items():
        app.query_params[name] = value
    return without_exception(app.run())


def without_exception(app):
    """Return the page, after checking that drawing it raised no exception."""
    assert not app.exception, [f"{error.message}\n{' '.join(error.stack_trace)}" for error in app.exception]
    return app


def controls(app, kinds=BOUND):
    """Return the widgets of a page by key."""
    return {element.key: element for kind in kinds for element in app.get(kind)}


def buttons(app):
    return {element.key: element for element in app.get("button")}


def values_to_try(control):
    """Return values to set a control to: its ends and some between them."""
    if control.type in SWITCHES:
        return [not control.value]
    if control.type in NUMBERS:
        low, high = control.min, control.max
        middle = type(low)((low + high) / 2) if control.type == "number_input" else low + (high - low) // 2
        values = [low, middle, high]
        return [(low, value) for value in values] if isinstance(control.value, list | tuple) else values
    if control.type in CHOOSERS:
        values = list(control.options)
        return values[:: max(1, len(values) // MAX_CHOICES)]
    return []


def displayed_value(control):
    """Return the value of a control in the form that `set_control` takes."""
    return control.options[control.index] if control.type == "selectbox" else control.value


def set_control(app, key, value):
    """Set a control, and return the page after that."""
    control = controls(app)[key]
    if control.type in CHOOSERS:
        control.select_index(list(control.options).index(value)) if hasattr(control, "select_index") else control.set_value(
            value
        )
    else:
        control.set_value(value)
    return without_exception(app.run())


def facts(app):
    """Return the tables of a page as text."""
    return [table.value.to_string() for table in (*app.table, *app.dataframe)]


def fact_changes(page):
    """For each control, yield a value that changes the facts, if it has one: the key, the value, the page."""
    before = open_page(page)
    for key, control in controls(before).items():
        for value in values_to_try(control)[::-1]:
            app = set_control(open_page(page), key, value)
            if facts(app) != facts(before) and not app.error:
                yield key, value, app
                break


# Drawn


@each_page
def test_page_draws_without_errors(page):
    app = open_page(page)
    assert [title.value for title in app.title]
    assert not app.error
    assert not app.warning


@pytest.mark.usefixtures("wait_for_first_picture")
@each_page_with_facts
def test_page_has_a_picture_facts_and_downloads(page):
    app = open_page(page)
    if not app.get("bidi_component"):  # it measures when it is asked to
        without_exception(next(iter(buttons(app).values())).click().run())
    assert app.get("bidi_component")
    assert any({"fact", "value", "truth", "why"} <= set(table.value.columns) for table in app.table)
    assert {button.label for button in app.get("download_button")} >= {"CSV"}


def test_page_addresses_titles_and_questions_are_unique():
    assert PAGES[0].path == ""
    for values in zip(*[(page.path, page.title, page.question, page.module) for page in PAGES], strict=True):
        assert len(set(values)) == len(PAGES)


def test_map_links_to_every_page():
    *links, _ = [link.proto.label for link in open_page(PAGES[0]).get("page_link")]
    assert links == [f"**{number} {page.title}**" for number, page in enumerate(PAGES[1:], start=1)]


@each_page
def test_page_ends_with_a_link_to_the_next_one(page):
    links = [(link.proto.label, link.proto.page) for link in open_page(page).get("page_link")]
    number = PAGES.index(page) + 1
    if number == len(PAGES):
        assert links == []
    else:
        assert links[-1] == (f"Next: {number} {PAGES[number].title}", PAGES[number].path)


def test_widget_keys_are_unique_and_begin_with_their_page():
    owners = {}
    for page in PAGES:
        app = open_page(page)
        for key in [*controls(app), *buttons(app)]:
            assert key, f"{page.module}: a control without a key"
            assert owners.setdefault(key, page.module) == page.module
            assert page.module == "strides" or key.startswith(f"{page.module}_")


# Controls


@each_page
def test_every_value_of_every_control_draws(page):
    """Includes the controls that appear only after another choice."""
    seen = set()

    def turn(app, depth):
        appeared = [key for key in controls(app) if key not in seen]
        seen.update(appeared)
        for key in appeared:
            control = controls(app)[key]
            for value in values_to_try(control):
                set_control(app, key, value)
                if depth and set(controls(app)) - seen:
                    turn(app, depth - 1)
            if key in controls(app) and values_to_try(control):
                set_control(app, key, displayed_value(control))

    turn(open_page(page), 2)
    assert seen >= set(controls(open_page(page)))


@each_page
def test_every_button_draws(page):
    for key in buttons(open_page(page)):
        button = buttons(open_page(page))[key]
        if not button.disabled:
            without_exception(button.click().run())


@pytest.mark.usefixtures("wait_for_first_picture")
@each_page
def test_address_restores_every_control(page):
    """Each control is bound to the address under its key, and opening that address restores its value."""
    unbound = [key for key, control in controls(open_page(page)).items() if control.proto.query_param_key != key]
    assert not unbound, f'give these bind="query-params": {unbound}'
    for key, value, app in fact_changes(page):
        again = open_page(page, **{key: str(value)})
        assert facts(again) == facts(app), f"{page.path}?{key}={value}"


@pytest.mark.sampled(3, each="page")
@each_page
@pytest.mark.parametrize(
    "text", ["", "x", "-1", "99999999999999999999", "1e400", "nan", "../../etc", "<b>", "\x00", "٣", "a" * 5000]
)
def test_invalid_address_draws_the_page(page, text):
    open_page(page, **dict.fromkeys(controls(open_page(page)), text))


# Texts

WORDS = [
    *("0", "1", "2", "3", "4", "-1", "7", "512", "999999999", "1e9", "0x10", "1.5", "٣", "nan", "True", "None"),
    *("(", ")", "[", "]", ",", ".", ":", "::", "...", " ", "\t", "\n", "+", "-", "*", "**", "@", "/", "=", "==", "<", ">"),
    *(".T", ".permute(", ".flip(", ".expand(", ".reshape(", ".view(", ".sum(", ".mean(", "x", "y", "w", "relu(", "exp("),
    *("__import__('os').system('id')", "__class__", "lambda: 0", "{}", "'", '"', "\\", "#", ";", "`", "$", "%s", "<script>"),
    *("é", "漢", "🦀", "\u202e", "\u0000", "\ufeff", "²", "₂", "½"),
]


def fuzz_texts(valid_text):
    """Yield unusual inputs: sequences of tokens of all kinds, and variants of a valid text."""
    chance = random.Random(0)
    yield from ("", " ", "," * 300, "(" * 300, "9" * 300, "[" * 150 + "]" * 150, ".T" * 150, "1," * 150, "a" * 10_000)
    for _ in count():
        text = list(chance.choices(WORDS, k=chance.randrange(1, 8)))
        if valid_text and chance.random() < 0.5:
            cut = chance.randrange(len(valid_text) + 1)
            text = [valid_text[:cut], chance.choice(WORDS), valid_text[cut + chance.randrange(2) :]]
        yield "".join(text)


@each_page
def test_any_text_shows_a_picture_or_an_error(page):
    """The text leaves nothing behind: with the default text, the facts are as before."""
    app = open_page(page)
    for key, field in controls(app, TEXTS).items():
        before, answers = facts(app), set()
        for text, _ in zip(fuzz_texts(field.value or field.placeholder), range(FUZZ_TEXTS), strict=False):
            set_control(app, key, text)
            answers.add(bool(app.error))
            assert app.error or app.get("bidi_component"), (key, text)
        assert answers == {True, False}, f"{key}: no text was wrong, or none was right"
        set_control(app, key, field.proto.default)
        assert facts(app) == before, key


def test_several_pages_have_text_inputs():
    assert sum(bool(controls(open_page(page), TEXTS)) for page in PAGES) > 1


# Machines and users


@each_page
def test_traced_facts_are_equal_with_a_gpu(page, monkeypatch):
    """Pages run kernels in the interpreter only. A driver that reports a GPU gets no further calls."""
    without = facts(open_page(page))
    monkeypatch.setattr(driver, "query_driver", lambda: driver.DriverInfo(1, 13000, ""))
    app = open_page(page)
    assert not app.error
    if page.path and page.module not in ("race", "train"):  # these pages measure
        assert facts(app) == without


@pytest.mark.usefixtures("wait_for_first_picture")
@each_page_with_facts
def test_sessions_are_independent(page):
    one = next((app for *_, app in fact_changes(page)), None)
    if one is None:
        return
    chosen, home = facts(one), facts(open_page(page))
    two = open_page(page)
    for _ in range(2):
        assert facts(without_exception(one.run())) == chosen
        assert facts(without_exception(two.run())) == home


@pytest.mark.sampled(3)
@each_page
def test_memory_does_not_grow_with_use(page):
    """Caches are bounded, so repeating a round of choices allocates no more memory."""
    app = open_page(page)
    found = [(key, values_to_try(control)[-1]) for key, control in controls(app).items() if values_to_try(control)]

    def play(rounds):
        for _ in range(rounds):
            for key, value in found[:3]:
                if key in controls(app) and value in values_to_try(controls(app)[key]):
                    set_control(app, key, value)
            without_exception(app.run())
        gc.collect()

    play(1)
    for thread in threading.enumerate():
        if thread.name in BUSY:  # results of background threads are cached once
            thread.join(SLOW_S)
    tracemalloc.start()
    try:
        play(1)
        before, _ = tracemalloc.get_traced_memory()
        play(3)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2e6, "bytes that three more rounds allocated"
