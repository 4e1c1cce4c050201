"""A shim for tools that want a setup.py; the metadata lives in pyproject.toml.

Two things are said here, since no setting says them. A wheel carries the visualizer. It lies inside the package, in a folder
that is no package itself, so that no `project` appears beside the packages of others. And the URLs of the project, and the
links of its description, follow from one address, `repository` of [tool.minifuse] in pyproject.toml; while it is empty,
there are no URLs, and the links are the README's.
"""

import re
import tomllib
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
CARRIED = ("project", ".streamlit")
RECORDED = Path("docs", "guide", "counters-h200.json")  # beside what the pages count, what a GPU has
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["minifuse"]["repository"].rstrip(
    "/"
)
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    "Repository": "",
    "Documentation": "/tree/main/docs",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Issues": "/issues",
}  # the part of each address that follows the repository's


class BuildWithVisualizer(build_py):
    """The modules of the package, and the visualizer."""

    def run(self) -> None:
        """Copy them to where the wheel is made from; an editable install has them as they are."""
        super().run()
        if not self.editable_mode:
            for folder in CARRIED:
                target = Path(self.build_lib, "minifuse", "_visualizer", folder)
                copytree(ROOT / folder, target, ignore=ignore_patterns("__pycache__"), dirs_exist_ok=True)
            target = Path(self.build_lib, "minifuse", "_visualizer", RECORDED)
            target.parent.mkdir(parents=True, exist_ok=True)
            copy(ROOT / RECORDED, target)


setup(
    cmdclass={"build_py": BuildWithVisualizer},
    long_description=re.sub(r"\]\((?!\w+:|#)", f"]({REPOSITORY}/blob/main/" if REPOSITORY else "](", README),
    long_description_content_type="text/markdown",
    project_urls={name: REPOSITORY + page for name, page in PAGES.items() if REPOSITORY},
)
