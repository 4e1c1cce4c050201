"""The patterns of einops on tensors, by its functions for the array API: eager, fused and with gradients."""

import numpy as np
from einops import array_api as einops

import minifuse as mf


def patches(images):
    """Cut images into patches of 2 x 2, and average the patches of each color."""
    parts = einops.rearrange(images, "n c (h p) (w q) -> n (h w) (p q c)", p=2, q=2)
    return einops.reduce(parts, "n k (p c) -> n c", "mean", c=3)


def main():
    """Compare with NumPy's arrays."""
    array = np.random.default_rng(0).normal(size=(2, 3, 4, 6))
    x = mf.tensor(array, requires_grad=True)
    for function in (patches, mf.fuse(patches)):
        y = function(x)
        assert isinstance(y, mf.Tensor)
        np.testing.assert_allclose(y.detach().numpy(), array.mean((2, 3)))
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full(array.shape, 1 / 24))
    tiled = einops.repeat(x.detach(), "n c h w -> n c h (w k)", k=2)
    np.testing.assert_array_equal(tiled.numpy(), array.repeat(2, -1))
    packed, shapes = einops.pack([x.detach(), tiled], "n c *")
    for part, whole in zip(einops.unpack(packed, shapes, "n c *"), (x.detach(), tiled), strict=True):
        np.testing.assert_array_equal(part.numpy(), whole.numpy())


if __name__ == "__main__":
    main()
