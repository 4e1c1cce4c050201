"""The public names. A name is added here on purpose, and taken away with a line in the changelog."""

import inspect
from types import ModuleType

import pytest

import minifuse as mf
from minifuse.core.dtypes import OTHER_NAMES
from minifuse.functions import load
from tests.equivalence.meanings import MEANINGS

CREATION = "tensor zeros ones full rand randn arange zeros_like ones_like empty_like from_numpy from_dlpack"
RANDOM = "manual_seed get_rng_state set_rng_state"
FILES = "save load load_metadata save_state load_state save_sharded load_sharded merge_shards"
# Operators without a function: Python has syntax for them, or, for detach, a method is enough.
SYNTAX = "eq ne lt gt le ge and_ or_ xor invert lshift rshift add sub mul div floordiv mod pow pos detach"
ELEMENTWISE = " ".join(MEANINGS.keys() - SYNTAX.split())
ROWS = "softmax log_softmax"
KERNELS = "elementwise index atomic_add reduction"
AUTODIFF = "grad autograd func vmap utils fuse source profile"
MODES = "no_grad enable_grad inference_mode set_grad_enabled is_grad_enabled"
PRECISION = (
    "set_float32_matmul_precision get_float32_matmul_precision use_float32_matmul_precision "
    "set_fast_math get_fast_math use_fast_math"
)
BACKENDS = "backends register_backend set_default_backend use_backend synchronize"
CLASSES = "Tensor Scalar Shard"
DTYPES = "float32 float64 int8 int16 int32 int64 uint8 bool_"
ERRORS = (
    "MinifuseError ShapeError ViewError DTypeError IndexingError OverlapError GradientError BackendError MissingPartError "
    "FuseError CompileError CudaError CheckpointError OutOfMemoryError SimtError DataError"
)
PARTS = "nn optim data testing cache memory simt linalg fft"

GROUPS = [
    CREATION,
    RANDOM,
    FILES,
    ELEMENTWISE,
    ROWS,
    KERNELS,
    AUTODIFF,
    MODES,
    PRECISION,
    BACKENDS,
    CLASSES,
    DTYPES,
    ERRORS,
    PARTS,
]
PUBLIC = set(" ".join(GROUPS).split())


def test_all_is_this_list():
    added, missing = set(mf.__all__) - PUBLIC, PUBLIC - set(mf.__all__)
    where = "operators to MEANINGS in tests/equivalence/meanings.py, other names to this list"
    assert not added, f"new in minifuse.__all__: {sorted(added)}; if they are meant to stay, add {where}"
    where = "minifuse/core/operators.py, other names to that of minifuse/__init__.py"
    assert not missing, f"not in minifuse.__all__: {sorted(missing)}; add operators to `__all__` of {where}"
    assert len(mf.__all__) == len(set(mf.__all__))


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_name_exists_and_is_explained(name):
    value = getattr(mf, name)
    text = inspect.getdoc(value)
    assert text, f"mf.{name} has no docstring"
    if inspect.isroutine(value):
        assert ">>>" in text, f"the docstring of mf.{name} has no example"


def test_dir_shows_the_public_names():
    assert set(dir(mf)) >= PUBLIC


def test_nothing_else_looks_public():
    public = PUBLIC | load().keys() | OTHER_NAMES.keys() | {*dir(mf.nn.functional)}
    others = {name: getattr(mf, name) for name in dir(mf) if not name.startswith("_") and name not in public}
    stray = [name for name, value in others.items() if not is_part_of_minifuse(value)]
    assert not stray, f"minifuse.__init__ leaks {stray}: import them under a name with an underscore, or delete them"


def is_part_of_minifuse(value: object) -> bool:
    return isinstance(value, ModuleType) and value.__name__.startswith(f"{mf.__name__}.")


def test_public_names_have_their_recorded_kinds():
    """A name says the same in a traceback and in the source."""
    for name in sorted(PUBLIC):
        value = getattr(mf, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__name__ == name
