"""Every page in both themes, by the rules of axe-core, which look into shadow roots, too."""

from pathlib import Path

import pytest

from project.screens import PAGES, PASTED

# The rule, the number of elements, and the first one with what is wrong.
VIOLATIONS = """async () => (await axe.run(document, { resultTypes: ['violations'] })).violations
  .map(({ id, nodes }) => `${id}: ${nodes.length} times, ${nodes[0].html.slice(0, 200)}: ${nodes[0].failureSummary}`)"""


@pytest.fixture(scope="module")
def axe():
    """The text of axe-core."""
    package = pytest.importorskip("axe_playwright_python", reason='this test needs: pip install "minifuse[browser]"')
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("page", [*PAGES, PASTED], ids=lambda page: page.module)
def test_no_rule_of_axe_is_violated(app, visit, axe, page, dark):
    seen = visit(f"{app}/{page.path}?facts=true", dark=dark)
    seen.page.evaluate(axe)
    assert seen.page.evaluate(VIOLATIONS) == []
