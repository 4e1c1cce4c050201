"""compiler.shared_inputs: which groups of values read a common array, and how many nodes the search visits."""

from minifuse.compiler.shared_inputs import connected_components, set_bits, shared_input_masks
from minifuse.core.dtypes import float32
from minifuse.core.interning import toposort
from minifuse.ir.graph import Argument, Node, inputs_of

A, B, C = (Node(Argument(k), (), (8,), float32) for k in range(3))


def masks(*groups):
    """Return the masks, and the number of visited nodes."""
    order = toposort([x for group in groups for x in group], inputs_of)
    rank = {node: k for k, node in enumerate(order)}
    asked = []

    def ranked(node):
        asked.append(node)
        return rank[node]

    arrays = {A, B, C}
    return shared_input_masks(groups, ranked, lambda x: bool(arrays & set(toposort([x], inputs_of))), arrays), len(asked)


def test_groups_with_a_common_array_are_linked():
    found, _ = masks([A + 1], [A * B], [B * 2], [C + 1])
    assert list(map(set_bits, found)) == [[0, 1], [0, 1, 2], [1, 2], [3]]


def test_a_common_number_does_not_link_groups():
    assert masks([A + 1], [B + 1])[0] == [1, 2]


def test_one_group_has_its_own_mask():
    assert masks([A + B])[0] == [1]


def test_the_search_ends_at_a_node_that_all_groups_read():
    y = A
    for _ in range(500):
        y = y + 1
    found, count = masks([y * 2], [y * 3])
    assert found == [3, 3]
    assert count < 10


def test_links_are_transitive():
    assert connected_components([0b011, 0b111, 0b110, 0b1000]) == [[0, 1, 2], [3]]
    assert connected_components([0b101, 0b010, 0b101]) == [[1], [0, 2]]  # in the order of the last member of each
