"""nn.summary: rows and totals, and a model that is unchanged afterwards."""

import pytest

import minifuse as mf
from minifuse import nn
from minifuse.core.errors import DTypeError, ShapeError


class Twice(nn.Module):
    """One layer that is called twice, one never, a weight that two layers share, and several outputs."""

    def __init__(self):
        self.shared, self.unused = nn.Linear(4, 4), nn.ReLU()
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.shared.weight
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.scale = nn.Parameter(mf.ones(4), requires_grad=False)

    def forward(self, x, factor=1):
        x = self.drop(self.norm(self.shared(self.shared(x))))
        return {"y": self.tied(x) * self.scale, "pair": (x, x.sum() * factor)}


def test_rows_and_totals():
    model = Twice()
    found = nn.summary(model, (3, 4), 2)
    assert [(row.name, row.layer, row.outputs, row.calls, row.parameters) for row in found.layers] == [
        ("", "Twice", ((3, 4), (3, 4), ()), 1, 4),
        ("shared", "Linear", ((3, 4),), 2, 20),
        ("unused", "ReLU", (), 0, 0),
        ("tied", "Linear", ((3, 4),), 1, 4),
        ("norm", "BatchNorm1d", ((3, 4),), 1, 8),
        ("drop", "Dropout", ((3, 4),), 1, 0),
    ]
    assert (found.parameters, found.learned) == (36, 32)
    assert found.parameters == sum(row.parameters for row in found.layers)
    assert found.nbytes == 36 * 4 + 8 * 4 + 8  # running statistics of float32, a count of int64
    assert found.output_nbytes == 5 * 3 * 4 * 4


def test_the_table():
    text = str(nn.summary(Twice(), (3, 4)))
    assert text.splitlines() == [
        "name    layer        output              parameters",
        "-" * 51,
        "        Twice        (3, 4), (3, 4), ()           4",
        "shared  Linear       (3, 4) x 2                  20",
        "unused  ReLU",
        "tied    Linear       (3, 4)                       4",
        "norm    BatchNorm1d  (3, 4)                       8",
        "drop    Dropout      (3, 4)",
        "-" * 51,
        "36 parameters, 32 of them learned",
        "184 B of parameters and buffers, 240 B of outputs",
    ]


def test_a_table_fits_80_columns_and_names_keep_their_ends():
    class ALayerWithQuiteALongNameThatSomebodyChose(nn.Linear):
        pass

    name = "the_name_of_this_attribute_is_not_short_at_all"
    model = nn.ModuleDict({name: nn.Sequential(ALayerWithQuiteALongNameThatSomebodyChose(3, 2))})
    model.forward = model[name]
    lines = str(nn.summary(model, (12345, 3))).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[4].startswith("…")
    assert ".0  " in lines[4]
    assert "(12345, 2)" in lines[4]
    assert list(vars(model)) == [name, "forward"]  # it had one of its own


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("x", [(3, 4), (3, 5)], ids=["fits", "fails"])
def test_the_model_is_unchanged_afterwards(x, is_training):
    model = Twice().train(is_training)
    model.drop.train(not is_training)
    del vars(model.unused)["training"]  # set on the class only
    before = {id(module): dict(vars(module)) for module in model.modules()}
    state = {name: y.tolist() for name, y in model.state_dict().items()}
    mf.manual_seed(3)
    number = mf.rand(1).item()
    mf.manual_seed(3)
    if x == (3, 5):
        with pytest.raises(ShapeError, match="last dim must be in_features=4"):
            nn.summary(model, x)
    else:
        nn.summary(model, x)
    assert {id(module): dict(vars(module)) for module in model.modules()} == before
    assert {name: y.tolist() for name, y in model.state_dict().items()} == state
    assert mf.rand(1).item() == number
    assert not any(p.grad for p in model.parameters())


def test_inputs_are_shapes_or_tensors():
    class Pick(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(mf.ones(5, dtype="float64", backend="python"))

        def forward(self, x, index, name):
            assert (x.dtype, x.backend, name) == (mf.float64, "python", "a name")
            return x[index.item()] * self.weight

    found = nn.summary(Pick(), (2, 5), mf.tensor(1), "a name")
    assert found.layers[0].outputs == ((5,),)
    assert nn.summary(nn.ReLU(), (2, 3)).layers[0].outputs == ((2, 3),)
    assert nn.summary(nn.ReLU(), ()).layers[0].outputs == ((),)
    with pytest.raises(DTypeError, match=r"summary: got function, expected an nn.Module"):
        nn.summary(lambda x: x, (1,))


def test_a_fused_step_runs_on_as_before():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    run = mf.fuse(lambda x: model(x))
    run(mf.ones(5, 4))
    nn.summary(model, (5, 4))
    run(mf.ones(5, 4))
    assert run.stats().calls == 1
    assert model[1].num_batches_tracked.item() == 2


def test_a_model_with_a_fused_forward():
    class Fused(nn.Module):
        def __init__(self):
            self.inner = nn.Linear(4, 3)

        @mf.fuse
        def forward(self, x):
            return self.inner(x).relu()

    model = Fused()
    assert [row.outputs for row in nn.summary(model, (5, 4)).layers] == [((5, 3),), ((5, 3),)]
    assert model(mf.ones(5, 4)).shape == (5, 3)


def test_a_summary_adds_no_hooks():
    """A summary wraps the `forward` of modules while it runs."""
    model = nn.Linear(2, 2)
    nn.summary(model, (1, 2))
    assert model._hooks is None
    assert "forward" not in vars(model)
