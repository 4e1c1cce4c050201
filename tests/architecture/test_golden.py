"""Every file of tests/golden is the text of a test that exists."""

import re

from ..conftest import GOLDEN


def test_every_golden_text_belongs_to_a_test():
    for path in GOLDEN.rglob("*.txt"):
        sources = [p.read_text() for p in GOLDEN.parent.rglob(f"test_{path.parent.name}.py")]
        names = [name for text in sources for name in re.findall(r"^def test_(\w+)\(.*\bgolden\b", text, re.MULTILINE)]
        assert any(path.stem.startswith(name) for name in names), f"no test compares with {path}; remove it"
