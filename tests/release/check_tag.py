"""Check that a tag is the version of the package, and that the changelog has a dated section for it.

make release-check TAG=v1.2.3
"""

import re
import sys
from datetime import date

from tests.sources import ROOT


def version(text: str) -> str:
    """Return the version that the text of `minifuse/__init__.py` states, without an import of the package."""
    return re.search(r'^__version__ = "(.*?)"', text, re.MULTILINE)[1]


def releases(changelog: str) -> dict[str, date]:
    """Return the versions that have a section in the changelog, newest first, with their dates."""
    found = re.findall(r"^## \[(\d\S*)\] - (\S+)$", changelog, re.MULTILINE)
    return {number: date.fromisoformat(day) for number, day in found}


def faults(tag: str, number: str, changelog: str) -> list[str]:
    """Return what must be changed before the tag can be released."""
    found = []
    if not tag:
        found.append(f"got no tag, expected v{number}; write make release-check TAG=v{number}")
    elif tag != f"v{number}":
        other = (
            f", or set __version__ in minifuse/__init__.py to {tag[1:]}" if re.fullmatch(r"v\d+\.\d+\.\d+\S*", tag) else ""
        )
        found.append(f"the tag is {tag!r}, and minifuse.__version__ is {number}; tag the commit v{number}{other}")
    if number not in (dated := releases(changelog)):
        found.append(f"CHANGELOG.md has no section `## [{number}] - YYYY-MM-DD`; rename Unreleased")
    elif next(iter(dated)) != number:
        found.append(f"the first release of CHANGELOG.md is {next(iter(dated))}, expected {number}")
    return found


def main(tag: str) -> str | None:
    """Return the faults as lines; or None, and print that there are none."""
    number = version((ROOT / "minifuse" / "__init__.py").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if found := faults(tag, number, changelog):
        return "\n".join(found)
    print(f"{tag} is the version of minifuse/__init__.py, and CHANGELOG.md has a dated section for it")
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
