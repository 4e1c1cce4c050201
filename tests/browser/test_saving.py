"""What the stage saves and copies: this step, with its colors, words and marks."""

from xml.etree import ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"


def save(seen, name, suffix):
    """Click a button, and return the name and the bytes of the file that it saves."""
    with seen.page.expect_download() as download:
        seen.page.get_by_role("button", name=name, exact=True).click()
    assert download.value.suggested_filename.endswith(suffix)
    return download.value.path().read_bytes()


def test_the_svg_is_this_step(board, visit):
    seen = visit(board)
    seen.page.get_by_label("one step on").click(click_count=3)
    shown = seen.page.locator(".grid .cell").evaluate_all("cells => cells.map((c) => [c.shown, c.said])")
    root = ElementTree.fromstring(save(seen, "Save SVG", "-4.svg"))
    cells = [g for g in root.iter(f"{SVG}g") if "cell" in g.get("class", "").split()]
    saved = [[" ".join(g.get("class").split()[1:]), g.findall(f"{SVG}text")[-1].text or ""] for g in cells]
    assert saved == shown
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "Step 3 reads storage 3." in texts
    assert {"is read", "is written"} <= set(texts)  # the legend
    assert "--load:" in root.get("style")
    assert ".load" in "".join(style.text for style in root.iter(f"{SVG}style"))


def test_the_png_and_the_clip_have_their_formats(board, visit):
    seen = visit(f"{board}/?columns=2")
    assert save(seen, "Save PNG", "-1.png").startswith(b"\x89PNG")
    seen.page.get_by_label("speed").select_option("250")
    assert save(seen, "Save clip", "board.webm").startswith(b"\x1aE\xdf\xa3")
    assert seen.page.locator(".count").inner_text() == "1 of 2"


@pytest.mark.parametrize(("button", "words"), [("Copy link", "board_step=2"), ("Copy iframe", "embed=true")])
def test_a_link_has_the_step(board, visit, button, words):
    seen = visit(f"{board}/?columns=9&board_step=2")
    seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    seen.page.get_by_role("button", name=button, exact=True).click()
    seen.page.get_by_role("button", name="Copied").wait_for()
    copied = seen.page.evaluate("() => navigator.clipboard.readText()")
    assert words in copied
    assert "columns=9" in copied


def test_an_embedded_page_is_the_stage_alone(app, visit):
    seen = visit(f"{app}/threads?threads_block=16&threads_step=2&embed=true")
    assert seen.page.locator(".count").inner_text().startswith("3 of ")
    assert not seen.page.locator("h1").is_visible()
    assert not seen.page.get_by_text("Facts", exact=True).is_visible()
    assert not seen.page.get_by_test_id("stHeader").is_visible()  # it would cover the top of the picture


def test_the_player_plays_to_the_end(board, visit):
    seen = visit(f"{board}/?columns=4")
    seen.page.get_by_label("speed").select_option("250")
    before = len(seen.sent)
    seen.page.get_by_role("button", name="Play").click()
    seen.page.get_by_role("button", name="Pause").wait_for()
    seen.page.get_by_text("4 of 4", exact=True).wait_for()
    seen.page.get_by_role("button", name="Play").wait_for()
    assert len(seen.sent) == before


def test_keys_outside_a_grid_move_the_player(board, visit):
    seen = visit(board)
    seen.page.get_by_role("button", name="one step on").focus()
    count = seen.page.locator(".count")
    seen.press("ArrowRight", "ArrowRight")
    assert count.inner_text() == "3 of 8"
    seen.press("End")
    assert count.inner_text() == "8 of 8"
    seen.press("Home", "ArrowLeft")
    assert count.inner_text() == "1 of 8"
    seen.press("?")
    assert seen.page.get_by_role("dialog", name="keys").is_visible()
    seen.press("Escape")
    assert not seen.page.get_by_role("dialog", name="keys").is_visible()
