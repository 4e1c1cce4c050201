"""Cells and arrows that light up together: pointed at, or reached by keyboard."""

import pytest

from tests.browser.visit import BOARD, serve_page

# The labels of both ends of each arrow that is lit, and how many arrows there are.
ARROWS = """() => {
  const root = BOARD;
  const name = (end) => end.getAttribute('aria-label');
  const lit = [...root.querySelectorAll('.edge')].map((edge) => edge.parentNode.classList.contains('lit'));
  return [...root.querySelectorAll('.hit')].map(({ ends }, k) => [...ends.map(name), lit[k]]);
}""".replace("BOARD", BOARD)
POINT = """(at) => {
  const root = BOARD;
  const path = [...root.querySelectorAll('.hit')][at], middle = path.getPointAtLength(path.getTotalLength() / 2);
  const { x, y } = middle.matrixTransform(path.getScreenCTM());
  return [x, y];
}""".replace("BOARD", BOARD)


@pytest.fixture(scope="module")
def graph(logs):
    """Serve a page with only a graph, and yield its address."""
    with serve_page("one_graph", logs) as address:
        yield address


def lit(seen):
    """Return the lit cells, and the ends of the lit arrows."""
    arrows = [(a, b) for a, b, is_lit in seen.page.evaluate(ARROWS) if is_lit]
    return sorted(seen.labels("lit")), sorted((int(a[-1]), int(b[-1])) for a, b in arrows)


NODE_3 = (["node 0", "node 1", "node 2", "node 3", "node 5"], [(0, 2), (1, 2), (2, 3), (3, 5)])
NODE_0 = (["node 0", "node 2", "storage 0"], [(0, 2)])


def test_a_node_lights_what_it_is_made_of_and_its_readers(graph, visit):
    seen = visit(graph)
    before = len(seen.sent)
    assert [is_lit for *_, is_lit in seen.page.evaluate(ARROWS)] == [False] * 6
    seen.page.get_by_label("node 3", exact=True).hover()
    assert lit(seen) == NODE_3
    seen.page.get_by_label("node 5", exact=True).hover()
    assert lit(seen) == ([f"node {k}" for k in range(6)] + ["storage 5"], [(0, 2), (1, 2), (1, 4), (2, 3), (3, 5), (4, 5)])
    seen.page.locator("h1").hover()
    assert lit(seen) == ([], [])
    assert len(seen.sent) == before


def test_an_arrow_lights_its_ends(graph, visit):
    seen = visit(graph)
    ends = [(int(a[-1]), int(b[-1])) for a, b, _ in seen.page.evaluate(ARROWS)]
    for k, (start, end) in enumerate(ends):
        seen.page.mouse.move(*seen.page.evaluate(POINT, k))
        assert lit(seen) == ([f"node {start}", f"node {end}"], [(start, end)])


def test_a_line_lights_its_cells_and_arrows_between_them(graph, visit):
    seen = visit(graph)
    seen.page.locator(".code .line").nth(2).hover()
    assert lit(seen) == (["node 3", "node 4"], [])
    seen.page.locator(".code .line").nth(0).hover()
    assert lit(seen) == (["node 0", "node 1"], [])
    seen.page.get_by_label("node 2", exact=True).hover()
    assert seen.page.locator(".code .near").all_inner_texts() == ["2\nline 2"]


def test_keyboard_focus_lights_the_same_as_the_pointer(graph, visit):
    seen = visit(graph)
    seen.page.get_by_label("node 0", exact=True).focus()
    assert lit(seen) == NODE_0
    seen.page.get_by_label("node 3", exact=True).focus()
    assert lit(seen) == NODE_3
    seen.press("Escape")
    assert lit(seen) == ([], [])


def test_a_new_arrow_is_lit_while_its_cell_has_the_focus(graph, visit):
    seen = visit(graph)
    seen.page.get_by_label("storage 0", exact=True).focus()
    assert lit(seen) == (["node 0", "storage 0"], [])
    seen.page.locator(".on").evaluate("button => button.onclick()")  # the focus stays where it is
    assert lit(seen) == (["node 0", "storage 0", "storage 5"], [(5, 0)])
