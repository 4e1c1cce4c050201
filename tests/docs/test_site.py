"""The project's site: it builds without a warning, no link is broken, no page is an orphan, no page is heavy."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
import yaml

from docs.site.hooks import expand_patterns
from docs.site.links import linked_sources, page_uri, rewrite, source_page
from tests.docs.pages import all_pages
from tests.docs.site_pages import faults, reachable, read, weight
from tests.sources import ROOT

MAX_BYTES = 1_000_000
NOT_LINKED = {"404.html"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site in a folder."""
    pytest.importorskip("mkdocs", reason='the site needs: pip install "minifuse[docs]"')
    folder = tmp_path_factory.mktemp("site")
    build_site(folder)
    return folder


def build_site(folder: Path, config: Path = ROOT / "mkdocs.yml") -> None:
    """Run what `make site` runs."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config), "--site-dir", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert result.returncode == 0, result.stderr[-3000:]


def html(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


@pytest.mark.thorough
def test_no_link_of_the_site_is_broken_or_leads_to_another_host(site):
    assert [fault for page in html(site) for fault in faults(page)] == []


@pytest.mark.thorough
def test_each_page_is_reached_from_the_front_page(site):
    assert {page.relative_to(site).as_posix() for page in {*html(site)} - reachable(site / "index.html")} == NOT_LINKED


@pytest.mark.thorough
def test_each_page_of_the_documentation_is_on_the_site(site):
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page != ROOT / "README.md"]
    uris = [page_uri(page).replace("README.md", "index.md").removesuffix(".md") + ".html" for page in pages]
    assert [uri for uri in uris if not (site / uri).exists()] == []


@pytest.mark.thorough
def test_no_page_is_heavier_than_a_megabyte(site):
    assert {page.name: weight(page) for page in html(site) if weight(page) > MAX_BYTES} == {}


@pytest.mark.thorough
def test_each_page_has_a_title_that_its_folder_has_once(site):
    titles = [(page.parent, read(page).title) for page in html(site) if page.name != "404.html"]
    assert all(title.strip() for _, title in titles)
    assert {title for title in titles if titles.count(title) > 1} == set()


@pytest.mark.thorough
def test_a_link_that_leads_nowhere_stops_the_build(tmp_path):
    pytest.importorskip("mkdocs", reason='the site needs: pip install "minifuse[docs]"')
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A page\n\n[gone](gone.md)\n")
    (tmp_path / "docs" / "orphan.md").write_text("# Another\n")
    text = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[0]
    kept = re.sub(r"^(hooks|watch):.*\n", "", text.partition("\ntheme:")[0], flags=re.MULTILINE)
    (tmp_path / "mkdocs.yml").write_text(f"{kept}\ntheme: {{ name: mkdocs }}\nnav: [index.md]\n")
    with pytest.raises(AssertionError, match=r"(?s)'gone\.md', but the target.*not found|orphan\.md"):
        build_site(tmp_path / "out", tmp_path / "mkdocs.yml")


def test_links_lead_to_pages_of_the_site():
    text = "[a](../../minifuse/core/operators.py), [b](../../CONTRIBUTING.md#a-backend), [c](../../README.md) `[d](../x.py)`"
    assert rewrite(text, ROOT / "docs" / "guide", "guide/x.md") == (
        "[a](../source/minifuse/core/operators.py.md), [b](../CONTRIBUTING.md#a-backend), [c](../index.md) `[d](../x.py)`"
    )


def test_links_in_blocks_of_code_and_to_other_hosts_stay():
    text = "```\n[a](../../README.md)\n```\n\n[b](https://example.org/x) [c](#here) [d](gone.md)\n"
    assert rewrite(text, ROOT / "docs" / "guide", "guide/x.md") == text


def test_a_folder_becomes_a_list_of_its_files():
    folder = ROOT / "project" / "benchmarks" / "rows"
    page = ROOT / "docs" / "guide" / "speed" / "measuring.md"
    assert {folder, *folder.glob("*.py")} <= linked_sources([page])
    assert "- [`matmul.py`]" in source_page(folder) or "- [`__init__.py`](rows/__init__.py.md)" in source_page(folder)


def test_each_page_of_the_repository_is_in_the_navigation():
    nav = yaml.safe_load("nav:" + (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2])
    named = [*pages_of(expand_patterns(nav, ROOT / "docs"))]
    pages = [page for page in all_pages() if page.is_relative_to(ROOT / "docs")]
    expected = {page.relative_to(ROOT / "docs").as_posix() for page in pages} | {"api/index.md"}
    missing, unknown = navigation_faults(named, expected)
    assert missing == [], f"add these pages to nav in mkdocs.yml: {', '.join(missing)}"
    assert unknown == [], f"remove these pages from nav in mkdocs.yml, since docs/ does not have them: {', '.join(unknown)}"
    assert [name for name in named if named.count(name) > 1] == [], "leave these pages once in nav in mkdocs.yml"


def test_a_page_that_is_missing_in_the_navigation_is_named():
    found = navigation_faults(["index.md", "guide/gone.md", "CONTRIBUTING.md"], {"index.md", "guide/robust.md"})
    assert found == (["guide/robust.md"], ["guide/gone.md"])


def navigation_faults(named: list[str], expected: set[str]) -> tuple[list[str], list[str]]:
    """Return the pages that the navigation lacks, and those that it names in vain."""
    elsewhere = {name for name in named if (ROOT / name).is_file()}  # pages outside docs/, such as CONTRIBUTING.md
    return sorted(expected - {*named}), sorted({*named} - elsewhere - expected)


def pages_of(nav: object) -> Iterator[str]:
    """Yield the pages of a part of the navigation."""
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from pages_of(part)


def test_the_figures_of_the_front_page_are_those_of_the_speed_page():
    front = (ROOT / "docs" / "index.md").read_text().partition("**How fast?**")[2].partition("[Speed]")[0]
    rows = [
        line for line in (ROOT / "docs" / "guide" / "speed" / "goals.md").read_text().splitlines() if line.startswith("| ")
    ]
    gpu, cpu = (file_and_row(rows, row) for row in ("| softmax, 8192 x 8192 |", "| the chain of 8, 2^24 elements |"))
    time, fraction, ratio = re.findall(r"(\d+ us), at (\d+%).*?([\d.]+x)", front, re.DOTALL)[0]
    assert f"| {time} |" in gpu[1]
    assert f"| {fraction} |" in gpu[1]
    assert f"| {ratio}, " in gpu[1]
    assert f"| {re.findall(r'[0-9.]+x(?= as long)', front)[1]} |" in cpu[1]
    dates = [
        json.loads((ROOT / "project" / "benchmarks" / "results" / file).read_text())["date"][:10] for file, _ in (gpu, cpu)
    ]
    assert re.findall(r"\((\d{4}-\d\d-\d\d)\)", front) == dates == [date.fromisoformat(x).isoformat() for x in dates]


def file_and_row(rows: list[str], text: str) -> tuple[str, str]:
    """Return the first row of the speed page that has a text, and the file of its results."""
    row = next(row for row in rows if text in row)
    return re.findall(r"results/([\w-]+\.json)", row)[0], row
