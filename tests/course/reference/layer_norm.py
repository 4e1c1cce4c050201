"""Module 7: layer norm and RMS norm, with derivatives of their own.

Tensors are those of the library, `mf.Tensor`. Write with elementary operations: `+ - * /`, `x.sqrt()`,
`x.mean(-1, keepdim=True)`, `x.sum(0)`, `x.reshape(...)`.
"""

from minifuse.course import todo
from minifuse.course.elementary import Function

# Task 7.2


class LayerNorm(Function):
    """Rows of mean 0 and variance 1, times gain, plus bias: `LayerNorm.apply(x, gain, bias, epsilon)`."""

    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        """Return the normalized rows; they are along the last dim. Save what backward needs."""
        # begin 7.2a
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
        normal = centered * scale
        ctx.save_for_backward(normal, scale, gain)
        return normal * gain + bias
        # end

    @staticmethod
    def backward(ctx, gradient):
        """Return the gradients of x, gain and bias, and None for epsilon."""
        # begin 7.2b
        normal, scale, gain = ctx.saved_tensors
        width = gain.shape[0]
        rows = gradient.size // width
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None
        # end


def layer_norm(x, gain, bias, epsilon=1e-5):
    """Return (x - mean) / sqrt(variance + epsilon) * gain + bias, by `LayerNorm`.

    Mean and variance are those of each row of x (..., width); gain and bias have the shape (width,). The variance is the
    mean of the squared distances to the mean.
    """
    # begin 7.2c
    return LayerNorm.apply(x, gain, bias, epsilon)
    # end


class RMSNorm(Function):
    """Rows of mean square 1, times gain: `RMSNorm.apply(x, gain, epsilon)`."""

    @staticmethod
    def forward(ctx, x, gain, epsilon):
        """Return the normalized rows. Save what backward needs."""
        # begin 7.2d
        scale = 1 / ((x * x).mean(-1, keepdim=True) + epsilon).sqrt()
        ctx.save_for_backward(x, scale, gain)
        return x * scale * gain
        # end

    @staticmethod
    def backward(ctx, gradient):
        """Return the gradients of x and gain, and None for epsilon."""
        # begin 7.2e
        x, scale, gain = ctx.saved_tensors
        normal, width = x * scale, gain.shape[0]
        d = gradient * gain
        dx = scale * (d - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(gradient.size // width, width).sum(0), None
        # end


def rms_norm(x, gain, epsilon=1e-5):
    """Return x / sqrt(mean of squares + epsilon) * gain, by `RMSNorm`."""
    # begin 7.2f
    return RMSNorm.apply(x, gain, epsilon)
    # end
