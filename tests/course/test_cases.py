"""Drawn cases: tensors made by views, and links that open the visualizer at their layout."""

from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minifuse.course import drawn_programs
from minifuse.course.cases import among, autodiff_link, broadcasting_link, layout_link, shapes, strided_like
from minifuse.course.formula_links import page_link

expressions = pytest.importorskip("project.views.expressions", reason="needs the visualizer")
strides = pytest.importorskip("project.views.strides", reason="needs the visualizer")


@given(st.data())
def test_a_link_leads_to_the_layout_of_its_tensor(data):
    x = strided_like(data.draw, data.draw(shapes(4)))
    query = parse_qs(layout_link(x).partition("?")[2])
    if len(x.storage) > strides.MAX_DRAWN_ELEMENTS:
        return
    found = strides.apply_views(
        expressions.parse_shape(query["shape"][0]), expressions.parse_chain(query.get("views", [""])[0])
    )
    assert not found.is_copy
    assert found.layouts[-1].shape == x.shape
    assert len(found.storage) == len(x.storage)
    if 0 not in x.shape:
        assert (found.layouts[-1].strides, found.layouts[-1].offset) == (x.strides, x.offset)


@given(st.data())
def test_elements_differ_and_lie_in_the_storage(data):
    x = strided_like(data.draw, data.draw(shapes(4)))
    elements = x.array().ravel().tolist()
    assert len(set(elements)) == len(elements)
    assert set(elements) <= set(x.storage.tolist())


def test_all_kinds_of_views_are_drawn():
    seen = set()

    @given(st.data())
    def draw(data):
        x = strided_like(data.draw, data.draw(shapes(3, 2)))
        views = parse_qs(layout_link(x).partition("?")[2]).get("views", [""])[0]
        seen.update(kind for kind in ("[", "::", ":2", ".flip", ".permute", "[1, ") if kind in views)
        seen.add("" if not views else "some")

    draw()
    assert seen >= {"", "some", "[", ".flip", ".permute", "[1, "}


def test_a_link_to_autodiff_names_a_function_of_the_page():
    autodiff, functions = (pytest.importorskip(f"project.views.{name}") for name in ("autodiff", "functions"))
    query = parse_qs(autodiff_link().partition("?")[2])
    assert query["autodiff_function"][0] in {found.name for found in functions.DIFFERENTIATED}
    assert int(query["autodiff_size"][0]) in autodiff.SIZES


@given(
    drawn_programs.programs(
        drawn_programs.argument_shapes((2, 2)), ("add", "lt", "mul", "neg", "exp", "sum", "max", "maximum")
    )
)
def test_a_link_to_a_graph_has_a_formula_that_the_page_reads(program):
    formulas = pytest.importorskip("project.views.formulas", reason="needs the visualizer")
    link = page_link("autodiff", drawn_programs.capture_graph(program))
    query = parse_qs(link.partition("?")[2])
    assert query or len(set(program.outputs)) > 1 or len(program.lines) > 2
    if query:
        example = formulas.own_example(query["autodiff_own"][0], query["autodiff_shapes"][0], 1)
        assert set(example.shapes(1)) <= set(program.shapes)


def test_options_of_different_types_are_not_mixed_up():
    kinds = set()

    @given(among(1), among(1.0), among(True))
    def draw(a, b, c):
        kinds.add((type(a), type(b), type(c)))

    draw()
    assert kinds == {(int, float, bool)}


def test_shapes_are_written_as_the_page_reads_them():
    query = parse_qs(broadcasting_link((3, 1), ()).partition("?")[2])
    assert expressions.parse_shape(query["broadcasting_x"][0]) == (3, 1)
    assert expressions.parse_shape(query["broadcasting_y"][0]) == ()
