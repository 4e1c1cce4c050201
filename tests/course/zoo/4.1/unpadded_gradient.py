"""the gradient of the input does not know of the padding"""


def conv1d_input_gradient(out, gradient, weight, stride, padding):
    batch, channels, width = out.shape
    out_channels, places, kernel = gradient.shape[1], gradient.shape[2], weight.shape[2]
    for b in range(batch):
        for c in range(channels):
            for i in range(width):
                total = 0.0
                for k in range(kernel):
                    x, rest = divmod(i - k, stride)
                    if rest == 0 and 0 <= x < places:
                        for o in range(out_channels):
                            d = gradient.storage[place(gradient, b, o, x)]
                            total += d * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, c, i)] = total
