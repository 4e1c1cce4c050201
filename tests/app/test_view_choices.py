"""The views that are offered next: each is one that the library takes, and what is not offered it does not."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minifuse.core.errors import MinifuseError
from minifuse.core.layout import row_major
from project.views import next_views, strides
from project.views.expressions import MAX_STEPS, Call, Index, chain, labels
from project.views.strides import strided
from tests.app.tables import facts_tables

from .test_view_strides import bounded, chains

ALL = ["permute", "slice", "flip", "expand", "reshape", "unsqueeze", "squeeze", "contiguous"]


def offered(text, views=""):
    found = strided(tuple(map(int, text.split(","))) if text else (), chain(views))
    return found, next_views.offers(found.layouts[-1], found.steps)


def every(layout, offers):
    """What can be chosen: all of the lists, and slices and expansions at the ends of their ranges."""
    for kind, ways in offers.ways.items():
        yield from ((kind, step) for step in ways)
    if "slice" in offers.ways:
        for d, n in next_views.sliceable(layout).items():
            for start, stop, step in {(0, n, 1), (0, n, n), (n, n, 1), (0, 0, 2), (n // 2, n, 1), (0, n - 1, 2)}:
                yield "slice", next_views.sliced(layout, d, start, stop, step)
    if "expand" in offers.ways:
        for place, most in next_views.expandable(layout).items():
            yield from (("expand", next_views.expanded(layout, place, times)) for times in (1, most))


@given(chains())
@bounded(80)
def test_all_that_is_offered_is_legal_and_copies_where_it_says_so(drawn):
    sizes, steps, _, _ = drawn
    found = strided(sizes, steps)
    layout = found.layouts[-1]
    offers = next_views.offers(layout, found.steps)
    assert sorted([*offers.ways, *offers.refused]) == sorted(ALL)
    assert all(offers.refused.values())
    for kind, step in every(layout, offers):
        assert len(str(step)) <= next_views.LONGEST
        assert chain(str(step)) == (step,), "the text is read as what was chosen"
        after = strided(sizes, [*steps, step])
        copied = len(steps) in dict(after.copies)
        assert copied == next_views.outcome(layout, step).startswith("copies"), step
        if kind in ("permute", "flip", "slice", "unsqueeze", "squeeze"):
            assert not copied


@given(st.integers(2, 9), st.data())
@bounded(100)
def test_a_slice_is_that_of_a_list(n, data):
    start, stop = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    step = data.draw(st.integers(1, n))
    found = strided((2, n), [next_views.sliced(row_major((2, n)), 1, start, stop, step)])
    row = list(range(n))[start:stop:step]
    assert list(strides.positions(found.layouts[-1]).values()) == row + [n + k for k in row]


def test_all_orders_of_few_dims_and_all_shapes_of_few_elements():
    _, offers = offered("2,3,4")
    assert {step.arguments for step in offers.ways["permute"]} == set(permutations(range(3))) - {(0, 1, 2)}
    _, offers = offered("12")
    shapes = {step.arguments for step in offers.ways["reshape"]}
    assert shapes == {(2, 6), (6, 2), (3, 4), (4, 3), (2, 2, 3), (2, 3, 2), (3, 2, 2)}
    _, offers = offered("")
    assert {step.arguments for step in offers.ways["reshape"]} == {(1,)}


@pytest.mark.parametrize(
    ("text", "views", "kind", "why"),
    [
        ("", "", "permute", "two dims"),
        ("", "", "flip", "no dims"),
        ("", "", "slice", "no dim with an element"),
        ("0", "", "slice", "no dim with an element"),
        ("7", "", "reshape", "no other shape"),
        ("3,4", "", "squeeze", "no dim of (3, 4) has size 1"),
        ("3,4", "", "contiguous", "it is contiguous"),
        ("512", "", "expand", "512 elements"),
        ("1,1,1,1,1,1,1,1", "", "unsqueeze", "8 dims"),
    ],
)
def test_what_is_not_offered_says_why(text, views, kind, why):
    _, offers = offered(text, views)
    assert kind not in offers.ways
    assert why in offers.refused[kind]


def test_a_reshape_that_is_no_view_says_what_view_says():
    found, offers = offered("3,4", ".T")
    words = next_views.outcome(found.layouts[-1], Call("reshape", (12,)))
    assert words.startswith("copies, since view() fails: reshape: (4, 3) with strides (1, 4) to (12,) is not a view")
    kinds = [next_views.outcome(found.layouts[-1], step).startswith("copies") for step in offers.ways["reshape"]]
    assert kinds == sorted(kinds), "views come first"
    assert True in kinds
    assert False in kinds


def test_a_chain_has_an_end():
    _, offers = offered("3,4", ".T" * MAX_STEPS)
    assert not offers.ways
    assert "12 views" in offers.refused["any view"]
    _, offers = offered("2,2,2,2,2,2,2,2", ".permute(7, 6, 5, 4, 3, 2, 1, 0)" * 5)
    assert not offers.ways
    assert "characters" in offers.refused["any view"]


def test_chips_differ():
    names = next_views.chips(chain(".T.T[::2].T"))
    assert names == ["x", "1 .T", "2 .T", "3 [::2]", "4 .T"]


# The page


def page():
    from project.screens.strides import page

    page()


def opened(**parameters):
    testing = pytest.importorskip("streamlit.testing.v1", reason="the app needs streamlit: minifuse[app]")
    app = testing.AppTest.from_function(page, default_timeout=20)
    for key, value in parameters.items():
        app.query_params[key] = value
    app.run()
    return sound(app)


def sound(app):
    assert not app.exception
    assert not app.error
    return app


def shape_of(app):
    rows = facts_tables(app)[0]
    return rows.loc[rows["fact"] == "shape", "value"].item()


def chips_of(app):
    return app.get("button_group")[0]


def test_a_chip_shows_the_tensor_as_it_is_after_it():
    app = opened(shape="2,6", views=".T.reshape(3,4)[1:]")
    assert chips_of(app).value == "3 [1:]"
    for chip, shape in (("x", "(2, 6)"), ("1 .T", "(6, 2)"), ("2 .reshape(3, 4)", "(3, 4)"), ("3 [1:]", "(2, 4)")):
        chips_of(app).set_value(chip).run()
        assert shape_of(sound(app)) == shape
        assert app.text_input(key="views").value == ".T.reshape(3,4)[1:]", "the chain stays"


def test_a_view_is_added_and_taken_off_without_typing():
    app = opened(shape="2,6", views=".T", after="x")
    assert shape_of(app) == "(2, 6)"
    app.selectbox(key="next").set_value("slice").run()
    app.slider(key="slice_range").set_value((1, 6))
    app.slider(key="slice_step").set_value(2).run()
    app.button(key="add_view").click().run()
    assert app.text_input(key="views").value == ".T[1::2]"
    assert chips_of(sound(app)).value == "2 [1::2]", "what was added is looked at"
    assert shape_of(app) == "(3, 2)"
    for views, shape in ((".T", "(6, 2)"), ("", "(2, 6)")):
        app.button(key="take_off").click().run()
        assert app.text_input(key="views").value == views
        assert shape_of(sound(app)) == shape
    assert app.button(key="take_off").disabled


def test_the_views_of_an_idiom_can_be_taken_off():
    """Its text is a placeholder alone: what is taken off must not come back."""
    app = opened(idiom="transposed")
    assert chips_of(app).options == ["x", "1 .T"]
    app.button(key="take_off").click().run()
    assert chips_of(sound(app)).options == ["x"]
    assert app.text_input(key="shape").value == "3, 4"


@pytest.mark.parametrize("text", ["()", "0", "1", "1, 1", "1, 1, 1, 1, 1, 1, 1, 1", "512", "2, 0, 3"])
def test_small_empty_and_large_tensors_offer_what_fits(text):
    app = opened(shape=text)
    for kind in app.selectbox(key="next").options:
        app.selectbox(key="next").set_value(kind).run()
        sound(app)
        before = app.text_input(key="views").value
        app.button(key="add_view").click().run()
        assert app.text_input(key="views").value != before
        sound(app).button(key="take_off").click().run()
        sound(app)


def test_an_index_of_another_shape_is_let_go_of():
    app = opened(shape="2,6", views=".T", element="5, 1")
    assert shape_of(app) == "(6, 2)"
    assert app.text_input(key="element").value == "5, 1"
    chips_of(app).set_value("x").run()
    assert sound(app).text_input(key="element").value == ""


def test_what_was_chosen_is_written_as_one_types_it():
    step = next_views.expanded(row_major((3, 1)), "dim 1", 4)
    assert labels([step, Index((slice(None, None, 2),))]) == [".expand(3, 4)", "[::2]"]
    with pytest.raises(MinifuseError):
        strided((3, 2), [step])
