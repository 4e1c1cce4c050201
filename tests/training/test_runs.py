"""A run can be stopped anywhere and goes on with the very numbers of one that never was; what goes wrong is told."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import CheckpointError, TrainingError
from minifuse.training import BadLoss, Data, RunFolder, Trainer, fit, resume
from minifuse.training.run_folder import CHECKPOINT, CONFIG, CURVES, LOG
from tests.training.small import RECIPE, Small, held_out, losses

SETTINGS = RECIPE.settings


def begin(path, settings=SETTINGS, recipe=RECIPE):
    return Trainer(recipe, settings), RunFolder.create(path, recipe.name, settings.as_dict())


def trained(path, settings=SETTINGS, recipe=RECIPE, stop=None):
    trainer, folder = begin(path, settings, recipe)
    is_done = fit(trainer, folder, lambda told, numbers: stop is not None and trainer.done >= stop)
    return trainer, folder, is_done


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    trainer, folder, is_done = trained(tmp_path_factory.mktemp("run") / "whole")
    assert is_done
    return trainer, list(folder.lines())


def test_a_run_learns_and_its_folder_records_it(unbroken, tmp_path):
    trainer, lines = unbroken
    found = losses(lines)
    assert list(found) == list(range(1, 19))
    assert min(found.values()) < 0.5 * found[1]
    assert list(held_out(lines)) == list(range(1, 19))  # twenty looks, or as many as there are steps
    assert held_out(lines)[18] == trainer.measure()
    rates = [line["rate"] for line in lines if "loss" in line]
    assert rates[0] < max(rates) == rates[3] > rates[-1] > 0


@pytest.mark.parametrize("stop", [1, 5, 6, 7, 17])
def test_a_run_that_was_stopped_goes_on_with_the_same_numbers(unbroken, tmp_path, stop):
    _, folder, is_done = trained(tmp_path / "run", stop=stop)
    assert not is_done
    assert max(losses(folder.lines())) == stop
    other = Trainer(RECIPE, SETTINGS.changed(folder.config()["settings"]))
    resume(other, RunFolder(folder.path))
    assert other.done == stop
    assert fit(other, RunFolder(folder.path))
    assert losses(folder.lines()) == losses(unbroken[1])
    assert held_out(folder.lines()) == held_out(unbroken[1])
    for (name, x), (_, y) in zip(other.model.named_parameters(), unbroken[0].model.named_parameters(), strict=True):
        assert np.array_equal(x.numpy(), y.numpy()), name


def test_steps_after_the_checkpoint_are_repeated_and_logged_once(unbroken, tmp_path):
    _, folder, _ = trained(tmp_path / "run", stop=7)
    with (folder.path / LOG).open("a") as file:  # killed later than its checkpoint, in the middle of a line
        file.write(json.dumps({"step": 8, "epoch": 2, "rate": 0.1, "loss": 123.0, "seconds": 1}) + '\n{"step": 9, "ep')
    trainer = Trainer(RECIPE, SETTINGS)
    resume(trainer, folder)
    assert max(losses(folder.lines())) == 7
    fit(trainer, folder)
    assert losses(folder.lines()) == losses(unbroken[1])


def test_fused_or_not_the_losses_are_the_same(unbroken, tmp_path):
    settings = SETTINGS.changed({"fuse": False, "options": {"dropout": 0.0}})
    _, plain, _ = trained(tmp_path / "plain", settings)
    _, fused, _ = trained(tmp_path / "fused", settings.changed({"fuse": True}))
    one, other = losses(plain.lines()), losses(fused.lines())
    assert one.keys() == other.keys()
    assert np.allclose(list(one.values()), list(other.values()), rtol=1e-4)


def test_each_backend_learns_the_same(tmp_path):
    settings = SETTINGS.changed({"epochs": 1, "batch": 5, "options": {"dropout": 0.0, "width": 3}})
    found = {
        backend: list(losses(trained(tmp_path / backend, settings.changed({"backend": backend}))[1].lines()).values())
        for backend in ("python", "parallel", "cuda")
    }
    assert len(found["python"]) == 5
    for backend in ("parallel", "cuda"):
        assert np.allclose(found[backend], found["python"], rtol=1e-4), backend


# What goes wrong.


class Bad(Small):
    """Gives something that is no number from some step on: in a layer, in the loss, in the data, in a weight."""

    def __init__(self, where, step=9):
        self.where, self.step = where, step

    def data(self, settings):
        found = super().data(settings)
        if self.where in ("nan", "inf"):
            x, _ = found.loader.tensors
            x[int(found.loader.order(0)[10]), 1] = float(self.where)  # in batch 3
        return found

    def model(self, settings, data):
        model = super().model(settings, data)
        if self.where == "layer":
            model.scale = Divide()
        return model

    def loss(self, model, *batch):
        x, y = batch
        if self.where == "layer":
            return mf.nn.mse_loss(model.scale(model(x)), y)
        found = mf.nn.mse_loss(model(x), y)
        return (found * 0 - 1).log() if self.where == "loss" else found


class Divide(mf.nn.Module):
    """By nothing."""

    def forward(self, x):
        return x / (x - x)


@pytest.mark.parametrize(
    ("where", "step", "words"),
    [
        ("layer", 1, "in the first non-finite layer, scale (Divide)"),
        ("loss", 1, "the outputs of all layers are finite"),
        ("nan", 3, "input 0 of the batch contains 1 numbers that are not finite"),
        ("inf", 4, "0.0.weight contains 10 numbers that are not finite after the previous step; input 0 of its batch"),
    ],
)
def test_nonfinite_loss_stops_training_and_names_its_step_and_origin(tmp_path, where, step, words):
    recipe = Bad(where)
    trainer, folder = begin(tmp_path / "run", recipe=recipe)
    with pytest.raises(BadLoss) as caught:
        fit(trainer, folder)
    assert caught.value.step == step
    assert words in str(caught.value)
    assert folder.load("parallel")["step"] <= step - 1


def test_a_weight_that_went_bad_is_named(tmp_path):
    settings = SETTINGS.changed({"options": {"dropout": 0.0}})
    recipe = Small()
    recipe.max_norm = None
    trainer, folder = begin(tmp_path / "run", settings, recipe)
    trainer.optimizer.param_groups[0]["lr"] = float("inf")
    trainer.schedule = None
    recipe.optimizer = lambda settings, model, steps: (mf.optim.Adam(model.parameters(), lr=float("inf")), None)
    with pytest.raises(BadLoss, match=r"0\.0\.weight contains \d+ numbers that are not finite after the previous step"):
        fit(trainer, folder)


def no_room(*_args, **_named):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    trainer, folder = begin(tmp_path / "run")

    def tell(told, numbers):
        if trainer.done == 8:
            monkeypatch.setattr(os, "fsync", no_room)

    with pytest.raises((TrainingError, CheckpointError), match="No space left"):
        fit(trainer, folder, tell)
    monkeypatch.undo()
    assert trainer.done == 8
    assert {path.name for path in folder.path.iterdir()} == {CONFIG, LOG, CHECKPOINT}
    other = Trainer(RECIPE, SETTINGS)
    resume(other, folder)
    assert other.done == 7


def test_a_log_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    trainer, folder = begin(tmp_path / "run")
    monkeypatch.setattr(Path, "open", no_room)
    with pytest.raises((TrainingError, CheckpointError), match="No space left"):
        fit(trainer, folder)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: (path / CONFIG).unlink(), "contains no run"),
        (lambda path: (path / CONFIG).write_text("{"), "cannot be read"),
        (lambda path: (path / CONFIG).write_text('{"format": 99, "recipe": "x", "settings": {}}'), "expected format 1"),
    ],
)
def test_a_damaged_config_is_an_error(tmp_path, damage, words):
    _, folder, _ = trained(tmp_path / "run", stop=1)
    damage(folder.path)
    with pytest.raises(TrainingError, match=words):
        folder.config()


@pytest.mark.parametrize("line", [b'{"step": 1, "lo\0\0', b'{"step": 1, "loss": "\xff"}'])
def test_a_damaged_log_is_an_error_with_its_line(tmp_path, line):
    _, folder, _ = trained(tmp_path / "run", stop=2)
    path = folder.path / LOG
    whole = path.read_bytes()
    path.write_bytes(whole + line + b"\n" + whole)
    with pytest.raises(TrainingError, match=f"line {len(whole.splitlines()) + 1} is damaged"):
        resume(Trainer(RECIPE, SETTINGS), folder)
    path.write_bytes(whole + whole[:9])  # what was being written when the power went
    resume(Trainer(RECIPE, SETTINGS), folder)


def test_a_damaged_checkpoint_is_an_error(tmp_path):
    _, folder, _ = trained(tmp_path / "run", stop=1)
    path = folder.path / CHECKPOINT
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError):
        resume(Trainer(RECIPE, SETTINGS), folder)
    mf.save({"x": mf.ones(2)}, path)
    with pytest.raises(CheckpointError, match="was not written by save_state"):
        resume(Trainer(RECIPE, SETTINGS), folder)
    path.unlink()
    with pytest.raises(TrainingError, match="has no checkpoint"):
        resume(Trainer(RECIPE, SETTINGS), folder)


def test_the_checkpoint_of_another_model_names_the_differences(tmp_path):
    _, folder, _ = trained(tmp_path / "run", stop=1)
    other = Trainer(RECIPE, SETTINGS.changed({"options": {"width": 7}}))
    with pytest.raises(mf.ShapeError, match=r"0\.0\.weight has shape \(5, 2\), expected \(7, 2\)"):
        resume(other, folder)


def test_a_folder_with_a_run_is_not_used_again(tmp_path):
    trained(tmp_path / "run", stop=1)
    with pytest.raises(TrainingError, match="contains a run already"):
        begin(tmp_path / "run")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"epochs": 0}, "epochs is 0; expected at least 1"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"rat": 1}, "unknown setting 'rat'; did you mean rate?"),
        ({"options": {"widht": 3}}, "unknown option 'widht'; did you mean width?"),
        ({"options": {"width": "many"}}, "option width is 'many'; expected a whole number"),
        ({"options": {"dropout": -1}}, "option dropout is -1; expected a finite number of at least 0"),
        ({"backend": "gpu"}, "gpu"),
    ],
)
def test_invalid_settings_are_errors(asked, words):
    with pytest.raises(mf.MinifuseError, match=words.replace("?", r"\?")):
        SETTINGS.changed(asked)


def test_settings_go_through_json():
    assert SETTINGS.changed(json.loads(json.dumps(SETTINGS.as_dict()))).as_dict() == SETTINGS.as_dict()


def test_curves_are_a_picture(tmp_path):
    _, folder, _ = trained(tmp_path / "run", SETTINGS.changed({"epochs": 2}))
    assert (folder.path / CURVES).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (folder.path / CURVES).stat().st_size > 5_000


def test_whoever_looks_may_change_the_mode():
    trainer = Trainer(RECIPE, SETTINGS)
    modes = []
    for _ in trainer.advance(7):
        modes.append(trainer.model.training)
        trainer.measure()
    assert all(modes)
    assert trainer.model.training


def test_data_without_batches_is_refused():
    class Empty(Small):
        def data(self, settings):
            x = mf.zeros(3, 2)
            return Data(mf.data.Loader(x, x[:, :1], batch_size=8, drop_last=True), (x, x[:, :1]))

    with pytest.raises(TrainingError, match="do not fill one batch"):
        Trainer(Empty(), SETTINGS)
