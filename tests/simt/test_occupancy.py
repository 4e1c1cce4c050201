"""Theoretical occupancy: answers of NVIDIA's calculator, derived by hand, and properties of all answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minifuse.core.errors import SimtError
from minifuse.simt.occupancy import MULTIPROCESSORS, occupancy

KB = 1024


@pytest.mark.parametrize(
    ("capability", "threads", "shared", "registers", "blocks", "limited_by"),
    [
        ((9, 0), 256, 0, 32, 8, ("warps", "registers")),
        ((9, 0), 1024, 0, 64, 1, ("registers",)),  # 32 warps x 2,048 registers are all 65,536
        ((9, 0), 1024, 0, 65, 0, ("registers",)),
        ((9, 0), 128, 48 * KB, 32, 4, ("shared",)),  # 49 of 228 KB each
        ((9, 0), 128, 227 * KB, None, 1, ("shared",)),
        ((9, 0), 128, 227 * KB + 1, None, 0, ("shared",)),
        ((9, 0), 32, 0, None, 32, ("blocks",)),
        ((9, 0), 33, 0, None, 32, ("warps", "blocks")),
        ((9, 0), 1025, 0, None, 0, ("warps",)),
        ((9, 0), 256, 0, 33, 6, ("registers",)),  # 33 x 32 become 1,280: 12 warps a quarter, 48 in all
        ((9, 0), 96, 0, 255, 2, ("registers",)),  # 2 warps a quarter, 8 in all, 3 a block
        ((9, 0), 256, 0, 256, 0, ("registers",)),
        ((9, 0), 672, 0, 88, 0, ("registers",)),  # 5 warps a quarter, 20 in all, 21 a block
        ((7, 0), 256, 0, 32, 8, ("warps", "registers")),
        ((7, 0), 64, 48 * KB, None, 2, ("shared",)),  # nothing is reserved
        ((7, 5), 256, 0, 32, 4, ("warps",)),
        ((7, 5), 32, 0, None, 16, ("blocks",)),
        ((7, 5), 64, 32 * KB, None, 2, ("shared",)),
        ((8, 0), 128, 48 * KB, None, 3, ("shared",)),  # 49 of 164 KB
        ((8, 6), 256, 0, 32, 6, ("warps",)),
        ((8, 6), 64, 0, None, 16, ("blocks",)),
        ((8, 7), 128, 40 * KB, None, 4, ("shared",)),
        ((8, 9), 64, 0, None, 24, ("warps", "blocks")),
        ((8, 9), 128, 24 * KB, None, 4, ("shared",)),  # 25 of 100 KB
        ((10, 0), 512, 0, 40, 3, ("registers",)),
        ((12, 0), 1024, 0, 32, 1, ("warps",)),
    ],
)
def test_occupancy_equals_nvidias_calculator(capability, threads, shared, registers, blocks, limited_by):
    found = occupancy(threads, shared, registers, capability)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)
    assert found.warps == blocks * -(-threads // 32)
    assert found.fraction == found.warps / MULTIPROCESSORS[capability].warps


def test_shared_memory_includes_the_reserved_part_rounded_up():
    assert occupancy(32, 6 * KB + 128 - 128 * 8).limits["shared"] == 228 * KB // (6 * KB + 128)
    assert occupancy(32, 6 * KB + 1 - 128 * 8).limits["shared"] == 228 * KB // (6 * KB + 128)
    assert occupancy(32, 1, capability=(7, 5)).limits["shared"] == 256


@given(
    st.sampled_from([*MULTIPROCESSORS]),
    st.integers(1, 1024),
    st.integers(0, 100 * KB),
    st.integers(0, 255),
    st.integers(0, 3),
)
def test_larger_blocks_never_raise_the_number_of_blocks(capability, threads, shared, registers, which):
    resources = [threads, shared, registers]
    larger = [value + (index == which) for index, value in enumerate(resources)]
    assert occupancy(*larger, capability).blocks <= occupancy(*resources, capability).blocks
    assert 0 <= occupancy(*resources, capability).fraction <= 1


def test_unknown_registers_limit_nothing():
    assert "registers" not in occupancy(256).limits
    assert occupancy(256).blocks == 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((256, 0, 32, (6, 1)), r"got compute capability \(6, 1\); expected one of 7.0, 7.5"),
        ((0,), "at least one thread"),
        ((32, -1), "shared=-1"),
        ((32, 0, -1), "registers=-1"),
    ],
)
def test_invalid_arguments_are_errors(arguments, words):
    with pytest.raises(SimtError, match=words):
        occupancy(*arguments)
