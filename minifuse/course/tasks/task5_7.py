"""Task 5.7: schedules of loop nests."""

from collections.abc import Sequence
from functools import partial
from math import ceil, prod
from random import Random

from ..check import agreement_at_once, current
from ..drawn_nests import LARGE, MACHINE, NESTS, NamedNest, draw_machine, draw_nest, draw_schedule
from ..nest_machine import measure, time_of_split
from ..nests import Machine, Nest, Schedule
from ..oracle import module5_schedules as oracle
from ..questions.calling import Raised
from ..questions.task5_7 import MAX_LINES, ask_all, ask_choices, ask_limited
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import StudentError, Wrong

Case = tuple[Nest, Schedule, Machine]
SectorCase = tuple[tuple[int, ...], Nest, Schedule, Machine]
LEGAL = "a schedule is legal if it keeps all limits of the machine"
SECTORS = "a request touches as many sectors as the threads of a warp have in the nest"
COST = "the cost is that of the model"
BUDGET = (
    f"choose runs at most {MAX_LINES:,} lines for a huge nest, too, and its choice takes at most 1.25 times the best cost"
)
CHOICE = "the choice is legal, and takes at most 1.25 times the time of the best schedule"
TOLERANCE = 1.25
POINTS, DRAWN = 20_000, 3  # iterations of a drawn nest, and how many nests are drawn, for two machines each
NO_LIMIT = 10**9


def describe_nest(nest: Nest) -> str:
    """Return a nest as text."""
    kinds = [f"{n} reduced" if is_reduced else str(n) for n, is_reduced in zip(nest.sizes, nest.is_reduced, strict=True)]
    return f"sizes ({', '.join(kinds)}), loads {nest.loads}, store {nest.store}"


def describe_schedule(schedule: Schedule) -> str:
    """Return a schedule as text."""
    lanes, threads, tile, split = schedule
    return f"lanes {lanes}, threads {threads}, tile {tile}, split {split}"


def describe_machine(machine: Machine) -> str:
    """Return what differs from the usual machine as text."""
    changed = [f"{name} {value}" for name, value in machine._asdict().items() if value != getattr(MACHINE, name)]
    return ", ".join(changed) or "the usual machine"


def describe(case: Case) -> str:
    """Return a case as text."""
    nest, schedule, machine = case
    return f"{describe_schedule(schedule)}; {describe_nest(nest)}; {describe_machine(machine)}"


def describe_sectors(case: SectorCase) -> str:
    """Return a case of a request as text."""
    return f"strides {case[0]}; {describe(case[1:])}"


def draw_cases(student: StudentProcess, random: Random, count: int) -> list[Case]:
    """Draw nests with schedules that may be illegal."""
    cases = []
    for _ in range(4 * count):
        nest = draw_nest(random, POINTS)
        cases.append((nest, draw_schedule(random, nest), draw_machine(random) if random.random() < 0.7 else MACHINE))
    return cases


def legal_cases(student: StudentProcess, random: Random, count: int) -> list[Case]:
    """Draw nests with legal schedules."""
    return [case for case in draw_cases(student, random, 2 * count) if oracle.is_legal(*case)]


def sector_cases(student: StudentProcess, random: Random, count: int) -> list[SectorCase]:
    """Draw requests for the operands of nests."""
    return [
        (random.choice([*nest.loads, nest.store]), nest, schedule, machine)
        for nest, schedule, machine in legal_cases(student, random, count)
    ]


def failure_in_choose(error: StudentError, case_text: str) -> Exception:
    """Return the failure for an exception in `choose`. A division by 0 in `cost` is one by threads, a tile or a split."""
    if error.kind != "ZeroDivisionError" or not error.lines:
        return error
    return Wrong(
        f"{error}, where no size is 0: is the cost of a schedule asked that has 0 threads, a tile of 0 or a split of 0?",
        case_text=case_text,
        lines=error.lines,
        kind="zero",
    )


def check_schedule(nest: Nest, machine: Machine, answer: object, case_text: str) -> Schedule:
    """Return an answer if it is a legal schedule; raise `Wrong` otherwise."""
    if isinstance(answer, Raised):
        error = StudentError(answer.kind, answer.text, [(str(file), int(line)) for file, line in answer.lines])
        raise failure_in_choose(error, case_text)
    count = len(nest.sizes)
    is_schedule = (
        isinstance(answer, Schedule)
        and all(isinstance(part, tuple) and len(part) == count for part in (answer.threads, answer.tile))
        and all(type(n) is int for n in (answer.lanes, *answer.threads, *answer.tile, answer.split))
        and 0 <= answer.lanes < count
    )
    if not is_schedule or not isinstance(answer, Schedule):
        raise Wrong("choose must return a Schedule of ints", case_text=case_text, got=answer, kind="type")
    if not oracle.is_legal(nest, answer, machine):
        raise Wrong(
            f"choose returns a schedule that is not legal: {describe_schedule(answer)}", case_text=case_text, kind="illegal"
        )
    return answer


def check_time(named: NamedNest, machine: Machine, chosen: Schedule, time: int, case_text: str) -> None:
    """Raise `Wrong` if a schedule takes too long."""
    if time > TOLERANCE * named.best:
        is_unsplit = chosen.split == 1 and named.is_split
        raise Wrong(
            f"the schedule {describe_schedule(chosen)} takes {time:,} cycles; {named.best:,} are possible, and at most "
            f"{int(TOLERANCE * named.best):,} are allowed",
            case=(named.nest, machine, chosen),
            case_text=case_text,
            kind="not split" if is_unsplit else "slow",
        )


def is_in_budget(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if the search runs too many lines, or fails for nests that are too large to count."""
    for named in LARGE:
        nest, current[0] = named.nest, f"{named.name}: {describe_nest(named.nest)}"
        try:
            answer = student.ask(ask_limited, (nest, MACHINE))
        except StudentError as error:
            raise failure_in_choose(error, current[0]) from None
        chosen = check_schedule(nest, MACHINE, answer, current[0])
        check_time(named, MACHINE, chosen, oracle.cost(nest, chosen, MACHINE), current[0])


def chooses_well(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if a choice is illegal, or takes much longer than the best schedule."""
    random = Random(CHOICE if effort.seed is None else effort.seed)
    nests = [draw_nest(random, POINTS) for _ in range(DRAWN)]
    drawn = [(nest, draw_machine(random)) for nest in (*nests, *nests)]
    cases = [*[(named.nest, MACHINE) for named in NESTS], *drawn]
    current[0] = f"{len(cases)} nests"
    answers: Sequence[object] = student.ask(ask_choices, cases)
    for k, ((nest, machine), answer) in enumerate(zip(cases, answers, strict=True)):
        if k < len(NESTS):
            named = NESTS[k]
        else:
            better = oracle.choose(nest, machine)
            named = NamedNest(describe_machine(machine), nest, measure(nest, better, machine), better.split > 1)
        case_text = f"{named.name}: {describe_nest(nest)}"
        chosen = check_schedule(nest, machine, answer, case_text)
        check_time(named, machine, chosen, measure(nest, chosen, machine), case_text)


def draw_cost(case: Case, got: object, expected: int) -> list[str]:
    """Return the steps of the model as lines."""
    nest, schedule, machine = case
    steps, warps = oracle.steps_of(nest, schedule), ceil(prod(schedule.threads) / machine.warp)
    sectors = [oracle.request_sectors(strides, nest, schedule, machine) for strides in (*nest.loads, nest.store)]
    work = oracle.model_work(nest, schedule, machine)
    time, second = max(work, machine.latency * (steps + 1)), time_of_split(nest, schedule, machine)
    waves = (expected - second) // time
    return [
        f"steps {steps}, warps {warps}, sectors of the loads {sectors[:-1]}, of the store {sectors[-1]}",
        f"work {work:,}, time of a block {time:,}, waves {waves:,}",
        f"cost {waves:,} * {time:,} + {second:,} = {expected:,}",
    ]


def without_limit(name: str, case: Case) -> bool:
    """Return whether a schedule is legal on a machine without one of its limits."""
    nest, schedule, machine = case
    return oracle.is_legal(nest, schedule, machine._replace(**{name: NO_LIMIT}))


def positions(case: SectorCase) -> int:
    """Return how many elements a request touches."""
    strides, nest, schedule, machine = case
    return oracle.request_sectors(strides, nest, schedule, machine._replace(sector=1))


def of_idle_threads(case: SectorCase) -> int:
    """Return how many sectors a request touches if threads outside of the nest take part."""
    strides, nest, schedule, machine = case
    return oracle.request_sectors(strides, nest._replace(sizes=(NO_LIMIT,) * len(nest.sizes)), schedule, machine)


def of_last_dim(case: SectorCase) -> int:
    """Return how many sectors a request touches if the threads of the last dim are numbered first."""
    strides, nest, schedule, machine = case
    return oracle.request_sectors(strides, nest, schedule._replace(lanes=len(nest.sizes) - 1), machine)


def without_latency(case: Case) -> int:
    """Return the cost if loads have no latency."""
    nest, schedule, machine = case
    return oracle.cost(nest, schedule, machine._replace(latency=0))


def without_second_kernel(case: Case) -> int:
    """Return the cost of the first kernel."""
    return oracle.cost(*case) - time_of_split(*case)


def without_reuse(case: Case) -> int:
    """Return the cost if each operand is loaded for each element of a tile."""
    return oracle.model_time(*case, is_reused=False)


def is_local_minimum(wrong: Wrong) -> bool:
    """Return whether a choice takes too long, and all its legal neighbors have no lower cost."""
    if wrong.kind != "slow":
        return False
    nest, machine, chosen = wrong.case
    near = [other for other in oracle.neighbors(nest, chosen) if oracle.is_legal(nest, other, machine)]
    return all(oracle.cost(nest, other, machine) >= oracle.cost(nest, chosen, machine) for other in near)


TASK = Task(
    id="5.7",
    title="Schedules",
    file="schedules.py",
    slots=("is_legal", "request_sectors", "cost", "choose"),
    points=8,
    text=(
        "A kernel says what is computed, a schedule says which thread computes it. Write what a machine allows, how many "
        "sectors a warp touches, and a model of the time; then choose a schedule by this model without trying all."
    ),
    hints=(
        "A model only has to say which of two schedules is better. Most need no look at all: a good one differs in a "
        "single number from one that is nearly as good.",
        "Begin with machine.warp threads along one dim, the lanes. Look at all schedules in which one number is doubled or "
        "halved, or in which a dim has twice the threads and another one half. Go to the best, until none is better; "
        "do so for each dim.",
        "docs/course/5.7-schedules.md; docs/guide/schedules.md has the library's schedules, and its search.",
    ),
    reads=("docs/course/5.7-schedules.md", "docs/guide/schedules.md"),
    checks=(
        agreement_at_once(LEGAL, draw_cases, partial(ask_all, "is_legal"), lambda c: oracle.is_legal(*c), describe=describe),
        agreement_at_once(
            SECTORS,
            sector_cases,
            partial(ask_all, "request_sectors"),
            lambda c: oracle.request_sectors(*c),
            describe=describe_sectors,
        ),
        agreement_at_once(
            COST, legal_cases, partial(ask_all, "cost"), lambda c: oracle.cost(*c), describe=describe, draw=draw_cost
        ),
        Check(BUDGET, is_in_budget),
        Check(CHOICE, chooses_well),
    ),
    mistakes=(
        Mistake(
            "the tiles in shared memory are not counted",
            "If threads share a reduction, each stores a sum for each element of its tile: threads * tile elements for a "
            "block. With one thread along each reduced dim, none is needed.",
            wrong_answer=partial(without_limit, "shared"),
            check=LEGAL,
        ),
        Mistake(
            "a tile has no limit",
            "The elements of all dims together are in the registers of one thread.",
            wrong_answer=partial(without_limit, "registers"),
            check=LEGAL,
        ),
        Mistake(
            "elements are counted instead of sectors",
            "Elements 0 to 7 are one sector, if a sector has 8: divide positions, and count the different quotients.",
            wrong_answer=positions,
            check=SECTORS,
        ),
        Mistake(
            "threads outside of the nest are counted",
            "A dim of size 3 may have 8 threads. Five of them load nothing.",
            wrong_answer=of_idle_threads,
            check=SECTORS,
        ),
        Mistake(
            "the threads of the last dim are always numbered first",
            "Those of schedule.lanes are; then come the other dims, from the last to the first.",
            wrong_answer=of_last_dim,
            check=SECTORS,
        ),
        Mistake(
            "the latency is forgotten",
            "A block that has little work waits for its loads, one after the other.",
            wrong_answer=without_latency,
            check=COST,
        ),
        Mistake(
            "the second kernel is forgotten",
            "The chunks of a split reduction have to be added up.",
            wrong_answer=without_second_kernel,
            check=COST,
        ),
        Mistake(
            "an operand is loaded for each element of a tile",
            "Where an operand has stride 0, all elements of the tile along this dim need the same element of it: one load.",
            wrong_answer=without_reuse,
            check=COST,
        ),
        Mistake(
            "too many schedules are tried",
            "Follow the neighbors of a good schedule instead of all combinations.",
            when=lambda w: w.kind == "work",
        ),
        Mistake(
            "the choice is not legal",
            "Ask is_legal before you compare costs.",
            when=lambda w: w.kind == "illegal",
        ),
        Mistake(
            "a long reduction with few results is not split",
            "Three results keep three multiprocessors busy. Let split grow too.",
            when=lambda w: w.kind == "not split",
        ),
        Mistake(
            "the search ends where no neighbor is better, far from the best schedule",
            "Where it begins matters. Begin with machine.warp threads along the lanes, not with one thread or a full block.",
            when=is_local_minimum,
        ),
        Mistake(
            "a number of a neighbor is 0",
            "A half of 1 is 0, which is not legal. Ask is_legal before cost.",
            when=lambda w: w.kind == "zero",
        ),
    ),
    allows=frozenset({"minifuse.course.nests"}),
)
