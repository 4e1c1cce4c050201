"""A shim for tools that want a setup.py; the metadata lives in pyproject.toml.

One thing is said here, since no setting says it: a wheel carries the visualizer. It lies inside the package, in a folder
that is no package itself, so that no `project` appears beside the packages of others.
"""

from pathlib import Path
from shutil import copy, copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
CARRIED = ("project", ".streamlit")
RECORDED = Path("docs", "guide", "counters-h200.json")  # beside what the pages count, what a GPU has


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


setup(cmdclass={"build_py": BuildWithVisualizer})
