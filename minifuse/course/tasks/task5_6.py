"""Task 5.6: partition nodes into kernels with few launches and few bytes."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

from ...core.indexing import Shape
from ..check import agreement, check_each, check_given, current
from ..check import in_turn as every
from ..drawn_plans import draw_plan
from ..drawn_programs import capture_graph, evaluate, programs
from ..fusion import Graph, Kernel, can_share
from ..kernel_groups import make_kernel, nodes_to_compute
from ..plans import PLANS, Plan
from ..programs import Line, Program, sample_arrays
from ..questions.calling import calls_with_one
from ..questions.task5_6 import kernels_for
from ..scheduled import ScheduleCost, run_schedule, schedule_error, unfused_cost
from ..strided import Array
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

OPS = ("matmul", "add", "matmul", "mul", "neg", "matmul", "maximum", "sum", "add", "sub", "max")
schedule = calls_with_one("schedule")
BRIDGE = Program(
    ((6, 1), (6, 5), (6, 4)),
    (Line("neg", (0,)), Line("add", (1, 3)), Line("exp", (3,)), Line("add", (2, 5))),
    (4, 6),
)
CYCLE = Program(((4, 4),), (Line("add", (0, 0)), Line("matmul", (0, 1)), Line("add", (1, 2))), (3,))
"""e = x + x; return e + x @ e: in one kernel, both sums would wait for the product, and it for them."""
MINIMAL_TRAFFIC = "a kernel loads and stores what it must, and each value once"
RIGHT = "the kernels give what the graph gives, each after those that it waits for"
FEWEST = "the graphs of the list, and others of their kinds, take as few launches as they can"
BYTES = "and move as few bytes as they can"


def argument_shapes() -> "SearchStrategy[tuple[Shape, ...]]":
    """Draw square matrices, row sums, and another iteration space, so that not all nodes can share a kernel."""
    from hypothesis import strategies as st

    shapes = st.sampled_from([(4, 4), (4, 4), (4, 1), (6, 5), (6, 4)])
    return st.lists(shapes, max_size=3).map(lambda others: ((4, 4), *others))


def cases() -> "SearchStrategy[Program]":
    """Draw programs with matmuls between other nodes."""
    from hypothesis import strategies as st

    drawn = programs(
        argument_shapes(),
        OPS,
        max_lines=10,
        numbers=(0.5, 2.0),
        is_output=lambda shape, space_shape: True,
        is_reducible=lambda shape, space_shape: shape[-1] > 1,
    )
    return drawn | st.just(BRIDGE)


def many_inputs(seed: int) -> Program:
    """Return a program of more inputs than usual, with values that no output needs, and with an input as an output."""
    random, count = Random(seed), 9 + seed % 5
    lines = [Line("exp", (0,))]
    for k in range(1, count):
        lines.append(Line(random.choice(("add", "sub", "maximum")), (count + len(lines) - 1, k)))
        if random.random() < 0.3:
            lines += [Line("neg", (random.randrange(count + len(lines)),)), Line("mul", (count + len(lines) - 1, 0.5))]
    last = count + len(lines) - 1
    return Program(((4, 4),) * count, tuple(lines), (last, random.randrange(count), last, count))


def large_cases() -> "SearchStrategy[Program]":
    """Draw programs of many inputs."""
    from hypothesis import strategies as st

    return st.integers(0, 2**32).map(many_inputs)


def drawn_plans() -> "SearchStrategy[Plan]":
    """Draw plans of one kind."""
    from hypothesis import strategies as st

    return st.integers(0, 2**32).map(lambda seed: draw_plan(seed, 1))


def pairs_of_plans() -> "SearchStrategy[Plan]":
    """Draw plans of two kinds."""
    from hypothesis import strategies as st

    return st.integers(0, 2**32).map(lambda seed: draw_plan(seed, 2))


def costs(name: str, examine: Callable[[Plan, Sequence[Kernel]], None]) -> Check:
    """Return a check of the schedules of PLANS, and of drawn plans."""
    return every(
        name,
        [
            check_given(name, PLANS, schedule, examine, send=Plan.graph, describe=describe_plan),
            check_each(
                name,
                drawn_plans,
                schedule,
                examine,
                large=pairs_of_plans,
                send=Plan.graph,
                describe=describe_plan,
                share=0.5,
                at_once=True,
            ),
        ],
    )


def outputs(program: Program, answer: object) -> list[Array]:
    """Run the student's schedule of a program, and return its outputs."""
    return run_schedule(capture_graph(program), answer, sample_arrays(program.shapes)).outputs


def simplest_cycle() -> "SearchStrategy[Program]":
    """Draw the smallest program whose sums must not share a kernel."""
    from hypothesis import strategies as st

    return st.just(CYCLE)


def computes(
    drawn: Callable[[], "SearchStrategy[Program]"], large: Callable[[], "SearchStrategy[Program]"] | None = None
) -> Check:
    """Return a check that schedules compute what the programs do."""
    return agreement(
        RIGHT,
        drawn,
        schedule,
        lambda c: evaluate(c, sample_arrays(c.shapes)),
        large=large,
        send=capture_graph,
        read=outputs,
        draw=lambda c, got, right: str(capture_graph(c)).splitlines(),
        at_once=True,
    )


def groups(graph: Graph) -> list[list[int]]:
    """Return a group for some nodes: the node, and up to two later ones that can share a kernel with it."""
    computed = nodes_to_compute(graph)
    found = [[k, *[i for i in computed if i > k and can_share(graph, [k, i])][:2]] for k in computed]
    whole: list[int] = []
    for k in computed:
        whole += [k] if can_share(graph, [*whole, k]) else []
    return [group for group in (*found, whole) if can_share(graph, group)]


def grouped(program: Program) -> tuple[Graph, list[list[int]]]:
    """Return the graph of a program, and groups of its nodes."""
    graph = capture_graph(program)
    return graph, groups(graph)


def check_traffic(program: Program, answer: list[object]) -> None:
    """Raise `Wrong` if `kernel_for` loads or stores too much or too little."""
    graph, groups_of_nodes = grouped(program)
    for group, found in zip(groups_of_nodes, answer, strict=True):
        right = make_kernel(graph, group, nodes_to_compute(graph))
        if not isinstance(found, Kernel):
            raise Wrong(
                "kernel_for must return a Kernel(nodes, loads, stores)", case_text=current[0], got=found, kind="type"
            )
        if sorted(found.nodes) != list(right.nodes):
            raise schedule_error(f"kernel_for(graph, {group}) computes {found.nodes}", graph, [found], "nodes")
        for name, theirs, ours in (("loads", found.loads, right.loads), ("stores", found.stores, right.stores)):
            if sorted(theirs) != list(ours):
                kind = kind_of(name, theirs, ours, graph, group)
                message = (
                    f"a kernel of {describe_case(group)} {name} {describe_case(theirs)}; it must have {describe_case(ours)}"
                )
                raise schedule_error(message, graph, [found], kind, expected=describe_case(ours), got=describe_case(theirs))


def kind_of(name: str, theirs: Sequence[int], ours: Sequence[int], graph: Graph, group: Sequence[int]) -> str:
    """Classify a mistake in loads or stores."""
    if len(set(theirs)) < len(theirs):
        return f"{name} twice"
    if set(theirs) > set(ours):
        extra = set(theirs) - set(ours)
        outside = {i for k, node in enumerate(graph.nodes) if k not in group for i in node.inputs}
        if name == "stores":  # a user in another kernel that is not in `ours` is one that no output depends on
            return "stores for nobody" if extra <= outside else "stores too many"
        return "constant" if all(graph.nodes[k].op == "constant" for k in extra) else "loads too many"
    missing = set(ours) - set(theirs)
    return "output" if name == "stores" and missing <= set(graph.outputs) else f"{name} missing"


def describe_case(numbers: Sequence[int]) -> str:
    """Return nodes as text."""
    return " ".join(f"%{k}" for k in numbers) or "nothing"


def cost_of(plan: Plan, answer: object) -> tuple[Graph, ScheduleCost]:
    """Return the graph of a plan, and the cost of the student's schedule."""
    graph = plan.graph()
    return graph, run_schedule(graph, answer, sample_arrays(plan.shapes))


def check_launch_count(plan: Plan, answer: Sequence[Kernel]) -> None:
    """Raise `Wrong` if a schedule has more launches than the best one."""
    graph, cost = cost_of(plan, answer)
    if cost.launches > plan.launches:
        unfused = unfused_cost(graph)[0]
        message = f"{cost.launches} launches; unfused it would be {unfused}, and {plan.launches} are enough"
        kind = "unfused" if cost.launches == unfused and plan is PLANS[0] else "launches"
        raise schedule_error(message, graph, answer, kind, expected=plan.launches, got=cost.launches, case=plan)


def in_turn(wrong: Wrong, is_near: bool) -> bool:
    """Return whether a schedule has as many launches as a greedy one, in list order or of all nodes that are ready."""
    if wrong.kind != "launches":
        return False
    graph = wrong.case.graph()
    left, count = nodes_to_compute(graph), 0
    while left:
        group: list[int] = []
        for k in left:
            is_ready = all(i in group or i not in left for i in graph.nodes[k].inputs)
            if is_ready and can_share(graph, [*group, k]):
                group.append(k)
            elif is_near:
                break
        left, count = [k for k in left if k not in group], count + 1
    return bool(wrong.got == count)


def check_bytes(plan: Plan, answer: Sequence[Kernel]) -> None:
    """Raise `Wrong` if a schedule moves more bytes than the best one with equal launches."""
    graph, cost = cost_of(plan, answer)
    if cost.nbytes > plan.nbytes:
        unfused = unfused_cost(graph)[1]
        message = f"{cost.nbytes:,} bytes are moved; unfused it would be {unfused:,}, and {plan.nbytes:,} are enough"
        raise schedule_error(message, graph, answer, "bytes", expected=plan.nbytes, got=cost.nbytes)


def describe_plan(plan: Plan) -> str:
    """Return the name of a plan and its text."""
    return f"{plan.name}: {plan.text}"


TASK = Task(
    id="5.6",
    title="Beat your own unfused version",
    file="launches.py",
    slots=("kernel_for", "schedule"),
    points=8,
    text=(
        "A graph, a kernel for each node: that is the unfused version. Now group the nodes into as few kernels as they fit "
        "into, and count what it spares: launches, and bytes that are loaded and stored. Never wrong: a kernel runs after "
        "all that it waits for, and two kernels never wait for each other."
    ),
    hints=(
        "Think of what can run now. A kernel that takes in all that it can, with what becomes ready by that, is never a "
        "worse beginning than one that takes less; a matmul that can run costs its launch now or later.",
        "While nodes are left: run a matmul that is ready; else, for each space, grow a kernel node by node as long as "
        "can_share allows it and all operands are there, and choose one. Then look at bytes: would a node spare some in "
        "another kernel, where it is ready too?",
        "docs/guide/fusion.md, 'What does not fuse, and why': minifuse explain --steps tells how the library decides.",
    ),
    reads=("docs/course/5.6-launches.md", "docs/guide/fusion.md"),
    checks=(
        check_each(MINIMAL_TRAFFIC, cases, kernels_for, check_traffic, large=large_cases, send=grouped, at_once=True),
        every(RIGHT, [computes(simplest_cycle), computes(cases, large_cases)]),
        costs(FEWEST, check_launch_count),
        costs(BYTES, check_bytes),
    ),
    mistakes=(
        Mistake(
            "a node is computed or stored for, and no output depends on it",
            "A graph may have such nodes. Begin with graph.outputs, and go on to the inputs of what is needed.",
            when=lambda w: w.kind in ("nobody needs", "stores for nobody"),
        ),
        Mistake(
            "a value is stored that no other kernel needs",
            "Within its kernel a value stays in a register. Store it if another kernel loads it, or if it is an output.",
            when=lambda w: w.kind in ("stores too many", "stores for nobody"),
        ),
        Mistake(
            "a constant is loaded",
            "Constants are written in the code of a kernel: a kernel loads inputs, and what other kernels have stored.",
            when=lambda w: w.kind == "constant",
        ),
        Mistake(
            "a value is loaded once for each use",
            "Loaded once, it is in a register for all nodes of the kernel. And two operands may be one value: x * x.",
            when=lambda w: w.kind == "loads twice",
        ),
        Mistake(
            "what the graph gives is not stored",
            "No other kernel needs an output, but whoever called does: graph.outputs.",
            when=lambda w: w.kind == "output",
        ),
        Mistake(
            "two kernels wait for each other",
            "If a way from one node of a kernel to another leads through a different kernel, neither can run first.",
            when=lambda w: w.kind == "cycle",
        ),
        Mistake(
            "a kernel runs before one that it waits for",
            "A kernel may be named when all that it loads is stored. One that was begun early may have to wait for what "
            "joined it.",
            when=lambda w: w.kind == "order",
        ),
        Mistake(
            "a kernel takes what cannot share it",
            "A matmul is a kernel of its own. And two nodes that could each share with a third may not share with each "
            "other: ask can_share for all that the kernel would have.",
            when=lambda w: w.kind == "rule",
        ),
        Mistake(
            "each node is a kernel",
            "That is the unfused version, which is to be beaten.",
            when=lambda w: w.kind == "unfused",
            check=FEWEST,
        ),
        Mistake(
            "a kernel begins before the matmul that more of its nodes wait for",
            "A matmul that can run costs its launch now or later. After it, more is ready, and fits into one kernel.",
            when=lambda w: in_turn(w, is_near=False),
            check=FEWEST,
        ),
        Mistake(
            "only neighbours in the list are merged",
            "Between two nodes of one kernel, nodes may stand that have to do with neither. Look for all that is ready.",
            when=lambda w: in_turn(w, is_near=True),
            check=FEWEST,
        ),
        Mistake(
            "a node is computed as soon as it can be",
            "If only a later kernel needs it, and has its operands at hand, it costs nothing there: no store, no load.",
            when=lambda w: w.kind == "bytes",
            check=BYTES,
        ),
    ),
    allows=frozenset({"minifuse.course.fusion"}),
)
