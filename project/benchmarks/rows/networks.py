"""Training steps of the recipes' models, beside eager torch and torch.compile: same model, weights, batch and optimizer.

A step is the loss, its gradients, clipping if the recipe clips, and the update. minifuse runs as in its recipes, one fused
function per step, and also unfused. The losses of the first steps are compared with torch's in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import minifuse as mf
from minifuse.recipes.gpt import GPT
from minifuse.recipes.gpt import RECIPE as SONNETS
from minifuse.recipes.lenet import RECIPE as LENET
from minifuse.recipes.mlp import RECIPE as MLP
from minifuse.training import Data, Recipe
from minifuse.training.trainer import make_step

from ..fused import EAGER
from ..gpu import BACKEND, GpuBench
from ..peers import library
from ..row import US, Bench, Contest, Player, Row, speed

GROUP, GPU_GROUP = "networks", "gpu-networks"
CHECKED_STEPS = 3  # first steps whose losses are compared
TOLERANCE = 1e-3  # of losses; each step starts from the rounded weights of the previous step
LETTERS = 59  # size of the vocabulary


@dataclass(frozen=True)
class Case:
    """A model with its sizes, inputs and targets."""

    title: str
    recipe: Recipe
    options: dict[str, Any]
    batch: int
    steps: int
    """The number of steps in one timed call."""


CASES = (
    Case("mlp 64-128-10, an epoch of 22 batches of 64", MLP, {"hidden": 128}, 64, 22),
    Case("lenet 8 and 16 channels, an epoch of 22 batches of 64", LENET, {"channels": 8, "hidden": 64}, 64, 22),
    Case(
        "gpt of 2 layers, 64 wide, context 64, batch 32: a step",
        SONNETS,
        {"context": 64, "layers": 2, "heads": 4, "width": 64, "dropout": 0.0},
        32,
        1,
    ),
)
GPU_CASES = (
    CASES[0],
    CASES[1],
    Case(
        "gpt of 4 layers, 256 wide, context 256, batch 64: a step",
        SONNETS,
        {"context": 256, "layers": 4, "heads": 4, "width": 256, "dropout": 0.0},
        64,
        1,
    ),
)


def make_batches(case: Case, bench: Bench) -> tuple[Any, Any]:
    """Return (steps, N, ...) inputs and (steps, N, ...) targets, as arrays."""
    steps, batch = (2, 8) if bench.is_quick else (case.steps, case.batch)
    if case.recipe is SONNETS:
        shape = steps, batch, case.options["context"]
        return bench.rng.integers(0, LETTERS, shape), bench.rng.integers(0, LETTERS, shape)
    x, y = (tensor.numpy() for tensor in mf.data.digits(case.recipe is LENET, "parallel"))
    rows = bench.rng.permutation(len(x))[: steps * batch].reshape(steps, batch)
    x = x[:, None] if case.recipe is LENET else x
    return x[rows], y[rows]


def our_model(case: Case) -> Any:
    """Return the model in minifuse, with initial weights."""
    settings = case.recipe.settings.changed({"options": case.options, "batch": case.batch})
    if case.recipe is SONNETS:
        return GPT(LETTERS, *(settings[name] for name in ("context", "layers", "heads", "width", "dropout")))
    return case.recipe.model(settings, Data(None, ()))  # type: ignore[arg-type]  # these models need no data


def torch_model(case: Case, state: dict[str, Any], torch: Any, dtype: Any, device: str) -> Any:
    """Return the model in torch, with the weights in `state`."""
    nn, options = torch.nn, case.options
    if case.recipe is MLP:
        model = nn.Sequential(nn.Linear(64, options["hidden"]), nn.ReLU(), nn.Linear(options["hidden"], 10))
    elif case.recipe is LENET:
        channels, hidden = options["channels"], options["hidden"]
        model = nn.Sequential(
            *(nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(8 * channels, hidden), nn.ReLU(), nn.Linear(hidden, 10)),
        )
    else:
        model = torch_gpt(torch, options)
    model.load_state_dict({name: torch.tensor(np.asarray(x)) for name, x in state.items()})
    return model.to(device, dtype)


def torch_gpt(torch: Any, options: dict[str, Any]) -> Any:
    """Return the GPT in torch, with the same parameter names."""
    nn, width, heads = torch.nn, options["width"], options["heads"]

    class Attention(nn.Module):  # type: ignore[misc]
        """Fast attention: one product for queries, keys and values, and `scaled_dot_product_attention`."""

        def __init__(self) -> None:
            super().__init__()
            self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
            self.in_proj_bias = nn.Parameter(torch.empty(3 * width))
            self.out_proj = nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            n, t, _ = x.shape
            parts = nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, 2)
            q, k, v = (part.view(n, t, heads, width // heads).transpose(1, 2) for part in parts)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out_proj(y.transpose(1, 2).reshape(n, t, width))

    class Block(nn.Module):  # type: ignore[misc]
        """The equivalent of `minifuse.recipes.gpt.Block`."""

        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention()
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):  # type: ignore[misc]
        """The equivalent of `minifuse.recipes.gpt.GPT`."""

        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(LETTERS, width), nn.Embedding(options["context"], width)
            self.blocks = nn.ModuleList([Block() for _ in range(options["layers"])])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, LETTERS, bias=False)

        def forward(self, index: Any) -> Any:
            x = self.tokens(index) + self.places.weight[: index.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x)).flatten(0, 1)

    return Model()


def optimizer_of(case: Case, parameters: Any, optim: Any) -> Any:
    """Return the optimizer of a recipe, in minifuse or torch, with a fixed learning rate."""
    rate = case.recipe.settings.rate
    if case.recipe is SONNETS:
        return optim.AdamW(list(parameters), lr=rate, betas=(0.9, 0.99), weight_decay=0.1)
    return optim.SGD(list(parameters), lr=rate, momentum=0.9, weight_decay=1e-3)


def torch_step(case: Case, torch: Any, model: Any) -> Callable[..., Any]:
    """Return a training step in torch that does the same as `make_step`."""
    optimizer = optimizer_of(case, model.parameters(), torch.optim)

    def step(x: Any, y: Any) -> Any:
        loss = torch.nn.functional.cross_entropy(model(x), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        if case.recipe.max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), case.recipe.max_norm)
        optimizer.step()
        return loss.detach()

    return step


def contest_setup(case: Case) -> Callable[[Bench], Contest]:
    """Return the setup of several steps from the same weights. The result is the losses of the first CHECKED_STEPS steps."""

    def setup(bench: Bench) -> Contest:
        is_on_gpu = isinstance(bench, GpuBench)
        x, y = make_batches(case, bench)
        state = {name: np.array(p.numpy()) for name, p in our_model(case).state_dict().items()}
        torch_device = "cuda" if is_on_gpu else "cpu"

        def minifuse(is_fused: bool) -> Callable[..., Any]:
            model = our_model(case)
            model.load_state_dict(state)
            model.to(backend=BACKEND if is_on_gpu else "parallel")
            step = make_step(case.recipe, model, optimizer_of(case, model.parameters(), mf.optim))
            return mf.fuse(step) if is_fused else step

        def in_torch(is_compiled: bool, dtype: Any = None, device: str = torch_device) -> Callable[..., Any]:
            torch: Any = bench.module("torch")
            model = torch_model(case, state, torch, dtype or torch.float32, device)
            return torch_step(case, torch, torch.compile(model) if is_compiled else model)

        def player(who: str, step: Callable[..., Any]) -> Player:
            data = convert_batches(bench, who, x, y)
            first_losses: list[float] = []

            def play() -> Any:
                losses = [step(*batch) for batch in data]
                if not first_losses:
                    checked = (
                        [losses[0], *[step(*data[0]) for _ in range(CHECKED_STEPS - 1)]]
                        if len(data) == 1
                        else losses[:CHECKED_STEPS]
                    )
                    first_losses.extend(float(loss.item()) for loss in checked)
                bench.settle()
                return mf.tensor(first_losses, backend="parallel")

            return play

        makers: dict[str, Callable[[], Callable[..., Any]]] = {US: lambda: minifuse(True), EAGER: lambda: minifuse(False)}
        if "torch" in bench.peers:
            makers["torch"] = lambda: in_torch(False)
        if "torch.compile" in bench.peers:
            makers["torch.compile"] = lambda: in_torch(True)
        players = {who: player(who, make()) for who, make in makers.items()}
        exact = None
        if {"torch", "torch.compile"} & set(bench.peers):
            torch: Any = bench.module("torch")
            step = in_torch(False, torch.float64, "cpu")
            inputs = x if x.dtype == np.int64 else x.astype(np.float64)
            batches = [0] * CHECKED_STEPS if len(x) == 1 else range(min(CHECKED_STEPS, len(x)))
            exact = np.array([float(step(torch.tensor(inputs[k]), torch.tensor(y[k])).item()) for k in batches])
        return Contest(players, exact, tolerance=TOLERANCE, rests=not is_on_gpu)

    return setup


def convert_batches(bench: Bench, who: str, x: Any, y: Any) -> list[tuple[Any, Any]]:
    """Return batches as a player's tensors."""
    pairs = [(np.ascontiguousarray(a), np.ascontiguousarray(b)) for a, b in zip(x, y, strict=True)]
    if library(who) == "torch":
        torch: Any = bench.module(who)
        device = "cuda" if isinstance(bench, GpuBench) else "cpu"
        return [(torch.tensor(a, device=device), torch.tensor(b, device=device)) for a, b in pairs]
    backend = BACKEND if isinstance(bench, GpuBench) else "parallel"
    return [(mf.tensor(a, backend=backend), mf.tensor(b, backend=backend)) for a, b in pairs]


ROWS = [Row(case.title, GROUP, contest_setup(case), (speed("torch", 1), speed("torch.compile", 1))) for case in CASES]
GPU_ROWS = [
    Row(GPU_CASES[0].title, GPU_GROUP, contest_setup(GPU_CASES[0]), (speed("torch", 1), speed("torch.compile", 1))),
    Row(GPU_CASES[1].title, GPU_GROUP, contest_setup(GPU_CASES[1]), (speed("torch", 1),)),
    Row(GPU_CASES[2].title, GPU_GROUP, contest_setup(GPU_CASES[2]), (speed("torch", 0.67),)),
]
