"""Every page in a real browser: it opens without errors, its address contains its state, and sessions are independent."""

import re

import pytest

from project.screens import PAGES

WITH_STATE = [pytest.param(page.path, id=page.module) for page in PAGES if page.path]

# Seconds. The goals are 3 for a page and 0.5 for a control. A busy machine may be slower, so these limits only find hangs,
# and the measured time is in the report (pytest --junitxml, record_property).
PAGE_BOUND, CONTROL_BOUND = 30, 15

# Controls that a key can change. The slider of the board is excluded.
SLIDER = "[data-testid=stMain] [data-testid=stSlider] :is([role=slider], input[type=range])"
SELECT = (
    "[data-testid=stMain] [data-testid=stSelectbox] [role=combobox], [data-testid=stMain] [data-testid=stSelectbox] input"
)
RADIO = "[data-testid=stMain] [data-testid=stRadio] input:not(:checked)"
NUMBER = "[data-testid=stMain] [data-testid=stNumberInput] input"


def change_first_control(seen):
    """Change the first control of a page by keyboard, and return the seconds until the page has answered."""
    for selector, keys in [
        (SELECT, ("ArrowDown", "ArrowDown", "Enter")),
        (SLIDER, ("ArrowRight",)),
        (NUMBER, ("ArrowUp", "Enter")),
        (RADIO, ("Space",)),
    ]:
        control = seen.page.locator(selector).first
        if control.count() and control.is_enabled():
            return operate(seen, control, keys)
    raise AssertionError("the page has no control that a key could change")


def operate(seen, control, keys):
    control.scroll_into_view_if_needed()
    control.focus()
    return seen.timed(lambda: seen.press(*keys))


@pytest.fixture(scope="module", params=PAGES, ids=lambda page: page.module)
def opened(app, open_visits, request):
    """Open each page once. Tests do not change its state."""
    with open_visits() as visit:
        yield visit(f"{app}/{request.param.path}")


def test_page_opens_without_errors_in_time(opened, record_property):
    record_property("first_load_s", round(opened.seconds, 2))
    assert opened.page.get_by_test_id("stException").count() == 0
    assert opened.contents()["mistakes"] == []
    assert opened.page.locator("[data-testid=stMain] h1").count() == 1
    assert opened.seconds < PAGE_BOUND
    assert opened.errors == []


def test_picture_cells_are_reachable_by_keyboard(opened):
    if opened.page.locator(".cell").count() == 0:
        pytest.skip("the page draws no grid")
    grid = opened.page.locator(".grid:has(.cell)").first
    labels = grid.locator(".cell").evaluate_all("cells => cells.map((c) => c.getAttribute('aria-label'))")
    assert all(labels), "a cell without a label"
    assert opened.page.locator(".sentence").first.inner_text().strip() != ""
    assert grid.locator(".cell[tabindex='0']").count() == 1
    before = len(opened.sent)
    grid.locator(".cell[tabindex='0']").focus()
    opened.press("Control+End")
    assert opened.focused == labels[-1]
    opened.press("Control+Home")
    assert opened.focused == labels[0]
    assert len(opened.sent) == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [(390, 844), (640, 360)], ids=["phone", "zoom-200"])
def test_no_page_scrolls_sideways(opened, size):
    opened.page.set_viewport_size({"width": size[0], "height": size[1]})
    opened.settle()
    assert opened.overflow_pixels == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", WITH_STATE)
def test_control_changes_are_restored_from_the_address(app, visit, path, record_property):
    seen = visit(f"{app}/{path}")
    seconds = change_first_control(seen)
    record_property("control_s", round(seconds, 2))
    assert seconds < CONTROL_BOUND
    assert seen.query != ""
    contents, address = seen.contents(), seen.page.url
    seen.page.reload()
    seen.settle()
    assert seen.page.url == address
    assert seen.differences(contents) == ""
    assert min(seen.page.evaluate(BACKGROUND)) > 200
    other = visit(address, dark=True)  # another user opens the link, with the dark theme
    assert other.differences(contents) == ""
    assert max(other.page.evaluate(BACKGROUND)) < 60


BACKGROUND = """() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor
  .match(/[\\d.]+/g).slice(0, 3).map(Number)"""


def test_sessions_are_independent(app, visit):
    one, two = visit(f"{app}/strides?idiom=transposed"), visit(f"{app}/strides?shape=2%2C3&views=.flip(0)")
    contents = two.contents()
    one.page.locator(".cell").nth(5).click()
    one.page.locator(".cell.picked").first.wait_for()
    one.settle()
    two.page.reload()
    two.settle()
    assert two.differences(contents) == ""
    assert two.labels("picked") == []
    assert "idiom=transposed" in one.query


def test_hover_highlights_an_element_and_its_storage(app, visit):
    seen = visit(f"{app}/strides?idiom=transposed")
    before = len(seen.sent)
    storage, view = (seen.page.locator(f".grid[data-name={name}]") for name in ("storage", "view0"))
    view.locator(".cell").nth(1).hover()  # row 0, column 1 of a transposed (3, 4): element 4 of the storage
    assert seen.page.locator(".cell.lit").count() == 2
    assert "lit" in storage.locator(".cell").nth(4).get_attribute("class")
    assert len(seen.sent) == before


def test_deep_link_shows_the_results_of_the_library(app, visit):
    from project.views import expressions, strides

    seen = visit(f"{app}/strides?shape=4%2C6&views=%5B1%3A%2C%20%3A%3A2%5D.T&facts=true")
    found = strides.apply_views(expressions.parse_shape("4,6"), expressions.parse_chain("[1:, ::2].T"))
    contents = seen.contents()
    shown = strides.picture(found)
    assert contents["pictures"][0][0] == shown.frames[shown.first].sentence
    assert [row[:2] for row in contents["facts"]][1:4] == [[fact.name, str(fact.value)] for fact in strides.facts(found)][:3]


def test_a_drawer_gets_its_content_when_it_is_opened(app, visit):
    seen = visit(f"{app}/matmul")
    assert seen.contents()["facts"] == []
    seen.page.get_by_text("Facts", exact=True).click()
    seen.page.get_by_test_id("stTable").first.wait_for()
    assert "facts=true" in seen.query
    assert seen.contents()["facts"]


def test_invalid_input_is_shown_and_can_be_corrected(app, visit):
    seen = visit(f"{app}/strides?shape=4%2C6&views=.T.nothing()")
    (message,) = seen.contents()["mistakes"]
    assert "nothing" in message
    field = seen.page.get_by_label("views of x")
    field.fill(".T")
    field.press("Enter")
    seen.page.locator(".cell").first.wait_for()
    seen.settle()
    assert seen.contents()["mistakes"] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_valid_field_with_the_focus_has_no_red_frame(app, visit, dark):
    seen = visit(f"{app}/strides?shape=3,4&views=[1:]", dark=dark)
    seen.page.get_by_label("views of x").focus()
    frame = seen.page.get_by_test_id("stTextInputRootElement").filter(has=seen.page.get_by_label("views of x"))
    seen.page.wait_for_timeout(500)  # the color of the frame changes slowly
    red, _, blue = re.findall(r"\d+", frame.evaluate("e => getComputedStyle(e).borderTopColor"))[:3]
    assert int(blue) > int(red) + 100


def test_step_is_in_the_address_of_its_page_only(app, visit):
    seen = visit(f"{app}/threads?threads_block=16&threads_step=0")
    count = seen.page.locator(".count").inner_text()
    assert count.startswith("1 of ")
    seen.page.get_by_label("one step on").click()
    seen.page.wait_for_function("() => location.search.includes('threads_step=1')")
    assert "threads_block=16" in seen.query
    seen.page.get_by_test_id("stTopNavLink").filter(has_text="Fusion").click()
    seen.page.get_by_role("heading", name="Fusion", exact=True).wait_for()
    seen.settle()
    assert "threads_step" not in seen.query
    assert seen.page.locator(".count").inner_text()


def test_a_click_anywhere_on_a_card_of_the_map_opens_its_page(app, visit):
    seen = visit(app)
    for page, corner in [(PAGES[3], 0.97), (PAGES[8], 0.5)]:
        box = seen.page.locator(f".st-key-card-{page.module}").bounding_box()
        seen.page.mouse.click(box["x"] + corner * box["width"], box["y"] + corner * box["height"])
        seen.page.get_by_role("heading", name=page.title, exact=True).wait_for()
        seen.page.go_back()
        seen.page.get_by_role("heading", name="This machine").wait_for()
        seen.settle()


def test_navigation_keeps_the_session(app, visit):
    seen = visit(app)
    seen.page.get_by_test_id("stPageLink").locator("a").first.click()
    seen.page.locator(".cell").first.wait_for()
    seen.settle()
    assert seen.page.url.startswith(f"{app}/{PAGES[1].path}")
    seen.page.go_back()
    seen.page.get_by_role("heading", name="This machine").wait_for()
    seen.settle()
