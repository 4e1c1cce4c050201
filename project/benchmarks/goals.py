"""What minifuse set out to reach, line by line: the work, the wish, and the rows that say whether it came true.

The lines were fixed when the peers had been measured, before the engine was written. `overview` holds the kept results
against them; a row may have more targets than its line asks for.
"""

from typing import NamedTuple

Place = tuple[str, str]  # group and name of a row


class Goal(NamedTuple):
    """One line: on an H200, or on two cores of a processor with AVX-512."""

    is_on_gpu: bool
    work: str
    wanted: str
    rows: tuple[Place, ...]


def on(group: str, *names: str) -> tuple[Place, ...]:
    """Rows of one group."""
    return tuple((group, name) for name in names)


def cubes(*sizes: int) -> list[str]:
    """Names of square products."""
    return [f"{n} x {n} x {n}" for n in sizes]


TURNED = ("a.T @ b, 4096 x 4096 x 4096", "a @ b.T, 4096 x 4096 x 4096", "a.T @ b.T, 4096 x 4096 x 4096")
GPU = (
    ("the chain of 8, 2^26 elements", ">= torch.compile, 1.6x cupy.fuse", on("gpu-fusion-memory", "chain of 8")),
    ("x.T * 2 + b, 8192 x 8192", ">= torch.compile", on("gpu-fusion-memory", "x.T * 2 + b")),
    ("((a - b) ** 2).sum(), 8192 x 8192", ">= 1.02x torch.compile", on("gpu-fusion-memory", "((a - b) ** 2).sum()")),
    ("sum of 8192 x 8192: all, dim 0, dim 1", "above the best peer", on("gpu-sums", "x.sum()", "x.sum(0)", "x.sum(1)")),
    (
        "row softmax, of 8192 and of 1001; backward",
        "1.1x torch.compile; backward 1.0x",
        on("gpu-fusion-memory", "softmax, 8192 x 8192", "softmax, 65536 x 1001", "backward of softmax, 8192 x 8192"),
    ),
    (
        "layer norm, of 8192 and of 1001",
        ">= torch.compile",
        on("gpu-fusion-memory", "layer norm, 8192 x 8192", "layer norm, 65536 x 1001"),
    ),
    (
        "matmul in float32, 512 to 8192",
        ">= cuBLAS; edges and transposes >= 0.95x",
        on("gpu-matmul", *cubes(512, 1024, 2048, 4096, 8192, 4000, 4095), *TURNED),
    ),
    (
        "the same + bias + relu or gelu, one kernel",
        ">= torch.compile",
        on("gpu-fusion-matmul", "relu(x @ w + b), 4096 x 4096 x 4096", "gelu(x @ w + b), 4096 x 4096 x 4096"),
    ),
    ("matmul 4096 on tensor cores, tf32", ">= 0.9x cuBLAS", on("gpu-tensor-cores", "4096 x 4096 x 4096, tf32")),
    (
        "the host's time of a call on 1,024 elements",
        "fused <= 7 us, eager <= 7 us",
        (("gpu-fusion-host", "chain of 8"), ("gpu-host", "a + b")),
    ),
    (
        "compile a pointwise kernel",
        "<= 100 ms; from disk <= 10 ms",
        on("gpu-compile", "first call of a function, nothing on disk", "first call of a function, a second process"),
    ),
)
CPU = (
    ("the chain of 8, 2^24 elements", ">= 2.5x torch.compile", on("fusion-large", "chain of 8")),
    ("(a * b + c) * a - 0.5 * b * b + c", ">= 5x torch.compile", on("fusion-large", "polynomial")),
    ("eager a + b, 2^24 elements", ">= 5x torch", on("large", "a + b")),
    (
        "softmax, logsumexp, layer norm of (4096, 1024)",
        ">= 1.5x torch, torch, torch.compile",
        (*on("large", "x.softmax(1)", "x.logsumexp(1)"), ("fusion-large", "layer norm")),
    ),
    (
        "sum of (4096, 1024): all, dim 0, dim 1; max of dim 1",
        ">= torch",
        on("large", "x.sum()", "x.sum(0)", "x.sum(1)", "x.max(1)"),
    ),
    (
        "exp(x.T) * 2; softmax forward and backward",
        ">= 3x torch; >= 1.5x",
        (("fusion-large", "exp(x.T) * 2"), ("large", "x.softmax(1), forward and backward")),
    ),
    (
        "matmul 1024; with bias and activation",
        ">= NumPy as installed; fused >= 1.1x",
        (("matmul", "1024 x 1024 x 1024, float32"), ("fusion-matmul", "relu(x @ w + b), 1024 x 1024 x 1024")),
    ),
    (
        "add of 1,024 elements; with gradients",
        "<= 1.1x torch; below torch",
        on("host", "a + b", "a + b, recorded for gradients"),
    ),
    ("the chain of 8 on 1,024 elements", "<= 3 us", on("fusion-host", "chain of 8")),
    ("(x * y).sum().backward() on 1,024", "<= torch", on("host", "(x * y).sum().backward()")),
    (
        "import; a kernel from disk; a new size",
        "numba + 0.1 s; <= 5 ms; <= 0.5 ms",
        (
            ("start", "import"),
            *on("costs-compiling", "first call of a function, a second process", "first call with another size"),
        ),
    ),
)
GOALS = tuple(Goal(is_on_gpu, *line) for is_on_gpu, lines in ((True, GPU), (False, CPU)) for line in lines)
