"""Train."""

from typing import Any

import streamlit as st

import minifuse as mf
from minifuse.errors import MinifuseError

from .. import frame
from ..components.board import board
from ..frame import Shown, mistake, show
from ..views import train
from ..views.curves import lines
from ..views.train import Curve, Run, Settings

EVERY_S = 0.4  # between two slices, while the page is free to answer
MOST_RUNS = 4  # that a session keeps, to go on with
HEIGHT = 260  # of the curve, in pixels
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def page() -> None:
    """A data set, a network, and how it learns."""
    st.title("Train")
    st.write("A small network learns by the loop that anybody would write. It can be stopped, and goes on where it stood.")
    settings, epochs = choose()
    try:
        run = run_of(settings)
    except MinifuseError as error:
        mistake(error)
        return
    state = st.session_state
    if state.get("train_running") != settings:
        state["train_running"] = None
    buttons(run, epochs)
    is_running = state["train_running"] is not None
    st.fragment(live, run_every=EVERY_S if is_running else None)(run, epochs)


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


def run_of(settings: Settings) -> Run:
    """The run of these settings in this session: one that is kept, or a new one."""
    runs: dict[Settings, Run] = st.session_state.setdefault("train_runs", {})
    runs[settings] = runs.pop(settings) if settings in runs else train.begin(settings)
    while len(runs) > MOST_RUNS:
        del runs[next(iter(runs))]
    return runs[settings]


def buttons(run: Run, epochs: int) -> None:
    """Go on, stop, start over, keep."""
    is_running, is_done = st.session_state["train_running"] is not None, run.epochs >= epochs
    one, two, three, four = st.columns(4)
    name = "Go on" if run.steps else "Train"
    one.button(
        name, on_click=start, args=(run,), key="train_start", disabled=is_running or is_done, type="primary", width="stretch"
    )
    two.button("Stop", on_click=stop, key="train_stop", disabled=not is_running, width="stretch")
    three.button(
        "Start over",
        on_click=start_over,
        args=(run,),
        key="train_over",
        disabled=not (run.steps or is_running),
        width="stretch",
    )
    four.button(
        "Keep to compare",
        on_click=keep,
        args=(run,),
        key="train_keep",
        disabled=not (run.losses or is_running),
        width="stretch",
    )


def start(run: Run) -> None:
    """Train on."""
    st.session_state["train_running"] = run.settings


def stop() -> None:
    """Train no further for now."""
    st.session_state["train_running"] = None


def start_over(run: Run) -> None:
    """Forget what was learned."""
    st.session_state["train_runs"].pop(run.settings, None)
    stop()


def keep(run: Run) -> None:
    """Keep the curve of a run, to see another beside it."""
    if run.losses:
        st.session_state["train_kept"] = train.curve(run)


def live(run: Run, epochs: int) -> None:
    """Train for a slice, if asked to, and show where the run stands."""
    is_running = st.session_state.get("train_running") == run.settings
    if is_running and not train.advance(run, epochs):
        stop()
        st.rerun()
    st.progress(run.share(epochs), f"{min(run.epochs, epochs)} of {epochs} epochs, {run.steps:,} steps")
    now: Curve = train.curve(run)
    left, right = st.columns([2, 1], gap="medium")
    with right:
        curves(now, st.session_state.get("train_kept"))
        if is_running:
            frame.facts(train.facts(run))
    with left:
        chosen = st.session_state.get("board-train", {}).get("chosen")
        picture = train.picture(run, chosen)
        if is_running:
            board(picture, key="board-train")
            return
        show(Shown("train", picture, train.facts(run)))
    with st.expander("The source that runs"):
        frame.source(Shown("train", picture, (), train.source(run), "The body of the loop"))


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
    st.dataframe(train.compared(now, runs[1] if len(runs) > 1 else None), hide_index=True, width="stretch")
    with st.expander("The losses as a table"):
        st.dataframe(rows, hide_index=True, width="stretch", height=HEIGHT)
