"""`minifuse race` and `minifuse train` call the functions that the pages of the app call."""

import json
import shlex

import pytest

pytest.importorskip("typer", reason="needs minifuse[cli]")

from typer.testing import CliRunner

from minifuse.cli import simulation
from minifuse.cli.commands import app
from minifuse.recipes import MODULES
from project.views import race, train
from project.views.training import command

SETTINGS = [
    train.Settings(),
    train.Settings("split", hidden=5, activation="Tanh", optimizer="Adam", rate=0.03, batch=7, count=40, seed=3),
    train.Settings("spiral", backend="python", hidden=2, count=24),
]


def invoke(*arguments):
    return CliRunner().invoke(app, list(arguments))


def told(line):
    name, *arguments = shlex.split(line)
    assert name == "minifuse"
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: s.data)
def test_the_line_of_a_run_trains_the_same(settings):
    found = told(command(settings, 3))
    run = train.begin(settings)
    while train.advance(run, 3):
        pass
    assert found["losses"] == run.losses
    assert found["sentence"] == train.sentence(run)
    facts = {row["fact"]: row["value"] for row in found["facts"]}
    expected = {fact.name: fact.value for fact in train.facts(run)}
    assert facts.keys() == expected.keys()
    del facts["time of a step"], expected["time of a step"]  # measured anew
    assert facts == expected


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["train", "cats"], ["'cats'", "circle", "digits"]),
        (["train", "gptt"], ["'gptt'", "a recipe (mlp, lenet, sentences, gpt) or a data set (simple", "did you mean gpt?"]),
        (["train", "xor", "--optimizer", "Sgd"], ["--optimizer 'Sgd'", "SGD with momentum"]),
        (["train", "xor", "--backend", "tpu"], ["tpu", "parallel"]),
        (["race", "a * b"], ["'a * b'", "a + b"]),
        (["race", "a + b", "--players", "torch"], ["torch", "NumPy"]),
    ],
)
def test_an_invalid_request_names_a_valid_one(arguments, parts):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert all(part in result.stderr for part in parts), result.stderr


@pytest.mark.parametrize("arguments", [["xor"], ["mlp", "--out", "run"]])
def test_training_in_the_interpreter_warns_first(arguments, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(simulation, "is_simulated", lambda backend: True)
    result = invoke("train", *arguments, "--epochs", "1")
    assert "lane by lane in the interpreter, thousands of times slower than a GPU. Leave out --backend" in result.stderr


def test_help_of_train_lists_the_recipes_and_the_data():
    out = " ".join(invoke("train", "--help").stdout.replace("\u2502", "").split())
    assert f"A recipe ({', '.join(MODULES)}) or data: {', '.join(train.SETS)}." in out


def test_a_race_prints_every_backend_and_its_command():
    found = told("minifuse race 'a + b' --players NumPy,parallel")
    assert {row["who"] for row in found["times"]} == {"NumPy", "parallel"}
    assert all(row["us"] > 0 for row in found["times"])
    assert {row["elements"] for row in found["times"]} <= {1 << k for k in race.SIZES}
    ran = race.Race("a + b", (), ("NumPy", "parallel"), "", "", 0.1)
    assert race.command(ran) == "minifuse race 'a + b' --players NumPy,parallel"
    assert race.command(ran, has_roof=True).endswith("--roof")


def test_both_fit_a_terminal():
    for arguments in (["train", "xor", "--epochs", "2"], ["race", "x.sum()"]):
        result = invoke(*arguments)
        assert result.exit_code == 0
        assert max(map(len, result.stdout.splitlines())) <= 80
