"""The data of module 0's checks: bugs that can be found, points away from borders, and a right oracle."""

import math

import pytest

pytest.importorskip("rich", reason="needs minifuse[course]")

from minifuse.course import Parameter, oracle
from minifuse.course.mutants import BUGS, GRID, TESTED, is_false, is_true
from minifuse.course.questions.task0_2 import NAMES, Operators, operators_of
from minifuse.course.questions.task0_4 import Tree, build_tree
from minifuse.course.registry import TASKS, task_named
from minifuse.course.tasks.task0_2 import is_found
from minifuse.course.tasks.task0_5 import SLOTS, fault_of_line, fault_of_network
from minifuse.course.toy_points import BORDERS, MARGIN, is_right, picture, point_set, side_of_line, side_of_network

PLANTED = [pytest.param(slot, bug, id=f"{slot}-{bug.description}") for slot, bugs in BUGS.items() for bug in bugs]


class Of:
    """A process with a student who has written one function; the operators are the oracle's."""

    def __init__(self, function=None):
        self.about_it = function

    def __getattr__(self, slot):
        return oracle.function(slot)

    def ask(self, question, case):
        return question(self, case)


@pytest.mark.parametrize(("slot", "bug"), PLANTED)
def test_a_planted_bug_shows_and_can_be_found(slot, bug):
    xs, got, right = bug.find_counterexample()
    assert abs(got - right) > 1e-6
    assert oracle.function(bug.operator)(*xs) == right
    assert is_found(Of(oracle.function(slot)), "about_it", bug)


@pytest.mark.parametrize("slot", BUGS)
def test_the_oracles_properties_hold_on_the_grid(slot):
    ops = Operators(operators_of(Of()))
    assert all(is_true(oracle.function(slot)(ops, *xs)) for xs in GRID)
    assert set(TESTED[slot]) <= {name for name, _, _ in ops.calls}


def test_a_bug_is_not_found_by_a_property_that_is_always_true():
    bug = BUGS["about_add"][0]
    assert not is_found(Of(lambda ops, x, y, z: True), "about_it", bug)
    assert not is_found(Of(lambda ops, x, y, z: None), "about_it", bug)
    assert not is_found(Of(lambda ops, x, y, z: 1 / 0), "about_it", bug)
    assert is_found(Of(lambda ops, x, y, z: 1 / (ops.add(2.0, 2.0) == 4.0)), "about_it", bug)


def test_operators_are_those_of_task_0_1():
    assert task_named("0.1").slots == NAMES
    with pytest.raises(AttributeError, match="there is no operator ad; there are identity, add"):
        Operators(operators_of(Of())).ad(1.0, 2.0)


@pytest.mark.parametrize(
    ("answer", "yes", "no"),
    [
        (True, True, False),
        (1.0, True, False),
        (False, False, True),
        (0.0, False, True),
        (None, False, False),
        (2.0, False, False),
    ],
)
def test_answers_of_properties(answer, yes, no):
    assert (is_true(answer), is_false(answer)) == (yes, no)


def test_corners_of_the_oracles_operators():
    ask = oracle.function
    assert [ask("sigmoid")(x) for x in (1000.0, -1000.0, 0.0)] == [1.0, 0.0, 0.5]
    assert math.isclose(ask("sigmoid")(-40.0), math.exp(-40.0))
    assert [ask("log")(0.0), ask("exp")(1000.0), ask("inv")(0.0)] == [-math.inf, math.inf, math.inf]
    assert math.isnan(ask("log")(-1.0))
    assert [ask("is_close")(math.inf, x) for x in (math.inf, 1.0, -math.inf)] == [1.0, 0.0, 0.0]
    assert ask("relu_grad")(0.0, 3.0) == 0.0


@pytest.mark.parametrize("name", BORDERS)
def test_points_keep_their_distance(name):
    points = point_set(name)
    assert points == point_set(name)
    assert len(set(points)) == len(points) == 60
    assert all(abs(BORDERS[name](p.x, p.y)) >= MARGIN for p in points)
    assert 15 <= sum(p.kind for p in points) <= 45


@pytest.mark.parametrize("name", BORDERS)
def test_the_oracle_separates_them(name):
    answer = oracle.function(SLOTS[name])()
    side = side_of_line if SLOTS[name].startswith("line") else side_of_network
    assert all(is_right(p, side(answer, p.x, p.y)) for p in point_set(name))


@pytest.mark.parametrize("name", ["split", "xor"])
def test_no_line_separates_what_a_network_is_asked_for(name):
    kinds = [{p for p in point_set(name) if p.kind == kind} for kind in (0, 1)]
    assert any(in_hull(p, kinds[1]) for p in kinds[0])


def in_hull(p, points):
    """Whether in every direction some point lies further on than p."""
    turns = [2 * math.pi * k / 360 for k in range(360)]
    return all(any(math.cos(t) * (q.x - p.x) + math.sin(t) * (q.y - p.y) > 0 for q in points) for t in turns)


def test_a_picture_shows_the_wrong_points():
    points = point_set("simple")
    plain = picture(points)
    assert len({len(line) for line in plain}) == 1
    assert max(map(len, plain)) < 76
    assert "!" not in "".join(plain)
    right = picture(points, lambda x, y: 0.4 - x)
    assert right[-1].startswith("!  wrong: 0 of 60")
    wrong = picture(points, lambda x, y: x - 0.4)
    assert wrong[-1].startswith("!  wrong: 60 of 60")
    assert "1" not in "".join(wrong[:-1])


@pytest.mark.parametrize("line", [(1, 2, 3), [0.5, 0.0, -1.0]])
def test_a_line_is_three_numbers(line):
    assert fault_of_line(line) == ""
    assert fault_of_network(([line], (1.0, 0.0))) == ""


@pytest.mark.parametrize("line", [(1, 2), None, (1, 2, True), "abc"])
def test_anything_else_is_no_line(line):
    assert fault_of_line(line)
    assert fault_of_network(([line], (1.0, 0.0)))
    assert fault_of_network(line)


def test_a_network_wants_a_weight_for_each_line_and_a_bias():
    assert fault_of_network(([(1, 2, 3)], (1.0,))) == "last has 1 numbers, and 1 hidden lines want 2"


def test_the_oracles_tree_is_the_librarys():
    tree = Tree(({"layers": ["m1", "m2"], "weight": "p0"}, {"bias": "p1", "tied": "p0"}, {"left": "m3"}, {"scale": "p2"}))
    assert str(tree) == "m0(layers=[m1, m2], weight=p0), m1(bias=p1, tied=p0), m2(left=m3), m3(scale=p2)"
    made = build_tree(oracle.function("Module"), tree)
    assert made.named() == [("weight", "p0"), ("layers.0.bias", "p1"), ("layers.1.left.scale", "p2")]
    assert [p.value for p in made.root.parameters()] == [0.0, 0.0, 1.0]


def test_parameters_compare_by_identity():
    assert Parameter(1.0) != Parameter(1.0)
    assert repr(Parameter(1.0)) == "Parameter(1.0)"


@pytest.mark.parametrize("task", [task for task in TASKS if task.module == 0], ids=lambda task: task.id)
def test_mistakes_belong_to_checks(task):
    assert {mistake.check for mistake in task.mistakes} - {""} <= {check.name for check in task.checks}
