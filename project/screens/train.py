"""Train."""

from typing import Any

import streamlit as st

import minifuse as mf
from minifuse.core.errors import MinifuseError

from .. import frame
from ..components.board import board
from ..frame import Shown, mistake, show
from ..views import train
from ..views.curves import lines
from ..views.train import Curve, Settings
from ..views.training import Training
from ..views.training import command as training_command

FIRST_S = 0.6  # that the page waits for the first picture, before it comes without
EVERY_S = 0.4  # between two slices, while the page is free to answer
COMPILING_S = 0.8  # between two looks at whether the first kernels are there
MAX_RUNS = 4  # that a session keeps, to go on with
HEIGHT = 260  # of the curve, in pixels
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def page() -> None:
    """A data set, a network, and how it learns."""
    st.title("Train")
    st.write("A small network learns by the loop that anybody would write. It can be stopped, and goes on where it stood.")
    settings, epochs = choose()
    try:
        training = training_of(settings)
        training.prepare(epochs)
        is_ready = training.wait(FIRST_S if training.seen is None else 0)
    except MinifuseError as error:
        mistake(error)
        return
    state = st.session_state
    if state.get("train_running") != settings:
        state["train_running"] = None
    buttons(training, epochs)
    is_asked = not is_ready or state["train_running"] is not None
    every = EVERY_S if is_asked else None
    st.fragment(live, run_every=every if training.seen else COMPILING_S)(training, epochs, is_asked)


def choose() -> tuple[Settings, int]:
    """The settings, and how many epochs in all."""
    bound: dict[str, Any] = {"bind": "query-params"}
    one, two, three, four = st.columns(4)
    data = one.selectbox("data", train.SETS, index=train.SETS.index("circle"), key="train_data", **bound)
    names = mf.backends()
    backend = two.selectbox("backend", names, index=names.index("parallel"), key="train_backend", **bound)
    activation = three.selectbox("activation", list(train.ACTIVATIONS), key="train_activation", **bound)
    optimizer = four.selectbox("optimizer", train.OPTIMIZERS, key="train_optimizer", **bound)
    one, two, three, four = st.columns(4)
    hidden = one.slider("hidden values", 1, 64, 16, key="train_hidden", **bound)
    rate = two.select_slider("learning rate", RATES, 0.1, key="train_rate", **bound)
    epochs = three.slider("epochs in all", 5, 500, 100, 5, key="train_epochs", **bound)
    seed = four.number_input("seed", 0, 9999, 0, key="train_seed", **bound)
    with st.expander("More"):
        one, two = st.columns(2)
        count = one.slider("points", 20, 400, 120, 10, key="train_count", disabled=data == train.DIGITS, **bound)
        batch = two.slider("examples a step", 1, 128, 32, key="train_batch", **bound)
    count = Settings.count if data == train.DIGITS else count
    return Settings(data, backend, count, hidden, activation, optimizer, rate, batch, int(seed)), epochs


def training_of(settings: Settings) -> Training:
    """The run of these settings in this session: one that is kept, or a new one."""
    kept: dict[Settings, Training] = st.session_state.setdefault("train_runs", {})
    kept[settings] = kept.pop(settings) if settings in kept else Training(train.begin(settings))
    while len(kept) > MAX_RUNS:
        del kept[next(iter(kept))]
    return kept[settings]


def buttons(training: Training, epochs: int) -> None:
    """Go on, stop, start over, keep."""
    run, is_running = training.run, st.session_state["train_running"] is not None
    has_begun, wide = bool(run.steps or is_running), dict[str, Any](width="stretch")
    one, two, three, four = st.columns(4)
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
    three.button("Start over", on_click=start_over, args=(training,), key="train_over", disabled=not has_begun, **wide)
    four.button("Keep to compare", on_click=keep, args=(training,), key="train_keep", disabled=not has_begun, **wide)


def start(training: Training) -> None:
    """Train on."""
    st.session_state["train_running"] = training.run.settings


def stop() -> None:
    """Train no further for now."""
    st.session_state["train_running"] = None


def start_over(training: Training) -> None:
    """Forget what was learned."""
    st.session_state["train_runs"].pop(training.run.settings, None)
    stop()


def keep(training: Training) -> None:
    """Keep the curve of a run, to see another beside it."""
    if training.seen and training.seen.curve.losses:
        st.session_state["train_kept"] = training.seen.curve


def live(training: Training, epochs: int, is_asked: bool) -> None:
    """Train for a slice, if asked to, and show where the run stands; `is_asked` again and again until a slice has ended."""
    chosen = st.session_state.get("board-train", {}).get("chosen")
    is_running = st.session_state.get("train_running") == training.run.settings
    try:
        if training.seen is None and not training.wait(0):
            st.status("The kernels of this network are compiled, once")
            return
        training.look(epochs, chosen)  # the slice before, if it ended in the meantime
        if is_running:
            training.go(epochs)
        is_idle = training.wait()
    except MinifuseError as error:
        stop()
        mistake(error)
        return
    if is_asked and is_idle and (not is_running or training.run.epochs >= epochs):
        stop()
        st.rerun()
    seen = training.look(epochs, chosen)
    st.progress(seen.share, f"{min(seen.epochs, epochs)} of {epochs} epochs, {seen.steps:,} steps{under_way(training)}")
    kept = st.session_state.get("train_kept")
    frame.table(train.compared(seen.curve, None if kept == seen.curve else kept))
    left, right = st.columns([2, 1], gap="medium")
    with right:
        curves(seen.curve, kept)
        if is_asked:
            frame.facts(seen.facts)
    with left:
        if is_asked:
            board(seen.picture, key="board-train")
            return
        command = training_command(training.run.settings, max(seen.epochs, 1))
        show(Shown("train", seen.picture, seen.facts, command=command))
    with st.expander("The source that runs"):
        frame.source(Shown("train", seen.picture, (), train.source(training.run), "The body of the loop"))


def under_way(training: Training) -> str:
    """What the page waits for, if a step takes longer than it does."""
    if training.is_idle:
        return ""
    return "; a step is under way" if training.run.times else "; the first step is under way, and makes its kernels"


def curves(now: Curve, kept: Curve | None) -> None:
    """The losses, and those of the run that was kept; and the same as tables."""
    runs = [now] if kept is None or kept == now else [now, kept]
    rows = [{**row, "run": "now" if k == 0 else "kept"} for k, run in enumerate(runs) for row in train.losses([run])]
    if rows:
        said = f"The mean loss of each epoch: from {now.losses[0]:.4f} to {now.losses[-1]:.4f}." if now.losses else ""
        spec = lines(rows, "epoch", "loss", "run")
        st.vega_lite_chart(spec=spec, key="train_curve", height=HEIGHT, alt=said or "The mean loss of each epoch.")
    else:
        st.container(height=HEIGHT, border=True).write("The curve of the losses comes with the first epoch.")
    with st.expander("The losses as a table"):
        st.dataframe(rows, hide_index=True, width="stretch", height=HEIGHT)
