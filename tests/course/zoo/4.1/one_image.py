"""the gradient of the weight is that of one image"""


def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    batch, _, width = inputs.shape
    out_channels, channels, kernel = out.shape
    for o in range(out_channels):
        for c in range(channels):
            for k in range(kernel):
                for b in range(batch):
                    total = 0.0
                    for x in range(gradient.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            d = gradient.storage[place(gradient, b, o, x)]
                            total += d * inputs.storage[place(inputs, b, c, i)]
                out.storage[place(out, o, c, k)] = total
