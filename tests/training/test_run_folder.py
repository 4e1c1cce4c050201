"""The folder of a run: one writer, files that are damaged in every way, and a disk that fails at every moment."""

import errno
import json
import os
import sys
import threading
from pathlib import Path

import pytest

import minifuse as mf
from minifuse.core.errors import CheckpointError, MinifuseError, TrainingError
from minifuse.tensors.serialization import load_state, save_state
from minifuse.training import RunFolder, Trainer, fit, resume
from minifuse.training.run_folder import CHECKPOINT, CONFIG, CURVES, LOCK, LOG
from tests.training.small import RECIPE, losses

SETTINGS = RECIPE.settings.changed({"epochs": 1, "batch": 6, "fuse": False})
STEPS = 4


@pytest.fixture(autouse=True)
def _no_picture(monkeypatch):
    """Curves take longer than all the rest."""
    module = sys.modules["minifuse.training.fit"]  # the function of this name hides it
    monkeypatch.setattr(module, "draw_curves", lambda lines, recipe: b"picture")


def begin(path):
    return Trainer(RECIPE, SETTINGS), RunFolder.create(path, RECIPE.name, SETTINGS.as_dict())


def stopped(path, step=1):
    """A folder of a run that was stopped after a step."""
    trainer, folder = begin(path)
    fit(trainer, folder, lambda told, numbers: trainer.done >= step)
    return folder


def go_on(path):
    """Resume a run and take it to its end, as `minifuse train --resume` does; the losses of its log."""
    folder = RunFolder(path)
    trainer = Trainer(RECIPE, folder.settings(RECIPE))
    resume(trainer, folder)
    assert fit(trainer, folder)
    return losses(folder.lines())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The losses of a run that was never stopped."""
    path = tmp_path_factory.mktemp("whole")
    trainer, folder = begin(path)
    fit(trainer, folder)
    return losses(folder.lines())


# One writer


def test_a_folder_is_refused_while_another_trains_in_it(tmp_path):
    path = tmp_path / "run"
    trainer, folder = begin(path)
    before = (path / CONFIG).read_bytes()
    for attempt in (
        lambda: RunFolder.create(path, RECIPE.name, {}),
        lambda: resume(Trainer(RECIPE, SETTINGS), RunFolder(path)),
        lambda: fit(Trainer(RECIPE, SETTINGS), RunFolder(path)),
        lambda: RunFolder(path).note({"step": 1}),
        lambda: RunFolder(path).save({}),
        lambda: RunFolder(path).forget_after(0),
        lambda: RunFolder(path).put(CURVES, b""),
    ):
        with pytest.raises(TrainingError, match=rf"is in use by this process, {os.getpid()} .*only one process at a time"):
            attempt()
    assert (path / CONFIG).read_bytes() == before
    assert {file.name for file in path.iterdir()} == {CONFIG, LOCK}
    assert fit(trainer, folder)
    assert {file.name for file in path.iterdir()} == {CONFIG, LOG, CHECKPOINT, CURVES}


def test_of_many_that_begin_at_once_one_does(tmp_path):
    barrier, found, refused = threading.Barrier(6), [], []

    def work():
        barrier.wait(30)
        try:
            found.append(RunFolder.create(tmp_path / "run", RECIPE.name, SETTINGS.as_dict()))
        except TrainingError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1
    assert len([said for said in refused if "is in use by" in said]) == 5


def test_reading_needs_no_lock(tmp_path):
    _, folder = begin(tmp_path / "run")
    folder.note({"step": 1, "epoch": 1, "loss": 0.5})
    other = RunFolder(folder.path)
    assert other.config()["recipe"] == RECIPE.name
    assert losses(other.lines()) == {1: 0.5}


@pytest.mark.parametrize("call", [fit, resume])
def test_a_failure_releases_the_lock(tmp_path, monkeypatch, call):
    folder = stopped(tmp_path / "run")
    monkeypatch.setattr(Trainer, "advance", lambda self: 1 / 0)
    monkeypatch.setattr(Trainer, "restore", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        call(Trainer(RECIPE, SETTINGS), folder)
    RunFolder(folder.path).lock()


def test_unfinished_files_of_a_killed_process_are_removed(tmp_path, whole):
    folder = stopped(tmp_path / "run")
    left = [f".{name}.0123abcd.tmp" for name in (CONFIG, LOG, CHECKPOINT, CURVES)]
    foreign = [".notes.tmp", "notes.txt", f"{CONFIG}.tmp"]
    for name in left + foreign:
        (folder.path / name).write_text("x")
    assert go_on(folder.path) == whole
    assert {file.name for file in folder.path.iterdir()} == {CONFIG, LOG, CHECKPOINT, CURVES, *foreign}


# The end at each moment


def test_run_without_a_checkpoint_is_resumed_from_its_start(tmp_path, whole):
    _, folder = begin(tmp_path / "run")
    folder.close()  # with the process
    assert {file.name for file in folder.path.iterdir()} == {CONFIG}
    assert go_on(folder.path) == whole


def test_a_run_that_ended_before_its_config_is_begun_again(tmp_path, whole):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK).write_text('{"pid": 1, "host": "x", "since": "then"}')
    (tmp_path / "run" / f".{CONFIG}.0123abcd.tmp").write_text("{")
    with pytest.raises(TrainingError, match=r"contains no run: config\.json is missing; .*\(--out .*run\)"):
        RunFolder(tmp_path / "run").settings(RECIPE)
    trainer, folder = begin(tmp_path / "run")
    assert fit(trainer, folder)
    assert losses(folder.lines()) == whole


def test_steps_without_a_checkpoint_are_not_thrown_away(tmp_path):
    folder = stopped(tmp_path / "run")
    (folder.path / CHECKPOINT).unlink()
    before = (folder.path / LOG).read_bytes()
    with pytest.raises(TrainingError, match=r"has no checkpoint\.safetensors; restore it, or also delete log\.jsonl"):
        go_on(folder.path)
    assert (folder.path / LOG).read_bytes() == before
    (folder.path / LOG).unlink()
    assert len(go_on(folder.path)) == STEPS


def test_only_a_new_trainer_begins_a_run_without_a_checkpoint(tmp_path):
    trainer, folder = begin(tmp_path / "run")
    list(trainer.advance(1))
    with pytest.raises(TrainingError, match="the trainer is at step 1; pass a new one"):
        resume(trainer, folder)


class Disk:
    """Counts calls of the system that write, and fails at one of them and all that follow."""

    CALLS = ("open", "write", "fsync", "replace", "mkdir")

    def __init__(self, patch, fails_at):
        self.count, self.fails_at = 0, fails_at
        for name in self.CALLS:
            patch.setattr(os, name, self.counted(getattr(os, name)))

    def counted(self, call):
        def counting(*inputs, **named):
            if call.__name__ == "open" and not inputs[1] & (os.O_WRONLY | os.O_RDWR):
                return call(*inputs, **named)
            self.count += 1
            if self.fails_at is not None and self.count >= self.fails_at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(*inputs, **named)

        return counting


def test_a_disk_that_is_full_at_any_moment_costs_no_number(tmp_path, monkeypatch, whole):
    with monkeypatch.context() as patch:
        disk = Disk(patch, None)
        fit(*begin(tmp_path / "count"))
    assert disk.count > 20
    said = []
    for moment in [*range(1, 12), *range(12, disk.count, 3), disk.count]:
        path = tmp_path / str(moment)
        with monkeypatch.context() as patch:
            Disk(patch, moment)
            try:
                fit(*begin(path))
            except (TrainingError, CheckpointError) as error:
                said.append(str(error))
        assert not path.exists() or {file.name for file in path.iterdir()} <= {CONFIG, LOG, CHECKPOINT, CURVES}, moment
        if (path / CONFIG).exists():
            assert go_on(path) == whole, moment
        else:
            trainer, folder = begin(path)
            fit(trainer, folder)
            assert losses(folder.lines()) == whole, moment
    assert all("cannot be written: No space left on device" in words for words in said)
    assert len(said) > disk.count / 4  # that a folder's entry cannot be synchronized is no error
    for words in said[:2]:
        assert "no run was created: free some space, or choose another folder" in words
    assert "no step was recorded: free some space, and start with --resume" in " ".join(said)
    assert "the last checkpoint is intact: free some space, and continue with --resume" in said[-1]


def test_a_line_that_does_not_fit_the_disk_leaves_no_half(tmp_path, monkeypatch):
    _, folder = begin(tmp_path / "run")
    folder.note({"step": 1, "epoch": 1, "loss": 0.5})
    before, write = (folder.path / LOG).read_bytes(), os.write

    def write_some(handle, data):
        if len(data) < 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, data[:10])

    monkeypatch.setattr(os, "write", write_some)
    with pytest.raises(TrainingError, match="No space left"):
        folder.note({"step": 2, "epoch": 1, "loss": 0.25}, {"step": 3, "epoch": 1, "loss": 0.25})
    monkeypatch.undo()
    assert (folder.path / LOG).read_bytes() == before
    folder.note({"step": 2, "epoch": 1, "loss": 0.25})
    assert losses(folder.lines()) == {1: 0.5, 2: 0.25}


@pytest.mark.parametrize("name", ["Lauf ü", "日本語", "a b'\"", "-x"])
def test_any_name_of_a_folder_will_do(tmp_path, whole, name):
    assert go_on(stopped(tmp_path / name).path) == whole


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(TrainingError, match=r"run cannot be written: File exists; no run was created: .*no file is"):
        begin(tmp_path / "run")
    with pytest.raises(TrainingError, match="Not a directory"):
        begin(tmp_path / "run" / "deeper")
    assert (tmp_path / "run").read_text() == "mine"


def test_a_folder_deleted_during_the_run_is_an_error(tmp_path):
    trainer, folder = begin(tmp_path / "run")

    def tell(told, numbers):
        for file in folder.path.iterdir():
            file.unlink()
        folder.path.rmdir()

    with pytest.raises(MinifuseError, match=r"cannot be written: No such file or directory; .*create the folder first"):
        fit(trainer, folder, tell)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_an_error(tmp_path):
    folder = stopped(tmp_path / "run")
    folder.path.chmod(0o500)
    with pytest.raises(TrainingError, match=r"Permission denied; .*this user may write in"):
        go_on(folder.path)
    folder.path.chmod(0o700)


# Files that are not what they should be


def changed(path, change):
    """Change a JSON file."""
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


def test_a_truncated_config_is_an_error(tmp_path):
    folder = stopped(tmp_path / "run")
    data = (folder.path / CONFIG).read_bytes().rstrip()
    for n in range(0, len(data), 3):
        (folder.path / CONFIG).write_bytes(data[:n])
        with pytest.raises(TrainingError, match=r"config\.json cannot be read: .*restore it"):
            folder.settings(RECIPE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[1]", r"is not the config of a run: got \[1\], expected format 1"),
        (b"[" * 50_000, "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"1" * 5000, "cannot be read"),
        (b"{}", 'the config of a run of this version: "format" is null, expected format 1'),
        (b'{"format": 1, "settings": {}}', '"recipe" is null, expected'),
        (b'{"format": 1, "recipe": 3, "settings": {}}', '"recipe" is 3, expected'),
        (b'{"format": 1, "recipe": "small", "settings": []}', r'"settings" is \[\], expected'),
    ],
)
def test_a_config_of_another_kind_is_an_error(tmp_path, text, words):
    folder = stopped(tmp_path / "run")
    (folder.path / CONFIG).write_bytes(text)
    with pytest.raises(TrainingError, match=rf"config\.json.*{words}"):
        folder.settings(RECIPE)


@pytest.mark.parametrize("name", ["epochs", "batch", "rate", "seed", "backend", "fuse", "options"])
def test_each_setting_that_is_missing_is_named(tmp_path, name):
    folder = stopped(tmp_path / "run")
    changed(folder.path / CONFIG, lambda found: found["settings"].pop(name))
    with pytest.raises(TrainingError, match=rf'config\.json: setting "{name}" is missing; add the value of the run'):
        go_on(folder.path)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("epochs", "2", "epochs is '2'; expected a whole number"),
        ("epochs", 2.5, "epochs is 2.5; expected a whole number"),
        ("epochs", True, "epochs is True; expected a whole number"),
        ("epochs", None, '"epochs" is null, expected'),
        ("epochs", -1, "epochs is -1; expected at least 1"),
        ("epochs", [1], r"epochs is \[1\]; expected a whole number"),
        ("batch", "8", "batch is '8'; expected a whole number"),
        ("batch", 0, "batch is 0; expected at least 1"),
        ("rate", "0.1", "rate is '0.1'; expected a number"),
        ("rate", float("nan"), "rate is nan; expected a number above 0"),
        ("rate", float("inf"), "rate is inf; expected a number above 0"),
        ("rate", 10**400, "rate is 10*; expected a number"),
        ("rate", False, "rate is False; expected a number"),
        ("seed", -1, "seed is -1; expected at least 0"),
        ("seed", "0", "seed is '0'; expected a whole number"),
        ("backend", 3, "backend is 3; expected a text"),
        ("backend", "gpu", "gpu"),
        ("fuse", 1, "fuse is 1; expected true or false"),
        ("fuse", "yes", "fuse is 'yes'; expected true or false"),
        ("options", [], r'"options" is \[\], expected an object of numbers'),
        ("options", {"width": 5}, 'option "dropout" is missing; add the value of the run, such as 0.25'),
        ("options", {"width": "5", "dropout": 0}, 'option "width" is "5", expected a number, such as 5'),
        ("options", {"width": 5.5, "dropout": 0}, "option width is 5.5; expected a whole number"),
        ("options", {"width": True, "dropout": 0}, 'option "width" is true, expected a number'),
        ("options", {"width": 5, "dropout": float("inf")}, "option dropout is inf; expected a finite number of at least 0"),
        ("options", {"width": 5, "dropout": 0, "depth": 1}, "unknown option 'depth'"),
        ("rat", 1, "unknown setting 'rat'; did you mean rate"),
    ],
)
def test_each_setting_of_the_wrong_kind_is_named_with_its_file(tmp_path, name, value, words):
    folder = stopped(tmp_path / "run")
    changed(folder.path / CONFIG, lambda found: found["settings"].update({name: value}))
    with pytest.raises(TrainingError, match=rf"config\.json: .*{words}"):
        go_on(folder.path)


def test_a_config_that_an_editor_saved_with_a_mark_is_read(tmp_path, whole):
    folder = stopped(tmp_path / "run")
    (folder.path / CONFIG).write_bytes(b"\xef\xbb\xbf" + (folder.path / CONFIG).read_bytes())
    assert go_on(folder.path) == whole


def test_a_log_that_was_cut_off_anywhere_is_gone_on_with(tmp_path):
    folder = stopped(tmp_path / "run", 2)
    data = (folder.path / LOG).read_bytes()
    found = [len(losses(folder.lines()))]
    for n in range(len(data), -1, -1):
        (folder.path / LOG).write_bytes(data[:n])
        found.append(len(losses(folder.lines())))
    assert found == sorted(found, reverse=True)
    assert set(found) == {0, 1, 2}
    resume(Trainer(RECIPE, SETTINGS), folder)


LINE = {"step": 1, "epoch": 1, "rate": 0.1, "loss": 0.5, "seconds": 0.1}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({name: LINE[name] for name in ("epoch", "loss")}, '"step" is missing'),
        ({name: LINE[name] for name in ("step", "loss")}, '"epoch" is missing'),
        ({name: LINE[name] for name in ("step", "epoch")}, '"loss" is missing'),
        ({**LINE, "step": "1"}, '"step" is "1", expected a whole number'),
        ({**LINE, "step": None}, '"step" is null, expected a whole number'),
        ({**LINE, "step": 1.0}, '"step" is 1.0, expected a whole number'),
        ({**LINE, "step": True}, '"step" is true, expected a whole number'),
        ({**LINE, "step": float("nan")}, '"step" is NaN, expected a whole number'),
        ({**LINE, "step": 0}, '"step" is 0, expected a whole number of at least 1'),
        ({**LINE, "epoch": [1]}, r'"epoch" is \[1\], expected a whole number'),
        ({**LINE, "loss": "low"}, '"loss" is "low", expected a finite number'),
        ({**LINE, "loss": float("inf")}, '"loss" is Infinity, expected a finite number'),
        ({**LINE, "rate": {}}, '"rate" is {}, expected a number'),
        ({**LINE, "seconds": None}, '"seconds" is null, expected a number'),
        ({"step": 1, "epoch": 1, "held_out": 3}, '"held_out" is 3, expected an object of numbers by name'),
        ({"step": 1, "epoch": 1, "held_out": {"loss": "x"}}, '"held_out" is {"loss": "x"}, expected'),
        ([1, 2], r"got \[1, 2\], expected an object such as"),
        (3, "got 3, expected an object"),
        (None, "got null, expected an object"),
        ({**LINE, "loss": "x" * 500}, r"xxx\.\.\., expected a finite number"),
    ],
)
def test_each_damaged_log_line_is_reported_with_its_number(tmp_path, line, words):
    folder = stopped(tmp_path / "run")
    whole = (folder.path / LOG).read_text()
    (folder.path / LOG).write_text(f"{whole}{json.dumps(line)}\n")
    number = len(whole.splitlines()) + 1
    with pytest.raises(TrainingError, match=rf"log\.jsonl, line {number} is damaged: .*{words}.*; delete the line"):
        go_on(folder.path)


@pytest.mark.parametrize("line", [b"[" * 50_000, b"9" * 5000, b'{"step": 1', b"\xff", b"\0" * 20])
def test_a_line_that_is_no_json_is_reported_with_its_number(tmp_path, line):
    folder = stopped(tmp_path / "run")
    (folder.path / LOG).write_bytes(line + b"\n" + (folder.path / LOG).read_bytes())
    with pytest.raises(TrainingError, match=r"log\.jsonl, line 1 is damaged"):
        go_on(folder.path)


def test_a_huge_step_in_the_log_is_behind_the_checkpoint(tmp_path, whole):
    folder = stopped(tmp_path / "run")
    with (folder.path / LOG).open("a") as file:
        file.write(json.dumps({**LINE, "step": 10**30}) + "\n")
    assert go_on(folder.path) == whole


def with_part(state, name, value):
    return {**state, name: value}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: 3, "is not the state of a run: model, optimizer, rng, schedule, step is missing"),
        (lambda state: {k: x for k, x in state.items() if k != "model"}, "not the state of a run: model is missing"),
        (lambda state: {k: x for k, x in state.items() if k != "rng"}, "not the state of a run: rng is missing"),
        (lambda state: with_part(state, "step", "1"), "is at step '1', expected 0 to 4"),
        (lambda state: with_part(state, "step", True), "is at step True, expected 0 to 4"),
        (lambda state: with_part(state, "step", 5), "is at step 5, expected 0 to 4; use the checkpoint of this run"),
        (lambda state: with_part(state, "step", -1), "is at step -1, expected 0 to 4"),
        (lambda state: with_part(state, "schedule", None), "lacks a learning rate schedule"),
        (lambda state: with_part(state, "schedule", {"last_step": 1}), "does not fit this run: .*base_lrs"),
        (lambda state: with_part(state, "schedule", 3), "does not fit this run: .*base_lrs"),
        (lambda state: with_part(state, "rng", {}), "does not fit this run: set_rng_state"),
        (lambda state: with_part(state, "rng", None), "does not fit this run: set_rng_state"),
        (lambda state: with_part(state, "model", 3), "does not fit this run"),
        (lambda state: with_part(state, "model", {"a": 1}), r"checkpoint\.safetensors"),
        (lambda state: with_part(state, "optimizer", {}), "does not fit this run: .*param_groups"),
        (lambda state: with_part(state, "optimizer", {"state": 1, "param_groups": 2}), "does not fit this run"),
    ],
)
def test_a_checkpoint_of_another_run_is_an_error(tmp_path, change, words):
    folder = stopped(tmp_path / "run")
    path = folder.path / CHECKPOINT
    save_state(change(load_state(path)), path)
    with pytest.raises((CheckpointError, mf.ShapeError), match=rf"checkpoint\.safetensors.*{words}|{words}"):
        go_on(folder.path)
    RunFolder(folder.path).lock()  # is free again


def test_a_flipped_byte_in_the_checkpoint_of_a_run_is_found(tmp_path):
    folder = stopped(tmp_path / "run")
    data = bytearray((folder.path / CHECKPOINT).read_bytes())
    data[-3] ^= 4
    (folder.path / CHECKPOINT).write_bytes(data)
    with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors is damaged: its elements"):
        go_on(folder.path)


def test_a_folder_may_be_a_link(tmp_path, whole):
    folder = stopped(tmp_path / "run")
    Path(tmp_path / "latest").symlink_to(folder.path)
    assert go_on(tmp_path / "latest") == whole
