"""Save steps of a page of the app, by its button "Save SVG"."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from project.gallery.frames import join_frames
from project.gallery.items import Item
from project.screenshots import wait_until_complete

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SHOW = "(input, k) => { input.value = k; input.dispatchEvent(new Event('input')); }"


def save_steps(browser: "Browser", address: str, steps: Sequence[int], width: int) -> list[str]:
    """Return the SVG that the page at an address saves in each of these steps; in its own one, if there are none."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="light", reduced_motion="reduce")
    page = context.new_page()
    page.goto(address)
    wait_until_complete(page)
    found = []
    for step in steps or [None]:
        if step is not None:
            page.locator("input.step").evaluate(SHOW, step)
        with page.expect_download() as download:
            page.get_by_role("button", name="Save SVG", exact=True).click()
        found.append(download.value.path().read_text(encoding="utf-8"))
    context.close()
    return found


def draw_item(browser: "Browser", address: str, item: Item) -> dict[str, str]:
    """Return the pictures of an item by the names of their files: one, and a still one if it moves."""
    saved = save_steps(browser, f"{address}/{item.address}", item.steps, item.width)
    made = {item.name: join_frames(saved, item.still, item.seconds, item.title)}
    if item.is_moving:
        made[f"{item.name}-still"] = join_frames([saved[item.still]], 0, item.seconds, item.title)
    return made
