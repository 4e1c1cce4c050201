"""Convolutions and poolings that are recorded by PyTorch, and compared with what minifuse gives.

All sizes differ from each other. Among them are strides that leave a rest, kernels as large as the image, padding wider than
a window reaches, groups of one channel, batches of one example and of none.
"""

from typing import Any

Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]

# The shapes of x and of the weight, and the settings; odd ones have no bias.
CONVOLUTIONS: dict[str, Case] = {
    "1d": ((3, 4, 9), (5, 4, 2), {}),
    "1d same": ((2, 3, 8), (6, 3, 5), {"padding": "same", "dilation": 1}),
    "1d stride": ((2, 3, 11), (4, 3, 3), {"stride": 4, "padding": 1}),
    "1d apart": ((2, 3, 10), (4, 3, 3), {"stride": 3}),
    "1d wide padding": ((2, 3, 5), (4, 3, 2), {"padding": 4}),
    "2d": ((3, 2, 7, 6), (5, 2, 3, 2), {}),
    "2d padding": ((3, 2, 7, 6), (4, 2, 3, 5), {"padding": (1, 2)}),
    "2d same": ((2, 3, 5, 7), (4, 3, 3, 5), {"padding": "same"}),
    "2d same dilated": ((2, 1, 7, 8), (3, 1, 2, 3), {"padding": "same", "dilation": (3, 2)}),
    "2d stride": ((2, 3, 8, 9), (4, 3, 3, 2), {"stride": (2, 3), "padding": (1, 0)}),
    "2d stride dilated": ((2, 3, 9, 8), (4, 3, 2, 3), {"stride": 2, "dilation": (3, 2), "padding": 1}),
    "2d many kernels": ((2, 1, 5, 6), (13, 1, 3, 3), {"padding": 1}),
    "2d groups": ((2, 6, 5, 6), (4, 3, 2, 3), {"groups": 2, "padding": 1}),
    "2d groups stride": ((2, 6, 7, 6), (9, 2, 3, 3), {"groups": 3, "stride": 2}),
    "2d depthwise": ((3, 5, 6, 4), (10, 1, 3, 2), {"groups": 5, "padding": (2, 1)}),
    "2d one by one": ((2, 3, 4, 5), (6, 3, 1, 1), {}),
    "2d one by one stride": ((2, 3, 4, 5), (6, 3, 1, 1), {"stride": (3, 2)}),
    "2d whole image": ((4, 3, 5, 6), (7, 3, 5, 6), {}),
    "2d whole height": ((4, 3, 5, 6), (2, 3, 5, 1), {}),
    "2d one example": ((1, 3, 6, 5), (4, 3, 3, 2), {"padding": 1}),
    "2d no example": ((0, 3, 6, 5), (4, 3, 3, 2), {"padding": 1}),
}

# The function, the shape of x, and the settings. x is rounded, so that elements of a window are equal.
POOLINGS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "max beside": ("max_pool2d", (3, 2, 6, 8), {"kernel_size": 2}),
    "max rest": ("max_pool2d", (3, 2, 7, 8), {"kernel_size": (2, 3)}),
    "max overlapping": ("max_pool2d", (3, 2, 7, 8), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "max dilated": ("max_pool2d", (3, 2, 7, 9), {"kernel_size": (2, 3), "stride": 1, "dilation": (3, 2), "padding": (1, 0)}),
    "max ceil": ("max_pool2d", (3, 2, 7, 8), {"kernel_size": 3, "stride": (2, 3), "ceil_mode": True}),
    "max ceil left out": ("max_pool2d", (2, 3, 5, 7), {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True}),
    "max 1d": ("max_pool1d", (3, 4, 11), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "max no example": ("max_pool2d", (0, 2, 6, 8), {"kernel_size": 2}),
    "mean beside": ("avg_pool2d", (3, 2, 6, 8), {"kernel_size": (2, 4)}),
    "mean overlapping": ("avg_pool2d", (3, 2, 7, 8), {"kernel_size": (3, 2), "stride": (2, 1), "padding": 1}),
    "mean of what is there": (
        "avg_pool2d",
        (3, 2, 7, 8),
        {"kernel_size": (3, 4), "stride": (2, 3), "padding": (1, 2), "count_include_pad": False},
    ),
    "mean 1d": ("avg_pool1d", (3, 4, 11), {"kernel_size": 4, "stride": 3, "padding": 2}),
    "adaptive divided": ("adaptive_avg_pool2d", (3, 2, 6, 8), {"output_size": (3, 4)}),
    "adaptive": ("adaptive_avg_pool2d", (3, 2, 7, 5), {"output_size": (3, 4)}),
    "adaptive larger": ("adaptive_avg_pool2d", (3, 2, 3, 5), {"output_size": (7, None)}),
    "adaptive one": ("adaptive_avg_pool2d", (3, 2, 4, 5), {"output_size": 1}),
    "adaptive 1d": ("adaptive_avg_pool1d", (3, 4, 11), {"output_size": 4}),
}
