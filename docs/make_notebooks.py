"""Write Jupyter notebooks, made from pages by jupytext: one for each module of the course, and those of docs/notebooks.

    python docs/make_notebooks.py build/notebooks

Examples become cells that run; what a page says that they print, and examples in a shell, stay text. Pictures are copied
beside the notebooks. Links between pages of the course lead to notebooks; other links are left out.

A page of docs/notebooks becomes a notebook beside it, which is committed, so that hosts such as Colab can open it. Its first
cell installs minifuse where it is missing, and what its cells print is left out.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path

from minifuse.course.registry import MODULES, TASKS

COURSE = Path(__file__).parent / "course"
PAGES = Path(__file__).parent / "notebooks"
INSTALL = """# On Colab and other hosts, install minifuse. Where it is installed, this cell does nothing.
from importlib.util import find_spec

if find_spec("minifuse") is None:
    %pip install --quiet "minifuse[simt,train]"
"""
PRINTED = re.compile(r"```output\n.*?```\n+", re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
WEB = re.compile(r"[a-z]+:")


def pages_of(module: int) -> list[Path]:
    """Return the pages of a module, in the order of its tasks."""
    return [page for task in TASKS if task.module == module for page in COURSE.glob(f"{task.id}-*.md")]


def name_of(module: int) -> str:
    """Return the name of a module's notebook."""
    return f"{module}-{MODULES[module].lower().replace(' ', '-')}.ipynb"


def move_links(text: str) -> str:
    """Return the text of a page with links that are right beside the notebooks."""

    def moved(found: re.Match[str]) -> str:
        is_image, label, target = found.groups()
        if is_image:
            return f"![{label}](images/{Path(target).name})"
        if WEB.match(target):
            return found[0]
        task = re.match(r"(\d+)\.\d+-[^/]+\.md", target)
        return f"[{label}]({name_of(int(task[1]))})" if task else label

    return LINK.sub(moved, text)


def make_notebook(module: int) -> str:
    """Return the notebook of a module as JSON."""
    return convert("\n\n".join(move_links(page.read_text(encoding="utf-8")) for page in pages_of(module)))


def make_page_notebook(page: Path) -> str:
    """Return the notebook of a page of docs/notebooks as JSON."""
    text = PRINTED.sub("", move_links(page.read_text(encoding="utf-8")))
    return convert(f"```python\n{INSTALL}```\n\n{text}")


def convert(text: str) -> str:
    """Return Markdown as a notebook without outputs, as JSON."""
    import jupytext

    notebook = jupytext.reads(text, fmt="md")
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # jupytext draws them; equal pages should give equal files
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return str(jupytext.writes(notebook, fmt="ipynb"))


def main() -> None:
    """Write all notebooks and their pictures."""
    parser = argparse.ArgumentParser(description="Write the Jupyter notebooks of the course, and those of docs/notebooks.")
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path("build", "notebooks"), help="where those of the course go"
    )
    folder = parser.parse_args().folder
    shutil.copytree(COURSE.parent / "images" / "course", folder / "images", dirs_exist_ok=True)
    for module in MODULES:
        if pages_of(module):
            path = folder / name_of(module)
            path.write_text(make_notebook(module), encoding="utf-8")
            sys.stdout.write(f"{path}\n")
    for page in sorted(PAGES.glob("[0-9]*.md")):
        path = page.with_suffix(".ipynb")
        path.write_text(make_page_notebook(page), encoding="utf-8")
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
