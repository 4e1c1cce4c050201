"""Steps of one kernel over layouts, to ask a backend about a launch or to load it without a plan."""

from minifuse.backends.base import NoExecutable
from minifuse.ir.step_kernels import BatchedKernel, CompositeKernel
from minifuse.ir.steps import Step


def load(backend, kernel, shape, dims, outputs, inputs, indexed_operands=()):
    """Return the launch of a kernel over a shape: a function of the addresses of its operands, and of its numbers."""
    return backend.compile(Step.of_layouts(kernel, shape, dims, outputs, inputs, indexed_operands)).load()


def matmul_step(kernel, outputs, inputs):
    """Return the step of a matmul."""
    return Step.of_layouts(kernel, outputs[0].shape, (), outputs, inputs)


def composite_step(op, inputs, dtypes):
    """Return the step of a composite op, of which only the layouts and the dtypes of the inputs matter."""
    kernel = CompositeKernel(op, tuple(dtypes), tuple(dtypes[:1]) * len(op.names))
    return Step.of_layouts(kernel, inputs[0].shape, (), inputs[:1], inputs)


def batch(kernel, sizes, layouts):
    """Return the step of one kernel over arrays of some sizes, each with its layouts of outputs and inputs."""
    outputs, inputs = ([layout for own in layouts for layout in own[k]] for k in range(2))
    return Step.of_layouts(BatchedKernel(kernel, tuple((n,) for n in sizes)), (sum(sizes),), (), outputs, inputs)


def set_batching(monkeypatch, backend_class, is_on):
    """Let a backend accept batches, as it does, or refuse them."""
    compile_step = backend_class.compile

    def compile_without_batches(self, step):
        refuses = isinstance(step.kernel, BatchedKernel)
        return NoExecutable(step, "no batches here") if refuses else compile_step(self, step)

    if not is_on:
        monkeypatch.setattr(backend_class, "compile", compile_without_batches)
