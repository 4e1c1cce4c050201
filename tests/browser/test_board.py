"""The board on a page without other content: pointer, keyboard, steps, colors, and redrawing."""

from urllib.parse import parse_qsl

import pytest

from tests.browser.visit import BOARD

# Compute the contrast of the border of each cell with the page, and of its text with the cell, as WCAG defines it. The text
# of a hatched cell has a halo in the color of the page.
CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const page = rgba(getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor);
  const root = BOARD;
  return [...root.querySelectorAll('.cell')].map((cell) => {
    const [box, text] = [cell.querySelector('rect'), cell.querySelector('text')].map((part) => getComputedStyle(part));
    const isHatched = box.fill.startsWith('url');
    return [cell.kind, contrast(rgba(box.stroke), page), contrast(rgba(text.fill), isHatched ? page : rgba(box.fill))];
  });
}""".replace("BOARD", BOARD)


def focus_grid(visit, grid):
    """Press Tab, from the top of the page, until a cell of the grid has the focus."""
    visit.page.locator("h1").click()
    for _ in range(30):
        visit.press("Tab")
        inside = visit.page.get_by_role("grid", name=grid, exact=True).locator(".cell:focus")
        if inside.count():
            return
    raise AssertionError(f"Tab never reaches the grid {grid!r}; the focus is at {visit.focused!r}")


def test_hover_highlights_linked_cells_without_requests(board, visit):
    seen = visit(board)
    before = len(seen.sent)
    seen.page.get_by_label("row 2, column 3, storage 19").hover()
    assert seen.labels("lit") == ["storage 19", "row 2, column 3, storage 19"]
    seen.page.get_by_label("storage 5", exact=True).hover()
    assert seen.labels("lit") == ["storage 5", "row 0, column 5, storage 5"]
    seen.page.locator("h1").hover()
    assert seen.labels("lit") == []
    assert len(seen.sent) == before


def test_tab_enters_a_grid_and_arrows_move_the_focus(board, visit):
    seen = visit(board)
    focus_grid(seen, "view")
    before = len(seen.sent)
    assert seen.focused == "row 0, column 0, storage 0"
    for key, place in [
        ("ArrowRight", (0, 2)),  # across the gap
        ("ArrowDown", (1, 2)),
        ("ArrowUp", (0, 2)),
        ("ArrowUp", (0, 2)),  # at the edge
        ("ArrowLeft", (0, 0)),
        ("End", (0, 7)),
        ("ArrowRight", (0, 7)),
        ("Control+End", (3, 7)),
        ("Home", (3, 0)),
        ("Control+Home", (0, 0)),
    ]:
        seen.press(key)
        row, column = place
        assert seen.focused == f"row {row}, column {column}, storage {8 * row + column}", key
        assert f"storage {8 * row + column}" in seen.labels("lit"), key
    seen.press("ArrowDown", "Shift+Tab")
    assert seen.focused == "storage 0"  # the grid before, not the cell before
    seen.press("Tab")
    assert seen.focused == "row 1, column 0, storage 8"  # the cell that had the focus before
    seen.press("Tab")
    assert not seen.focused.startswith("row")  # out of the board
    assert seen.labels("lit") == []
    assert len(seen.sent) == before


def test_enter_selects_and_escape_clears(board, visit):
    seen = visit(board)
    focus_grid(seen, "view")
    seen.press("ArrowDown", "Enter")
    seen.page.get_by_text("The server knows of s8.").wait_for()
    seen.settle()
    assert seen.labels("picked") == ["storage 8", "row 1, column 0, storage 8"]
    assert seen.page.locator(".cell[aria-selected=true]").count() == 2
    assert seen.focused == "row 1, column 0, storage 8"  # also in the redrawn grid
    seen.press("ArrowRight", "Escape")
    seen.page.get_by_text("The server knows of None.").wait_for()
    seen.settle()
    assert seen.labels("picked") == []
    assert seen.focused == "row 1, column 1, storage 9"


def test_click_selects_a_cell(board, visit):
    seen = visit(board)
    seen.page.get_by_label("storage 5", exact=True).click()
    seen.page.get_by_text("The server knows of s5.").wait_for()


def test_keyboard_steps_are_announced(board, visit):
    seen = visit(board)
    said = seen.page.get_by_role("status").filter(has_text="Step")
    slider = seen.page.get_by_role("slider", name="step", exact=True)
    slider.focus()
    before = len(seen.sent)
    seen.press("ArrowRight", "ArrowRight")
    assert said.inner_text() == "Step 2 reads storage 2."
    assert slider.get_attribute("aria-valuetext") == "3 of 8"
    assert seen.page.locator(".cell.load").filter(has_text="2").count() >= 2
    seen.press("End", "Shift+Tab", "Shift+Tab")
    assert seen.focused == "one step on"
    seen.press("Enter")
    assert said.inner_text() == "Step 7 reads storage 7."
    seen.press("Shift+Tab", "Shift+Tab", "Space")
    assert said.inner_text() == "Step 6 reads storage 6."
    assert len(seen.sent) == before


def test_redrawn_picture_keeps_step_selection_and_focus(board, visit):
    seen = visit(board)
    seen.page.get_by_label("one step on").click(click_count=3)
    seen.page.get_by_label("row 1, column 1, storage 9").click()
    seen.page.get_by_text("The server knows of s9.").wait_for()
    seen.page.get_by_role("slider", name="columns").focus()
    seen.press("ArrowRight")
    seen.page.get_by_label("row 1, column 1, storage 10").wait_for()
    seen.settle()
    assert seen.labels("picked") == ["storage 9", "row 1, column 0, storage 9"]
    assert seen.page.get_by_text("The server knows of s9.").count() == 1
    assert seen.page.locator(".count").inner_text() == "4 of 9"
    assert query_parameters(seen) == {"columns": "9", "board_step": "3"}
    seen.press("Home")  # fewer steps than the one that is shown
    seen.page.get_by_label("row 1, column 0, storage 2").wait_for()
    assert seen.page.locator(".count").inner_text() == "2 of 2"
    seen.page.wait_for_function("() => location.search.includes('board_step=1')")


def query_parameters(visit):
    """Return the query parameters of the address."""
    return dict(parse_qsl(visit.query))


def test_address_contains_the_step(board, visit):
    seen = visit(f"{board}/?columns=9&other=%5B1%3A%2C+2%5D")
    before = len(seen.sent)
    seen.page.get_by_role("slider", name="step", exact=True).focus()
    seen.press(*["ArrowRight"] * 5)
    seen.page.wait_for_function("() => location.search.includes('board_step=5')")
    assert seen.query == "columns=9&other=%5B1%3A%2C+2%5D&board_step=5"  # other parameters keep their encoding
    assert len(seen.sent) == before
    contents = seen.contents()
    other = visit(seen.page.url, dark=True)
    assert other.page.locator(".count").inner_text() == "6 of 9"
    assert other.differences(contents) == ""
    seen.page.reload()
    seen.settle()
    assert seen.differences(contents) == ""
    seen.page.get_by_role("slider", name="columns").focus()
    seen.press("ArrowRight")  # Streamlit rewrites the address
    seen.page.wait_for_function("() => location.search.includes('columns=10')")
    seen.settle()
    assert query_parameters(seen) == {"columns": "10", "other": "[1:, 2]", "board_step": "5"}
    assert seen.page.locator(".count").inner_text() == "6 of 10"
    seen.page.get_by_role("slider", name="step", exact=True).focus()
    seen.press("Home")
    seen.page.wait_for_function("() => !location.search.includes('step')")


@pytest.mark.parametrize(("text", "count"), [("99", "8 of 8"), ("-1", "1 of 8"), ("1e1", "1 of 8"), ("", "1 of 8")])
def test_invalid_step_in_the_address_is_clamped(board, visit, text, count):
    assert visit(f"{board}/?board_step={text}").page.locator(".count").inner_text() == count


def test_dragging_the_slider_writes_the_address_once(board, visit):
    seen = visit(board)
    seen.page.evaluate("""() => { window.writes = 0; const write = history.replaceState;
      history.replaceState = function (...all) { window.writes++; return write.apply(this, all) } }""")
    slider = seen.page.get_by_role("slider", name="step", exact=True)
    slider.evaluate("""(s) => { for (let k = 0; k < 300; k++) { s.value = k % 8; s.dispatchEvent(new Event('input')) } }""")
    seen.page.wait_for_function("() => location.search.includes('board_step=3')")
    assert seen.page.evaluate("() => window.writes") == 1


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_cells_and_texts_have_enough_contrast(board, visit, dark):
    found = visit(board, dark=dark).page.evaluate(CONTRASTS)
    assert {kind for kind, _, _ in found} >= {"", "load", "store", "shared", "other", "idle", "wasted", "chosen"}
    assert [(kind, round(cell, 2)) for kind, cell, _ in found if kind and cell < 3] == []
    assert [(kind, round(text, 2)) for kind, _, text in found if text < 4.5] == []


def test_kinds_differ_by_more_than_color(board, visit):
    seen = visit(board)
    marks = """cells => cells.map((c) => { const s = getComputedStyle(c.querySelector('rect'));
      const mark = (c.querySelector('.mark').getAttribute('d') ?? '').replace(/[-.e\\d]+/g, '');
      return [c.shown, s.strokeDasharray.replaceAll(',', ''), s.strokeWidth, mark, s.fill.startsWith('url')].join() })"""
    found = set(seen.page.locator(".cell").evaluate_all(marks))
    assert len({line.partition(",")[2] for line in found}) == len(found)
    words = seen.page.locator(".legend li").all_inner_texts()
    assert [text.strip() for text in words][:4] == ["is read", "is written", "in shared memory", "shared by several"]


def test_whole_screen_has_a_larger_picture_of_the_same_step(board, visit):
    seen = visit(f"{board}/?board_step=1")
    picture, is_full = f"{BOARD}.querySelector('.picture').clientWidth", seen.page.locator(".board:fullscreen")
    width, before = seen.page.evaluate(picture), len(seen.sent)
    focus_grid(seen, "view")
    seen.press("f")
    is_full.wait_for()
    seen.page.wait_for_function(f"{picture} > {1.1 * width}")
    assert seen.page.locator(".count").inner_text() == "2 of 8"
    assert seen.focused == "row 0, column 0, storage 0"
    assert not seen.page.get_by_role("button", name="Save SVG").is_visible()
    seen.page.get_by_role("button", name="Full screen", pressed=True).click()
    is_full.wait_for(state="detached")
    seen.page.wait_for_function(f"{picture} === {width}")
    assert len(seen.sent) == before  # the server has no part in it


def test_a_phone_has_room_for_every_button_and_for_the_whole_screen(board, visit):
    seen = visit(board, size=(390, 844))
    widths = seen.page.locator(".tools button").evaluate_all("found => found.map((b) => [b.scrollWidth, b.clientWidth])")
    assert [text for text in widths if text[0] > text[1]] == []
    seen.page.get_by_role("button", name="Full screen").click()
    seen.page.locator(".board:fullscreen").wait_for()
    boxes = [seen.page.locator(name).bounding_box() for name in (".view", ".sentence", ".player", ".full")]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
    assert [box["y"] for box in boxes] == sorted(box["y"] for box in boxes)
    assert boxes[2]["y"] + boxes[2]["height"] <= 844


@pytest.mark.parametrize("size", [(390, 844), (640, 360)], ids=["phone", "zoom-200"])
def test_wide_grid_scrolls_without_the_page(board, visit, size):
    seen = visit(f"{board}/?columns=30", size=size)
    assert seen.overflow_pixels == 0
    focus_grid(seen, "view")
    seen.press("End")
    assert seen.focused == "row 0, column 29, storage 29"
    assert seen.page.get_by_label("row 0, column 29, storage 29").evaluate(
        "c => { const b = c.getBoundingClientRect(); return b.left >= 0 && b.right <= innerWidth }"
    )
    assert seen.overflow_pixels == 0
