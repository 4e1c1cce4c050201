"""`minifuse train mlp|lenet|sentences|gpt`: train a recipe in a folder, with a progress bar. Runs can be resumed."""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from shlex import quote
from threading import current_thread, main_thread

from rich.markup import escape

from ..core.errors import MinifuseError, TrainingError
from ..distributed import all_reduce, init, rank, size
from ..engines.environment import Place
from ..recipes import MODULES, recipe_named
from ..runtime.atomic_files import reason
from ..tensors.creation import tensor
from ..training import RunFolder, Trainer, fit, resume
from ..training.progress import show_progress
from ..training.run_folder import CONFIG, CURVES
from .launch import LaunchRequest
from .launch import run as launch
from .output import EXIT_INTERRUPTED, new_console, print_json, report_error
from .simulation import warn_of_simulation

RUNS = Path("runs")
COMMAND = Path(__file__).parents[1] / "__main__.py"


@dataclass(frozen=True)
class RecipeOptions:
    """The options of a run; None for the recipe's default."""

    name: str | None
    settings: Mapping[str, object]
    """Settings of the run by name; None for a setting that the command line does not contain."""
    options: Sequence[str]
    """Options of the recipe, as name=value."""
    out: Path | None
    resume: Path | None
    ranks: int = 1
    engine: str = "shared"
    restarts: int = 0

    def arguments(self, json: bool) -> list[str]:
        """Return the command line of one rank."""
        given: dict[str, object] = {"out": self.out, "resume": self.resume, **self.settings}
        fuse = given.pop("fuse", None)
        flags = [] if fuse is None else ["--fuse" if fuse else "--no-fuse"]
        named = [text for name, value in given.items() if value is not None for text in (f"--{name}", str(value))]
        chosen = [text for option in self.options for text in ("--set", option)]
        return ["train", *([self.name] if self.name else []), *named, *chosen, *flags, *["--json"] * json]


def run(choice: RecipeOptions, json: bool) -> int:
    """Train; return 1 if training failed, 2 if the request is invalid, 130 if it was interrupted."""
    if choice.ranks > 1 and size() == 1:
        return launch_ranks(choice, json)
    init()
    if (place := Place.read()) and place.restart and choice.out and (choice.out / CONFIG).exists():
        choice = RecipeOptions(None, {}, (), None, choice.out)
    if rank():
        return follow(choice)
    console = new_console(is_quiet=json)
    try:
        trainer, folder = start_run(choice)
    except MinifuseError as error:
        return report_error("train", error)
    warn_of_simulation(trainer.settings.backend)
    console.print(
        f"{escape(trainer.recipe.name)}: {escape(trainer.recipe.about)}; {trainer.steps - trainer.done:,} steps left"
    )
    console.print(f"in {escape(str(folder.path))}")
    try:
        with show_progress(trainer, console) as report, stop_on_interrupt() as is_interrupted:
            is_done = fit(trainer, folder, lambda records, numbers: report(records, numbers) or is_interrupted())
    except MinifuseError as error:
        return report_error("train", error, 1)
    numbers = trainer.measure()
    sample = trainer.recipe.says(trainer.model, trainer.data, trainer.settings.seed) if is_done else ""
    if json:
        facts = {"folder": str(folder.path), "steps": trainer.done, "is_done": is_done, "held_out": numbers, "says": sample}
        print_json(facts)
    elif is_done:
        console.print("held out: " + ", ".join(f"{name} {value:.4f}" for name, value in numbers.items()))
        console.print(f"curves: {escape(str(folder.path / CURVES))}")
        console.print(f"\n{escape(sample)}" if sample else "", end="\n" if sample else "")
    if not is_done:
        ranks = f" --ranks {size()}" if size() > 1 else ""
        command = f"minifuse train --resume {quote(str(folder.path))}{ranks}"
        console.print(f"stopped after step {trainer.done:,}; to continue: {escape(command)}", soft_wrap=True)
        return EXIT_INTERRUPTED
    return 0


def launch_ranks(choice: RecipeOptions, json: bool) -> int:
    """Run this command as several ranks. The folder is created first, so that a restart continues the same run."""
    try:
        if choice.resume is None:
            assert choice.name is not None
            choice = replace(choice, out=choice.out or create_run_folder(choice.name))
        request = LaunchRequest(COMMAND, choice.arguments(json), choice.ranks, choice.engine, restarts=choice.restarts)
        return launch(request)
    except MinifuseError as error:
        return report_error("train", error)


def start_run(choice: RecipeOptions) -> tuple[Trainer, RunFolder]:
    """Create a run, or restore the run that shall be resumed."""
    if choice.resume is not None:
        used_options = [name for name, value in choice.settings.items() if value is not None] + ["set"] * bool(
            choice.options
        )
        if used_options or choice.out:
            raise TrainingError(
                f"--resume continues with the settings of the run, got --{(used_options or ['out'])[0]}; start a new run to "
                "change them"
            )
        folder = RunFolder(choice.resume)
        name = folder.config()["recipe"]
        if choice.name not in (None, name):
            raise TrainingError(f"{choice.resume} is a run of {name}, not of {choice.name}")
        if name not in MODULES:
            raise TrainingError(f"{folder.path / CONFIG}: unknown recipe {name!r}; expected one of {', '.join(MODULES)}")
        recipe = recipe_named(name)
        settings = folder.settings(recipe)
        folder.lock()  # early, since data and model take a while
        trainer = Trainer(recipe, settings)
        resume(trainer, folder)
        return trainer, folder
    trainer = new_trainer(choice)
    name = trainer.recipe.name
    return trainer, RunFolder.create(choice.out or create_run_folder(name), name, trainer.settings.as_dict())


def new_trainer(choice: RecipeOptions) -> Trainer:
    """Return the trainer of a new run."""
    assert choice.name is not None
    recipe = recipe_named(choice.name)
    options = dict(map(parse_option, choice.options))
    return Trainer(recipe, recipe.settings.changed({**choice.settings, "options": options}))


def follow(choice: RecipeOptions) -> int:
    """Train as a rank that writes no files: rank 0 writes those of the run."""
    if choice.resume is not None:
        folder = RunFolder(choice.resume)
        recipe = recipe_named(folder.config()["recipe"])
        trainer = Trainer(recipe, folder.settings(recipe))
        if not folder.is_untouched:
            trainer.restore(folder.load(trainer.settings.backend), str(folder.path))
    else:
        trainer = new_trainer(choice)
    with stop_on_interrupt() as is_interrupted:
        for _ in trainer.advance():
            if is_interrupted():
                return EXIT_INTERRUPTED
    return 0


def create_run_folder(name: str) -> Path:
    """Create an empty folder under `runs`, named after a recipe and the time.

    Raises
    ------
    TrainingError
        The folder cannot be created.
    """
    first_name = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    for number in count(1):  # another process may begin in the same second
        folder = RUNS / (first_name if number == 1 else f"{first_name}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise TrainingError(f"{folder} cannot be created: {reason(error)}; choose another folder with --out") from None
        return folder
    raise AssertionError("count is infinite")


def parse_option(text: str) -> tuple[str, str]:
    """Parse name=value."""
    name, sign, value = text.partition("=")
    if not sign:
        raise TrainingError(f"--set {text}: expected NAME=VALUE, such as width=64")
    return name.strip(), value.strip()


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Stop after the current step on the first Ctrl-C, and at once on the second one.

    All ranks call the yielded function after the same steps, and stop after the same step.
    """
    interrupts = list[int]()

    def on_interrupt(number: int, frame: object) -> None:
        interrupts.append(number)
        signal.signal(signal.SIGINT, previous_handler)

    if current_thread() is not main_thread():  # a simulated rank: Ctrl-C stops the main thread, and so all of them
        yield lambda: is_true_on_any_rank(False)
        return
    previous_handler = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield lambda: is_true_on_any_rank(bool(interrupts))
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def is_true_on_any_rank(flag: bool) -> bool:
    """Return whether a flag is True on any rank. All ranks call it after each step, so one rank makes no tensor for it."""
    return flag if size() == 1 else bool(all_reduce(tensor(flag), "max").item())
