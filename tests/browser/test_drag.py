"""Drags over the cells of a board, and on the page of strides: by mouse, finger and keyboard."""

import pytest

from project.screenshots import wait_until_idle


def center(seen, label):
    """Return the middle of a cell in the window."""
    box = seen.page.get_by_label(label, exact=True).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(seen, *labels):
    """Drag over cells by mouse."""
    mouse = seen.page.mouse
    mouse.move(*center(seen, labels[0]))
    mouse.down()
    for label in labels[1:]:
        mouse.move(*center(seen, label), steps=3)
        yield
    mouse.up()


def test_drag_shows_a_frame_and_reports_its_ends(board, visit):
    seen = visit(board)
    dragging = drag(seen, "row 1, column 1, storage 9", "row 2, column 3, storage 19", "row 3, column 2, storage 26")
    for last in ("row 2, column 3, storage 19", "row 3, column 2, storage 26"):
        next(dragging)
        frame = seen.page.locator(".rubber").bounding_box()
        for label in ("row 1, column 1, storage 9", last):
            x, y = center(seen, label)
            assert frame["x"] < x < frame["x"] + frame["width"]
            assert frame["y"] < y < frame["y"] + frame["height"]
    assert list(dragging) == []
    seen.page.get_by_text("Dragged: [('s9', 's26')].").wait_for()
    assert seen.page.locator(".rubber").count() == 0
    assert seen.page.get_by_text("The server knows of None.").count() == 1, "a drag chooses no cell"


def test_drags_that_report_nothing(board, visit):
    """One over a grid that does not drag, one that ends outside, one that returns, and a click."""
    seen = visit(board)
    list(drag(seen, "storage 3", "storage 5"))
    list(drag(seen, "row 1, column 1, storage 9", "row 1, column 2, storage 10", "row 1, column 1, storage 9"))
    seen.page.get_by_label("row 1, column 3, storage 11").click()
    seen.page.get_by_text("The server knows of s11.").wait_for()
    assert seen.page.get_by_text("Dragged: [].").count() == 1


def test_shift_with_arrows_and_enter_drags(board, visit):
    seen = visit(board)
    seen.page.get_by_label("row 1, column 1, storage 9").focus()
    seen.press("Shift+ArrowDown", "Shift+ArrowRight")
    assert seen.page.locator(".rubber").count() == 1
    assert seen.focused == "row 2, column 2, storage 18"
    seen.press("Escape")
    assert seen.page.locator(".rubber").count() == 0
    seen.press("Shift+ArrowRight", "Enter")
    seen.page.get_by_text("Dragged: [('s18', 's19')].").wait_for()


def test_finger_drags(board, chromium):
    context = chromium.new_context(viewport={"width": 900, "height": 900}, has_touch=True)
    try:
        page = context.new_page()
        page.goto(board)
        wait_until_idle(page)
        boxes = []
        for label in ("row 1, column 1, storage 9", "row 2, column 2, storage 18"):
            page.get_by_label(label, exact=True).wait_for()
            box = page.get_by_label(label, exact=True).bounding_box()
            boxes.append({"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2})
        touch = context.new_cdp_session(page)
        for kind, points in (("touchStart", boxes[:1]), ("touchMove", boxes[1:]), ("touchEnd", [])):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        page.get_by_text("Dragged: [('s9', 's18')].").wait_for()
    finally:
        context.close()


@pytest.mark.parametrize(
    ("shape", "ends", "views"),
    [
        ("3, 4", ("row 0, column 1, value 1, storage 1", "row 1, column 2, value 6, storage 6"), "[:2, 1:3]"),
        ("3, 4", ("dim 1: size 4", "dim 0: stride 4"), ".permute(1, 0)"),
    ],
)
def test_drag_on_strides_adds_a_view(app, visit, shape, ends, views):
    seen = visit(f"{app}/strides?shape={shape}")
    list(drag(seen, *ends))
    field = seen.page.get_by_label("views of x")
    seen.page.wait_for_function("(v) => [...document.querySelectorAll('input')].some((x) => x.value === v)", arg=views)
    assert field.input_value() == views
