"""The back button of the browser: each step back lands on a state that somebody chose, and the picture shows it."""

import pytest


def state(seen):
    """Return what is shown: the parameters that somebody set, the step, and the selected cells."""
    seen.settle()
    seen.page.wait_for_timeout(300)  # until the step is in the address
    return seen.query, seen.page.locator(".count").inner_text(), seen.labels("picked"), seen.contents()


@pytest.mark.parametrize(
    ("path", "labels"),
    [
        ("strides", ("row 2, column 1, value 9, storage 9", "row 0, column 3, value 3, storage 3")),
        ("broadcasting", ("result[2, 0], 13", "result[0, 2], 31")),
        ("threads", ("block 0, thread 5,", "block 1, thread 10,")),
        ("matmul", ("out[0, 3]", "out[5, 7]")),
    ],
)
def test_back_button_undoes_clicks_on_cells_one_by_one(app, visit, path, labels):
    seen = visit(f"{app}/{path}")
    states = [state(seen)]
    for label in labels:
        seen.page.locator(f".cell[aria-label^='{label}']").first.click()
        states.append(state(seen))
    assert len({query for query, *_ in states}) == 1 + len(labels)
    for expected in states[-2::-1]:
        seen.page.go_back()
        seen.page.wait_for_function("(query) => location.search.slice(1) === query", arg=expected[0])
        assert state(seen) == expected
    seen.page.locator(f".cell[aria-label^='{labels[0]}']").first.click()
    assert state(seen) == states[1]


def test_back_button_restores_the_step(app, visit):
    seen = visit(f"{app}/strides")
    seen.page.get_by_label("one step on").click()
    seen.page.wait_for_function("() => location.search.includes('strides_step=7')")
    before = state(seen)
    seen.page.get_by_label("row 2, column 1, value 9, storage 9").click()
    assert state(seen)[1] == "10 of 12"
    seen.page.go_back()
    seen.page.wait_for_function("() => !location.search.includes('element')")
    assert state(seen) == before
