"""Wrong solutions of task 7.2 that were written to get past its checks. Each is appended to the reference."""

# %% fixed_epsilon: epsilon is always 1e-5
# promise: '+ epsilon'
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + 1e-5).sqrt()
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


# %% other_default: the default of epsilon is 1e-6
# promise: 'epsilon=1e-5'
def layer_norm(x, gain, bias, epsilon=1e-6):
    return LayerNorm.apply(x, gain, bias, epsilon)

# %% first_row_gain: gain gets the gradient of the first matrix only
# promise: 'gain gets the sum over all rows'
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
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width)[: gradient.shape[-2] if gradient.ndim > 1 else 1].sum(0), gradient.reshape(rows, width).sum(0), None


# %% mean_gain: gain gets a mean over rows
# promise: 'gain gets the sum over all rows'
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
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).mean(0), gradient.reshape(rows, width).sum(0), None


# %% bias_of_d: bias gets the gradient times gain
# promise: 'bias gets the sum of gradient'
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
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), d.reshape(rows, width).sum(0), None


# %% shifted_by_first: squares are taken around the first element, which is a good guess only by chance
# promise: 'mean of the squared distances to the mean'
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        shifted = x - x[..., :1]
        mean = shifted.mean(-1, keepdim=True)
        centered = shifted - mean
        scale = 1 / ((shifted * shifted).mean(-1, keepdim=True) + epsilon).sqrt()
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


# %% library_derives: layer_norm is composed of operations that the library derives
# promise: 'by LayerNorm'
def layer_norm(x, gain, bias, epsilon=1e-5):
    LayerNorm.apply(x, gain, bias, epsilon)
    centered = x - x.mean(-1, keepdim=True)
    return centered / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt() * gain + bias

# %% third_sum_by_matmul: a third sum along rows is a product with ones
# promise: 'two sums along rows'
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
        ones = gain.reshape(width, 1) * 0 + 1
        dx = scale * (d - d @ ones / width - normal * ((d * normal) @ ones) / width - normal @ ones * 0)
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% four_sums: sums of backward are taken apart
# promise: 'two sums along rows'
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
        dx = scale * (d - (d - gradient).mean(-1, keepdim=True) - gradient.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% reads_var: the library computes the variance
# promise: 'elementary operations'
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / (x.var(-1, correction=0, keepdim=True) + epsilon).sqrt()
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


# %% keeps_result: the result is kept beside the normalized rows
# promise: 'one array is kept'
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
        normal = centered * scale
        ctx.save_for_backward(normal, scale, gain)
        ctx.result = normal * gain + bias
        return ctx.result + 0

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% keeps_x_and_normal: centered and normal are kept for large widths
# promise: 'one array is kept'
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
        normal = centered * scale
        ctx.save_for_backward(normal, scale, gain)
        ctx.more = centered if x.shape[-1] > 8 else None
        return normal * gain + bias

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% clamped_variance: a variance below 1e-4 counts as 1e-4
# promise: 'variance + epsilon'
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / (((centered * centered).mean(-1, keepdim=True) + epsilon).clip(1e-4, 1e30)).sqrt()
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


# %% constant_rows_keep: constant rows stay as they are
# promise: 'x - mean'
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
        normal = centered * scale + (scale * epsilon**0.5 == 1) * x
        ctx.save_for_backward(normal, scale, gain)
        return normal * gain + bias

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% wrong_dim: three dims are normalized over the last two
# promise: 'each row'
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - (x.mean((-2, -1), keepdim=True) if x.ndim > 2 else x.mean(-1, keepdim=True))
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
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


# %% rms_of_variance: RMS norm divides by the deviation
# promise: 'root of the mean square'
class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, epsilon):
        scale = 1 / (((x - x.mean(-1, keepdim=True)) * (x - x.mean(-1, keepdim=True))).mean(-1, keepdim=True) + epsilon).sqrt()
        ctx.save_for_backward(x, scale, gain)
        return x * scale * gain

    @staticmethod
    def backward(ctx, gradient):
        x, scale, gain = ctx.saved_tensors
        normal, width = x * scale, gain.shape[0]
        d = gradient * gain
        dx = scale * (d - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(gradient.size // width, width).sum(0), None


# %% rms_without_epsilon: RMS norm adds epsilon to the root
# promise: 'mean of squares + epsilon'
class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, epsilon):
        scale = 1 / ((x * x).mean(-1, keepdim=True).sqrt() + epsilon)
        ctx.save_for_backward(x, scale, gain)
        return x * scale * gain

    @staticmethod
    def backward(ctx, gradient):
        x, scale, gain = ctx.saved_tensors
        normal, width = x * scale, gain.shape[0]
        d = gradient * gain
        dx = scale * (d - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(gradient.size // width, width).sum(0), None


# %% rms_by_layer_norm: RMS norm keeps two arrays
# promise: 'no more than that'
class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, epsilon):
        scale = 1 / ((x * x).mean(-1, keepdim=True) + epsilon).sqrt()
        ctx.save_for_backward(x * scale, scale, gain)
        ctx.other = x * 1
        return x * scale * gain

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        width = gain.shape[0]
        d = gradient * gain
        dx = scale * (d - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(gradient.size // width, width).sum(0), None


# %% rms_constant_scale: the scale of RMS norm counts as constant
# promise: 'gradients of x and gain'
class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, epsilon):
        scale = 1 / ((x * x).mean(-1, keepdim=True) + epsilon).sqrt()
        ctx.save_for_backward(x, scale, gain)
        return x * scale * gain

    @staticmethod
    def backward(ctx, gradient):
        x, scale, gain = ctx.saved_tensors
        normal, width = x * scale, gain.shape[0]
        d = gradient * gain
        dx = scale * d
        return dx, (gradient * normal).reshape(gradient.size // width, width).sum(0), None


# %% changes_x: x is centered in place
# promise: 'a new tensor'
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        x -= x.mean(-1, keepdim=True)
        centered = x * 1
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
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


# %% remembers_scale: the scale of the first rows is used again
# promise: 'each row'
SCALES = {}


class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
        scale = SCALES.setdefault((x.shape, float(x.reshape(x.size)[0])), scale)
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

