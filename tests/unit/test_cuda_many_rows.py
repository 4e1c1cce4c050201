"""The kernels that a GPU runs on many rows, run by the CUDA interpreter on few: the limits of their choice are lowered."""

import pytest

from minifuse.backends.cuda import geometry
from minifuse.backends.cuda.matmul import heuristics
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
from .test_cuda_rows_in_shared import templates_only

SHAPES = [(9, 256), (70, 5), (6, 1001)]


@pytest.fixture(autouse=True)
def _choose_kernels_of_many_rows(monkeypatch):
    monkeypatch.setattr(geometry, "MIN_BUSY_BLOCKS", 2)
    monkeypatch.setattr(heuristics, "MIN_TRANSPOSE_WORK", 1)
    heuristics.choose_config.cache_clear()
    yield
    heuristics.choose_config.cache_clear()


@pytest.fixture
def _rows_are_read_again(monkeypatch):
    """Rows too long for registers and shared memory: each sweep reads memory again."""
    templates_only(monkeypatch)
    monkeypatch.setattr(geometry, "REDUCTION_BYTES", 1 << 20)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_rows_and_columns(name, shape):
    compared(FUNCTIONS[name], operands(shape))


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("_rows_are_read_again")
@pytest.mark.parametrize("shape", [(3, 260), (5, 77)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_that_are_read_again(name, shape):
    compared(FUNCTIONS[name], operands(shape))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy(shape):
    compared(functional.cross_entropy, operands_of_loss(shape))


def test_embeddings():
    """Four operands wait in shared memory: short rows share a block, and all of them are computed."""
    compared(picked, operands_of_picked(40, 256))


def test_layers():
    compared(block, operands_of_block(70, 20, 36), tolerance=1e-3)
