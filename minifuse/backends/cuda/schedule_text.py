"""Describe the schedule of a kernel in words, axis by axis, with the reason."""

from ...ir.kernel_ir import Kernel, LoopNest
from .codegen.select import GeneratedKernel, generate_kernel, generate_scheduled
from .split import Part, SplitPlan

SPLIT_REASON = "there are fewer rows than the GPU has room for blocks"


def describe_schedule(generated: GeneratedKernel, nest: LoopNest) -> str:
    """Return the schedule of a generated kernel and the reason for it, or the name of its template."""
    schedule = generated.schedule
    if schedule is None:
        return f"no schedule: the kernel has a template ({generated.form})"
    text = schedule.describe(nest.sizes)
    if schedule.staged:
        text += f"; {', '.join(schedule.staged)} in shared memory"
    return f"{text} ({schedule.why})" if schedule.why else text


def describe_split(plan: SplitPlan) -> str:
    """Return how a reduction is split over the grid, and the schedule of each launch."""
    chunks = f"{plan.split.chunks} chunks of {plan.split.length:,} elements"
    lines = [f"{len(plan.parts)} launches, i{plan.split.axis} in {chunks} ({SPLIT_REASON})"]
    lines += [f"launch {k}: {describe_part(part)}" for k, part in enumerate(plan.parts, 1)]
    return "\n".join(lines)


def describe_part(part: Part) -> str:
    """Return the schedule of one launch of a split reduction."""
    step, split = part.step, part.split
    assert isinstance(step.kernel, Kernel)
    outputs, inputs = step.layouts()
    nest = LoopNest(step.shape, step.dims, [*outputs, *inputs])
    scheduled = generate_scheduled(
        step.kernel, nest, split=None if split is None else split.axis, has_constants=part.has_constants
    )
    return describe_schedule(scheduled or generate_kernel(step.kernel, nest), nest)
