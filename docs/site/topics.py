"""The pages of the API reference, by group: which module's names belong to which page."""

from fnmatch import fnmatch
from typing import NamedTuple


class Topic(NamedTuple):
    """A page of the reference: the name of its file, its title, a sentence, and the modules whose names are on it.

    `rules` are the shapes and errors of all names of the page, where they are the same.
    """

    name: str
    title: str
    text: str
    modules: str
    rules: str = ""

    def has(self, module: str) -> bool:
        """Return whether the names of a module belong to the page."""
        return any(fnmatch(module, f"minifuse.{pattern}") for pattern in self.modules.split())


GROUPS = {
    "Tensors": (
        Topic(
            "tensor",
            "Tensor",
            "The class of all tensors: its attributes and methods.",
            "tensors.tensor tensors.grad_methods tensors.augmented_assignment ir.array_methods ir.pytorch_differences "
            "compiler.plan",
        ),
        Topic(
            "creation",
            "Creation",
            "Make tensors: of numbers, of NumPy arrays, filled, like others.",
            "tensors.creation functions.creation",
        ),
        Topic("random", "Random numbers", "Seeds, generators and distributions.", "tensors.random functions.random"),
        Topic(
            "attributes",
            "Types and attributes",
            "Element types, promotion, and functions that describe a tensor.",
            "core.dtypes functions.dtypes functions.attributes",
        ),
        Topic(
            "elementwise",
            "Elementwise",
            "Functions of each element; operands are broadcast, dtypes promoted.",
            "core.operators functions.elementwise",
            rules="The result has the broadcast shape of the operands; operands that cannot be broadcast raise ShapeError.",
        ),
        Topic(
            "special",
            "Special functions",
            "Gamma, error and Bessel functions of each element.",
            "functions.special",
            rules="The result has the broadcast shape of the operands.",
        ),
        Topic(
            "reductions",
            "Reductions and scans",
            "Sums, extremes and statistics along dims, and their running versions.",
            "functions.statistics functions.scans",
            rules="x has any shape. A reduction leaves `dim` out, or keeps it with size 1 if keepdim=True; without "
            "`dim`, it reduces all dims. A scan keeps the shape. The maximum of no elements raises ShapeError.",
        ),
        Topic(
            "joining",
            "Joining and repeating",
            "Join tensors, cut them into parts, repeat them.",
            "functions.joining",
            rules="Tensors that are joined have equal sizes in all dims but one; other sizes raise ShapeError.",
        ),
        Topic(
            "shaping",
            "Shapes and views",
            "Views with another shape, diagonals, triangles.",
            "functions.shaping",
            rules="A view shares the memory of x. A shape with another number of elements raises ShapeError.",
        ),
        Topic(
            "indexing",
            "Indexing",
            "Select, store and find elements by their index.",
            "functions.indexing functions.positions",
            rules="Indices are int32 or int64, and count from the end if they are negative. An index out of range "
            "raises IndexingError, an index of floats DTypeError.",
        ),
        Topic(
            "ordering",
            "Order and bins",
            "Sort, select by rank, search, count.",
            "functions.ordering functions.bins",
            rules="Functions work along `dim`, by default the last one. Positions in results are int64.",
        ),
        Topic(
            "products",
            "Products",
            "Matrix products under all of their names, and sums of products.",
            "functions.products ir.array_functions",
            rules="Shapes follow `np.matmul`: (..., m, k) @ (..., k, n) is (..., m, n), with broadcast batches. Other "
            "sizes raise ShapeError.",
        ),
        Topic(
            "linalg",
            "Linear algebra",
            "Solutions, factorizations, determinants and norms: `mf.linalg`, and what PyTorch has at the top.",
            "functions.matrices functions.linalg",
            rules="Matrices are the last two dims, batches the others. They are computed by LAPACK, on the host. A "
            "singular matrix raises LinAlgError, a shape that is no matrix ShapeError.",
        ),
        Topic(
            "fft",
            "Fourier transforms",
            "Discrete Fourier transforms of real numbers and of pairs of them: `mf.fft`.",
            "functions.fft",
            rules="Functions work along `dim`, by default the last one. Results are pairs (real, imaginary) in a last "
            "dim of size 2.",
        ),
        Topic(
            "files",
            "Files",
            "Save and load tensors, states and shards.",
            "tensors.serialization tensors.sharded_checkpoint core.shards",
        ),
        Topic("errors", "Errors", "All errors, from one base class.", "core.errors"),
    ),
    "Gradients and compilation": (
        Topic(
            "gradients",
            "Gradients",
            "Derivatives of functions: `mf.grad`, `mf.autograd`, `mf.func`, checkpoints, single numbers.",
            "tensors.transforms autograd.* core.dispatch func.* core.scalar",
        ),
        Topic(
            "fusion",
            "Fusion and kernels",
            "Compile functions into few kernels, profile them, write your own.",
            "jit.fuse inspect.* custom_kernels.* runtime.kernel_cache",
        ),
        Topic(
            "backends",
            "Backends",
            "Where tensors are stored and computed, memory, precision.",
            "backends.registry core.precision",
        ),
        Topic("simt", "The interpreter", "CUDA kernels thread by thread: `mf.simt`.", "simt.*"),
    ),
    "Neural networks": (
        Topic(
            "modules",
            "Modules",
            "Modules, parameters and containers.",
            "nn.module nn.containers nn.parameter_containers nn.summary nn.layers nn.lazy_layers nn.embedding "
            "nn.embedding_bag",
        ),
        Topic(
            "convolutions",
            "Convolutions",
            "Convolutions and their transposes, padding, rearrangement.",
            "nn.convolution nn.transposed_convolution nn.padding nn.rearrange",
            rules="Inputs are (batch, channel, ..., row, col), or the same without the batch. Other numbers of dims or "
            "channels raise ShapeError.",
        ),
        Topic(
            "pooling",
            "Pooling and resampling",
            "Pooling, its inverses, interpolation and sampling.",
            "nn.pooling nn.pooling_variants nn.adaptive_pooling nn.resampling",
            rules="Inputs are (batch, channel, ..., row, col), or the same without the batch. Other numbers of dims "
            "raise ShapeError.",
        ),
        Topic(
            "activations",
            "Activations",
            "Functions between layers, as functions and as modules.",
            "nn.activations nn.more_activations",
            rules="The result has the shape of x, unless its section says otherwise.",
        ),
        Topic(
            "normalization",
            "Normalization and dropout",
            "Layers that normalize values, and those that drop some.",
            "nn.normalization nn.batch_normalization nn.dropout nn.feature_dropout",
            rules="The result has the shape of x. In evaluation, dropout returns x.",
        ),
        Topic(
            "sequences",
            "Recurrence and attention",
            "Recurrent layers, attention, transformers.",
            "nn.recurrent nn.attention nn.multihead_attention nn.transformer",
            rules="Sequences are (time, batch, feature), or (batch, time, feature) if batch_first=True, as in PyTorch.",
        ),
        Topic(
            "losses",
            "Losses and distances",
            "Losses of classes and values, and distances of vectors.",
            "nn.losses nn.more_losses nn.class_losses nn.ctc nn.regression nn.distances functions.neural",
            rules="Scores of classes are (batch, class, ...) with integer targets of shape (batch, ...). Values and "
            'their targets have equal shapes; others raise ShapeError. `reduction` is "mean", "sum" or "none".',
        ),
        Topic("init", "Initial values and tools", "`mf.nn.init` and `mf.nn.utils`.", "nn.init nn.utils optim.clipping"),
        Topic(
            "optimizers",
            "Optimizers",
            "Steps from gradients: `mf.optim`.",
            "optim.adam optim.adam_variants optim.adaptive optim.lbfgs optim.muon optim.optimizer optim.sgd "
            "optim.sign_based",
        ),
        Topic(
            "schedules",
            "Learning rates",
            "Schedules of the learning rate, and averages of parameters.",
            "optim.lr_* optim.schedules optim.swa_utils",
        ),
    ),
    "Data, tests, devices": (
        Topic("data", "Data", "Datasets, files, text, batches: `mf.data`.", "data.*"),
        Topic("testing", "Testing", "Checks and strategies for your own tests: `mf.testing`.", "testing testing.*"),
        Topic(
            "distributed",
            "Many devices",
            "Collectives, data parallel training, shards of models: `import minifuse.distributed as dist`.",
            "distributed.*",
        ),
        Topic(
            "training",
            "Training runs",
            "Runs that can be stopped and resumed, recipes, classes of the course: `minifuse.training`, "
            "`minifuse.recipes`, `minifuse.course`.",
            "training.* recipes course.*",
        ),
    ),
}
TOPICS = tuple(topic for group in GROUPS.values() for topic in group)
MODULES = {  # public module -> page with its names
    "mf.autograd": "gradients",
    "mf.autograd.function": "gradients",
    "mf.autograd.functional": "gradients",
    "mf.data": "data",
    "mf.fft": "fft",
    "mf.func": "gradients",
    "mf.linalg": "linalg",
    "mf.nn": "modules",
    "mf.nn.embedding_bag": "modules",
    "mf.nn.functional": "activations",
    "mf.nn.init": "init",
    "mf.nn.utils": "init",
    "mf.optim": "optimizers",
    "mf.optim.lr_scheduler": "schedules",
    "mf.optim.swa_utils": "schedules",
    "mf.simt": "simt",
    "mf.testing": "testing",
    "mf.utils": "gradients",
    "mf.utils.checkpoint": "gradients",
}
