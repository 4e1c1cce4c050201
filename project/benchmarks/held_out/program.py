"""A program that is measured beside torch.compile: a function with its inputs and its check.

The function is written once for minifuse and for torch. Its first argument is the module, `mf` or `torch`. Where torch has
other names, the program contains a second function. A third one computes the result in float64 by NumPy alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..row import Array, Bench, Work


class Draw(Protocol):
    """A source of inputs. The arrays are NumPy's, or tensors of a GPU; np.transpose and slices work on both."""

    def normal(self, *shape: int) -> Any:
        """Draw standard normal floats."""

    def uniform(self, low: float, high: float, *shape: int) -> Any:
        """Draw floats between two bounds."""

    def integers(self, high: int, *shape: int) -> Any:
        """Draw integers from 0 to high - 1."""

    def constant(self, array: Array) -> Any:
        """Convert an array of NumPy. Floats get the dtype of the other inputs."""


@dataclass
class HostDraw:
    """Inputs of one dtype in the memory of the host."""

    rng: np.random.Generator
    dtype: str = "float32"

    def normal(self, *shape: int) -> Array:
        """Draw standard normal floats."""
        return self.rng.standard_normal(shape).astype(self.dtype)

    def uniform(self, low: float, high: float, *shape: int) -> Array:
        """Draw floats between two bounds."""
        return self.rng.uniform(low, high, shape).astype(self.dtype)

    def integers(self, high: int, *shape: int) -> Array:
        """Draw integers from 0 to high - 1."""
        return self.rng.integers(0, high, shape)

    def constant(self, array: Array) -> Array:
        """Convert floats to the dtype of the other inputs."""
        return array.astype(self.dtype) if array.dtype.kind == "f" else array


@dataclass
class BenchDraw:
    """Inputs of a row of a benchmark, float32. On a GPU they are views of pools of numbers that all rows read."""

    bench: Bench
    count: int = field(default=0, init=False)

    def normal(self, *shape: int) -> Any:
        """Draw standard normal floats."""
        self.count += 1
        return self.bench.normal(self.count, shape, "float32")

    def uniform(self, low: float, high: float, *shape: int) -> Any:
        """Draw floats between two bounds."""
        self.count += 1
        return self.bench.uniform(self.count, shape, 0.0, 1.0, "float32") * (high - low) + low

    def integers(self, high: int, *shape: int) -> Any:
        """Draw integers from 0 to high - 1."""
        return self.bench.held(self.bench.rng.integers(0, high, shape))

    def constant(self, array: Array) -> Any:
        """Convert an array of NumPy; floats become float32."""
        return self.bench.held(array.astype(np.float32) if array.dtype.kind == "f" else array)


@dataclass(frozen=True)
class Program:
    """An entry of the suites `held-out` and `loop-nests`.

    Attributes
    ----------
    source
        The publication: authors, title, year, and an equation or a section; of loop nests, what is special about them.
    work
        The function. Takes the module, `mf` or `torch`, and the inputs; returns a tensor or a tuple of tensors.
    exact
        The same function of NumPy arrays in float64.
    inputs
        Makes the inputs, given a `Draw` and the sizes.
    gpu, cpu, tiny
        The sizes on a GPU, on two cores, and in tests.
    gradients
        How many of the first inputs have gradients; 0 if the program is not differentiated. A program whose gradient jumps,
        as that of a maximum does, is not: float32 and float64 may differ in the branch.
    torch
        The function of torch tensors, without the module, where `work` does not run on them.
    tolerance, gradient_tolerance
        The largest errors of float32 results and gradients, as `run.error_of` measures them.
    dtype
        The element type of the result.
    """

    name: str
    source: str
    work: Work
    exact: Work
    inputs: Callable[..., Sequence[Any]]
    gpu: tuple[int, ...]
    cpu: tuple[int, ...]
    tiny: tuple[int, ...]
    gradients: int = 0
    torch: Work | None = None
    tolerance: float = 1e-4
    gradient_tolerance: float = 2e-4
    dtype: str = "float32"

    def on(self, module: Any) -> Work:
        """Return the function of the tensors of `mf` or `torch`."""
        if self.torch is not None and module.__name__ == "torch":
            return self.torch
        work = self.work
        return lambda *inputs: work(module, *inputs)

    def loss(self, module: Any) -> Work:
        """Return the function that is differentiated, of the inputs and `weights`: the sum of result times weights."""
        work = self.on(module)

        def loss(*inputs: Any) -> Any:
            y = work(*inputs[:-1])
            return (y * inputs[-1]).sum()

        return loss


def weights(draw: Draw, shape: tuple[int, ...]) -> Any:
    """Draw the weights of a loss; 1 for a result that is a loss already."""
    return draw.normal(*shape) if shape else draw.constant(np.ones(()))


def amax(x: Any, dim: int, keepdim: bool = False) -> Any:
    """Return the maximum along a dim: `amax` of torch, `max` of minifuse."""
    return x.amax(dim, keepdim=keepdim) if hasattr(x, "amax") else x.max(dim, keepdim=keepdim)


def softmax(x: Array, axis: int = -1) -> Any:
    """Compute softmax by NumPy."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def logsumexp(x: Array, axis: int = -1) -> Any:
    """Compute the logarithm of a sum of exponentials by NumPy."""
    m = x.max(axis, keepdims=True)
    return np.squeeze(m, axis) + np.log(np.exp(x - m).sum(axis))
