"""The layout of graphs in layers, on random graphs without cycles."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from project.views.graph_layout import layer_graph
from project.views.picture import Cell, Picture


@st.composite
def graphs(draw) -> list[tuple[int, ...]]:
    """Return the inputs of each node of a random graph; all inputs come before their readers."""
    count = draw(st.integers(0, 16))
    nodes = [sorted(draw(st.sets(st.integers(0, k - 1), max_size=3))) if k else [] for k in range(count)]
    return [tuple(inputs) for inputs in nodes]


def draw_graph(reads):
    """Return the layout of a graph."""
    return layer_graph("graph", "a graph", [Cell(0, 0, str(k), str(k), "", (f"g{k}",)) for k in range(len(reads))], reads)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(graphs())
def test_edges_lead_down_and_nodes_do_not_overlap(reads):
    drawn = draw_graph(reads)
    rows = [row for _, row, _ in drawn.places]
    assert [(e.start, e.end) for e in drawn.edges()] == [
        (drawn.places[j], drawn.places[k]) for k, inputs in enumerate(reads) for j in inputs
    ]
    assert all(rows[j] < rows[k] for k, inputs in enumerate(reads) for j in inputs)
    assert all(rows[k] == 1 + max((rows[j] for j in inputs), default=-1) for k, inputs in enumerate(reads))
    for row in range(drawn.grid.rows):
        layer = [(c.column, x) for c, x in zip(drawn.grid.cells, drawn.grid.offsets, strict=True) if c.row == row]
        assert sorted(c for c, _ in layer) == list(range(len(layer)))
        assert all(x + 0.999 <= y for (_, x), (_, y) in pairwise(sorted(layer)))


@settings(derandomize=True, max_examples=60, deadline=None)
@given(graphs())
def test_edges_pass_between_the_nodes_of_skipped_layers(reads):
    drawn = draw_graph(reads)
    for edge in drawn.edges():
        assert [row for row, _ in edge.bends] == list(range(edge.start[1] + 1, edge.end[1]))
        for row, column in edge.bends:
            layer = [x for c, x in zip(drawn.grid.cells, drawn.grid.offsets, strict=True) if c.row == row]
            assert all(abs(x - column) > 0.69 for x in layer)


@settings(derandomize=True, max_examples=20, deadline=None)
@given(graphs())
def test_layout_is_deterministic_and_a_picture(reads):
    drawn = draw_graph(reads)
    assert drawn == draw_graph(reads)
    assert Picture("a graph", (drawn.grid,), edges=drawn.edges()).as_data()["sentence"] == "a graph"


def test_a_backward_edge_has_the_same_bends_in_reverse():
    drawn = draw_graph([(), (0,), (1,), (2, 0)])
    forward, back = drawn.edge(0, 3), drawn.edge(3, 0, "store", "2")
    assert len(forward.bends) == 2
    assert (back.start, back.end, back.bends) == (forward.end, forward.start, forward.bends[::-1])
    assert (back.kind, back.text) == ("store", "2")
