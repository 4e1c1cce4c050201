"""Make stubs from reference solutions: the lines between `# begin 2.3a` and `# end` become `todo("2.3a")`."""

import re
from pathlib import Path

REGION = re.compile(r"^(?P<indent> *)# begin (?P<part>\S+)\n.*?^ *# end\n", re.MULTILINE | re.DOTALL)


def stub_of(text: str) -> str:
    """Return the text of a reference solution without its solutions."""
    return REGION.sub(lambda found: f'{found["indent"]}todo("{found["part"]}")\n', text)


def stubs_of(folder: Path) -> dict[str, str]:
    """Return the stub of each reference solution in a folder, by the name of its file: "tensors.py.txt"."""
    return {f"{path.name}.txt": stub_of(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.py"))}
