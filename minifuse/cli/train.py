"""`minifuse train`: train a small network on a data set, with the same loop and results as the page "Train"."""

from dataclasses import dataclass
from difflib import get_close_matches
from math import inf

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from ..core.errors import MinifuseError
from ..recipes import MODULES
from ..training.progress import new_progress_bar
from .files import RequestError
from .layout import FactRecord, facts_as_dicts, import_views, show_facts
from .output import new_console, print_json, report_error
from .simulation import warn_of_simulation


@dataclass(frozen=True)
class NetworkOptions:
    """The options of a training run; None for the page's default."""

    data: str
    backend: str | None
    epochs: int
    hidden: int | None
    activation: str | None
    optimizer: str | None
    rate: float | None
    batch: int | None
    count: int | None
    seed: int | None


def run(choice: NetworkOptions, json: bool) -> int:
    """Train and print; return 2 if the request is invalid."""
    console = new_console()
    try:
        sentence, losses, facts = train_network(choice, console if not json else None)
    except MinifuseError as error:
        return report_error("train", error)
    if json:
        print_json({"sentence": sentence, "losses": losses, "facts": facts})
        return 0
    console.print(escape(sentence))
    show_facts(facts, console)
    return 0


def train_network(choice: NetworkOptions, console: Console | None) -> tuple[str, list[float], list[FactRecord]]:
    """Train a network; return a sentence, the mean loss of each epoch, and the facts."""
    (train,) = import_views("train")
    if choice.data not in train.SETS:
        similar = get_close_matches(choice.data, MODULES, 1) or get_close_matches(choice.data, train.SETS, 1)
        hint = f"; did you mean {similar[0]}?" if similar else ""
        known = f"a recipe ({', '.join(MODULES)}) or a data set ({', '.join(train.SETS)})"
        raise RequestError(f"{choice.data!r}: expected {known}{hint}")
    for name, value, known_values in (
        ("--activation", choice.activation, train.ACTIVATIONS),
        ("--optimizer", choice.optimizer, train.OPTIMIZERS),
    ):
        if value is not None and value not in known_values:
            raise RequestError(f"{name} {value!r}: expected one of {', '.join(known_values)}")
    warn_of_simulation(choice.backend)
    settings = {name: value for name, value in vars(choice).items() if name != "epochs" and value is not None}
    session = train.begin(train.Settings(**settings))
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with new_progress_bar(*columns, console=console, disable=console is None, transient=True) as progress:
        bar = progress.add_task("epochs", total=choice.epochs)
        while session.epochs < choice.epochs and train.advance(session, choice.epochs, inf):
            progress.update(bar, completed=session.epochs, description=f"loss {session.losses[-1]:.4f}")
    return train.sentence(session), list(session.losses), facts_as_dicts(train.facts(session))
