"""Fused functions, and their gradients, at sizes that small tests do not reach: full grids, blocks of many rows, long rows.

Which kernel, and how many threads and how much shared memory it gets, depends on sizes. Each result is held against the
same function in float64, computed on the processor.
"""

import pytest

from minifuse.nn import functional

from ..equivalence.large_programs import (
    FUNCTIONS,
    block,
    compared,
    operands,
    operands_of_block,
    operands_of_loss,
    operands_of_picked,
    picked,
)

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

SHAPES = [(2048, 256), (65_537, 5), (16_384, 64), (1500, 1001), (1100, 2052), (300, 8192), (1200, 12_289), (40, 50_257)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_rows_and_columns(name, shape):
    compared(FUNCTIONS[name], operands(shape))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy(shape):
    compared(functional.cross_entropy, operands_of_loss(shape))


@pytest.mark.parametrize(("rows", "width"), [(2048, 256), (9000, 64), (3000, 100)])
def test_embeddings_and_layers(rows, width):
    compared(picked, operands_of_picked(rows, width))
    compared(block, operands_of_block(rows, width, 4 * width), tolerance=1e-3)
