"""The page Train."""

from typing import TYPE_CHECKING, Any

import streamlit as st

import minifuse as mf
from minifuse.backends.registry import get_backend
from minifuse.core.errors import MinifuseError

from .. import frame, turns
from ..components.stage import stage
from ..frame import SPACE, PageContent, drawer, show_error, show_head, show_page
from ..public import policy
from ..views import train
from ..views.curves import line_chart
from ..views.train import Curve, Settings
from ..views.training import Training
from ..views.training import command as training_command

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

FIRST_S = 0.6  # seconds that the page waits for the first picture before it is drawn without it
EVERY_S = 0.4  # seconds between two slices, in which the page can respond
COMPILING_S = 0.8  # seconds between two checks if the first kernels are compiled
MAX_RUNS = 4  # runs that a session stores, to continue them
HEIGHT = 260  # height of the curve, in pixels
SOURCE_TITLE = "The body of the loop, with how often it ran"
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def page() -> None:
    """Draw a data set, a network, and its training."""
    settings, epochs, places = choose_settings()
    try:
        training = find_training(settings)
        policy().check_size("epochs", epochs)
        training.prepare(epochs)
        is_ready = training.wait(FIRST_S if training.seen is None else 0)
    except MinifuseError as error:
        show_error(error)
        return
    state = st.session_state
    if state.get("train_running") != settings:
        stop()
    turns.show_line("train_leave")
    show_buttons(training, epochs, places)
    is_asked = not is_ready or state["train_running"] is not None
    every = EVERY_S if is_asked else None
    st.fragment(show_progress, run_every=every if training.seen else COMPILING_S)(training, epochs, is_asked)


def choose_settings() -> "tuple[Settings, int, tuple[DeltaGenerator, ...]]":
    """Draw the controls; return the settings, the total number of epochs, and the places of the buttons."""
    bound: dict[str, Any] = {"bind": "query-params"}
    one, two, three, *places, last = show_head(
        "Train", "A small network learns: watch its boundary move.", 1, 1, 1, 0.7, 0.7, 0.7
    )
    data = one.selectbox("data", train.SETS, index=train.SETS.index("circle"), key="train_data", **bound)
    hidden = two.slider("hidden values", 1, 64, 16, key="train_hidden", **bound)
    epochs = three.slider("epochs in all", 5, 500, 100, 5, key="train_epochs", **bound)
    for place in (*places, last):
        place.html(SPACE)
    more = last.popover("More", width="stretch")
    names = mf.backends()
    backend = more.selectbox("backend", names, index=names.index(get_backend().name), key="train_backend", **bound)
    activation = more.selectbox("activation", list(train.ACTIVATIONS), key="train_activation", **bound)
    optimizer = more.selectbox("optimizer", train.OPTIMIZERS, key="train_optimizer", **bound)
    count = more.slider("points", 20, 400, 120, 10, key="train_count", disabled=data == train.DIGITS, **bound)
    batch = more.slider("examples a step", 1, 128, 32, key="train_batch", **bound)
    rate = more.select_slider("learning rate", RATES, 0.1, key="train_rate", **bound)
    seed = more.number_input("seed", 0, 9999, 0, key="train_seed", **bound)
    count = Settings.count if data == train.DIGITS else count
    settings = Settings(data, backend, count, hidden, activation, optimizer, rate, batch, int(seed))
    return settings, epochs, (*places, more)


def find_training(settings: Settings) -> Training:
    """Return the run of these settings in this session, or start a new one."""
    kept: dict[Settings, Training] = st.session_state.setdefault("train_runs", {})
    kept[settings] = kept.pop(settings) if settings in kept else Training(train.begin(settings))
    while len(kept) > MAX_RUNS:
        del kept[next(iter(kept))]
    return kept[settings]


def show_buttons(training: Training, epochs: int, places: "tuple[DeltaGenerator, ...]") -> None:
    """Draw the buttons into their places: continue, stop, start over, keep."""
    run, is_running = training.run, st.session_state["train_running"] is not None
    has_begun, wide = bool(run.steps or is_running), dict[str, Any](width="stretch")
    one, two, more = places
    one.button(
        "Go on" if run.steps else "Train",
        on_click=start,
        args=(training,),
        key="train_start",
        disabled=is_running or run.epochs >= epochs,
        type="primary",
        **wide,
    )
    two.button("Stop", on_click=stop, key="train_stop", disabled=not is_running, **wide)
    more.button("Start over", on_click=start_over, args=(training,), key="train_over", disabled=not has_begun, **wide)
    more.button("Keep to compare", on_click=keep_curve, args=(training,), key="train_keep", disabled=not has_begun, **wide)


def start(training: Training) -> None:
    """Start or continue training."""
    if turns.line_up():
        st.session_state["train_running"] = training.run.settings


def stop() -> None:
    """Stop training for now."""
    st.session_state["train_running"] = None
    turns.leave_line()


def start_over(training: Training) -> None:
    """Delete the run."""
    st.session_state["train_runs"].pop(training.run.settings, None)
    stop()


def keep_curve(training: Training) -> None:
    """Store the curve of a run, to compare it with another."""
    if training.seen and training.seen.curve.losses:
        st.session_state["train_kept"] = training.seen.curve


def show_progress(training: Training, epochs: int, is_asked: bool) -> None:
    """Train for one slice if training is on, and draw the state of the run. `is_asked`: redraw until a slice has ended."""
    chosen = st.session_state.get("board-train", {}).get("chosen")
    is_running = st.session_state.get("train_running") == training.run.settings
    try:
        if training.seen is None and not training.wait(0):
            st.status("The kernels of this network are compiled, once")
            return
        training.look(epochs, chosen)  # shows the previous slice if it has ended
        if is_running and turns.has_turn(lambda: not training.is_idle):
            training.go(epochs)
        is_idle = training.wait()
    except MinifuseError as error:
        stop()
        show_error(error)
        return
    if is_asked and is_idle and (not is_running or training.run.epochs >= epochs):
        stop()
        st.rerun()
    seen = training.look(epochs, chosen)
    source, command = train.source(training.run), training_command(training.run.settings, max(seen.epochs, 1))
    if is_asked:
        stage(seen.picture, "board-train", source, SOURCE_TITLE)
    else:
        show_page(PageContent("train", seen.picture, seen.facts, source, SOURCE_TITLE, command))
    st.progress(seen.share, f"{min(seen.epochs, epochs)} of {epochs} epochs, {seen.steps:,} steps{progress_note(training)}")
    kept = st.session_state.get("train_kept")
    left, right = st.columns(2, gap="medium")
    with left:
        show_curves(seen.curve, kept)
    with right:
        frame.show_table(train.compare_runs(seen.curve, None if kept == seen.curve else kept))
        if is_asked:
            frame.show_facts(seen.facts)


def progress_note(training: Training) -> str:
    """Describe the step that the page waits for, if it takes long."""
    if training.is_idle:
        return ""
    return "; a step is under way" if training.run.times else "; the first step is under way, and makes its kernels"


def show_curves(now: Curve, kept: Curve | None) -> None:
    """Draw the losses of this run and of the kept one, also as tables."""
    runs = [now] if kept is None or kept == now else [now, kept]
    rows = [{**row, "run": "now" if k == 0 else "kept"} for k, run in enumerate(runs) for row in train.losses([run])]
    if rows:
        said = f"The mean loss of each epoch: from {now.losses[0]:.4f} to {now.losses[-1]:.4f}." if now.losses else ""
        spec = line_chart(rows, "epoch", "loss", "run")
        st.vega_lite_chart(spec=spec, key="train_curve", height=HEIGHT, alt=said or "The mean loss of each epoch.")
    else:
        st.caption("The curve of the losses comes with the first epoch.")
    with drawer("The losses as a table", "train_table") as is_open:
        if is_open:
            st.dataframe(rows, hide_index=True, width="stretch", height=HEIGHT)
