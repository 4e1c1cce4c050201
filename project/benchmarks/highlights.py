"""The first page about speed: figures and charts that answer the question how fast minifuse is, from the result files."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from .dots import DotChart, DotRow
from .formatting import duration, number
from .row import US, Result

EAGER, COMPILE, GRAPHS = "minifuse, eager", "torch.compile", "torch.compile, graphs"
OTHERS = ("torch", COMPILE, GRAPHS, "jax", "numpy", "numexpr", "cupy", "cupy.fuse")  # peers that are other libraries
PLAYERS = (US, COMPILE, "torch", "jax", "numpy", "cupy.fuse", "numexpr", EAGER, GRAPHS)  # in the charts
LOSSES = 10  # rows that are listed as the slowest
TEACHING = ("gpu-ladder",)  # groups with kernels that are slow on purpose
Files = Mapping[str, Result]


class Source(NamedTuple):
    """Rows of a file: all of a group, or those with these names."""

    file: str
    group: str
    names: tuple[str, ...] = ()
    words: str = ""
    """Words that are added to the name of each row."""

    def rows(self, files: Files) -> list[Result]:
        """Return the rows that were measured, in the order of `names`."""
        every = files[self.file]["rows"] if self.file in files else []
        known = {row["name"]: row for row in every if row["group"] == self.group and "times" in row}
        return [known[name] for name in self.names or known if name in known]


class Figure(NamedTuple):
    """A line of the first table."""

    work: str
    source: Source
    peers: tuple[str, ...]


class Spec(NamedTuple):
    """A chart of the page."""

    name: str
    title: str
    alt: str
    measure: str
    """One of MEASURES."""
    players: tuple[str, ...]
    sources: tuple[Source, ...]
    line: str = ""
    """The rate of the machine that is marked, if the measure is a rate."""
    is_joined: bool = False
    """True if all rows of a source are drawn in one row, named by its words."""


FUSED_H200, H200 = "gpu-h200-fusion.json", "gpu-h200.json"
FUSED_CPU, CPU = "cpu-znver5-fusion.json", "cpu-znver5.json"
H100_PROGRAMS, CPU_PROGRAMS = "gpu-h100-80gb-hbm3-held-out.json", "cpu-emeraldrapids-held-out.json"
ATTENTION = (
    "causal attention with padding",
    "attention with a bias for each distance",
    "attention with linear biases",
    "sliding-window attention",
    "attention with soft-capped scores",
    "window attention with a relative position bias",
    "linear attention",
    "graph attention",
)
PRODUCTS = tuple(f"{n} x {n} x {n}" for n in (512, 1024, 2048, 4095, 4096, 8192))
SHAPES = ("a.T @ b, 4096 x 4096 x 4096", "a @ b.T, 4096 x 4096 x 4096", "(65536, 64) @ (64, 64)", "(4096, 4096) @ (4096,)")
RATIO = "time of a peer / time of minifuse"
MEASURES = {
    "ratio": f"{RATIO}; right of 1, minifuse is faster",
    "GB/s": "bytes that must be moved / time, in GB/s",
    "TFLOP/s": "float32 operations / time, in TFLOP/s",
}

FIGURES = (
    Figure("chain of 8 operators on 2^26 numbers, one kernel", Source(FUSED_H200, "gpu-fusion-memory", ("chain of 8",)),
           (COMPILE, "cupy.fuse", "torch")),
    Figure("softmax of 8192 x 8192", Source(FUSED_H200, "gpu-fusion-memory", ("softmax, 8192 x 8192",)),
           (COMPILE, "torch")),
    Figure("matmul of 4096 x 4096, float32", Source(H200, "gpu-matmul", ("4096 x 4096 x 4096",)), ("torch",)),
    Figure("the host's time to call a fused function", Source(FUSED_H200, "gpu-fusion-host", ("chain of 8",)),
           (COMPILE, "cupy.fuse", "jax")),
    Figure("a training step of a GPT, 4 layers, 256 wide", Source("gpu-h200-networks.json", "gpu-networks",
           ("gpt of 4 layers, 256 wide, context 256, batch 64: a step",)), (COMPILE, "torch")),
    Figure("chain of 8 operators on 2^24 numbers, one kernel", Source(FUSED_CPU, "fusion-large", ("chain of 8",)),
           (COMPILE, "jax", "numpy")),
    Figure("layer norm of 4096 x 1024", Source(FUSED_CPU, "fusion-large", ("layer norm",)), (COMPILE, "jax", "torch")),
    Figure("matmul of 1024 x 1024, float32", Source(CPU, "matmul", ("1024 x 1024 x 1024, float32",)),
           ("numpy", "jax", "torch")),
)  # fmt: skip
COSTS = (
    Figure("first call of a pointwise function, nothing on disk", Source(H200, "gpu-compile",
           ("first call of a function, nothing on disk",)), ()),
    Figure("first batch of a GPT, nothing on disk", Source("gpu-h200-costs.json", "gpu-costs-compiling",
           ("gpt: first batch, nothing on disk",)), ()),
    Figure("the same in a second process", Source("gpu-h200-costs.json", "gpu-costs-compiling",
           ("gpt: first batch, a second process",)), ()),
    Figure("first training step of a perceptron, nothing on disk", Source(CPU, "start",
           ("first step, nothing on disk",)), ()),
    Figure("the same in a second process", Source(CPU, "start", ("first step, a second process",)), ()),
)  # fmt: skip
CHARTS = (
    Spec(
        "fused-gpu", "Fused functions on one GPU",
        "A dot chart. minifuse is near the dashed line, the speed of a copy, in every row, and torch.compile in most; "
        "cupy.fuse, JAX and eager PyTorch are left of it, mostly far left.",
        "GB/s", (US, COMPILE, "cupy.fuse", "jax", "torch"),
        (Source(FUSED_H200, "gpu-fusion-memory"),), "copy_gb_per_s",
    ),
    Spec(
        "matmul-gpu", "Matmuls in float32 on one GPU",
        "A dot chart. minifuse and cuBLAS are near each other in every row; from 2048 on, square products of both reach "
        "most of the dashed line, the peak of multiply-adds in registers.",
        "TFLOP/s", (US, "torch"),
        (Source(H200, "gpu-matmul", PRODUCTS + SHAPES[:2]),), "fma_gflop_per_s",
    ),
    Spec(
        "fused-cpu", "Fused functions on two cores",
        "A dot chart with a logarithmic axis. All peers are right of 1 in every row: torch.compile and JAX least, for a sum "
        "of squares, and eager PyTorch most, for a chain of operators.",
        "ratio", (COMPILE, "jax", "numexpr", "numpy", "torch"),
        (Source(FUSED_CPU, "fusion-large"),),
    ),
    Spec(
        "training", "Training steps",
        "A dot chart with a logarithmic axis. Small networks train several times faster than in PyTorch, on GPU and CPU; "
        "the GPT on the GPU is level: torch.compile is slightly left of 1, eager PyTorch slightly right.",
        "ratio", (COMPILE, GRAPHS, "torch", EAGER),
        (Source("gpu-h200-networks.json", "gpu-networks", words="H200: "),
         Source(FUSED_H200, "gpu-fusion-training", words="H200: "),
         Source("cpu-znver5-networks.json", "networks", words="CPU: "),
         Source(FUSED_CPU, "fusion-training", words="CPU: ")),
    ),
    Spec(
        "attention", "Attention in many forms on one GPU",
        "A dot chart. Beside torch.compile most forms are near 1, linear attention is right of it, and graph attention is "
        "left of it: minifuse is slower there.",
        "ratio", (COMPILE, EAGER),
        (Source(H100_PROGRAMS, "gpu-held-out", ATTENTION),
         Source(H100_PROGRAMS, "gpu-held-out-gradients", ATTENTION, "with gradients: ")),
    ),
    Spec(
        "programs", "Programs from publications, each a dot",
        "Four rows of dots on a logarithmic axis. In each row most dots are right of 1, some are left of it, and a few are "
        "far right.",
        "ratio", (COMPILE,),
        (Source(H100_PROGRAMS, "gpu-held-out", words="H100, forward"),
         Source(H100_PROGRAMS, "gpu-held-out-gradients", words="H100, forward and backward"),
         Source(CPU_PROGRAMS, "held-out", words="two cores, forward"),
         Source(CPU_PROGRAMS, "held-out-gradients", words="two cores, forward and backward")),
        is_joined=True,
    ),
)  # fmt: skip


def value_of(row: Result, player: str, measure: str) -> float | None:
    """Return the value of a player in a row; None if it did not take part, or the work of the row is not known."""
    if measure == "ratio":
        return row["ratios"][player]["median"] if player in row["ratios"] else None
    work = row.get("work")
    if player not in row["times"] or not work:
        return None
    amount = work["nbytes"] / 1e9 if measure == "GB/s" else work["operations"] / 1e12
    return float(amount / row["times"][player]["median"])


def chart_of(spec: Spec, files: Files) -> DotChart:
    """Return a chart with the values of the files."""
    rows = []
    for source in spec.sources:
        found = source.rows(files)
        values = [
            {player: [x] for player in spec.players if (x := value_of(row, player, spec.measure)) is not None}
            for row in found
        ]
        if spec.is_joined:
            joined = {player: [x for each in values for x in each.get(player, [])] for player in spec.players}
            rows.append(DotRow(source.words, joined))
        else:
            rows += [DotRow(source.words + row["name"], each) for row, each in zip(found, values, strict=True) if each]
    lines = {"as fast as minifuse": 1.0} if spec.measure == "ratio" else {}
    if spec.line:
        roofs = files[spec.sources[0].file]["roofs"]
        words, scale = ("copy", 1.0) if spec.measure == "GB/s" else ("peak of registers", 1e-3)
        lines = {words: roofs[spec.line] * scale}
    return DotChart(spec.title, MEASURES[spec.measure], rows, spec.measure == "ratio", lines, PLAYERS)


def place_of(found: Result) -> str:
    """Return the processor or GPU of a result file in a few words."""
    machine = found["machine"]
    return found["device"]["name"] if "device" in found else f"{machine['processor']} ({machine['microarchitecture']})"


def versions_of(found: Result, players: Sequence[str]) -> list[str]:
    """Return the versions of minifuse and of the libraries of these players."""
    libraries = {player.partition(".")[0].partition(",")[0] for player in (US, *players)}
    return [f"{name} {of}" for name, of in found["versions"].items() if name.partition("-cuda")[0] in libraries]


def caption(spec: Spec, files: Files) -> str:
    """Return what a chart shows, on which devices, when and with which versions, in Markdown."""
    told: dict[str, list[str]] = {}
    for name in dict.fromkeys(source.file for source in spec.sources):
        found = files[name]
        wanted = {source.group for source in spec.sources if source.file == name}
        dates = {row.get("date", found["date"])[:10] for row in found["rows"] if row["group"] in wanted}
        about = [place_of(found), " and ".join(sorted(dates)), *versions_of(found, spec.players)]
        told.setdefault(", ".join(about), []).append(f"[{name}](../../project/benchmarks/results/{name})")
    places = [f"{about} ({', '.join(links)})" for about, links in told.items()]
    return f"*{spec.title}: {MEASURES[spec.measure]}. {'; '.join(places)}.*"


def charts_from(files: Files) -> list[Spec]:
    """Return the charts whose rows were measured."""
    return [spec for spec in CHARTS if all(source.rows(files) for source in spec.sources)]


def figures(chosen: Sequence[Figure], files: Files) -> list[list[str]]:
    """Return the lines of a table of figures, of those that were measured."""
    return [cells_of(figure, files) for figure in chosen if figure.source.rows(files)]


def cells_of(figure: Figure, files: Files) -> list[str]:
    """Return the cells of a figure: work, device, our time, and the ratio of each peer."""
    [row] = figure.source.rows(files)
    ratios = [f"{who} {number(row['ratios'][who]['median'])}x" for who in figure.peers]
    return [figure.work, place_of(files[figure.source.file]), duration(row["times"][US]["median"]), ", ".join(ratios)]


def losses(files: Files) -> list[list[str]]:
    """Return the rows that are slowest beside the fastest other library, by their newest results, as cells of a table."""
    newest: dict[tuple[str, str], tuple[str, str, Result]] = {}
    for name, found in files.items():
        for row in found["rows"]:
            place, date = (row["group"], row["name"]), row.get("date", found["date"])
            if place not in newest or date > newest[place][0]:
                newest[place] = date, name, row
    slow = []
    for _, name, row in newest.values():
        ratios = {who: of["median"] for who, of in row.get("ratios", {}).items() if who in OTHERS}
        if ratios and "curve" not in row and row["group"] not in TEACHING:
            best = min(ratios, key=ratios.__getitem__)
            slow.append((ratios[best], best, name, row))
    return [
        [
            row["name"] + ", forward and backward" * row["group"].endswith("-gradients"),
            place_of(files[name]),
            duration(row["times"][US]["median"]),
            f"{best} {number(ratio)}x",
        ]
        for ratio, best, name, row in sorted(slow, key=lambda of: of[0])[:LOSSES]
    ]


def programs(files: Files) -> list[list[str]]:
    """Return how the programs from publications compare with torch.compile, a line for each device and direction."""
    [spec] = [spec for spec in CHARTS if spec.is_joined]
    lines = []
    for source in [source for source in spec.sources if source.rows(files)]:
        ratios = [x for row in source.rows(files) if (x := value_of(row, COMPILE, "ratio")) is not None]
        faster = sum(x >= 1 for x in ratios)
        cells = [f"{faster} of {len(ratios)}", f"{number(median(ratios))}x", f"{number(min(ratios))}x"]
        lines.append([source.words, place_of(files[source.file]), *cells])
    return lines
