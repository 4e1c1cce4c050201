"""The metadata of the distributions, and their files."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from datetime import date
from email import message_from_string
from pathlib import Path
from posixpath import normpath

import pytest
import yaml

import minifuse as mf
from tests.release.check_tag import faults, main, releases
from tests.sources import ROOT

ADDRESS = "https://example.org/someone/minifuse"
SETTING = 'repository = ""'
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["minifuse"]


def egg_info(source: Path, target: Path) -> Path:
    """Write the metadata of a source folder to a target folder, as a build does, and return where they are."""
    target.mkdir()
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(target)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, env=os.environ | {"PYTHONWARNINGS": "default"})
    return target / "minifuse.egg-info"


def metadata(folder: Path, setting: str):
    """Return the metadata of a copy of the project with a setting of the repository's address."""
    source = folder / "source"
    (source / "minifuse").mkdir(parents=True)
    for name in ("LICENSE", "README.md", "minifuse/__init__.py", "pytest_minifuse.py", "setup.py"):
        shutil.copy(ROOT / name, source / name)
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    replaced = re.sub(r'^repository = ".*"', setting, text, count=1, flags=re.MULTILINE)
    (source / "pyproject.toml").write_text(replaced, encoding="utf-8")
    return message_from_string((egg_info(source, folder / "target") / "PKG-INFO").read_text(encoding="utf-8"))


def test_without_an_address_there_are_no_urls(tmp_path):
    found = metadata(tmp_path, SETTING)
    assert (found["Name"], found["Version"]) == ("minifuse", mf.__version__)
    assert found.get_all("Project-URL") is None
    assert "](docs/guide/app.md)" in found.get_payload()


def test_urls_and_links_follow_from_one_address(tmp_path):
    found = metadata(tmp_path, f'repository = "{ADDRESS}/"')
    urls = dict(line.split(", ") for line in found.get_all("Project-URL"))
    assert urls["Repository"] == ADDRESS
    assert urls.keys() == {"Repository", "Documentation", "Changelog", "Issues"}
    assert all(url.startswith(ADDRESS) for url in urls.values())
    links = re.findall(r"\]\(([^)]*)\)", found.get_payload())
    assert f"{ADDRESS}/blob/main/docs/guide/app.md" in links
    assert all(link.startswith(("https://", "#")) for link in links)


@pytest.mark.skipif(
    not (ROOT / ".git").exists() or shutil.which("git") is None, reason="no checkout of git: all files are here"
)
def test_the_sdist_has_every_file_of_the_repository(tmp_path):
    sources = (egg_info(ROOT, tmp_path / "target") / "SOURCES.txt").read_text(encoding="utf-8").splitlines()
    # Untracked files that git does not ignore belong to it as soon as they are committed.
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    missing = {name for name in listed if name and (ROOT / name).is_file()} - {*map(normpath, sources)}
    assert missing == set(), f"{sorted(missing)[:9]}: MANIFEST.in leaves them out"


def test_the_citation_is_that_of_the_version():
    assert CITATION["version"] == mf.__version__
    assert CITATION["date-released"] == releases(CHANGELOG)[mf.__version__]
    assert CITATION.get("repository-code", "") == SETTINGS["repository"]


def test_the_version_can_be_released():
    assert faults(f"v{mf.__version__}", mf.__version__, CHANGELOG) == []


@pytest.mark.parametrize(
    ("tag", "changelog", "message"),
    [
        ("", "## [1.2.0] - 2026-01-31\n", "got no tag, expected v1.2.0; write make release-check TAG=v1.2.0"),
        ("1.2.0", "## [1.2.0] - 2026-01-31\n", "minifuse.__version__ is 1.2.0; tag the commit v1.2.0"),
        (
            "v1.2.1",
            "## [1.2.0] - 2026-01-31\n",
            "the tag is 'v1.2.1', and minifuse.__version__ is 1.2.0; tag the commit v1.2.0, "
            "or set __version__ in minifuse/__init__.py to 1.2.1",
        ),
        ("v1.2.0", "## [Unreleased]\n", "no section `## [1.2.0] - YYYY-MM-DD`"),
        ("v1.2.0", "## [1.3.0] - 2026-02-28\n## [1.2.0] - 2026-01-31\n", "the first release of CHANGELOG.md is 1.3.0"),
    ],
)
def test_a_tag_that_does_not_fit_is_refused(tag, changelog, message):
    (found,) = faults(tag, "1.2.0", changelog)
    assert found.endswith(message) or message in found.partition(";")[0]


def test_a_tag_that_fits_is_confirmed(capsys):
    assert main(f"v{mf.__version__}") is None
    assert capsys.readouterr().out.startswith(
        f"v{mf.__version__} is the version of minifuse/__init__.py, and CHANGELOG.md has"
    )


def test_the_sections_of_the_changelog_are_dated():
    assert releases("## [Unreleased]\n## [0.2.0] - 2026-11-28\n") == {"0.2.0": date(2026, 11, 28)}


def test_the_package_is_found_beside_a_clone_of_its_name(tmp_path):
    """A clone is a folder `minifuse` without `__init__.py`: a namespace package, if setuptools only installs a finder."""
    (tmp_path / "minifuse").symlink_to(ROOT)
    variables = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}

    def run(code: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", code]
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)

    if run("import importlib.metadata; importlib.metadata.version('minifuse')").returncode:
        pytest.skip("minifuse is not installed in this environment")
    done = run("import minifuse; print(minifuse.__version__)")
    assert done.stdout.strip() == mf.__version__, done.stderr
