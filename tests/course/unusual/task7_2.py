"""Right solutions of task 7.2 that are written in unusual ways. Each is appended to the reference."""

# %% keeps_x: x, mean and scale are kept, and rows are normalized again in backward
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        mean = x.mean(-1, keepdim=True)
        centered = x - mean
        scale = 1 / ((centered * centered).mean(-1, keepdim=True) + epsilon).sqrt()
        normal = centered * scale
        ctx.save_for_backward(x, mean, scale, gain)
        return normal * gain + bias

    @staticmethod
    def backward(ctx, gradient):
        x, mean, scale, gain = ctx.saved_tensors
        normal = (x - mean) * scale
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% sums: sums in place of means, and a power in place of a root
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, bias, epsilon):
        width = x.shape[-1]
        centered = x - x.sum(-1).reshape(*x.shape[:-1], 1) / width
        scale = ((centered**2).sum(-1, keepdim=True) / width + epsilon) ** -0.5
        normal = centered * scale
        ctx.save_for_backward(normal, scale, gain)
        return normal * gain + bias

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        width, rows = gain.shape[0], gradient.size // gain.shape[0]
        d = gradient * gain
        dx = scale / width * (width * d - d.sum(-1, keepdim=True) - normal * (d * normal).sum(-1, keepdim=True))
        return dx, (gradient * normal).reshape(rows, width).sum(0), gradient.reshape(rows, width).sum(0), None


# %% rms_of_normal: RMS norm keeps the normalized rows, and sums over dims in front
class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, epsilon):
        scale = 1 / ((x * x).mean(-1, keepdim=True) + epsilon).sqrt()
        normal = x * scale
        ctx.normal, ctx.scale, ctx.gain = normal, scale, gain
        return normal * gain

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.normal, ctx.scale, ctx.gain
        front = tuple(range(gradient.ndim - 1))
        d = gradient * gain
        dx = scale * (d - normal * (d * normal).mean(-1, keepdim=True))
        return dx, (gradient * normal).sum(front) if front else gradient * normal, None


# %% one_dim_at_a_time: the sums over rows take one leading dim after the other
class LayerNorm(LayerNorm):
    @staticmethod
    def backward(ctx, gradient):
        normal, scale, gain = ctx.saved_tensors
        d = gradient * gain
        dx = scale * (d - d.mean(-1, keepdim=True) - normal * (d * normal).mean(-1, keepdim=True))
        dgain, dbias = gradient * normal, gradient
        for _ in range(gradient.ndim - 1):
            dgain, dbias = dgain.sum(0), dbias.sum(0)
        return dx, dgain, dbias, None
