"""Runs a notebook top to bottom in a Jupyter kernel, in the current folder, and writes it with its outputs.

    python -m tests.docs.run_notebook docs/notebooks/1-tensors-and-strides.ipynb executed.ipynb

A warning of a cell is an error, and an error ends the run with the cell and its traceback.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.sources import ROOT

STRICT, DEFAULT = (f"import warnings; warnings.simplefilter('{action}')" for action in ("error", "default"))
TIMEOUT_S = 300


def run_notebook(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Return a notebook with its outputs. Warnings are errors in its cells, not where the kernel starts and ends."""
    cells = notebook.cells
    notebook.cells = [nbformat.v4.new_code_cell(STRICT), *cells, nbformat.v4.new_code_cell(DEFAULT)]
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=TIMEOUT_S, kernel_name="python3", resources=place).execute()
    notebook.cells = cells
    return notebook


def run_cells(folder: Path, *sources: str) -> list[list[dict[str, Any]]]:
    """Run cells of code in a child process; return the outputs of each."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    path, result = folder / "cells.ipynb", folder / "executed.ipynb"
    nbformat.write(notebook, path)
    run_file(path, result, folder)
    return [cell["outputs"] for cell in nbformat.read(result, as_version=4).cells]


def run_file(path: Path, result: Path, folder: Path) -> None:
    """Run a notebook in a folder and in a child process, which writes no files of the user."""
    folders = {name: str(folder / ".jupyter" / name) for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}
    environment = {**os.environ, **folders, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.docs.run_notebook", str(path), str(result)]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr


if __name__ == "__main__":
    try:
        executed = run_notebook(nbformat.read(sys.argv[1], as_version=4), Path.cwd())
    except CellExecutionError as error:
        raise SystemExit(f"{sys.argv[1]}: {error}") from None
    nbformat.write(executed, sys.argv[2])
