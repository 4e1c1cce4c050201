"""Layers and losses that are compared with PyTorch: the same words make them here and there."""

from typing import Any

Settings = dict[str, Any]

ACTIVATIONS: dict[str, tuple[str, Settings]] = {
    "relu": ("ReLU", {}),
    "tanh": ("Tanh", {}),
    "sigmoid": ("Sigmoid", {}),
    "leaky": ("LeakyReLU", {}),
    "leaky steep": ("LeakyReLU", {"negative_slope": 0.3}),
    "gelu": ("GELU", {}),
    "gelu by tanh": ("GELU", {"approximate": "tanh"}),
    "silu": ("SiLU", {}),
    "softplus": ("Softplus", {}),
    "softplus sharp": ("Softplus", {"beta": 2.5}),
    "elu": ("ELU", {}),
    "elu deep": ("ELU", {"alpha": 1.7}),
    "softmax": ("Softmax", {"dim": 1}),
    "softmax columns": ("Softmax", {"dim": -2}),
    "log softmax": ("LogSoftmax", {"dim": 1}),
}
ACTIVATED = (7, 33)

# name: (layer, its arguments, shape of the input)
NORMALIZATIONS: dict[str, tuple[str, tuple[Any, ...], Settings, tuple[int, ...]]] = {
    "features": ("BatchNorm1d", (5,), {}, (7, 5)),
    "channels": ("BatchNorm1d", (3,), {"momentum": 0.4, "eps": 1e-2}, (4, 3, 9)),
    "images": ("BatchNorm2d", (3,), {}, (4, 3, 5, 6)),
    "average": ("BatchNorm2d", (3,), {"momentum": None}, (4, 3, 5, 6)),
    "plain": ("BatchNorm2d", (2,), {"affine": False}, (3, 2, 4, 5)),
    "untracked": ("BatchNorm1d", (5,), {"track_running_stats": False}, (7, 5)),
    "rows": ("LayerNorm", (33,), {}, (2, 3, 33)),
    "planes": ("LayerNorm", ((4, 5),), {"eps": 1e-3}, (3, 2, 4, 5)),
    "unscaled": ("LayerNorm", (6,), {"elementwise_affine": False}, (5, 6)),
    "unshifted": ("LayerNorm", (6,), {"bias": False}, (5, 6)),
}
STEPS = 3

# name: (loss, its arguments, shape of the logits)
CLASSES: dict[str, tuple[str, Settings, tuple[int, ...]]] = {
    "mean": ("CrossEntropyLoss", {}, (9, 5)),
    "sum": ("CrossEntropyLoss", {"reduction": "sum"}, (9, 5)),
    "none": ("CrossEntropyLoss", {"reduction": "none"}, (9, 5)),
    "smooth": ("CrossEntropyLoss", {"label_smoothing": 0.1}, (9, 5)),
    "smooth none": ("CrossEntropyLoss", {"label_smoothing": 0.3, "reduction": "none"}, (9, 5)),
    "all smooth": ("CrossEntropyLoss", {"label_smoothing": 1.0, "reduction": "sum"}, (9, 5)),
    "a class ignored": ("CrossEntropyLoss", {"ignore_index": 2}, (9, 5)),
    "ignored and smooth": ("CrossEntropyLoss", {"ignore_index": 2, "label_smoothing": 0.2}, (9, 5)),
    "ignored none": ("CrossEntropyLoss", {"ignore_index": 2, "label_smoothing": 0.2, "reduction": "none"}, (9, 5)),
    "places": ("CrossEntropyLoss", {}, (3, 5, 4, 2)),
    "places none": ("CrossEntropyLoss", {"reduction": "none", "label_smoothing": 0.1}, (3, 5, 7)),
    "places ignored": ("CrossEntropyLoss", {"ignore_index": 0, "label_smoothing": 0.1}, (3, 5, 4, 2)),
    "nll": ("NLLLoss", {}, (9, 5)),
    "nll ignored": ("NLLLoss", {"ignore_index": 2}, (9, 5)),
    "nll places": ("NLLLoss", {"reduction": "none"}, (3, 5, 4, 2)),
}

# name: (loss, its arguments)
NUMBERS: dict[str, tuple[str, Settings]] = {
    "bce": ("BCEWithLogitsLoss", {}),
    "bce sum": ("BCEWithLogitsLoss", {"reduction": "sum"}),
    "bce none": ("BCEWithLogitsLoss", {"reduction": "none"}),
    "bce weighted": ("BCEWithLogitsLoss", {"pos_weight": [0.5, 2.0, 1.0, 3.0, 0.1]}),
    "mse": ("MSELoss", {}),
    "mse sum": ("MSELoss", {"reduction": "sum"}),
    "l1": ("L1Loss", {}),
    "l1 none": ("L1Loss", {"reduction": "none"}),
    "huber": ("HuberLoss", {}),
    "huber wide": ("HuberLoss", {"delta": 1.7, "reduction": "sum"}),
    "smooth l1": ("SmoothL1Loss", {}),
    "smooth l1 narrow": ("SmoothL1Loss", {"beta": 0.3, "reduction": "none"}),
    "smooth l1 sharp": ("SmoothL1Loss", {"beta": 0.0}),
}
COMPARED = (11, 5)
