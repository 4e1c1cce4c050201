"""Wrong solutions of task 7.2, one a cell: `# %% name: the mistake that the check must name`."""


# %% corrected: the variance divides by the width less 1
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).sum(-1, keepdim=True) / (x.shape[-1] - 1) + epsilon).sqrt()
        normal = centered * scale
        ctx.save_for_backward(normal, scale, gain)
        return normal * gain + bias

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% outside: epsilon is added to the root
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True).sqrt() + epsilon)
        normal = centered * scale
        ctx.save_for_backward(normal, scale, gain)
        return normal * gain + bias

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% constants: mean and variance are taken for constants
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
        normal = centered * scale
        ctx.save_for_backward(normal, scale, gain)
        return normal * gain + bias

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient * gain
        dx = scale * d
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% no_variance: the derivative leaves out the variance
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
        normal = centered * scale
        ctx.save_for_backward(normal, scale, gain)
        return normal * gain + bias

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% no_gain: the gradient is not multiplied with gain
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
        normal = centered * scale
        ctx.save_for_backward(normal, scale, gain)
        return normal * gain + bias

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% centered_rms: the mean is subtracted in RMS norm
class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, epsilon):
        x = x - x.mean(-1, keepdim=True)
        scale = 1 / ((x * x).mean(-1, keepdim=True) + epsilon).sqrt()
        ctx.save_for_backward(x, scale, gain)
        return x * scale * gain

    @staticmethod
    def backward(ctx, gradient):
        x, scale, gain = ctx.saved_tensors
        normal, width = x * scale, gain.shape[0]
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(gradient.size // width, width).sum(0), None


# %% one_pass: the variance is the difference of two large numbers
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        mean = x.mean(-1, keepdim=True)
        scale = 1 / ((x * x).mean(-1, keepdim=True) - mean * mean + epsilon).sqrt()
        normal = (x - mean) * scale
        ctx.save_for_backward(normal, scale, gain)
        return normal * gain + bias

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% one_row: x of one dim is not taken for a row
class LayerNorm(LayerNorm):
    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        dims = tuple(range(max(gradient.ndim - 1, 1)))
        return dx, (gradient * normal).sum(dims), gradient.sum(dims), None


# %% computes_again: backward takes more sums than it needs
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
        normal = centered * scale
        ctx.save_for_backward(x, gain)
        ctx.epsilon = epsilon
        return normal * gain + bias

    @staticmethod
    def backward(ctx, gradient):
        x, gain = ctx.saved_tensors
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + ctx.epsilon).sqrt()
        normal = centered * scale
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% keeps_two: more is kept than one array
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
        normal = centered * scale
        ctx.save_for_backward(normal, centered, scale, gain)
        return normal * gain + bias

    @staticmethod
    def backward(ctx, gradient):
        normal, _, scale, gain = ctx.saved_tensors
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None
