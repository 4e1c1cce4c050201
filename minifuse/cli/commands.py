"""The commands and their options; what they do is in the files beside this one."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="minifuse: a tensor engine to read in a week.",
)

Json = Annotated[bool, typer.Option("--json", help="Print the facts as JSON, and nothing else.")]
Backend = Annotated[str | None, typer.Option(help="The backend to use; the default one if left out.")]


@app.callback()
def minifuse() -> None:
    """A tensor engine to read in a week: strides, autodiff, and kernels close to the limit of the hardware."""


@app.command()
def demo(
    backend: Backend = None,
    epochs: Annotated[int, typer.Option(min=1, help="How often the network sees each digit.")] = 20,
    seed: Annotated[int, typer.Option(help="Of the split, the weights and the order.")] = 0,
    json: Json = False,
) -> None:
    """Train a network on 1,797 handwritten digits, then show that the backends agree on it, and how fast each is."""
    from .demo import run

    run(backend, epochs, seed, json)


@app.command()
def equivalence(
    html: Annotated[Path | None, typer.Option(help="Also write the table to this file.")] = None,
    backends: Annotated[str | None, typer.Option(help="Names with commas between; all if left out.")] = None,
    json: Json = False,
) -> None:
    """Hold every operator, on every backend and in every layout, against NumPy in float64."""
    from .equivalence import run

    raise typer.Exit(run(backends.split(",") if backends else None, html, json))


@app.command()
def doctor(json: Json = False) -> None:
    """Say what this machine has, what is missing, and the line that installs it."""
    from .doctor import run

    raise typer.Exit(run(json))
