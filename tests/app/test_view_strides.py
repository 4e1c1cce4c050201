"""The view of strides, compared with NumPy: shapes, elements, positions and copies of view chains, and highlighting."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minifuse.core.errors import MinifuseError
from minifuse.core.layout import Layout
from project.views import strides
from project.views.expressions import Call, Index, parse_chain, parse_shape
from project.views.picture import CHOSEN, LOAD, OTHER, PATH
from project.views.sources import source_lines
from project.views.strides import apply_views, facts, index_of, picture, positions

SHAPES = st.lists(st.sampled_from([0, 1, 1, 2, 3, 4, 5]), max_size=4).filter(lambda s: prod(s) <= 200)


def examples_limited_to(examples):
    return settings(derandomize=True, max_examples=examples, deadline=None)


def draw_step(draw, a):
    """Draw a view that fits an array, and return it with the resulting array. A reshape may copy, as in NumPy."""
    kind = draw(
        st.sampled_from(["permute", "flip", "expand", "reshape", "unsqueeze", "squeeze", "T", "contiguous", "index"])
    )
    match kind:
        case "permute":
            order = tuple(draw(st.permutations(range(a.ndim))))
            return Call("permute", order), a.transpose(order)
        case "flip":
            dims = tuple(draw(st.sets(st.integers(0, max(a.ndim - 1, 0)), max_size=a.ndim)))
            return Call("flip", dims), np.flip(a, dims) if dims else a
        case "expand":
            sizes = tuple(draw(st.integers(0, 3)) if n == 1 else n for n in a.shape)
            sizes = (*draw(st.lists(st.integers(1, 2), max_size=1)), *sizes)
            return Call("expand", sizes), np.broadcast_to(a, sizes)
        case "reshape":
            sizes = (a.size,) if draw(st.booleans()) or a.ndim < 2 else (a.shape[0] * a.shape[1], *a.shape[2:])
            return Call("reshape", sizes), a.reshape(sizes)
        case "unsqueeze":
            d = draw(st.integers(0, a.ndim))
            return Call("unsqueeze", (d,)), np.expand_dims(a, d)
        case "squeeze":
            return Call("squeeze", ()), a.squeeze()
        case "T" if a.ndim == 2:
            return Call("T", ()), a.T
        case "contiguous":
            return Call("contiguous", ()), np.ascontiguousarray(a).reshape(a.shape)
    entries = []
    for n in a.shape:
        step = draw(st.sampled_from([1, 2, -1, -2]))
        bounds = st.none() | st.integers(-n - 1, n + 1)
        entries.append(
            draw(st.integers(-n, n - 1)) if n and draw(st.booleans()) else slice(draw(bounds), draw(bounds), step)
        )
    return Index(tuple(entries)), a[(*entries, ...)]  # the ellipsis keeps a single number a view


@st.composite
def chains(draw):
    """Draw a shape and steps, and return them with NumPy's arrays before and after the steps."""
    sizes = draw(SHAPES)
    base = a = np.arange(prod(sizes)).reshape(sizes)
    steps = []
    for _ in range(draw(st.integers(0, 4))):
        step, b = draw_step(draw, a)
        if b.size > 200 or b.ndim > strides.MAX_DIMS:
            break
        steps.append(step)
        a = b
    return sizes, steps, base, a


def highlighted_cells(shown, cell):
    """Return the cells that the browser highlights together with a cell: (grid, row, column) of all that share a link."""
    return {
        (grid.name, c.row, c.column) for grid in shown.grids for c in grid.cells if set(c.links).intersection(cell.links)
    }


@given(chains())
@examples_limited_to(200)
def test_chain_matches_numpy_in_shape_elements_and_strides(drawn):
    sizes, steps, base, a = drawn
    found = apply_views(sizes, steps)
    layout = found.layouts[-1]
    assert layout.shape == a.shape
    assert len(found.layouts) == len(steps) + 1
    places = positions(layout)
    assert {index: found.storage[p] for index, p in places.items()} == {i: a[i] for i in np.ndindex(a.shape)}
    assert places == {i: layout.position(i) for i in np.ndindex(a.shape)}
    if a.size and not found.is_copy:
        assert places == {i: a[i] for i in np.ndindex(a.shape)}
        for n, s, stride in zip(a.shape, a.strides, layout.strides, strict=True):
            assert n == 1 or s == stride * a.itemsize
        assert layout.is_contiguous == a.flags.c_contiguous
    if a.size:
        assert found.is_copy == (not np.shares_memory(a, base))


@given(chains(), st.data())
@examples_limited_to(100)
def test_cell_highlights_its_storage_element_and_all_aliases(drawn, data):
    sizes, steps, _, a = drawn
    found = apply_views(sizes, steps)
    shown = picture(found)
    views = [(grid, c) for grid in shown.grids if grid.name.startswith("view") for c in grid.cells]
    assert [int(c.text) for _, c in views] == a.ravel().tolist()
    if not views:
        return
    places = positions(found.layouts[-1])
    k = data.draw(st.integers(0, len(views) - 1))
    index = list(places)[k]
    place = places[index]
    expected = {(grid.name, c.row, c.column) for j, (grid, c) in enumerate(views) if list(places.values())[j] == place}
    expected.add(("storage", *divmod(place, strides.COLUMNS)))
    if found.is_copy:
        expected.add(("original", *divmod(int(a[index]), strides.COLUMNS)))
    cell = views[k][1]
    assert highlighted_cells(shown, cell) == expected
    assert index_of(found, cell.links[0]) == index
    chosen = picture(found, index)
    frame = chosen.frames[chosen.first]
    kinds = dict(frame.kinds)
    marked = {
        (grid.name, c.row, c.column)
        for grid in chosen.grids
        for c in grid.cells
        if any(kinds.get(link) in (CHOSEN, PATH) for link in c.links)
    }
    assert marked == expected
    assert (frame.edges[0].start, frame.edges[0].end) == (
        (views[k][0].name, cell.row, cell.column),
        ("storage", *divmod(place, strides.COLUMNS)),
    )


@given(chains(), st.data())
@examples_limited_to(100)
def test_address_formula_of_a_chosen_element_is_correct(drawn, data):
    sizes, steps, _, a = drawn
    found = apply_views(sizes, steps)
    if not a.size:
        assert index_of(found, "p0") is None
        return
    index = data.draw(st.sampled_from(list(np.ndindex(a.shape))))
    values = {fact.name: fact.value for fact in facts(found, index)}
    name = f"view[{', '.join(map(str, index))}]" if index else "view[()]"
    terms, total = values[f"{name} lies at"].split(" = ")
    assert sum(prod(map(int, term.split(" * "))) for term in terms.split(" + ")) == int(total)
    assert picture(found, index).sentence.endswith(f" {name} lies at {terms} = {total}.")
    assert found.storage[int(total)] == values[f"{name} holds"] == a[index]


@given(chains())
@examples_limited_to(100)
def test_walk_visits_the_elements_in_row_major_order(drawn):
    sizes, steps, _, a = drawn
    found = apply_views(sizes, steps)
    shown, layout = picture(found), found.layouts[-1]
    number = {(grid.name, c.row, c.column): c.text for grid in shown.grids for c in grid.cells}
    names = {grid.name: grid for grid in shown.grids if grid.name.startswith("view")}
    expected = [np.unravel_index(k, a.shape) if a.shape else () for k in range(a.size)]
    first = np.ravel_multi_index(strides.default_index(layout), a.shape) if a.size and a.shape else 0
    start = first - first % strides.MAX_WALK
    expected = [tuple(map(int, index)) for index in expected][start : start + strides.MAX_WALK]
    assert len(shown.frames) == len(expected)
    lines = {line.number: line.text for line in source_lines(Layout.position)}
    for frame, index in zip(shown.frames, expected, strict=True):
        to_storage, *along = frame.edges
        assert number[to_storage.start] == number[to_storage.end] == frame.flights[0].text == str(a[index])
        assert to_storage.start[0] in names
        assert to_storage.end == ("storage", *divmod(layout.position(index), strides.COLUMNS))
        assert to_storage.text == strides.formula(layout, index)
        assert "self.offset + sum(" in lines[frame.line]
        for edge in along:
            assert edge.start == to_storage.end
        steps = [d for d, (i, n) in enumerate(zip(index, a.shape, strict=True)) if i + 1 < n and layout.strides[d]]
        assert [int(edge.text) for edge in along] == [layout.strides[d] for d in steps]
        after = [tuple(i + (k == d) for k, i in enumerate(index)) for d in steps]
        assert [number[edge.end] for edge in along] == [str(a[one]) for one in after]
        assert frame.numbers[-1][0] == f"{np.ravel_multi_index(index, a.shape) + 1 if a.shape else 1} of {a.size}"


def test_storage_is_above_the_view():
    assert picture(view_of("3, 4", ".T")).layout == (("storage",), ("dims", "view0"))
    assert picture(view_of("2, 3", ".T.contiguous()")).layout == (("original",), ("storage",), ("dims", "view0"))
    assert picture(view_of("2, 2, 3", "")).layout == (("storage",), ("dims", "view0", "view1"))


def test_texts_of_an_idiom_have_its_name():
    assert {strides.idiom_of(*texts) for texts in strides.EXAMPLES.values()} == set(strides.EXAMPLES)
    assert strides.idiom_of("3, 4", ".T") == "transposed"
    assert strides.idiom_of("3, 5", ".T") == strides.OWN


def view_of(text, views):
    return apply_views(parse_shape(text), parse_chain(views))


def facts_by_name(found, chosen=None):
    return {fact.name: (fact.value, fact.why) for fact in facts(found, chosen)}


def test_examples_have_the_expected_layouts():
    expected = {
        "as it lies": ((4, 1), 0, "yes", "yes, with stride 1"),
        "transposed": ((1, 4), 0, "no", "no"),
        "every second column": ((8, 2), 0, "no", "yes, with stride 2"),
        "backwards": ((6, -1), 5, "no", "no"),
        "one row, repeated": ((0, 1), 0, "no", "no"),
        "cut into tiles": ((12, 3, 6, 1), 0, "no", "no"),
    }
    found = {name: view_of(*texts) for name, texts in strides.EXAMPLES.items()}
    got = {name: facts_by_name(f) for name, f in found.items()}
    assert {
        name: (f["strides"][0], f["offset"][0], f["contiguous"][0], f["can be seen as one line"][0])
        for name, f in got.items()
    } == expected
    assert not any(f.is_copy for f in found.values())


def test_non_contiguous_views_have_a_reason():
    assert facts_by_name(view_of("3, 4", ".T"))["contiguous"] == ("no", "dim 0 has stride 1; fresh memory would have 3")
    assert facts_by_name(view_of("3, 4", "[1:]"))["contiguous"][0] == "yes"  # only its offset differs
    assert facts_by_name(view_of("3, 4", "[:, 1:]"))["contiguous"] == ("no", "dim 0 has stride 4; fresh memory would have 3")


def test_reshape_copy_reason_quotes_the_library():
    found = view_of("3, 4", ".T.reshape(12)")
    assert found.copies[0][0] == 1
    assert "dims 0 and 1 would have to merge, but stride 1 != 3 * 4" in found.copies[0][1]
    assert facts_by_name(found)["memory"] == ("a copy", "")
    assert "stride 1 != 3 * 4" in facts_by_name(found)["step 2: .reshape(12)"][1]
    assert "stride 1 != 3 * 4" in facts_by_name(view_of("3, 4", ".T"))["can be seen as one line"][1]
    assert ".reshape(12) copied the elements" in picture(found).sentence


def test_contiguous_copy_has_a_reason():
    found = view_of("2, 3", ".T.contiguous()")
    assert found.copies == ((1, "dim 0 has stride 1; fresh memory would have 2"),)
    assert found.storage == (0, 3, 1, 4, 2, 5)
    assert not view_of("2, 3", ".contiguous()").is_copy


def test_element_of_x_highlights_its_copies():
    shown = picture(view_of("2, 3", ".T.contiguous()"))
    assert [grid.name for grid in shown.grids] == ["original", "storage", "view0", "dims"]
    one = shown.grids[0].cells[1]
    assert one.label == "storage of x 1, copied to 2"
    assert highlighted_cells(shown, one) == {("original", 0, 1), ("storage", 0, 2), ("view0", 1, 0)}
    shown = picture(view_of("1, 2", ".expand(3, 2).contiguous()[:, 1:]"))
    assert shown.grids[0].cells[1].label == "storage of x 1, copied to 1, 3, 5"
    assert highlighted_cells(shown, shown.grids[2].cells[1]) == {("original", 0, 1), ("storage", 0, 3), ("view0", 1, 0)}


def test_last_of_two_copies_is_shown():
    found = view_of("2, 3", ".T.contiguous().T.contiguous()[1:]")
    assert [step for step, _ in found.copies] == [1, 3]
    assert found.storage == (0, 1, 2, 3, 4, 5)
    assert found.layouts[-1] is Layout((1, 3), (3, 1), 3)


def test_storage_cells_are_marked_by_how_many_elements_alias_them():
    storage, view, _ = picture(view_of("4", "[:3].unsqueeze(0).expand(2, 3)[:, :2]")).grids
    assert [c.kind for c in storage.cells] == [OTHER, OTHER, "", ""]
    assert [c.label for c in storage.cells][1:3] == [
        "storage 1, value 1, seen 2 times by the view",
        "storage 2, value 2, not seen by the view",
    ]
    assert {c.kind for c in view.cells} == {OTHER}
    assert {c.kind for c in picture(view_of("4", "")).grids[1].cells} == {LOAD}


def test_element_label_contains_its_storage_position():
    _, view, _ = picture(view_of("3, 4", ".T[1:]")).grids
    assert [c.label for c in view.cells if (c.row, c.column) == (1, 2)] == ["row 1, column 2, value 10, storage 10"]
    _, view = picture(view_of("", "")).grids
    assert [c.label for c in view.cells] == ["value 0, storage 0"]


def test_facts_list_the_aliases_of_an_element():
    found = view_of("1, 3", ".expand(9, 3)")
    value, why = facts_by_name(found, (2, 1))["the place is seen as"]
    assert value == "[0, 1], [1, 1], [2, 1], [3, 1], [4, 1], [5, 1] and 3 more"
    assert "stride of 0" in why


def test_links_outside_the_view_choose_no_index():
    found = view_of("4", "[::2]")
    assert index_of(found, "p2") == (1,)
    assert index_of(found, "p1") is index_of(found, None) is index_of(found, "?") is None
    assert index_of(view_of("2, 3", ".T.contiguous()"), "x3") == (0, 1)


@pytest.mark.parametrize(
    ("text", "views", "what"),
    [
        ("600", "", "600 elements; expected at most 512"),
        ("1, 10", ".expand(100000, 10)", "a view of 1,000,000 elements"),
        ("1", ".reshape(1, 1, 1, 1, 1, 1, 1, 1, 1)", "a view of 9 dims; expected at most 8"),
        ("3, 4", ".permute(0)", "permute"),
        ("3, 4", ".reshape(5)", "reshape|12|elements"),
        ("3, 4", "[7]", "7"),
        ("3", "[0, 0]", "dim"),
    ],
)
def test_invalid_shapes_and_views_are_errors(text, views, what):
    with pytest.raises(MinifuseError, match=what):
        view_of(text, views)


@given(
    SHAPES,
    st.text(st.sampled_from("0123,-:"), max_size=6),
    st.sampled_from([*strides.METHODS, "permute", "flip", "expand", "["]),
)
@examples_limited_to(300)
def test_any_method_text_is_drawn_or_raises_an_error(sizes, arguments, method):
    text = ".T" if method == "T" else f"[{arguments}]" if method == "[" else f".{method}({arguments})"
    try:
        found = apply_views(sizes, parse_chain(text))
    except MinifuseError:
        return
    assert picture(found).sentence
    assert facts(found)


def test_largest_allowed_shapes_fit_in_a_picture():
    for text, views in (("512", ""), ("16, 32", ".T.contiguous().T"), ("1", ".expand(2, 2, 2, 2, 2, 2, 2, 4)")):
        found = view_of(text, views)
        assert len(picture(found, index_of(found, "p0")).as_rows()) >= 512
    facts(view_of("1", ".expand(512)"), (7,))


def test_shown_source_is_the_method_that_ran():
    names = {"": "position", ".T": "permute", "[::2]": "slice", ".squeeze()": "reshape", ".T.contiguous()": "position"}
    assert {text: strides.layout_method(parse_chain(text)) for text in names} == names
    assert all(hasattr(Layout, name) for name in names.values())


@given(chains())
@examples_limited_to(60)
def test_dims_show_size_and_stride_of_the_layout(drawn):
    sizes, steps, _, a = drawn
    found = apply_views(sizes, steps)
    dims = [grid for grid in picture(found).grids if grid.name == "dims"]
    layout = found.layouts[-1]
    assert len(dims) == bool(a.ndim)
    for grid in dims:
        numbers = [(int(c.text), int(s.text)) for c, s in zip(grid.cells[::2], grid.cells[1::2], strict=True)]
        assert numbers == list(zip(layout.shape, layout.strides, strict=True))
    assert all(grid.drags == (grid.name not in ("storage", "original")) for grid in picture(found).grids)
