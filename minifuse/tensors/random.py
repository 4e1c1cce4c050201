"""Create tensors of random numbers, from one generator that `manual_seed` sets."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.dtypes import DType, NumpyArray, as_dtype, as_number, float32
from ..core.errors import DTypeError
from ..core.indexing import Shape, ShapeLike, shape_of
from ..core.keywords import refusing
from .creation import DTypeLike, backend_of, tracer_for, wrap_array
from .tensor import Tensor

RandomState = dict[str, str | int | dict[str, int]]  # state of NumPy's bit generator: the generator's name, and integers

_random = np.random.default_rng()


def generator() -> np.random.Generator:
    """Return the random number generator that `manual_seed` sets."""
    return _random


def manual_seed(seed: int) -> None:
    """Seed the random numbers of `rand`, `randn` and initializers. See also `get_rng_state`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.manual_seed(0)
    >>> x = mf.rand(3)
    >>> mf.manual_seed(0)
    >>> bool((mf.rand(3) == x).all())
    True
    """
    global _random
    _random = np.random.default_rng(as_number(seed))


def get_rng_state() -> RandomState:
    """Return the state of the random number generator. After `set_rng_state(state)` it draws the same numbers again.

    Returns
    -------
    dict
        Strings and integers, some of 128 bits, which Python's `json` stores exactly.

    Notes
    -----
    This is the state of NumPy's PCG64, the only generator of `rand`, `randn` and the initial values of layers. Data loaders
    have separate seeds.

    Examples
    --------
    >>> import minifuse as mf
    >>> state = mf.get_rng_state()
    >>> x = mf.rand(3)
    >>> mf.set_rng_state(state)
    >>> bool((mf.rand(3) == x).all())
    True
    """
    state: RandomState = to_plain(generator().bit_generator.state)
    return state


def set_rng_state(state: Mapping[str, object]) -> None:
    """Set the state of the random number generator to a state that `get_rng_state` returned.

    Raises
    ------
    DTypeError
        The argument is not a state of PCG64. The generator is unchanged.

    Examples
    --------
    >>> import json
    >>> import minifuse as mf
    >>> mf.manual_seed(3)
    >>> text = json.dumps(mf.get_rng_state())
    >>> x = mf.randn(2)
    >>> mf.set_rng_state(json.loads(text))
    >>> bool((mf.randn(2) == x).all())
    True
    """
    global _random
    bit_generator: Any = np.random.PCG64(0)
    try:
        bit_generator.state = state
        is_state = to_plain(bit_generator.state) == to_plain(state)  # NumPy also accepts states that it ignores
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        is_state = False
    if not is_state:
        raise DTypeError(f"set_rng_state: expected a state of PCG64 from get_rng_state, got {state!r:.80}")
    _random = np.random.Generator(bit_generator)


def to_plain(state: Any) -> Any:
    """Convert a state to dicts, strings and Python integers."""
    if isinstance(state, Mapping):
        return {name: to_plain(x) for name, x in state.items()}
    return int(state) if isinstance(state, np.integer) else state


def draw(
    values: Callable[[], NumpyArray], shape: Shape, dtype: DType, backend: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor of random values. A fused function draws them anew at each call."""
    if (tracer := tracer_for(backend)) is not None:
        traced: Tensor = tracer.draw(values, shape, dtype)
        return traced.requires_grad_() if requires_grad else traced
    return wrap_array(values(), backend, requires_grad)


def draw_floats(
    method: str, shape: tuple[ShapeLike, ...], dtype: DTypeLike, backend: str | None, requires_grad: bool
) -> Tensor:
    """Return random numbers of a method of NumPy's generator."""
    target = as_dtype(dtype or float32)
    if not target.is_float:
        name = "randn" if method == "standard_normal" else "rand"
        raise DTypeError(f"{name}: got dtype {target}, expected a float type; use float32 or float64")
    sizes = shape_of(shape)
    values = lambda: np.asarray(getattr(generator(), method)(sizes, dtype=target.numpy.type))  # noqa: E731
    return draw(values, sizes, target, backend, requires_grad)


GENERATOR = {"generator": "there is one generator: write mf.manual_seed(0), or with mf.get_rng_state and mf.set_rng_state"}


@refusing(GENERATOR)
def rand(
    *shape: ShapeLike,
    dtype: DTypeLike = None,
    backend: str | None = None,
    requires_grad: bool = False,
    device: object = None,
) -> Tensor:
    """Return random numbers from the uniform distribution on [0, 1).

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.rand(100)
    >>> bool(((x >= 0) & (x < 1)).all())
    True
    """
    backend = backend_of(backend, device)
    return draw_floats("random", shape, dtype, backend, requires_grad)


@refusing(GENERATOR)
def randn(
    *shape: ShapeLike,
    dtype: DTypeLike = None,
    backend: str | None = None,
    requires_grad: bool = False,
    device: object = None,
) -> Tensor:
    """Return random numbers from the standard normal distribution.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.randn(2, 3).shape
    (2, 3)
    """
    backend = backend_of(backend, device)
    return draw_floats("standard_normal", shape, dtype, backend, requires_grad)
