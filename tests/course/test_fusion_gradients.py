"""The oracle of task 5.5: its graphs of gradients match numerical derivatives."""

import numpy as np
import pytest

from minifuse.course import oracle
from minifuse.course.drawn_programs import capture_graph, evaluate, row_programs
from minifuse.course.fusion import Graph, Node
from minifuse.course.graph_evaluation import evaluate_graph
from minifuse.course.programs import sample_array, sample_arrays

PROGRAMS = [pytest.param(program, id=str(k)) for k, program in enumerate(row_programs((2, 3)))]


def differences(program, d, epsilon=1e-6):
    """The gradient of (d * output).sum(), an element at a time."""
    [x] = sample_arrays(program.shapes)
    found = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[index] = epsilon
        above, below = [(d * evaluate(program, [y])[0]).sum() for y in (x + step, x - step)]
        found[index] = (above - below) / (2 * epsilon)
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_are_derivatives(program):
    arrays = sample_arrays(program.shapes)
    d = sample_array(evaluate(program, arrays)[0].shape, 7)
    [whole] = evaluate_graph(oracle.function("gradient_graph")(capture_graph(program)), [*arrays, d])
    forward, backward = oracle.function("forward_and_backward")(capture_graph(program))
    [split] = evaluate_graph(backward, [*arrays, *evaluate_graph(forward, arrays)[1:], d])
    np.testing.assert_allclose(whole, differences(program, d), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(split, whole)


def test_a_graph_with_huge_values_is_not_computed():
    """It may be a student's."""
    x = sample_array((2, 1), 0)
    nodes = [Node("input", (), 0, (2, 1)), Node("expand", (0,), None, (2, 10**12)), Node("neg", (1,), None, (2, 10**12))]
    with pytest.raises(ValueError, match="the values of the graph have more than 1,048,576 elements"):
        evaluate_graph(Graph(tuple(nodes), (2,)), [x])
