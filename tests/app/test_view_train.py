"""The view of training: data sets, training in slices, predictions, and the page."""

import time
from copy import deepcopy
from threading import Event

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minifuse as mf
from minifuse.core.errors import MinifuseError
from minifuse.data.toy_2d import SPIRAL_TURNS
from project.views import curves, toy_datasets, train, train_gradients, train_pictures
from project.views.cited_facts import MEASURED
from project.views.picture import IDLE, LOAD, OTHER, PATH, SHARED, STORE, WRONG
from project.views.train import Settings
from project.views.training import Training

QUICK = Settings(data="diagonal", count=40, hidden=4, batch=8)


def train_run(settings=QUICK, epochs=20):
    run = train.begin(settings)
    while train.advance(run, epochs):
        pass
    return run


@given(
    name=st.sampled_from(toy_datasets.NAMES),
    count=st.integers(toy_datasets.MIN_POINTS, toy_datasets.MAX_POINTS),
    seed=st.integers(0, 2**31 - 1),
)
def test_points_are_in_the_square_and_labeled_by_rule(name, count, seed):
    x, y = toy_datasets.points(name, count, seed)
    assert x.shape == (count, 2)
    assert x.dtype == np.float32
    assert y.shape == (count,)
    assert np.abs(x).max() <= 1
    assert set(y.tolist()) <= {0, 1}
    again = toy_datasets.points(name, count, seed)
    assert np.array_equal(x, again[0])
    assert np.array_equal(y, again[1])
    rules = {
        "simple": lambda a, b: a > 0,
        "diagonal": lambda a, b: b > -a,
        "split": lambda a, b: a < -0.5 or a > 0.5,
        "xor": lambda a, b: a * b < 0,
        "circle": lambda a, b: np.float32(a * a) + np.float32(b * b) > np.float32(0.4),
    }
    if name in rules:
        assert [bool(rules[name](a, b)) for a, b in x] == y.astype(bool).tolist()


def test_the_arms_of_the_spiral_are_half_a_turn_apart():
    x, y = toy_datasets.points("spiral", 400, 3)
    assert (y == 0).sum() == (y == 1).sum() == 200
    radius, angle = np.hypot(*x.T) / 0.95, np.arctan2(x[:, 1], x[:, 0])
    off = angle - 2 * np.pi * SPIRAL_TURNS * radius - np.pi * y
    np.testing.assert_allclose(np.cos(off), 1, atol=1e-4)


def test_seeds_change_the_points():
    assert not np.array_equal(toy_datasets.points("xor", 20, 0)[0], toy_datasets.points("xor", 20, 1)[0])


@pytest.mark.parametrize(("name", "count"), [("moons", 10), ("xor", 3), ("xor", 1001)])
def test_unknown_data_sets_and_counts_are_errors(name, count):
    with pytest.raises(MinifuseError):
        toy_datasets.points(name, count, 0)


def test_sliced_training_equals_an_uninterrupted_loop():
    sliced = train.begin(QUICK)
    while train.advance(sliced, 6, seconds=0):  # one step a slice
        assert sliced.steps <= 6 * len(sliced.loader)
    mf.manual_seed(QUICK.seed)
    x, y = (mf.tensor(a) for a in toy_datasets.points("diagonal", 40, 0))
    (x, y), _ = mf.data.split(x, y, fraction=0.8, seed=0, stratify=y)
    model = mf.nn.Sequential(mf.nn.Linear(2, 4), mf.nn.ReLU(), mf.nn.Linear(4, 4), mf.nn.ReLU(), mf.nn.Linear(4, 2))
    optimizer = mf.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loader, expected = mf.data.Loader(x, y, batch_size=8, seed=0), []
    for _ in range(6):
        found = []
        for a, b in loader:
            loss = mf.nn.cross_entropy(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        expected.append(sum(found) / len(found))
    assert sliced.losses == expected
    assert sliced.steps == 6 * 4


def test_resumed_training_equals_one_long_run():
    resumed = train_run(epochs=3)
    while train.advance(resumed, 9):
        pass
    assert resumed.losses == train_run(epochs=9).losses


def test_slice_takes_at_least_one_step():
    run = train.begin(QUICK)
    assert train.advance(run, 10, seconds=0)
    assert (run.steps, run.epochs) == (1, 0)
    assert 0 < run.share(10) < 0.1


@pytest.mark.parametrize("backend", mf.backends())
def test_slow_backends_get_smaller_batches(backend):
    settings = Settings(backend=backend, hidden=64, batch=128)
    batch = train.batch_size(settings)
    model = train.begin(settings).model
    work = sum(p.size for p in model.parameters() if len(p.shape) == 2)
    limit = train.WORK.get("interpreter" if train.is_slow(backend) else backend)
    assert batch == (128 if limit is None else max(limit // work, 1))
    facts = {fact.name: fact for fact in train.facts(train.begin(settings))}
    assert facts["examples a step"].value == batch
    assert bool(facts["examples a step"].why) == (batch < 128)


def test_slice_ends_after_a_share_of_the_epochs():
    run = train.begin(QUICK)
    train.advance(run, 100, seconds=60)
    assert run.epochs == 100 // train.SLICES
    assert not train.advance(run, 4, seconds=60)  # more epochs are done than requested
    assert run.share(4) == 1


@pytest.mark.parametrize("data", ["simple", "diagonal", "split", "xor", "circle"])
def test_toy_data_sets_are_learned(data):
    run = train_run(Settings(data=data, count=200), 100)
    assert train.accuracy(run, run.train) > 0.95
    assert run.losses[-1] < run.losses[0] / 2


@pytest.mark.parametrize("backend", mf.backends())
def test_backends_train_to_equal_losses(backend):
    settings = Settings(data="xor", count=10, hidden=3, batch=8)
    one, other = (train.begin(Settings(**{**vars(settings), "backend": name})) for name in ("parallel", backend))
    for run in (one, other):
        train.advance(run, 2, seconds=60)
        assert run.model.state_dict()["0.weight"].backend == run.settings.backend
    np.testing.assert_allclose(other.losses[:1], one.losses[:1], rtol=1e-5)
    np.testing.assert_allclose(train.predict_shares(other, np.zeros((1, 2), "f4")), class_shares(other), rtol=1e-5)


def class_shares(run):
    with mf.no_grad():
        return run.model(mf.zeros(1, 2, backend=run.settings.backend)).softmax(1).numpy()


def test_boundary_cells_show_predictions_at_their_centers():
    run = train_run()
    grid = train_pictures.picture(run).grids[0]
    assert len(grid.cells) == train.CELLS**2
    for cell in grid.cells[::17]:
        across = (cell.column + 0.5) / train.CELLS * 2 - 1
        up = 1 - (cell.row + 0.5) / train.CELLS * 2
        share = float(train.predict_shares(run, np.array([[across, up]], "f4"))[0, 1])
        assert f"x {across:.2f}, y {up:.2f}: class 1 is {share:.0%} likely" in cell.label
        assert cell.kind == (STORE if share > 0.5 else LOAD)
        assert cell.tint == pytest.approx(abs(2 * share - 1), abs=0.01)
    corners = {(c.row, c.column): c.kind for c in grid.cells}
    assert corners[0, train.CELLS - 1] == STORE  # above the diagonal
    assert corners[train.CELLS - 1, 0] == LOAD


@settings(derandomize=True, max_examples=6, deadline=None)
@given(st.integers(1, 40), st.integers(0, 3))
def test_replay_shows_what_a_run_of_that_many_epochs_shows(epochs, seed):
    asked = Settings(**{**vars(QUICK), "seed": seed})
    replay = train_pictures.picture(train_run(asked, epochs))
    shown = [int({words: value for value, words in frame.numbers}["epoch"]) for frame in replay.frames]
    every = 1 if epochs < train.MAX_MOMENTS else 2
    assert shown == sorted({*range(0, epochs + 1, every), epochs})
    assert replay.first == len(shown) - 1
    k = seed * len(shown) // 4
    then = train_pictures.picture(train_run(asked, shown[k])) if shown[k] else train_pictures.picture(train.begin(asked))
    frame, kinds, tints = replay.frames[k], dict(replay.frames[k].kinds), dict(replay.frames[k].tints)
    assert frame.numbers == then.frames[-1].numbers
    for cell, expected in zip(replay.grids[0].cells, then.grids[0].cells, strict=True):
        assert kinds.get(cell.links[0], cell.kind) == expected.kind
        assert tints.get(cell.links[0], cell.tint) == pytest.approx(expected.tint, abs=0.011)


def rms(x):
    return float(np.sqrt((x.astype("f8") ** 2).mean()))


def lanes(picture, k):
    """Return the texts and kinds of the lanes of gradients in a step, by row and column."""
    [grid] = [grid for grid in picture.grids if grid.name == "gradients"]
    kinds, texts = dict(picture.frames[k].kinds), dict(picture.frames[k].texts)
    return {
        (c.row, c.column): (texts.get(c.links[0], c.text), kinds.get(c.links[0], c.kind))
        for c in grid.cells
    }  # fmt: skip


@settings(derandomize=True, max_examples=5, deadline=None)
@given(st.integers(1, 12), st.integers(0, 3), st.sampled_from(sorted(train.ACTIVATIONS)))
def test_gradients_of_each_step_are_those_of_its_last_batch(epochs, seed, activation):
    asked = Settings(**{**vars(QUICK), "seed": seed, "activation": activation})
    replay, seen = train_pictures.picture(train_run(asked, epochs)), set()
    assert {kind for _, kind in lanes(replay, 0).values()} == {""}  # before the first step
    for k in range(1, epochs + 1):
        parameters = list(train_run(asked, k).model.parameters())
        shown, now = lanes(replay, k), set()
        for row, p in enumerate(parameters):
            value = rms(p.grad.numpy())
            marked = {column: text for (r, column), (text, kind) in shown.items() if r == row and text}
            assert marked == {train_gradients.column_of(value): train_gradients.format_rms(value)}
            now.add((row, *marked))
        assert {place for place, (_, kind) in shown.items() if kind == PATH} == seen - now
        assert {place for place, (_, kind) in shown.items() if kind in (SHARED, IDLE, WRONG)} == now
        seen |= now
        weights = [rms(p.grad.numpy()) for p in parameters if len(p.shape) == 2]
        numbers = {words: value for value, words in replay.frames[k].numbers}
        assert numbers["gradient, first layer / last"] == f"{weights[0] / weights[-1]:.2g}"


@pytest.mark.parametrize(
    ("value", "head", "kind"),
    [(0.0, "<1e-6", IDLE), (9e-7, "<1e-6", IDLE), (2e-6, "1e-6", SHARED), (0.02, "1e-2", SHARED), (3.0, "1e0", SHARED),
     (10.5, ">=10", WRONG), (float("nan"), ">=10", WRONG), (float("inf"), ">=10", WRONG)],
)  # fmt: skip
def test_vanished_and_exploded_gradients_are_marked(value, head, kind):
    run = train_run(epochs=1)
    with mf.no_grad():
        next(run.model.parameters()).grad.fill_(value)
    run.moments.clear()
    shown = train_pictures.picture(run)
    [(column, (text, found))] = [(c, said) for (row, c), said in lanes(shown, 0).items() if row == 0 and said[0]]
    assert (train_gradients.HEADS[column], found) == (head, kind)
    assert text == train_gradients.format_rms(float(np.float32(value)))
    facts = {fact.name: fact.value for fact in train.facts(run)}
    assert facts["gradient of layer 1 weight"] == f"{float(np.float32(value)):.2e}"


def test_lanes_are_named_by_layer_and_parameter():
    run = train.begin(QUICK)
    names = [f"layer {layer} {name}" for layer in (1, 2, 3) for name in ("weight", "bias")]
    assert train_gradients.parameter_names(run.model) == names
    assert [grid.name for grid in train_pictures.picture(run).grids] == ["boundary"]  # no gradients before the first step
    assert train_pictures.picture(train_run(epochs=1)).grids[1].row_names == tuple(names)
    digits = train.begin(Settings(data="digits"))
    assert train_gradients.parameter_names(digits.model) == names[:4]


def test_replay_of_digits_shows_the_matrix_of_each_epoch():
    run = train_run(Settings(data="digits", hidden=16), 3)
    replay = train_pictures.picture(run)
    assert [frame.numbers[0] for frame in replay.frames] == [(str(k), "epoch") for k in range(4)]
    for frame, moment in zip(replay.frames, run.moments, strict=True):
        matrix, texts = train.confusion(run, moment.read), dict(frame.texts)
        for cell in replay.grids[0].cells:
            assert int(texts.get(cell.links[0], cell.text) or 0) == matrix[cell.row, cell.column]


def test_each_point_is_drawn_in_its_cell():
    run = train.begin(QUICK)
    cells = {(c.row, c.column): c for c in train_pictures.picture(run).grids[0].cells}
    x, y = toy_datasets.points("diagonal", 40, 0)
    for (across, up), which in zip(x, y, strict=True):
        cell = cells[train.CELLS - 1 - int((up + 1) / 2 * train.CELLS), int((across + 1) / 2 * train.CELLS)]
        assert f"of class {which}" in cell.label
        assert set(cell.text) & {"○●"[which], "◐"}
    held_out = sum("held out" in cell.label for cell in cells.values())
    assert 0 < held_out <= 8


@pytest.mark.parametrize(
    ("found", "signs", "counted"),
    [
        ([], "", "no point"),
        ([(1, False)], "●", "1 point of class 1"),
        ([(0, False), (1, True)], "○●", "1 point of class 0; 1 point of class 1, held out"),
        ([(0, False)] * 3, "3○", "3 points of class 0"),
        ([(0, False)] * 2 + [(1, False)], "3◐", "2 points of class 0; 1 point of class 1"),
    ],
)
def test_points_have_signs_and_labels(found, signs, counted):
    assert train_pictures.signs(found) == signs
    assert train_pictures.describe_points(found) == counted


def test_network_with_nan_weights_is_drawn():
    run = train.begin(Settings(data="circle", count=20, rate=10.0))
    with mf.no_grad():
        run.model.state_dict()["0.weight"].fill_(float("nan"))
    assert {cell.kind for cell in train_pictures.picture(run).grids[0].cells} == {OTHER}
    assert train.facts(run)
    assert not train.advance(run, 1, seconds=60)  # unlike `fit`, training continues
    assert np.isnan(run.losses).all()


def test_confusion_matrix_counts_each_held_out_digit():
    run = train_run(Settings(data="digits", hidden=16), 4)
    found = train.confusion(run, train.look(run).read)
    classes = run.test[1].numpy()
    assert found.sum() == len(classes)
    assert np.array_equal(found.sum(1), np.bincount(classes, minlength=10))
    assert np.trace(found) / found.sum() == pytest.approx(train.accuracy(run, run.test))
    assert np.trace(found) > 0.8 * found.sum()
    grid, _, *samples = train_pictures.picture(run).grids
    for cell in grid.cells:
        assert cell.text == (str(found[cell.row, cell.column]) if found[cell.row, cell.column] else "")
        assert cell.kind == ("" if not cell.text else LOAD if cell.row == cell.column else STORE)
    assert samples


def test_chosen_confusion_cell_shows_its_digits():
    run = train_run(Settings(data="digits", hidden=16), 2)
    drawn = train_pictures.picture(run, "is3read3").grids[2:]
    assert len(drawn) == train_pictures.DRAWN_DIGITS
    x, y = (tensor.numpy() for tensor in run.test)
    for grid in drawn:
        k = int(grid.title.split()[2].rstrip(":"))
        assert y[k] == 3
        assert grid.title.endswith("a 3, read as 3")
        ink = np.zeros((8, 8), int)
        for cell in grid.cells:
            ink[cell.row, cell.column] = int(cell.text or 0)
        assert np.array_equal(ink, (x[k] * 16).round().reshape(8, 8))


@pytest.mark.parametrize(
    "wrong",
    [{"data": "moons"}, {"backend": "tpu"}, {"hidden": 0}, {"hidden": 65}, {"batch": 0}, {"rate": float("nan")},
     {"seed": -1}, {"activation": "exec"}, {"optimizer": ""}, {"count": 1}],
)  # fmt: skip
def test_settings_out_of_range_are_errors(wrong):
    with pytest.raises(MinifuseError, match="expected"):
        train.begin(Settings(**wrong))


def test_facts_count_parameters_examples_and_steps():
    run = train_run(epochs=5)
    facts = {fact.name: fact for fact in train.facts(run)}
    assert facts["parameters"].value == str(3 * 4 + 5 * 4 + 5 * 2)
    assert facts["examples"].value == "32 to learn from, 8 held out"
    assert facts["steps"].value == "20"
    assert facts["epochs"].value == 5
    assert facts["mean loss"].value == f"{run.losses[-1]:.4f}"
    assert facts["time of a step"].truth == MEASURED
    assert "after 5 epochs" in train.sentence(run)
    assert "time of a step" not in {fact.name for fact in train.facts(train.begin(QUICK))}


def test_source_shows_the_training_step_with_its_run_count():
    lines = train.source(train_run(epochs=2))
    assert [line.text.strip() for line in lines if "backward" in line.text] == ["loss.backward()"]
    (docstring,) = [k for k, line in enumerate(lines) if line.text.strip().startswith('"""')]
    assert {line.counts for line in lines[: docstring + 1]} == {()}
    assert {line.counts for line in lines[docstring + 1 :]} == {(("ran", 8),)}


def test_two_runs_are_compared():
    one, other = train.curve(train_run(epochs=3)), train.curve(train_run(Settings(**{**vars(QUICK), "seed": 1}), 5))
    rows = train.losses([one, other])
    assert [row["epoch"] for row in rows] == [1, 2, 3, 1, 2, 3, 4, 5]
    assert [row["loss"] for row in rows] == [*one.losses, *other.losses]
    table = train.compare_runs(one, other)
    assert [row["epochs"] for row in table] == [3, 5]
    assert table[1]["lowest loss"] == f"{min(other.losses):.4f}"
    assert len(train.compare_runs(one, None)) == 1
    assert train.compare_runs(train.curve(train.begin(QUICK)), None)[0]["last loss"] == ""


def test_curves_differ_by_dashes_and_color():
    rows = train.losses([train.curve(train_run(epochs=3)), train.curve(train_run(epochs=4))])
    spec = curves.line_chart(rows, "epoch", "loss", "run")
    assert [point["loss"] for point in spec["data"]["values"]] == [row["loss"] for row in rows]
    dashes = spec["encoding"]["strokeDash"]["scale"]
    assert dashes["domain"] == [rows[0]["run"], rows[-1]["run"]]
    assert dashes["range"][0] != dashes["range"][1]
    assert spec["encoding"]["color"]["legend"]
    assert curves.line_chart(rows[:3], "epoch", "loss", "run")["encoding"]["color"]["legend"] is None
    assert curves.line_chart([], "epoch", "loss", "run")["data"]["values"] == []
    with pytest.raises(ValueError, match="points"):
        curves.line_chart(rows * 1000, "epoch", "loss", "run")
    with pytest.raises(ValueError, match="curves"):
        curves.line_chart([{"epoch": 1, "loss": 1, "run": k} for k in range(7)], "epoch", "loss", "run")


# Training in a thread


@pytest.fixture
def blocked_steps(monkeypatch):
    """Let training steps wait for an event."""
    may, step = Event(), train.step

    def slow(*arguments):
        may.wait(60)
        return step(*arguments)

    monkeypatch.setattr(train, "step", slow)
    yield may
    may.set()


def test_page_does_not_wait_for_a_long_slice(blocked_steps):
    training = Training(train.begin(QUICK))
    before = training.look(9)
    training.go(9)
    assert not training.wait(0.01)
    assert training.look(9) is before  # a running slice is not examined
    assert training.look(9, "is3read3") is before
    thread = training._thread
    training.go(9)
    assert training._thread is thread  # one slice at a time
    blocked_steps.set()
    assert training.wait(60)
    after = training.look(9)
    assert after.steps == training.run.steps > 0
    assert after.facts == tuple(train.facts(training.run))
    assert after.curve == train.curve(training.run)
    assert training.look(9) is after


def test_threaded_training_equals_a_loop():
    training = Training(train.begin(QUICK))
    while training.run.epochs < 6:
        training.go(6)
        training.wait(None)
    assert training.run.losses == train_run(epochs=6).losses
    training.go(6)
    assert training.is_idle  # all epochs are done


def test_wait_raises_the_error_of_a_slice_once(monkeypatch):
    training = Training(train.begin(QUICK))
    monkeypatch.setattr(train, "step", lambda *_: 1 / 0)
    training.go(1)
    with pytest.raises(ZeroDivisionError):
        training.wait(None)
    assert training.wait(None)  # once


# The page.


def app():
    from project.screens.train import page

    page()


@pytest.fixture
def page(wait_for_first_picture):
    testing = pytest.importorskip("streamlit.testing.v1")
    return testing.AppTest.from_function(app, default_timeout=60)


def run_in(at):
    return next(reversed(at.session_state["train_runs"].values())).run


def train_a_few_steps(at):
    """Press the button, and refresh until a step is done: kernels may have to be compiled first."""
    at.button(key="train_start").click().run()
    end = time.monotonic() + 60
    while not run_in(at).steps and not at.exception and time.monotonic() < end:
        at.run()
    return at


def quick_page(page):
    at = page.run()
    at.slider(key="train_count").set_value(20)
    at.slider(key="train_epochs").set_value(50)
    return at.run()


def test_page_trains_stops_and_continues(page):
    at = quick_page(page)
    assert run_in(at).steps == 0
    train_a_few_steps(at)
    assert run_in(at).steps > 0
    assert run_in(at).epochs < 50
    at.button(key="train_stop").click().run()
    while not next(reversed(at.session_state["train_runs"].values())).is_idle:
        at.run()
    stopped = run_in(at).steps
    at.run()
    assert run_in(at).steps == stopped
    assert at.button(key="train_start").label == "Go on"
    train_a_few_steps(at)
    while at.session_state["train_running"] is not None:
        at.run()
    assert run_in(at).epochs == 50
    assert at.session_state["train_running"] is None
    assert not at.exception


def test_page_responds_during_a_long_step(page, blocked_steps):
    at = quick_page(page)
    at.button(key="train_start").click().run()
    assert run_in(at).steps == 0
    assert "the first step is under way" in at.get("progress")[0].proto.text
    began = time.monotonic()
    at.run()
    assert time.monotonic() - began < 60  # of the step
    at.button(key="train_keep").click().run()
    assert "train_kept" not in at.session_state
    at.button(key="train_stop").click().run()
    assert at.session_state["train_running"] is None
    blocked_steps.set()
    training = next(iter(at.session_state["train_runs"].values()))
    training.wait(60)
    at.run()
    assert training.is_idle
    assert "under way" not in at.get("progress")[0].proto.text
    assert not at.exception


def test_page_compares_runs_and_restarts(page):
    at = quick_page(page)
    train_a_few_steps(at)
    at.button(key="train_stop").click().run()
    at.button(key="train_keep").click().run()
    at.number_input(key="train_seed").set_value(1).run()
    assert run_in(at).steps == 0
    train_a_few_steps(at)
    assert any(len(table.value) == 2 and "last loss" in table.value for table in at.table)
    at.number_input(key="train_seed").set_value(0).run()
    assert run_in(at).steps > 0  # the run was kept
    assert at.session_state["train_running"] is None  # changing a setting stops training
    at.button(key="train_over").click().run()
    assert run_in(at).steps == 0
    assert not at.exception


def test_sessions_keep_at_most_four_runs_of_their_own(page):
    at = quick_page(page)
    for seed in range(1, 7):
        at.number_input(key="train_seed").set_value(seed).run()
    assert len(at.session_state["train_runs"]) == 4
    other = type(page).from_function(app, default_timeout=60).run()
    assert len(other.session_state["train_runs"]) == 1


@pytest.mark.parametrize("data", train.SETS)
def test_page_trains_on_each_data_set(page, data):
    at = page.run()
    at.selectbox(key="train_data").set_value(data).run()
    train_a_few_steps(at)
    assert not at.exception
    assert not at.error
    assert run_in(at).settings.data == data
    assert run_in(at).steps > 0


@pytest.mark.parametrize("backend", mf.backends())
def test_page_trains_on_each_backend(page, backend):
    at = page.run()
    at.selectbox(key="train_backend").set_value(backend).run()
    train_a_few_steps(at)
    assert not at.exception
    assert run_in(at).steps > 0
    at.selectbox(key="train_data").set_value("digits").run()
    assert not at.exception
    assert bool(at.error) == train.is_slow(backend)


def test_first_picture_without_cached_kernels_compiles_none(monkeypatch, tmp_path):
    run, asked = train.begin(Settings(seed=3)), []
    monkeypatch.setattr(train, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(train.copy, "deepcopy", lambda model: asked.append(model) or deepcopy(model))
    shares = train.predict_shares(run, np.zeros((4, 2), np.float32))
    assert len(asked) == 1  # the weights were copied to another backend
    monkeypatch.undo()
    assert np.allclose(shares, train.predict_shares(run, np.zeros((4, 2), np.float32)), atol=1e-6)
