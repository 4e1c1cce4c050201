"""The commands and their options; what they do is in the files beside this one."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__


class Commands(TyperGroup):
    """The commands below, and `course`, which has commands of its own and is imported when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of help."""
        return [*super().list_commands(ctx), "course"]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name."""
        if cmd_name != "course":
            return super().get_command(ctx, cmd_name)
        from .course import app as course

        command = typer.main.get_command(course)
        command.name = cmd_name  # the help prints it
        return command


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="minifuse: a tensor engine to read in a week.",
)

Json = Annotated[bool, typer.Option("--json", help="Print the facts as JSON, and nothing else.")]
Backend = Annotated[str | None, typer.Option(help="The backend to use; the default one if left out.")]
LoopLimit = Annotated[int, typer.Option(min=1, help="Loop iterations of a launch after which a thread must have ended.")]
LOOP_LIMIT = 3_000_000  # as in simt.machine, which the commands import only where they need it


def show_version(is_wanted: bool) -> None:
    """Print the version of minifuse and end, for `--version`."""
    if is_wanted:
        typer.echo(f"minifuse {__version__}")
        raise typer.Exit()


@app.callback()
def minifuse(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version of minifuse.")
    ] = False,
) -> None:
    """A tensor engine to read in a week: strides, autodiff, and kernels close to the limit of the hardware."""


@app.command()
def demo(
    backend: Backend = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="How often the network sees each digit; 20 if left out.")] = None,
    seed: Annotated[int, typer.Option(help="Of the split, the weights and the order.")] = 0,
    digits: Annotated[int | None, typer.Option(min=8, help="How many digits to train on; all 1,437 if left out.")] = None,
    json: Json = False,
) -> None:
    """Train a network on 1,797 handwritten digits, then show that the backends agree on it, and how fast each is."""
    from .demo import run

    run(backend, epochs, seed, digits, json)


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


@app.command(context_settings={"ignore_unknown_options": True})
def check(
    script: Annotated[Path, typer.Argument(help="A script of numba.cuda, or a file of tests for pytest.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="For the script; after -- whatever they look like.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Save a trace: of the first launch with a hazard, or the last.")] = None,
    schedules: Annotated[int, typer.Option(min=1, help="Run each launch in this many orders of warps and blocks.")] = 1,
    limit: Annotated[int, typer.Option(min=1, help="Accesses to memory that are recorded of a launch.")] = 1_000_000,
    loop_limit: LoopLimit = LOOP_LIMIT,
    json: Json = False,
) -> None:
    """Run a numba.cuda script without a GPU, and judge its kernels: races, bounds, barriers, reads before writes."""
    from .check import run

    raise typer.Exit(run(script, arguments or [], trace, schedules, limit, loop_limit, json))


@app.command()
def explain(
    what: Annotated[str, typer.Argument(help="FILE.py:function; fused or not. The file is imported, the function not run.")],
    shape: Annotated[
        str | None, typer.Option(help="Of the arguments: 1024x1024,1024,0.5; else EXAMPLE = (...) in the file says it.")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="Of the arguments of --shape: one, or one for each with commas.")] = None,
    backend: Backend = None,
    grad: Annotated[
        bool, typer.Option("--grad", help="Take gradients of all arguments: explain the backward pass too.")
    ] = False,
    source: Annotated[bool, typer.Option("--source", help="Show the host program and the kernels too.")] = False,
    steps: Annotated[
        bool, typer.Option("--steps", help="Say how it came to these kernels: a line for each decision.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what fusion makes of a function: kernels, launches, bytes moved, peak memory, and every refused merge."""
    from .explain import Request, run

    raise typer.Exit(run(Request(what, shape, dtype, backend, grad), source, json, steps))


@app.command()
def grad(
    what: Annotated[str, typer.Argument(help="FILE.py:function, of tensors. The file is imported, and the function runs.")],
    shape: Annotated[str, typer.Option(help="Of the arguments: 2x3,3 makes two.")],
    json: Json = False,
) -> None:
    """Walk the backward pass of a function call by call, and hold its gradients against finite differences."""
    from .grad import run

    raise typer.Exit(run(what, shape, json))


@app.command()
def trace(
    what: Annotated[
        str | None, typer.Argument(help="add, exp, sum, softmax, matmul, matmul:naive, FILE.py:kernel, ...")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="Say what can be traced.")] = False,
    shape: Annotated[list[str] | None, typer.Option(help="32,32 for all operands, or once for each; matmul: M,N,K.")] = None,
    dim: Annotated[int | None, typer.Option(help="The dim that is folded; all if left out (softmax: the last).")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 if left out.")] = None,
    layout: Annotated[str | None, typer.Option(help="How the operands lie in memory; see --list.")] = None,
    arg: Annotated[list[str] | None, typer.Option(help="Of a kernel in a file: x=32,32:float32 (random) or n=32.")] = None,
    grid: Annotated[str | None, typer.Option(help="Of a kernel in a file: blocks along x, y, z, as in 4,2.")] = None,
    block: Annotated[str | None, typer.Option(help="Of a kernel in a file: threads along x, y, z.")] = None,
    shared: Annotated[int | None, typer.Option(min=0, help="Of a kernel in a file: bytes of dynamic shared memory.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another order of warps and blocks; 0: by their numbers.")] = 0,
    limit: Annotated[int, typer.Option(min=1, help="Accesses to memory that are recorded of a launch.")] = 1_000_000,
    loop_limit: LoopLimit = LOOP_LIMIT,
    save: Annotated[Path | None, typer.Option(help="Write the trace to this .npz; several are numbered.")] = None,
    source: Annotated[bool, typer.Option("--source", help="Show the whole kernel too.")] = False,
    cell: Annotated[
        int | None, typer.Option(help="Say instead what this cell of the output is made of, in order, and its tree.")
    ] = None,
    backend: Annotated[str | None, typer.Option(help="With --cell: cuda if left out, parallel or python.")] = None,
    json: Json = False,
) -> None:
    """Run a kernel lane by lane, and say what it does to memory: requests, sectors, bank conflicts, hazards."""
    from .subjects import Request
    from .trace import run, run_list

    if list_all:
        raise typer.Exit(run_list(json))
    request = Request(what or "", shape or (), dim, dtype, layout, arg or (), grid, block, shared)
    raise typer.Exit(run(request, seed, limit, loop_limit, save, source, json, cell, backend))


@app.command()
def layout(
    shape: Annotated[str, typer.Option(help="Of a fresh tensor x: 3,4; nothing at all for a single number.")] = "3,4",
    views: Annotated[str, typer.Option(help="Of x, in order: .T, [::2, 1:], .permute(1, 0), .flip(0), ...")] = "",
    other: Annotated[
        str | None, typer.Option("--with", help="The shape of a tensor y that x meets: say how they broadcast.")
    ] = None,
    operation: Annotated[str, typer.Option(help='Of --with: "x + y" or "x * y".')] = "x + y",
    element: Annotated[str | None, typer.Option(help="Of the view, or of the result: an index, as in 0,1.")] = None,
    json: Json = False,
) -> None:
    """Say where the elements of a view lie, or how two shapes broadcast and what the gradients sum."""
    from .layout import run

    raise typer.Exit(run(shape, views, other, operation, element, json))


@app.command()
def race(
    operation: Annotated[str, typer.Argument(help='"a + b", "exp(x)", "x.sum()", "softmax of rows" or "a @ b".')] = "a + b",
    players: Annotated[str | None, typer.Option(help="NumPy and backends, with commas; all fast ones if left out.")] = None,
    roof: Annotated[bool, typer.Option("--roof", help="Measure what the machine can do at most, too.")] = False,
    json: Json = False,
) -> None:
    """Time one operation on each backend and in NumPy, over sizes, in about a second."""
    from .race import run

    raise typer.Exit(run(operation, players, roof, json))


@app.command()
def bench(
    rows: Annotated[
        list[str] | None,
        typer.Argument(help="Parts of names or groups; all of the main suite if left out. The first one names the suite."),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Peers with commas, as torch,cupy; all that are there if left out.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes and one call each: that it works, not how fast.")
    ] = False,
    list_all: Annotated[bool, typer.Option("--list", help="Say which rows there are, and against whom.")] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the random numbers; a new one if left out.")] = None,
    out: Annotated[Path | None, typer.Option(help="Also write the results to this file, as JSON.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw curves, and rows under the roof, to this .svg.")] = None,
    json: Json = False,
) -> None:
    """Measure minifuse side by side with NumPy, torch and others: checked, interleaved, under the roof of the machine."""
    from .bench import Request, run

    raise typer.Exit(run(Request(rows or (), against, quick, list_all, seed, out, picture), json))


@app.command()
def train(
    name: Annotated[
        str | None,
        typer.Argument(help="mlp, lenet, sentences, gpt; or simple, diagonal, split, xor, circle, spiral, moons, digits."),
    ] = None,
    backend: Backend = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="How often each example is seen.")] = None,
    rate: Annotated[float | None, typer.Option(help="The learning rate.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Examples a step.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the data, the weights and the order; 0 if left out.")] = None,
    fuse: Annotated[
        bool | None, typer.Option("--fuse/--no-fuse", help="Whether a step is one fused function. Of the first four.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: an option of one of the first four, such as width=64.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder of the run; one below runs/ if left out.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder, where it was stopped.")] = None,
    hidden: Annotated[int | None, typer.Option(min=1, help="Hidden values; of the others, as what follows.")] = None,
    activation: Annotated[str | None, typer.Option(help="ReLU or Tanh.")] = None,
    optimizer: Annotated[str | None, typer.Option(help='"SGD with momentum" or Adam.')] = None,
    points: Annotated[int | None, typer.Option(min=8, help="Of a set of points; 120 if left out.")] = None,
    json: Json = False,
) -> None:
    """Train a model, and say what it has learned. The first four keep a folder, and go on after any interruption."""
    from ..recipes import MODULES

    common = {"backend": backend, "epochs": epochs, "rate": rate, "batch": batch, "seed": seed}
    of_recipes = {"fuse": fuse, "set": option, "out": out, "resume": resume}
    of_points = {"hidden": hidden, "activation": activation, "optimizer": optimizer, "points": points}
    is_recipe = resume is not None or name in MODULES
    foreign = next((key for key, value in (of_points if is_recipe else of_recipes).items() if value is not None), None)
    if foreign:
        known = "--set NAME=VALUE for the options of a recipe" if is_recipe else f"it is one of {', '.join(MODULES)}"
        typer.echo(f"minifuse train: --{foreign} is not for {name or resume or 'circle'}; {known}", err=True)
        raise typer.Exit(2)
    if is_recipe:
        from . import recipes

        raise typer.Exit(recipes.run(recipes.Choice(name, {**common, "fuse": fuse}, option or (), out, resume), json))
    from .train import Choice, run

    chosen = Choice(name or "circle", backend, epochs or 100, hidden, activation, optimizer, rate, batch, points, seed)
    raise typer.Exit(run(chosen, json))


@app.command()
def warmup(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="demo, mlp, lenet, sentences, gpt, or FILE.py:function; the first five if left out."),
    ] = None,
    shape: Annotated[str | None, typer.Option(help="Of a function's arguments, as minifuse explain takes it.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Of the arguments of --shape: one, or one for each with commas.")] = None,
    backend: Backend = None,
    grad: Annotated[bool, typer.Option("--grad", help="Compile a function's backward pass too.")] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes that compile; one for each processor if left out.")
    ] = None,
    json: Json = False,
) -> None:
    """Compile what the demo, the recipes or a function of yours need, and keep it on disk: then nothing waits for it."""
    from .warmup import Request, run

    raise typer.Exit(run(Request(tuple(names or ()), shape, dtype, backend, grad, jobs), json))


@app.command("app")
def visualizer(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="8501 if left out; the next free one where it is taken.")
    ] = None,
    kernel: Annotated[str | None, typer.Option(help="FILE.py:name: a kernel of yours, for the pages to take apart.")] = None,
) -> None:
    """Serve the visualizer to a browser on this machine, and print its address: the library's kernels, taken apart."""
    from .app import run

    raise typer.Exit(run(port, kernel))
