"""tensors.mutation: which buffers share memory, against a comparison of every pair."""

from itertools import combinations
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from minifuse.tensors.mutation import are_disjoint

stretches = st.lists(st.builds(SimpleNamespace, address=st.integers(0, 40), nbytes=st.integers(1, 9)), max_size=6)


@given(stretches)
def test_apart_are_those_of_which_no_two_meet(buffers):
    meet = [a.address < b.address + b.nbytes and b.address < a.address + a.nbytes for a, b in combinations(buffers, 2)]
    assert are_disjoint(buffers) == (not any(meet))
