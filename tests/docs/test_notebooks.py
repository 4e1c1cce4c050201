"""The notebooks: their cells are the examples of the pages, and run from top to bottom.

Those of the course run as scripts; those of docs/notebooks, which are committed, in a real Jupyter kernel.
"""

import json
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("jupytext", reason="needs minifuse[notebooks]")

from docs.make_notebooks import COURSE, INSTALL, PAGES, make_notebook, make_page_notebook, move_links, name_of, pages_of
from minifuse.course.registry import MODULES
from tests.docs.pages import examples
from tests.docs.run_page import compare
from tests.sources import ROOT

WITH_PAGES = [module for module in MODULES if pages_of(module)]
each_module = pytest.mark.parametrize("module", WITH_PAGES)
page_notebooks = [pytest.param(page, id=page.stem) for page in sorted(PAGES.glob("[0-9]*.md"))]
each_page = pytest.mark.parametrize("page", page_notebooks)
TRAINING = "5-train-and-generate"
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


@each_page
def test_a_committed_notebook_is_that_of_its_page(page):
    committed = page.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert committed == make_page_notebook(page), "run python docs/make_notebooks.py"


@each_page
def test_the_cells_of_a_page_follow_the_install_cell(page):
    notebook = make_page_notebook(page)
    wanted = [INSTALL.strip(), *[example.source.strip() for example in examples(page)]]
    assert [cell.strip() for cell in sources(notebook, "code")] == wanted
    assert "```output" not in notebook
    assert not any(cell.get("outputs") for cell in json.loads(notebook)["cells"])


def test_each_notebook_has_its_page_and_its_line_in_the_index():
    pages = {page.stem for page in PAGES.glob("[0-9]*.md")}
    assert {notebook.stem for notebook in PAGES.glob("*.ipynb")} == pages
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    assert pages == {*re.findall(r"\]\(([^)]+)\.md\)", index)} & pages == {*re.findall(r"\]\(([^)]+)\.ipynb\)", index)}


def run_in_kernel(page, folder):
    pytest.importorskip("nbclient", reason="needs minifuse[notebooks]")
    pytest.importorskip("ipykernel", reason="needs minifuse[notebooks]")
    from tests.docs.run_notebook import run_file

    result = folder / "executed.ipynb"
    run_file(page.with_suffix(".ipynb"), result, folder)
    cells = [cell for cell in json.loads(result.read_text())["cells"] if cell["cell_type"] == "code"]
    compare_prints(page, cells[1:])
    return [output["data"] for cell in cells for output in cell["outputs"] if "data" in output]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("page", [page for page in page_notebooks if page.id != TRAINING])
def test_a_notebook_runs_top_to_bottom_in_a_kernel(page, tmp_path):
    assert any("text/html" in data for data in run_in_kernel(page, tmp_path))


@pytest.mark.thorough
def test_the_notebook_that_trains_runs_in_a_kernel(tmp_path):
    shown = run_in_kernel(PAGES / f"{TRAINING}.md", tmp_path)
    assert [next(iter({"text/html", "image/png"} & data.keys()), None) for data in shown] == [None, "text/html", "image/png"]
    assert "665/665" in "".join(shown[1]["text/plain"])


def compare_prints(page, cells):
    """Raise SystemExit if a cell has printed something else than the page says."""
    for example, cell in zip(examples(page), cells, strict=True):
        printed = "".join("".join(output["text"]) for output in cell["outputs"] if output.get("name") == "stdout")
        if example.printed is not None:
            compare(f"{page}:{example.line}", example.source, example.printed, printed)


def test_jupyterlab_is_installed_where_make_installs_minifuse():
    text = (ROOT / "docs" / "course" / "notebooks.md").read_text()
    made, *others = text.partition("```console\n")[2].partition("```")[0].splitlines()
    assert made.startswith("$ make notebooks")
    assert [line.split()[1].rpartition("/")[0] for line in others] == [".venv/bin", ".venv/bin"]
