"""compiler/plan_html.py: a plan in a notebook."""

import minifuse as mf
from tests.well_formed import Document


@mf.fuse
def scores(x, weights, k=2.0):
    return (mf.relu(x @ weights) * k).softmax(1)


def test_a_plan_shows_its_program_and_its_kernels():
    plan = scores.plan(mf.ones(5, 3), mf.ones(3, 4).T.contiguous().T, 3.0)
    document = Document(plan._repr_html_())
    assert repr(plan) == "<Plan of scores on parallel: 2 kernels>"
    codes = [text for path, text in document.texts if path.endswith("/pre")]
    assert codes == [plan.text, *[plan.backend.compile(step).source for step in plan.steps]]
    cells = [text for path, text in document.texts if path.endswith(("/td", "tbody/tr/th"))]
    assert cells == [
        "x", "float32", "(5, 3)", "(3, 1)", "0",
        "weights", "float32", "(3, 4)", "(1, 3)", "0",
        "k", "float",
    ]  # fmt: skip


def test_one_kernel_is_singular():
    plan = mf.fuse(lambda x: x + 1).plan(mf.ones(3))
    assert repr(plan) == "<Plan of <lambda> on parallel: 1 kernel>"
    assert "<Plan of <lambda>" in Document(plan._repr_html_()).text("b")


def test_showing_a_plan_compiles_nothing():
    plan = mf.fuse(lambda x: (x * 1.2345).sin() + 0.987).plan(mf.ones(7))
    missing = plan.kernels_to_compile()
    plan._repr_html_()
    assert plan.kernels_to_compile().keys() == missing.keys()
