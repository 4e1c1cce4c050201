"""the stride is left out"""


def conv1d(out, inputs, weight, stride, padding):
    batch, channels, width = inputs.shape
    out_channels, places, kernel = out.shape[1], out.shape[2], weight.shape[2]
    for b in range(batch):
        for o in range(out_channels):
            for x in range(places):
                first = x - padding
                total = 0.0
                for c in range(channels):
                    for k in range(max(-first, 0), min(width - first, kernel)):
                        value = inputs.storage[place(inputs, b, c, first + k)]
                        total += value * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total
