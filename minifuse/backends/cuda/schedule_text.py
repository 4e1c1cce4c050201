"""Describe the schedule of a kernel in words, axis by axis, with the reason."""

from ...ir.kernel_ir import LoopNest
from .codegen.select import FindSchedule, GeneratedKernel
from .split import SplitPlan

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


def describe_split(plan: SplitPlan, find_schedule: FindSchedule | None = None) -> str:
    """Return how a reduction is split over the grid, and the schedule of each launch."""
    first = plan.parts[0].split
    assert first is not None
    chunks = ", ".join(f"i{x.axis} in {x.chunks} chunks of {x.length:,} elements" for x in first.parts)
    lines = [f"{len(plan.parts)} launches, {chunks} ({SPLIT_REASON})"]
    for k, part in enumerate(plan.parts, 1):
        lines.append(f"launch {k}: {describe_schedule(part.generate(find_schedule), part.step.loop_nest())}")
    return "\n".join(lines)
