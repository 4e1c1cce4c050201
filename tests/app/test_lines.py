"""The commands that pages show run in any folder: paths of page files are found in the folder of the visualizer."""

import shutil

import pytest
from typer.testing import CliRunner

from minifuse.cli import files
from minifuse.cli.commands import app as command_line
from minifuse.cli.files import RequestError, file_and_name
from project.views import autodiff, functions, fusion, matmul, memory_kernels, threads
from tests.sources import ROOT

COMMANDS = {
    "Threads and blocks": lambda: threads.command(threads.run_launch("a thread for each element", (8,), (4,))),
    "Memory": lambda: memory_kernels.strided_command("float32", 2, 0, 4),
    "Memory of a tile": lambda: memory_kernels.tiled_command("float64", 33, True, 0, 4),
    "Matmul": lambda: matmul.command(matmul.trace_matmul("naive", 4, 4, 4)),
    "Fusion": lambda: fusion.command(fusion.split_function(functions.FUSED[0], 4, "parallel")),
    "Autodiff": lambda: autodiff.command(autodiff.trace_backward(functions.DIFFERENTIATED[0], 2)),
}


@pytest.mark.parametrize("page", COMMANDS)
def test_command_of_a_page_runs_in_another_folder(page, tmp_path, monkeypatch):
    program, *words = COMMANDS[page]().split()
    assert program == "minifuse"
    assert any(word.startswith("project/views/") for word in words)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(command_line, words)
    assert result.exit_code == 0, result.output


def test_page_files_of_a_wheel_are_found(tmp_path, monkeypatch):
    packaged = tmp_path / "_visualizer" / "project" / "views"
    packaged.mkdir(parents=True)
    shutil.copy(ROOT / "project" / "views" / "kernels.py", packaged)
    monkeypatch.setattr(files, "VISUALIZER_FOLDERS", (tmp_path / "_visualizer",))
    monkeypatch.chdir(tmp_path)
    assert file_and_name("project/views/kernels.py:scale") == (packaged / "kernels.py", "scale")


def test_file_in_the_current_folder_precedes_a_page_file(tmp_path, monkeypatch):
    own = tmp_path / "project" / "views" / "kernels.py"
    own.parent.mkdir(parents=True)
    own.write_text("")
    monkeypatch.chdir(tmp_path)
    found, _ = file_and_name("project/views/kernels.py:scale")
    assert found.resolve() == own.resolve()


@pytest.mark.parametrize("file", ["project/views/nowhere.py:f", "views/kernels.py:scale", "nowhere.py:f"])
def test_missing_file_is_an_error(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RequestError, match=f"{file.partition(':')[0]} is not a file"):
        file_and_name(file)
