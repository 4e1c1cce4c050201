"""Hooks of MkDocs: pages that are made when the site is built, and links that lead to them.

Versions: `mike` builds the site of a version into a branch, and names the version in MIKE_DOCS_VERSION. Only then has the
site a menu of versions, since its list lies beside the folder of the version.
"""

import os
import sys
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from docs.site import links, reference

SEARCH_BOOSTS = {"index.md": 4, "CHANGELOG.md": 0.1}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the addresses, and complete the navigation: patterns, pages of the reference, the menu of versions."""
    addresses = tomllib.loads((links.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["minifuse"]
    config.site_url = addresses["site"]
    if addresses["repository"]:
        config.repo_url, config.repo_name = addresses["repository"], config.site_name
    config.nav = expand_patterns(config.nav, Path(config.docs_dir))
    for part in config.nav:
        if "API" in part:
            part["API"] = reference.nav()
    if "MIKE_DOCS_VERSION" in os.environ:
        config.extra["version"] = {"provider": "mike"}
    return config


def expand_patterns(nav: Any, folder: Path) -> Any:
    """Replace each pattern in a part of the navigation, such as `adr/0*.md`, by the pages that match."""
    match nav:
        case dict():
            return {title: expand_patterns(part, folder) for title, part in nav.items()}
        case list():
            parts = [expand_patterns(part, folder) for part in nav]
            return [one for part in parts for one in (part if isinstance(part, list) else [part])]
        case str() if "*" in nav:
            return [path.relative_to(folder).as_posix() for path in sorted(folder.glob(nav))]
    return nav


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages that are not in docs/."""
    for uri, text in reference.pages().items():
        files.append(File.generated(config, uri, content=text))
    links.add_pages(files, config, reference.sources())
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to the pages of the site, and let the search find the front page early and the changelog late."""
    if page.file.src_uri in SEARCH_BOOSTS:
        page.meta["search"] = {"boost": SEARCH_BOOSTS[page.file.src_uri]}
    if page.is_homepage:
        page.meta["hide"] = ["navigation", "toc"]  # here, so that readers of the repository see no front matter
    source = page.file.abs_src_path
    if source is None:
        return markdown
    return links.rewrite(markdown, Path(source).parent, page.file.src_uri)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name what the theme leaves without a name for screen readers, and let empty cells of a head be no heads."""
    return output.replace(' role="dialog">', ' role="dialog" aria-label="Search">').replace("<th></th>", "<td></td>")
