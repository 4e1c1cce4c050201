"""The pages of the API reference: every public name, grouped by topic.

TOPICS says which module's names belong to which page. A page begins with a table of its names; below, each has its signature
and docstring, rendered by mkdocstrings, its other names, an example, and a link to its source.
"""

from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

from docs.site.examples import example_of
from docs.site.links import ROOT, page_uri
from docs.site.public_names import Entry, entries, modules


class Topic(NamedTuple):
    """A page of the reference: the name of its file, its title, a sentence, and the modules whose names are on it."""

    name: str
    title: str
    text: str
    modules: str

    def has(self, module: str) -> bool:
        """Return whether the names of a module belong to the page."""
        return any(fnmatch(module, f"minifuse.{pattern}") for pattern in self.modules.split())


GROUPS = {
    "Tensors": (
        Topic("tensor", "Tensor", "The class of all tensors: its attributes and methods.", "tensors.tensor tensors.grad_methods tensors.augmented_assignment ir.array_methods ir.pytorch_differences compiler.plan"),
        Topic("creation", "Creation", "Make tensors: of numbers, of NumPy arrays, filled, like others.", "tensors.creation functions.creation"),
        Topic("random", "Random numbers", "Seeds, generators and distributions.", "tensors.random functions.random"),
        Topic("attributes", "Types and attributes", "Element types, promotion, and functions that describe a tensor.", "core.dtypes functions.dtypes functions.attributes"),
        Topic("elementwise", "Elementwise", "Functions of each element; operands are broadcast, dtypes promoted.", "core.operators functions.elementwise"),
        Topic("special", "Special functions", "Gamma, error and Bessel functions of each element.", "functions.special"),
        Topic("reductions", "Reductions and scans", "Sums, extremes and statistics along dims, and their running versions.", "functions.statistics functions.scans"),
        Topic("joining", "Joining and repeating", "Join tensors, cut them into parts, repeat them.", "functions.joining"),
        Topic("shaping", "Shapes and views", "Views with another shape, diagonals, triangles.", "functions.shaping"),
        Topic("indexing", "Indexing", "Select, store and find elements by their index.", "functions.indexing functions.positions"),
        Topic("ordering", "Order and bins", "Sort, select by rank, search, count.", "functions.ordering functions.bins"),
        Topic("products", "Products", "Matrix products under all of their names, and sums of products.", "functions.products ir.array_functions"),
        Topic("linalg", "Linear algebra", "Solutions, factorizations, determinants and norms: `mf.linalg`, and the names that PyTorch has at the top.", "functions.matrices functions.linalg"),
        Topic("fft", "Fourier transforms", "Discrete Fourier transforms of real numbers and of pairs of them: `mf.fft`.", "functions.fft"),
        Topic("files", "Files", "Save and load tensors, states and shards.", "tensors.serialization tensors.sharded_checkpoint core.shards"),
        Topic("errors", "Errors", "All errors, from one base class.", "core.errors"),
    ),
    "Gradients and compilation": (
        Topic("gradients", "Gradients", "Derivatives of functions: `mf.grad`, `mf.autograd`, `mf.func`, checkpoints, and gradients of single numbers.", "tensors.transforms autograd.* core.dispatch func.* core.scalar"),
        Topic("fusion", "Fusion and kernels", "Compile functions into few kernels, profile them, write your own.", "jit.fuse inspect.* custom_kernels.* runtime.kernel_cache"),
        Topic("backends", "Backends", "Where tensors are stored and computed, memory, precision.", "backends.registry core.precision"),
        Topic("simt", "The interpreter", "CUDA kernels thread by thread: `mf.simt`.", "simt.*"),
    ),
    "Neural networks": (
        Topic("modules", "Modules", "Modules, parameters and containers.", "nn.module nn.containers nn.parameter_containers nn.summary nn.layers nn.lazy_layers nn.embedding nn.embedding_bag"),
        Topic("convolutions", "Convolutions", "Convolutions and their transposes, padding, rearrangement.", "nn.convolution nn.transposed_convolution nn.padding nn.rearrange"),
        Topic("pooling", "Pooling and resampling", "Pooling, its inverses, interpolation and sampling.", "nn.pooling nn.pooling_variants nn.adaptive_pooling nn.resampling"),
        Topic("activations", "Activations", "Functions between layers, as functions and as modules.", "nn.activations nn.more_activations"),
        Topic("normalization", "Normalization and dropout", "Layers that normalize values, and those that drop some.", "nn.normalization nn.batch_normalization nn.dropout nn.feature_dropout"),
        Topic("sequences", "Recurrence and attention", "Recurrent layers, attention, transformers.", "nn.recurrent nn.attention nn.multihead_attention nn.transformer"),
        Topic("losses", "Losses and distances", "Losses of classes and values, and distances of vectors.", "nn.losses nn.more_losses nn.class_losses nn.ctc nn.regression nn.distances functions.neural"),
        Topic("init", "Initial values and tools", "`mf.nn.init` and `mf.nn.utils`.", "nn.init nn.utils optim.clipping"),
        Topic("optimizers", "Optimizers", "Steps from gradients: `mf.optim`.", "optim.adam optim.adam_variants optim.adaptive optim.lbfgs optim.muon optim.optimizer optim.sgd optim.sign_based"),
        Topic("schedules", "Learning rates", "Schedules of the learning rate, and averages of parameters.", "optim.lr_* optim.schedules optim.swa_utils"),
    ),
    "Data, tests, devices": (
        Topic("data", "Data", "Datasets, files, text, batches: `mf.data`.", "data.*"),
        Topic("testing", "Testing", "Checks and strategies for your own tests: `mf.testing`.", "testing testing.*"),
        Topic("distributed", "Many devices", "Collectives, data parallel training and shards of models: `import minifuse.distributed as dist`.", "distributed.*"),
        Topic("training", "Training runs", "Runs that can be stopped and resumed, recipes, and classes for the course: `minifuse.training`, `minifuse.recipes`, `minifuse.course`.", "training.* recipes course.*"),
    ),
}  # fmt: skip
TOPICS = tuple(topic for group in GROUPS.values() for topic in group)
PAGES_OF_MODULES = {"mf.nn": "modules", "mf.utils": "gradients", "mf.nn.functional": "activations", "mf.nn.embedding_bag": "modules"}


@cache
def entries_of(topic: Topic) -> list[Entry]:
    """Return the objects of a page, by their names."""
    return sorted((entry for entry in entries() if topic_of(entry) is topic), key=lambda entry: entry.title.lower())


def topic_of(entry: Entry) -> Topic:
    """Return the page of an object: that of its module."""
    for topic in TOPICS:
        if topic.has(entry.module):
            return topic
    raise LookupError(f"{entry.title} is defined in {entry.module}, which no page of TOPICS names; add the module to one")


def anchor(entry: Entry) -> str:
    """Return the anchor of an object on its page."""
    return entry.title


def link(entry: Entry, text: str, folder: str = "") -> str:
    """Return a link to an object, from a page of the reference."""
    return f"[`{text}`]({folder}{topic_of(entry).name}.md#{anchor(entry)})"


def page(topic: Topic) -> str:
    """Return a page as Markdown."""
    found = entries_of(topic)
    rows = "".join(f"| {link(entry, entry.title)} | {cell(entry.summary)} |\n" for entry in found)
    return f"# {topic.title}\n\n{topic.text}\n\n| name | |\n|---|---|\n{rows}\n" + "\n".join(map(section, found))


def cell(text: str) -> str:
    """Return text as a cell of a table."""
    return text.replace("|", r"\|").replace("*", r"\*").replace("[", r"\[").replace("<", r"\<")


def section(entry: Entry) -> str:
    """Return the section of an object."""
    anchors = "".join(f'<span id="{name}"></span>' for name in entry.names)
    options = f"    options:\n      heading: {entry.title!r}\n      toc_label: {entry.title.rpartition('.')[2]!r}\n"
    return f"{anchors}\n\n::: {entry.identifier}\n{options}{members(entry)}\n{example_of(entry)}\n{footer(entry)}\n"


def members(entry: Entry) -> str:
    """Return the option that leaves out the members of `Tensor`, which are objects of their own."""
    return "      members: false\n" if entry.title == "mf.Tensor" else ""


def footer(entry: Entry) -> str:
    """Return a line with all names of an object, and its source."""
    names = " · ".join(f"`{name.replace('mf.Tensor.', 'x.')}`" for name in entry.names)
    return f"{names} · [source](../{page_uri(source(entry))})\n{{ .names }}\n"


def source(entry: Entry) -> Path:
    """Return the file that defines an object, or makes it."""
    path = ROOT / (entry.module.replace(".", "/") + ".py")
    return path if path.exists() else path.with_suffix("") / "__init__.py"


def sources() -> set[Path]:
    """Return the files that define public objects."""
    return {source(entry) for entry in entries()}


def index() -> str:
    """Return the first page: all topics with their names."""
    return "# API\n\n" + INTRODUCTION + "".join(index_parts())


INTRODUCTION = f"""Every public name, by topic. Names follow PyTorch, and NumPy's names of functions and parameters are accepted, too. `mf` is
`import minifuse as mf`; `x` is a tensor. A function of the library is also a method, `x.roll(1)`, and where PyTorch has one,
a twin in place: `x.relu_()`. The search finds all of them.

Unless a page says otherwise:

- **Shapes.** Operands are broadcast as in NumPy. `dim` counts from 0, or from the end if it is negative; `keepdim=True` keeps
  a reduced dim with size 1.
- **Element types.** Operands of several types are promoted as in NumPy 2; a Python number adapts to the tensor. Functions
  with a real result, such as `exp`, compute integers in float64.
- **Errors.** A wrong shape raises [`ShapeError`](errors.md#mf.ShapeError), a wrong element type or an operand that is no
  tensor [`DTypeError`](errors.md#mf.DTypeError), an index or a dim out of range
  [`IndexingError`](errors.md#mf.IndexingError), tensors of several backends [`BackendError`](errors.md#mf.BackendError). In
  a fused function, what needs values raises [`FuseError`](errors.md#mf.FuseError).
- **Gradients.** Each function of floats has its derivative, of any order, unless its page says that it has none.

"""


def index_parts() -> Iterator[str]:
    """Yield the groups of topics, each topic with links to its names."""
    for group, topics in GROUPS.items():
        yield f"## {group}\n\n"
        for topic in topics:
            names = ", ".join(link(e, e.title.removeprefix("mf.")) for e in entries_of(topic))
            yield f"### [{topic.title}]({topic.name}.md)\n\n{topic.text}\n\n{names}\n\n"


def pages() -> dict[str, str]:
    """Return all pages: path in docs/ -> Markdown."""
    return {"api/index.md": index(), **{f"api/{topic.name}.md": page(topic) for topic in TOPICS}}


def nav() -> list[object]:
    """Return the part of the navigation."""
    return ["api/index.md", *[{group: [f"api/{t.name}.md" for t in topics]} for group, topics in GROUPS.items()]]
