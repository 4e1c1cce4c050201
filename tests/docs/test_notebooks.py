"""The notebooks: their cells are the examples of the pages, and run from top to bottom."""

import json
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("jupytext", reason="needs minifuse[notebooks]")

from docs.make_notebooks import COURSE, make_notebook, move_links, name_of, pages_of
from minifuse.course.registry import MODULES
from tests.docs.pages import examples
from tests.sources import ROOT

WITH_PAGES = [module for module in MODULES if pages_of(module)]
each_module = pytest.mark.parametrize("module", WITH_PAGES)
RUN = """
import json, sys
scope = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), sys.argv[1], "exec"), scope)
"""


def sources(notebook, kind):
    return ["".join(cell["source"]) for cell in json.loads(notebook)["cells"] if cell["cell_type"] == kind]


@each_module
def test_the_cells_are_the_examples_of_the_pages_in_order(module):
    wanted = [example.source.strip() for page in pages_of(module) for example in examples(page)]
    assert [cell.strip() for cell in sources(make_notebook(module), "code")] == wanted


@each_module
def test_links_and_pictures_of_a_notebook_exist(module):
    text = "\n".join(sources(make_notebook(module), "markdown"))
    notebooks = {name_of(other) for other in WITH_PAGES}
    for is_image, target in re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", text):
        if is_image:
            assert (COURSE.parent / target.replace("images/", "images/course/")).is_file(), target
        else:
            assert target in notebooks or target.startswith("http"), target


def test_links_are_moved():
    text = "![a](../images/course/2.1.svg) [b](2.2-broadcasting.md) [c](../guide/layouts.md#x) [d](https://example.org)"
    assert move_links(text) == "![a](images/2.1.svg) [b](2-tensors.ipynb) c [d](https://example.org)"


def test_a_notebook_is_made_equal_twice():
    assert make_notebook(0) == make_notebook(0)


@pytest.mark.sampled(6)
@each_module
def test_the_cells_run_in_order(module, tmp_path):
    path = tmp_path / name_of(module)
    path.write_text(make_notebook(module))
    command = [sys.executable, "-W", "error", "-c", RUN, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr
