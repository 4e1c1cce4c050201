"""`mf.fft`: Fourier transforms of one dim, by NumPy on the host, with gradients.

There is no complex dtype. A complex array is a real one with a last dim of size 2, the real and the imaginary parts, as
`torch.view_as_real` returns it. So `fft` of shape (..., n) has shape (..., n, 2), and `ifft` takes such pairs. The
transforms are along the last dim of the complex array.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ShapeError
from ..tensors.creation import tensor
from .host import host_function
from .table import require_array

__all__ = ["fft", "fftfreq", "ifft", "irfft", "rfft", "rfftfreq"]


def to_pairs(xp: Any, z: Any, dtype: Any) -> Any:
    """Return real and imaginary parts along a new last dim."""
    return xp.stack([z.real, z.imag], -1).astype(dtype)


def to_complex(z: Any) -> Any:
    """Return pairs as a complex array."""
    return z[..., 0] + 1j * z[..., 1]


def _complex_vjp(
    gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any], inverse: bool, norm: str
) -> Sequence[Any]:
    return (complex_transform(gradients[0], inverse=not inverse, norm=ADJOINT[norm]),)


ADJOINT = {"backward": "forward", "forward": "backward", "ortho": "ortho"}  # the norm of the transposed transform


@host_function(_complex_vjp)
def complex_transform(xp: Any, z: Any, inverse: bool, norm: str) -> Any:
    """Transform pairs."""
    return to_pairs(xp, (xp.fft.ifft if inverse else xp.fft.fft)(to_complex(z), norm=norm), z.dtype)


def _real_vjp(gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any], norm: str) -> Sequence[Any]:
    (g,), n = gradients, inputs[0].shape[-1]
    return (complex_transform(resized(g, n, -2), inverse=True, norm=ADJOINT[norm])[..., 0],)


@host_function(_real_vjp)
def real_transform(xp: Any, x: Any, norm: str) -> Any:
    """Transform real numbers; return the first half of the result, as pairs."""
    return to_pairs(xp, xp.fft.rfft(x, norm=norm), x.dtype)


def _to_real_vjp(
    gradients: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any], n: int, norm: str
) -> Sequence[Any]:
    (g,), (z,) = gradients, inputs
    y = resized(real_transform(g, norm=ADJOINT[norm]), z.shape[-2], -2)
    k = np.arange(z.shape[-2])
    weight = np.where((k > 0) & (2 * k < n), 2.0, 1.0)[:, None] * np.ones(2)  # inner frequencies stand for two
    weight[(k == 0) | (2 * k == n), 1] = 0.0
    return (y * tensor(weight, y.dtype, y.backend),)


@host_function(_to_real_vjp)
def to_real_transform(xp: Any, z: Any, n: int, norm: str) -> Any:
    """Transform pairs, the first half of a symmetric array, to n real numbers."""
    return xp.fft.irfft(to_complex(z), n, norm=norm).astype(z.dtype)


def resized(x: Any, n: int, dim: int) -> Any:
    """Cut a dim to n elements, or pad it with zeros."""
    d, count = x.ndim + dim, x.shape[dim]
    if count >= n:
        return x[(slice(None),) * d + (slice(n),)]
    columns = x.transpose(d, -1) @ tensor(np.eye(count, n), x.dtype, x.backend)
    return columns.transpose(d, -1)


def checked(name: str, x: Any, is_complex: bool) -> Any:
    """Return the array. Raise ShapeError unless it has a dim to transform, and pairs if it is complex."""
    require_array(name, x)
    if x.ndim < 1 + is_complex or (is_complex and x.shape[-1] != 2):
        expected = "a last dim of size 2, the real and the imaginary part" if is_complex else "at least 1 dim"
        raise ShapeError(f"{name}: got shape {x.shape}, expected {expected}")
    return x


def fft(x: Any, n: int | None = None, norm: str = "backward") -> Any:
    """Transform real numbers of shape (..., n) to pairs of shape (..., n, 2). n cuts x, or pads it with zeros."""
    x = checked("fft", x, False)
    x = x if n is None else resized(x, n, -1)
    imaginary = tensor(np.array([1.0, 0.0]), x.dtype if x.dtype.is_float else None, x.backend)
    return complex_transform(x[..., None] * imaginary, inverse=False, norm=norm)


def ifft(z: Any, n: int | None = None, norm: str = "backward") -> Any:
    """Transform pairs of shape (..., n, 2) back to pairs."""
    z = checked("ifft", z, True)
    return complex_transform(z if n is None else resized(z, n, -2), inverse=True, norm=norm)


def rfft(x: Any, n: int | None = None, norm: str = "backward") -> Any:
    """Transform real numbers of shape (..., n); return the first n // 2 + 1 of the pairs. The others are conjugates."""
    x = checked("rfft", x, False)
    return real_transform(x if n is None else resized(x, n, -1), norm=norm)


def irfft(z: Any, n: int | None = None, norm: str = "backward") -> Any:
    """Return the n real numbers whose rfft is z. By default, n is even."""
    z = checked("irfft", z, True)
    return to_real_transform(z, n=2 * (z.shape[-2] - 1) if n is None else int(n), norm=norm)


def fftfreq(n: int, d: float = 1.0) -> Any:
    """Return the frequencies of the elements of fft, for samples at a distance of d."""
    return tensor(np.fft.fftfreq(n, d).astype(np.float32))


def rfftfreq(n: int, d: float = 1.0) -> Any:
    """Return the frequencies of the elements of rfft, for samples at a distance of d."""
    return tensor(np.fft.rfftfreq(n, d).astype(np.float32))
