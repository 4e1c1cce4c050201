"""compiler.reindexing: which chains of views are one reindexing, and which a kernel can compute."""

from minifuse.compiler.reindexing import ViewChains, is_computable, layout_of_views
from minifuse.core.layout import row_major
from minifuse.ir.array_functions import View

TURN, FLIP = View("permute", (1, 0)), View("slice", ((3, -1, 4), (0, 1, 4)))
FIRST, REPEAT = View("slice", ((0, 1, 1), (0, 1, 4))), View("expand", (4, 4))


def test_equal_reindexings_become_the_shortest_chain():
    chains = ViewChains()
    assert chains.shortest((4, 4), (FIRST, REPEAT)) == (FIRST, REPEAT)
    assert chains.shortest((4, 4), (FIRST, REPEAT, FIRST, REPEAT)) == (FIRST, REPEAT)
    assert chains.shortest((4, 4), (TURN, TURN, FLIP)) == (TURN, TURN, FLIP)
    assert chains.shortest((4, 4), (FLIP,)) == (FLIP,)
    assert chains.join((4, 4), (FLIP,), (TURN, TURN)) == (FLIP,)


def test_chains_of_other_elements_stay_distinct():
    chains = ViewChains()
    found = {chains.shortest((4, 4), views) for views in [(), (TURN,), (FLIP,), (TURN, FLIP), (FLIP, TURN)]}
    assert len(found) == 5


def test_equal_chains_of_other_shapes_stay_distinct():
    chains = ViewChains()
    whole = View("slice", ((0, 1, 4), (0, 1, 4)))
    assert chains.shortest((4, 4), ()) == ()
    assert chains.shortest((4, 4), (whole,)) == ()
    assert chains.shortest((5, 4), (whole,)) == (whole,)


def test_a_kernel_computes_only_reshapes_that_split_dims():
    assert is_computable((6, 4), (View("reshape", (2, 3, 4)),))
    assert not is_computable((6, 4), (View("reshape", (24,)),))
    assert not is_computable((6, 4), (View("reshape", (2, 3, 4)), TURN_OF_THREE, View("reshape", (6, 4))))
    assert ViewChains().shortest((6, 4), (View("reshape", (24,)),)) is None


TURN_OF_THREE = View("permute", (1, 0, 2))


def test_overlapping_strides_do_not_identify_elements():
    assert layout_of_views((4, 4), (View("as_strided", ((2,), (1,), 0)),)) is None
    assert layout_of_views((4, 4), (TURN,)) == row_major((4, 4)).permute(1, 0)
