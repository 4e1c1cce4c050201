"""The views that the page offers as the next step: all are legal, and others are missing for a reason."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minifuse.core.errors import MinifuseError
from minifuse.core.layout import row_major
from project.views import next_views, strides
from project.views.expressions import MAX_STEPS, Call, Index, format_steps, parse_chain
from project.views.strides import apply_views
from tests.app.tables import facts_tables

from .test_view_strides import chains, examples_limited_to

ALL = ["permute", "slice", "flip", "expand", "reshape", "unsqueeze", "squeeze", "contiguous"]


def offers_after(text, views=""):
    found = apply_views(tuple(map(int, text.split(","))) if text else (), parse_chain(views))
    return found, next_views.offer_views(found.layouts[-1], found.steps)


def steps_to_try(layout, offers):
    """Yield steps that can be chosen: all of the lists, and slices and expansions at the ends of their ranges."""
    for kind, ways in offers.options.items():
        yield from ((kind, step) for step in ways)
    if "slice" in offers.options:
        for d, n in next_views.sliceable_dims(layout).items():
            for start, stop, step in {(0, n, 1), (0, n, n), (n, n, 1), (0, 0, 2), (n // 2, n, 1), (0, n - 1, 2)}:
                yield "slice", next_views.make_slice(layout, d, start, stop, step)
    if "expand" in offers.options:
        for place, most in next_views.expandable_dims(layout).items():
            yield from (("expand", next_views.make_expand(layout, place, times)) for times in (1, most))


@given(chains())
@examples_limited_to(80)
def test_offered_views_are_legal_and_copy_as_announced(drawn):
    sizes, steps, _, _ = drawn
    found = apply_views(sizes, steps)
    layout = found.layouts[-1]
    offers = next_views.offer_views(layout, found.steps)
    assert sorted([*offers.options, *offers.refused]) == sorted(ALL)
    assert all(offers.refused.values())
    for kind, step in steps_to_try(layout, offers):
        assert len(str(step)) <= next_views.MAX_STEP_LENGTH
        assert parse_chain(str(step)) == (step,), "the text parses to the chosen step"
        after = apply_views(sizes, [*steps, step])
        copied = len(steps) in dict(after.copies)
        assert copied == next_views.describe_outcome(layout, step).startswith("copies"), step
        if kind in ("permute", "flip", "slice", "unsqueeze", "squeeze"):
            assert not copied


@given(st.integers(2, 9), st.data())
@examples_limited_to(100)
def test_slices_match_list_slices(n, data):
    start, stop = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    step = data.draw(st.integers(1, n))
    found = apply_views((2, n), [next_views.make_slice(row_major((2, n)), 1, start, stop, step)])
    row = list(range(n))[start:stop:step]
    assert list(strides.positions(found.layouts[-1]).values()) == row + [n + k for k in row]


def test_small_tensors_offer_all_permutations_and_reshapes():
    _, offers = offers_after("2,3,4")
    assert {step.arguments for step in offers.options["permute"]} == set(permutations(range(3))) - {(0, 1, 2)}
    _, offers = offers_after("12")
    shapes = {step.arguments for step in offers.options["reshape"]}
    assert shapes == {(2, 6), (6, 2), (3, 4), (4, 3), (2, 2, 3), (2, 3, 2), (3, 2, 2)}
    _, offers = offers_after("")
    assert {step.arguments for step in offers.options["reshape"]} == {(1,)}


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
def test_missing_offers_have_a_reason(text, views, kind, why):
    _, offers = offers_after(text, views)
    assert kind not in offers.options
    assert why in offers.refused[kind]


def test_reshape_that_copies_quotes_the_error_of_view():
    found, offers = offers_after("3,4", ".T")
    words = next_views.describe_outcome(found.layouts[-1], Call("reshape", (12,)))
    assert words.startswith("copies, since view() fails: reshape: (4, 3) with strides (1, 4) to (12,) is not a view")
    kinds = [next_views.describe_outcome(found.layouts[-1], step).startswith("copies") for step in offers.options["reshape"]]
    assert kinds == sorted(kinds), "views come first"
    assert True in kinds
    assert False in kinds


def test_long_chains_offer_no_more_views():
    _, offers = offers_after("3,4", ".T" * MAX_STEPS)
    assert not offers.options
    assert "12 views" in offers.refused["any view"]
    _, offers = offers_after("2,2,2,2,2,2,2,2", ".permute(7, 6, 5, 4, 3, 2, 1, 0)" * 5)
    assert not offers.options
    assert "characters" in offers.refused["any view"]


def test_chip_labels_are_unique():
    names = next_views.chip_labels(parse_chain(".T.T[::2].T"))
    assert names == ["x", "1 .T", "2 .T", "3 [::2]", "4 .T"]


@given(chains(), st.data())
@examples_limited_to(100)
def test_drag_over_elements_slices_what_it_covers(drawn, data):
    sizes, steps, _, a = drawn
    found = apply_views(sizes, steps)
    if not a.size:
        return
    first, last = (tuple(data.draw(st.integers(0, n - 1)) for n in a.shape) for _ in range(2))
    step = next_views.dragged_view(found, strides.element_link(first), strides.element_link(last))
    covered = a[tuple(slice(min(ends), max(ends) + 1) for ends in zip(first, last, strict=True))]
    if step is None:
        assert covered.shape == a.shape or len(steps) == MAX_STEPS
    else:
        after = apply_views(sizes, (*steps, step))
        assert [after.storage[p] for p in strides.positions(after.layouts[-1]).values()] == covered.ravel().tolist()
        assert parse_chain(str(step)) == (step,)


@given(chains(), st.integers(0, 3), st.integers(0, 3))
@examples_limited_to(60)
def test_drag_from_dim_to_dim_swaps_them(drawn, one, two):
    sizes, steps, _, a = drawn
    found = apply_views(sizes, steps)
    step = next_views.dragged_view(found, strides.dim_link(one), strides.dim_link(two))
    if one == two or max(one, two) >= a.ndim or len(steps) == MAX_STEPS:
        assert step is None
    else:
        after = apply_views(sizes, (*steps, step))
        right = a.swapaxes(one, two)
        assert after.layouts[-1].shape == right.shape
        assert [after.storage[p] for p in strides.positions(after.layouts[-1]).values()] == right.ravel().tolist()


def test_drags_that_mean_nothing():
    found = apply_views((3, 4), ())
    for first, last in (("d0", "v1,1"), ("v0,0", "s3"), ("d0", "d0"), ("", ""), ("v0,0", "v2,3"), ("d0", "d7")):
        assert next_views.dragged_view(found, first, last) is None
    full = apply_views((3, 4), parse_chain(".T" * MAX_STEPS))
    assert next_views.dragged_view(full, "v0,0", "v1,1") is None
    assert str(next_views.dragged_view(found, "v2,1", "v1,0")) == "[1:, :2]"
    assert str(next_views.dragged_view(found, "v1,0", "v1,3")) == "[1:2]"


# The page


def page():
    from project.screens.strides import page

    page()


def open_page(**parameters):
    return without_error(page_of_address(**parameters))


def page_of_address(**parameters):
    testing = pytest.importorskip("streamlit.testing.v1", reason="the app needs streamlit: minifuse[app]")
    app = testing.AppTest.from_function(page, default_timeout=20)
    for key, value in parameters.items():
        app.query_params[key] = value
    return app.run()


def without_error(app):
    assert not app.exception
    assert not app.error
    return app


def shape_of(app):
    rows = facts_tables(app)[0]
    return rows.loc[rows["fact"] == "shape", "value"].item()


def chips_of(app):
    return app.get("button_group")[0]


def test_chip_shows_the_tensor_after_its_step():
    app = open_page(shape="2,6", views=".T.reshape(3,4)[1:]")
    assert chips_of(app).value == "3 [1:]"
    for chip, shape in (("x", "(2, 6)"), ("1 .T", "(6, 2)"), ("2 .reshape(3, 4)", "(3, 4)"), ("3 [1:]", "(2, 4)")):
        chips_of(app).set_value(chip).run()
        assert shape_of(without_error(app)) == shape
        assert app.text_input(key="views").value == ".T.reshape(3,4)[1:]", "the chain stays"


def test_views_are_added_and_removed_with_buttons():
    app = open_page(shape="2,6", views=".T", after="x")
    assert shape_of(app) == "(2, 6)"
    app.selectbox(key="next").set_value("slice").run()
    app.slider(key="slice_range").set_value((1, 6))
    app.slider(key="slice_step").set_value(2).run()
    app.button(key="add_view").click().run()
    assert app.text_input(key="views").value == ".T[1::2]"
    assert chips_of(without_error(app)).value == "2 [1::2]", "the new step is selected"
    assert shape_of(app) == "(3, 2)"
    for views, shape in ((".T", "(6, 2)"), ("", "(2, 6)")):
        app.button(key="take_off").click().run()
        assert app.text_input(key="views").value == views
        assert shape_of(without_error(app)) == shape
    assert app.button(key="take_off").disabled


def test_views_of_an_example_can_be_removed():
    """A removed view must not return."""
    app = open_page(idiom="transposed")
    assert chips_of(app).options == ["x", "1 .T"]
    app.button(key="take_off").click().run()
    assert chips_of(without_error(app)).options == ["x"]
    assert app.text_input(key="shape").value == "3, 4"


def test_idiom_is_the_one_of_the_texts():
    app = open_page(idiom="transposed")
    assert (app.text_input(key="shape").value, app.text_input(key="views").value) == ("3, 4", ".T")
    app.text_input(key="shape").set_value("3, 5").run()
    assert without_error(app).selectbox(key="idiom").value == "your own"
    assert shape_of(app) == "(5, 3)"
    app.selectbox(key="idiom").select("every second column").run()
    assert without_error(app).text_input(key="views").value == "[:, ::2]"
    assert shape_of(app) == "(3, 4)"
    app.text_input(key="shape").set_value("2, 6")
    app.text_input(key="views").set_value(".flip(1)").run()
    assert without_error(app).selectbox(key="idiom").value == "backwards"


@pytest.mark.parametrize(
    ("texts", "idiom", "shape"),
    [
        ({"shape": "2, 6"}, "your own", "(2, 6)"),
        ({"shape": "3, 4"}, "as it lies", "(3, 4)"),
        ({"views": ".flip(0)"}, "your own", "(3, 4)"),
        ({"shape": "2, 6", "views": ".flip(1)"}, "backwards", "(2, 6)"),
        ({"shape": "3, 4", "views": ".T"}, "transposed", "(4, 3)"),
    ],
)
def test_idiom_of_an_address_gives_way_to_its_texts(texts, idiom, shape):
    app = open_page(idiom="transposed", **texts)
    assert shape_of(app) == shape
    assert app.selectbox(key="idiom").value == idiom
    assert shape_of(without_error(app.run())) == shape


@pytest.mark.parametrize(
    "texts", [{"shape": "x"}, {"views": ".nothing()"}, {"shape": "600"}, {"idiom": "none", "views": "["}]
)
def test_invalid_address_shows_the_error_and_a_picture(texts):
    app = page_of_address(**texts)
    assert "Until the input is valid, the picture shows x of shape (3, 4)." in app.error[0].value
    assert app.get("bidi_component")


def test_error_leaves_the_last_valid_picture():
    app = open_page(shape="2, 6", views=".T")
    app.text_input(key="views").set_value(".T[").run()
    assert "Until the input is valid, the picture shows x.T of shape (6, 2)." in app.error[0].value
    assert shape_of(app) == "(6, 2)"
    app.text_input(key="views").set_value(".T[1:]").run()
    assert shape_of(without_error(app)) == "(5, 2)"


@pytest.mark.parametrize("text", ["()", "0", "1", "1, 1", "1, 1, 1, 1, 1, 1, 1, 1", "512", "2, 0, 3"])
def test_every_offered_kind_can_be_added_and_removed(text):
    app = open_page(shape=text)
    for kind in app.selectbox(key="next").options:
        app.selectbox(key="next").set_value(kind).run()
        without_error(app)
        before = app.text_input(key="views").value
        app.button(key="add_view").click().run()
        assert app.text_input(key="views").value != before
        without_error(app).button(key="take_off").click().run()
        without_error(app)


def test_index_is_cleared_when_the_shape_changes():
    app = open_page(shape="2,6", views=".T", element="5, 1")
    assert shape_of(app) == "(6, 2)"
    assert app.text_input(key="element").value == "5, 1"
    chips_of(app).set_value("x").run()
    assert without_error(app).text_input(key="element").value == ""


def test_chosen_steps_have_the_text_of_the_grammar():
    step = next_views.make_expand(row_major((3, 1)), "dim 1", 4)
    assert format_steps([step, Index((slice(None, None, 2),))]) == [".expand(3, 4)", "[::2]"]
    with pytest.raises(MinifuseError):
        apply_views((3, 2), [step])
