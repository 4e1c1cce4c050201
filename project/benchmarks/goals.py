"""The goals of minifuse, line by line: the work, the goal, and the rows that decide whether it is met.

The lines were fixed after the peers were measured and before the engine was written. `overview` compares the stored results
with them; a row may have more targets than its line.
"""

from typing import NamedTuple

Place = tuple[str, str]  # group and name of a row


class Goal(NamedTuple):
    """One line of goals: on an H200, or on two cores of a processor with AVX-512."""

    is_on_gpu: bool
    work: str
    wanted: str
    rows: tuple[Place, ...]


def rows_of_group(group: str, *names: str) -> tuple[Place, ...]:
    """Return the rows of one group."""
    return tuple((group, name) for name in names)


def cubes(*sizes: int) -> list[str]:
    """Return the names of square products."""
    return [f"{n} x {n} x {n}" for n in sizes]


TURNED = ("a.T @ b, 4096 x 4096 x 4096", "a @ b.T, 4096 x 4096 x 4096", "a.T @ b.T, 4096 x 4096 x 4096")
GPU = (
    ("the chain of 8, 2^26 elements", ">= torch.compile, 1.6x cupy.fuse", rows_of_group("gpu-fusion-memory", "chain of 8")),
    ("x.T * 2 + b, 8192 x 8192", ">= torch.compile", rows_of_group("gpu-fusion-memory", "x.T * 2 + b")),
    (
        "((a - b) ** 2).sum(), 8192 x 8192",
        ">= 1.02x torch.compile",
        rows_of_group("gpu-fusion-memory", "((a - b) ** 2).sum()"),
    ),
    (
        "sum of 8192 x 8192: all, dim 0, dim 1",
        "above the best peer",
        rows_of_group("gpu-sums", "x.sum()", "x.sum(0)", "x.sum(1)"),
    ),
    (
        "row softmax, of 8192 and of 1001; backward",
        "1.1x torch.compile; backward 1.0x",
        rows_of_group(
            "gpu-fusion-memory", "softmax, 8192 x 8192", "softmax, 65536 x 1001", "backward of softmax, 8192 x 8192"
        ),
    ),
    (
        "layer norm, of 8192 and of 1001",
        ">= torch.compile",
        rows_of_group("gpu-fusion-memory", "layer norm, 8192 x 8192", "layer norm, 65536 x 1001"),
    ),
    (
        "matmul in float32, 512 to 8192",
        ">= cuBLAS; edges and transposes >= 0.95x",
        rows_of_group("gpu-matmul", *cubes(512, 1024, 2048, 4096, 8192, 4000, 4095), *TURNED),
    ),
    (
        "the same + bias + relu or gelu, one kernel",
        ">= torch.compile",
        rows_of_group("gpu-fusion-matmul", "relu(x @ w + b), 4096 x 4096 x 4096", "gelu(x @ w + b), 4096 x 4096 x 4096"),
    ),
    ("matmul 4096 on tensor cores, tf32", ">= 0.9x cuBLAS", rows_of_group("gpu-tensor-cores", "4096 x 4096 x 4096, tf32")),
    (
        "the host's time of a call on 1,024 elements",
        "fused <= 7 us, eager <= 7 us",
        (("gpu-fusion-host", "chain of 8"), ("gpu-host", "a + b")),
    ),
    (
        "compile a pointwise kernel",
        "<= 100 ms; from disk <= 10 ms",
        rows_of_group(
            "gpu-compile", "first call of a function, nothing on disk", "first call of a function, a second process"
        ),
    ),
)
CPU = (
    ("the chain of 8, 2^24 elements", ">= 2.5x torch.compile", rows_of_group("fusion-large", "chain of 8")),
    ("(a * b + c) * a - 0.5 * b * b + c", ">= 5x torch.compile", rows_of_group("fusion-large", "polynomial")),
    ("eager a + b, 2^24 elements", ">= 5x torch", rows_of_group("large", "a + b")),
    (
        "softmax, logsumexp, layer norm of (4096, 1024)",
        ">= 1.5x torch, torch, torch.compile",
        (*rows_of_group("large", "x.softmax(1)", "x.logsumexp(1)"), ("fusion-large", "layer norm")),
    ),
    (
        "sum of (4096, 1024): all, dim 0, dim 1; max of dim 1",
        ">= torch",
        rows_of_group("large", "x.sum()", "x.sum(0)", "x.sum(1)", "x.max(1)"),
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
        rows_of_group("host", "a + b", "a + b, recorded for gradients"),
    ),
    ("the chain of 8 on 1,024 elements", "<= 3 us", rows_of_group("fusion-host", "chain of 8")),
    ("(x * y).sum().backward() on 1,024", "<= torch", rows_of_group("host", "(x * y).sum().backward()")),
    (
        "import; a kernel from disk; a new size",
        "numba + 0.1 s; <= 5 ms; <= 0.5 ms",
        (
            ("start", "import"),
            *rows_of_group("costs-compiling", "first call of a function, a second process", "first call with another size"),
        ),
    ),
)
GOALS = tuple(Goal(is_on_gpu, *line) for is_on_gpu, lines in ((True, GPU), (False, CPU)) for line in lines)
