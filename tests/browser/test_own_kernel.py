"""The page "Your kernel": a file fills the field of the text, and its kernel runs."""

import pytest

from project.sandbox.run import is_supported
from project.screens import PASTED
from project.screens.pasted_kernel import KERNEL

pytestmark = pytest.mark.skipif(not is_supported(), reason="needs Linux with seccomp")


def test_a_file_fills_the_field_and_its_kernel_runs(app, visit, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(KERNEL.replace("scale", "double"))
    seen = visit(f"{app}/{PASTED.path}")
    for name in ("double", "twice"):  # the same file again, after a change
        mine.write_text(KERNEL.replace("scale", name))
        seen.page.get_by_label("or a file").set_input_files(mine)
        seen.page.get_by_text(f"{name}: lanes of this warp").wait_for()
        assert f"def {name}(x, y)" in seen.page.get_by_label("kernel", exact=True).input_value()
    long = tmp_path / "long.py"
    long.write_text("#" * 50_000)
    seen.page.get_by_label("or a file").set_input_files(long)
    seen.page.get_by_text("a text of 10,001 characters; expected at most 10,000").wait_for()
