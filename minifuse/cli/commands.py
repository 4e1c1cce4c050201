"""The commands and their options. Their implementations are in the files beside this one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import __version__
from .command_groups import CourseGroup, RootGroup

if TYPE_CHECKING:
    from ..course.student_engine import StudentEngine


app = typer.Typer(
    cls=RootGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="minifuse: a tensor engine to read in a week.",
)
app.add_typer(
    typer.Typer(cls=CourseGroup),
    name="course",
    no_args_is_help=True,
    help="Write the engine yourself, one function at a time; minifuse supplies the rest.",
)

Json = Annotated[bool, typer.Option("--json", help="Print the facts as JSON, and nothing else.")]
Backend = Annotated[str | None, typer.Option(help="Run on this backend. Default: the default backend.")]
LoopLimit = Annotated[int, typer.Option(min=1, help="Stop a launch after this many loop iterations if no thread ends.")]
LOOP_LIMIT = 3_000_000  # as in simt.machine, which is imported only by the commands that need it


def show_version(is_requested: bool) -> None:
    """Print the version of minifuse and exit, for `--version`."""
    if is_requested:
        typer.echo(f"minifuse {__version__}")
        raise typer.Exit()


@app.callback()
def minifuse(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version of minifuse.")
    ] = False,
    engine: Annotated[
        Path | None,
        typer.Option(help='Run on the functions that you wrote in this folder of the course: the backend "yours".'),
    ] = None,
) -> None:
    """A tensor engine to read in a week: strides, autodiff, and kernels close to the limit of the hardware."""
    if engine is not None:
        from ..course.student_engine import use_engine

        yours = use_engine(engine)
        context.call_on_close(lambda: show_share(yours))


def show_share(engine: "StudentEngine") -> None:
    """Print how many calls of this process a student's functions ran, if there were any calls."""
    share = engine.share()
    if share.theirs or share.lent:
        typer.echo(f"Your engine: {share}", err=True)


@app.command()
def demo(
    backend: Backend = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Train for this many passes over the digits. Default: 20.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split, the weights and the order of the digits.")] = 0,
    digits: Annotated[int | None, typer.Option(min=8, help="Train on this many digits. Default: all 1,437.")] = None,
    json: Json = False,
) -> None:
    """Train a network on 1,797 handwritten digits, then compare results and speed of all backends."""
    from .demo import run

    raise typer.Exit(run(backend, epochs, seed, digits, json))


@app.command()
def equivalence(
    html: Annotated[Path | None, typer.Option(help="Also write the table to this file.")] = None,
    out: Annotated[
        Path | None, typer.Option(help='Also write the results to this JSON file, which "Race the backends" opens.')
    ] = None,
    backends: Annotated[str | None, typer.Option(help="Backends to compare, separated by commas. Default: all.")] = None,
    json: Json = False,
) -> None:
    """Compare every operator, on every backend and in every layout, with NumPy in float64."""
    from .equivalence import run

    raise typer.Exit(run(backends.split(",") if backends else None, html, json, out))


@app.command()
def doctor(json: Json = False) -> None:
    """Check this machine: print what is installed, what is missing, and how to install it."""
    from .doctor import run

    raise typer.Exit(run(json))


@app.command(context_settings={"ignore_unknown_options": True})
def check(
    script: Annotated[Path, typer.Argument(help="A script that uses numba.cuda, or a test file for pytest.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments of the script; write -- before options.")] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Save a trace of the first launch with a hazard, or the last one.")
    ] = None,
    schedules: Annotated[int, typer.Option(min=1, help="Run each launch in this many orders of warps and blocks.")] = 1,
    limit: Annotated[int, typer.Option(min=1, help="Record at most this many memory accesses per launch.")] = 1_000_000,
    loop_limit: LoopLimit = LOOP_LIMIT,
    summary: Annotated[
        bool, typer.Option("--summary", help="Also print the sectors and wavefronts of each kernel, and its worst lines.")
    ] = False,
    all_races: Annotated[bool, typer.Option("--all", help="Print each race, also of one array in one launch.")] = False,
    json: Json = False,
) -> None:
    """Run a numba.cuda script without a GPU and find errors: races, bounds, barriers, reads of uninitialized memory."""
    from .check import CheckRequest, run

    request = CheckRequest(script, arguments or [], trace, schedules, limit, loop_limit, summary, all_races, json)
    raise typer.Exit(run(request))


@app.command()
def explain(
    what: Annotated[
        str, typer.Argument(help="FILE.py:function, fused or not. The file is imported; the function is not run.")
    ],
    shape: Annotated[
        str | None,
        typer.Option(
            help="Shapes of the arguments, separated by commas: 1024x1024,1024. A plain number such as 0.5 is passed as a "
            "scalar. Default: EXAMPLE in the file."
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="Dtype of the arguments of --shape: one for all, or one for each, separated by commas."),
    ] = None,
    backend: Backend = None,
    grad: Annotated[
        bool, typer.Option("--grad", help="Explain the backward pass, too: the gradients of all arguments.")
    ] = False,
    source: Annotated[bool, typer.Option("--source", help="Print the host program and the kernels.")] = False,
    steps: Annotated[
        bool, typer.Option("--steps", help="Print the decisions that led to these kernels, one in each line.")
    ] = False,
    passes: Annotated[
        bool, typer.Option("--passes", help="Print the passes of the compiler, and what each of them changed in the graph.")
    ] = False,
    json: Json = False,
) -> None:
    """Explain how a function is fused: kernels, launches, bytes moved, peak memory, and why ops were not fused."""
    from .explain import ExplainRequest, run

    raise typer.Exit(run(ExplainRequest(what, shape, dtype, backend, grad), source, json, steps, passes))


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def launch(
    script: Annotated[Path, typer.Argument(help="A script that calls minifuse.distributed.init().")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments of the script.")] = None,
    size: Annotated[int, typer.Option("-n", "--ranks", min=1, help="Start this many ranks.")] = 2,
    engine: Annotated[
        str, typer.Option(help="What carries arrays between ranks: shared (memory of one host), mpi, nccl, or simulated.")
    ] = "shared",
    mesh: Annotated[str, typer.Option(help="Axes of the mesh, such as data=2,model=2. Default: one axis, data.")] = "",
    restarts: Annotated[int, typer.Option(min=0, help="Start all ranks again up to this often after a rank fails.")] = 0,
) -> None:
    """Run a script as several ranks on this host; stop all, and say why, when one fails or waits in vain."""
    from .launch import LaunchRequest, run

    raise typer.Exit(run(LaunchRequest(script, arguments or [], size, engine, mesh, restarts)))


@app.command()
def tune(
    what: Annotated[
        str, typer.Argument(help="FILE.py:function, fused or not. The file is imported; the function runs.")
    ] = "",
    shape: Annotated[str | None, typer.Option(help="Shapes of the arguments, as in minifuse explain.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Dtype of the arguments of --shape, as in minifuse explain.")] = None,
    backend: Annotated[str | None, typer.Option(help="The GPU, such as cuda:1. Default: cuda.")] = None,
    grad: Annotated[bool, typer.Option("--grad", help="Also tune the backward pass.")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all tuned schedules of this kind of GPU first.")] = False,
    json: Json = False,
) -> None:
    """Search the fastest schedule of each kernel of a function by timing it on a GPU, and keep it for all programs."""
    from .explain import ExplainRequest
    from .tune import run

    raise typer.Exit(run(ExplainRequest(what, shape, dtype, backend, grad), clear, json))


@app.command()
def grad(
    what: Annotated[
        str, typer.Argument(help="FILE.py:function, which takes tensors. The file is imported; the function runs.")
    ],
    shape: Annotated[str, typer.Option(help="Shapes of the arguments, separated by commas: 2x3,3.")],
    json: Json = False,
) -> None:
    """Print the backward pass of a function call by call, and compare its gradients with finite differences."""
    from .grad import run

    raise typer.Exit(run(what, shape, json))


@app.command()
def trace(
    what: Annotated[
        str | None, typer.Argument(help="add, exp, sum, matmul, matmul:naive, FILE.py:kernel, FILE.npz, ...")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List everything that can be traced.")] = False,
    shape: Annotated[
        list[str] | None, typer.Option(help="Shape of all operands, as in 32,32; or one --shape for each. matmul: M,N,K.")
    ] = None,
    dim: Annotated[int | None, typer.Option(help="Reduce this dim. Default: all dims (softmax: the last).")] = None,
    dtype: Annotated[str | None, typer.Option(help="Dtype of the operands. Default: float32.")] = None,
    layout: Annotated[str | None, typer.Option(help="Memory layout of the operands; see --list.")] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(help="Argument of a kernel in a file: x=32,32:float32 (a random array) or n=32."),
    ] = None,
    grid: Annotated[str | None, typer.Option(help="Grid of a kernel in a file: blocks along x, y, z, as in 4,2.")] = None,
    block: Annotated[str | None, typer.Option(help="Block of a kernel in a file: threads along x, y, z.")] = None,
    shared: Annotated[int | None, typer.Option(min=0, help="Dynamic shared memory of a kernel in a file, in bytes.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order of warps and blocks; 0 runs them in order.")] = 0,
    limit: Annotated[int, typer.Option(min=1, help="Record at most this many memory accesses per launch.")] = 1_000_000,
    loop_limit: LoopLimit = LOOP_LIMIT,
    save: Annotated[Path | None, typer.Option(help="Save the trace to this .npz file; several traces are numbered.")] = None,
    source: Annotated[bool, typer.Option("--source", help="Print the source of the kernel.")] = False,
    cell: Annotated[
        int | None,
        typer.Option(help="Trace one element of the output: print the inputs it depends on, in order, as a tree."),
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="With --cell: trace on cuda, parallel or python. Default: cuda.")
    ] = None,
    json: Json = False,
) -> None:
    """Run a kernel lane by lane and report its memory accesses: requests, sectors, bank conflicts, hazards."""
    from .subjects import TraceRequest
    from .trace import run, run_list

    if list_all:
        raise typer.Exit(run_list(json))
    request = TraceRequest(what or "", shape or (), dim, dtype, layout, arg or (), grid, block, shared)
    raise typer.Exit(run(request, seed, limit, loop_limit, save, source, json, cell, backend))


@app.command()
def layout(
    shape: Annotated[str, typer.Option(help="Shape of a new tensor x, as in 3,4; empty for a 0-d tensor.")] = "3,4",
    views: Annotated[
        str, typer.Option(help="Views to apply to x, in order: .T, [::2, 1:], .permute(1, 0), .flip(0), ...")
    ] = "",
    other: Annotated[
        str | None, typer.Option("--with", help="Shape of a second tensor y: print how x and y broadcast.")
    ] = None,
    operation: Annotated[str, typer.Option(help='Operation of --with: "x + y" or "x * y".')] = "x + y",
    element: Annotated[
        str | None, typer.Option(help="Explain one element of the view or result: an index such as 0,1.")
    ] = None,
    json: Json = False,
) -> None:
    """Print where the elements of a view are in memory, or how two shapes broadcast and what their gradients sum."""
    from .layout import run

    raise typer.Exit(run(shape, views, other, operation, element, json))


@app.command()
def merge(
    folder: Annotated[Path, typer.Argument(help="The folder of a sharded checkpoint, which mf.save_sharded wrote.")],
    file: Annotated[Path, typer.Argument(help="The safetensors file to write.")],
    json: Json = False,
) -> None:
    """Merge the files of a sharded checkpoint, one for each rank, into one safetensors file, and verify all of them."""
    from .merge import run

    raise typer.Exit(run(folder, file, json))


@app.command()
def race(
    operation: Annotated[str, typer.Argument(help='"a + b", "exp(x)", "x.sum()", "softmax of rows" or "a @ b".')] = "a + b",
    players: Annotated[
        str | None, typer.Option(help="NumPy and backends to time, separated by commas. Default: all except python.")
    ] = None,
    roof: Annotated[bool, typer.Option("--roof", help="Also measure the peak performance of this machine.")] = False,
    json: Json = False,
) -> None:
    """Time one operation on each backend and in NumPy, for several sizes, in about a second."""
    from .race import run

    raise typer.Exit(run(operation, players, roof, json))


@app.command()
def bench(
    rows: Annotated[
        list[str] | None,
        typer.Argument(
            help="Parts of names or groups of benchmarks; the first one selects the suite. Default: the main suite."
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Libraries to compare with, separated by commas: torch,cupy. Default: all installed.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run small sizes, one call each: a test that everything works, without timings.")
    ] = False,
    list_all: Annotated[
        bool, typer.Option("--list", help="List the benchmarks and the libraries they compare with.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the random inputs. Default: a new one.")] = None,
    out: Annotated[Path | None, typer.Option(help="Also write the results to this JSON file.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw curves and a roofline to this .svg file.")] = None,
    json: Json = False,
) -> None:
    """Time minifuse against NumPy, torch and others. Results are checked, runs interleaved, peaks of the machine shown."""
    from .bench import BenchRequest, run

    raise typer.Exit(run(BenchRequest(rows or (), against, quick, list_all, seed, out, picture), json))


@app.command()
def train(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A recipe (mlp, lenet, sentences, gpt) or data: simple, diagonal, split, xor, circle, spiral, digits."
        ),
    ] = None,
    backend: Backend = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Train for this many passes over the data.")] = None,
    rate: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Number of examples in a batch.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of data, weights and order. Default: 0.")] = None,
    fuse: Annotated[
        bool | None, typer.Option("--fuse/--no-fuse", help="Recipes: fuse each training step into one function.")
    ] = None,
    option: Annotated[list[str] | None, typer.Option("--set", help="Recipes: set an option, as in --set width=64.")] = None,
    out: Annotated[Path | None, typer.Option(help="Recipes: folder of the run. Default: a new one in runs/.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Recipes: continue the run in this folder.")] = None,
    ranks: Annotated[int | None, typer.Option(min=1, help="Recipes: share each batch among this many processes.")] = None,
    engine: Annotated[str | None, typer.Option(help="Recipes: what carries gradients: shared, mpi or nccl.")] = None,
    restarts: Annotated[
        int | None, typer.Option(min=0, help="Recipes: how often lost ranks are started again, at the last checkpoint.")
    ] = None,
    hidden: Annotated[int | None, typer.Option(min=1, help="Data: size of the hidden layer.")] = None,
    activation: Annotated[str | None, typer.Option(help="Data: ReLU or Tanh.")] = None,
    optimizer: Annotated[str | None, typer.Option(help='Data: "SGD with momentum" or Adam.')] = None,
    points: Annotated[int | None, typer.Option(min=8, help="Data: number of points. Default: 120.")] = None,
    json: Json = False,
) -> None:
    """Train a model and report its results. A recipe writes checkpoints to a folder and can be resumed after any
    interruption."""
    from ..backends.registry import registry
    from ..recipes import MODULES

    backend = backend or (None if resume else registry.default)
    common = {"backend": backend, "epochs": epochs, "rate": rate, "batch": batch, "seed": seed}
    recipe_options = {"fuse": fuse, "set": option, "out": out, "resume": resume, "ranks": ranks, "engine": engine}
    recipe_options["restarts"] = restarts
    network_options = {"hidden": hidden, "activation": activation, "optimizer": optimizer, "points": points}
    is_recipe = resume is not None or name in MODULES
    other_options = network_options if is_recipe else recipe_options
    inapplicable = next((key for key, value in other_options.items() if value is not None), None)
    if inapplicable:
        advice = (
            "use --set NAME=VALUE for the options of a recipe" if is_recipe else f"it is for recipes: {', '.join(MODULES)}"
        )
        typer.echo(f"minifuse train: --{inapplicable} does not apply to {name or resume or 'circle'}; {advice}", err=True)
        raise typer.Exit(2)
    if is_recipe:
        from . import recipes

        settings = {**common, "fuse": fuse}
        choice = recipes.RecipeOptions(
            name, settings, option or (), out, resume, ranks or 1, engine or "shared", restarts or 0
        )
        raise typer.Exit(recipes.run(choice, json))
    from .train import NetworkOptions, run

    request = NetworkOptions(
        name or "circle", backend, epochs or 100, hidden, activation, optimizer, rate, batch, points, seed
    )
    raise typer.Exit(run(request, json))


@app.command()
def warmup(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to compile: demo, mlp, lenet, sentences, gpt, or FILE.py:function. Default: the first five."
        ),
    ] = None,
    shape: Annotated[str | None, typer.Option(help="Shapes of a function's arguments, as in minifuse explain.")] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="Dtype of the arguments of --shape: one for all, or one for each, separated by commas."),
    ] = None,
    backend: Backend = None,
    grad: Annotated[bool, typer.Option("--grad", help="Also compile a function's backward pass.")] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Compile in this many processes. Default: one for each processor.")
    ] = None,
    json: Json = False,
) -> None:
    """Compile the kernels of the demo, the recipes or your function in advance, and store them on disk."""
    from .warmup import WarmupRequest, run

    raise typer.Exit(run(WarmupRequest(tuple(names or ()), shape, dtype, backend, grad, jobs), json))


@app.command("app")
def visualizer(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of the server. Default: 8501, or the next free one.")
    ] = None,
    kernel: Annotated[str | None, typer.Option(help="FILE.py:name: a kernel of yours to show on the pages.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is all addresses of this machine.")] = "127.0.0.1",
    public: Annotated[
        bool, typer.Option("--public", help="For visitors: no paths, versions or code of theirs; a queue and limits.")
    ] = False,
) -> None:
    """Start the visualizer, which shows the library's kernels in a browser, and print its address."""
    from .app import run

    raise typer.Exit(run(port, kernel, host, public))
