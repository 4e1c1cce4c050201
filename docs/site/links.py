"""Links of pages to files of the repository, on the site: sources become pages, and files outside docs/ are pages, too.

In the repository a page links to `../../minifuse/core/operators.py`, which its readers open there. On the site the same
link leads to a page with the source, highlighted, which is made for each file that a page links to; a folder becomes a
list of its files. Results (JSON) are copied as they are.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import relpath
from urllib.parse import unquote

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OUTSIDE = (
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "tests/README.md",
)  # pages that lie outside docs/
SAME = {ROOT / "README.md": DOCS / "index.md"}  # the front page has what the README says
LINK = re.compile(r"(?P<before>\]\(<?|^\[[^\]]+\]:\s+)(?P<path>[^)\s#>:]+)(?P<after>#[^)\s>]*)?", re.MULTILINE)
CODE = re.compile(r"^( *)(`{3,}).*?^\1\2`* *$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LANGUAGES = {".py": "python", ".js": "javascript", ".toml": "toml", ".txt": "text", ".css": "css"}
NAMES = {"Makefile": "makefile", "Dockerfile": "docker", "course.Dockerfile": "docker"}
COPIED = (".json", ".ipynb", ".csv")


def page_uri(path: Path) -> str:
    """Return where the site has a file of the repository: the path of its page, or of its copy."""
    path = SAME.get(path, path)
    if path.is_relative_to(DOCS) and path.suffix != ".py" and not path.is_relative_to(DOCS / "site"):
        return str(path.relative_to(DOCS))
    name = re.sub(r"(^|/)\.", r"\1", str(path.relative_to(ROOT)))  # .github is github: some servers hide names with dots
    if name in OUTSIDE:
        return name
    return f"source/{name}" if path.suffix in COPIED else f"source/{name}.md"


def targets(text: str, folder: Path) -> Iterator[tuple[re.Match[str], Path]]:
    """Yield the links of a page in a folder that lead to a file or folder of the repository, and where they lead."""
    code = [(found.start(), found.end()) for found in CODE.finditer(text)]
    for link in LINK.finditer(text):
        if not any(start <= link.start() < end for start, end in code):
            path = (folder / unquote(link["path"])).resolve()
            if path.is_relative_to(ROOT) and path.exists():
                yield link, path


def rewrite(text: str, folder: Path, uri: str) -> str:
    """Return the text of a page with links that are right on the site, where the page is at `uri`."""
    parts, end = [], 0
    for link, path in targets(text, folder):
        relative = relpath(page_uri(path), PurePosixPath(uri).parent)
        parts += [text[end : link.start()], link["before"], relative, link["after"] or ""]
        end = link.end()
    return "".join([*parts, text[end:]])


def linked_sources(pages: list[Path]) -> set[Path]:
    """Return the files and folders outside the pages that they link to, and the files in these folders."""
    found = set[Path]()
    for page in pages:
        for _, path in targets(page.read_text(encoding="utf-8"), page.parent):
            if page_uri(path).startswith("source/"):
                found |= {path, *(files_in(path) if path.is_dir() else ())}
    return found


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder that can be shown."""
    return [path for path in sorted(folder.iterdir()) if path.suffix in {*LANGUAGES, *COPIED}]


def source_page(path: Path) -> str:
    """Return the page of a source file, or of a folder, as Markdown."""
    name = path.relative_to(ROOT)
    head = f"---\ntitle: {path.name}\nsearch: {{ exclude: true }}\nhide: [toc]\n---\n\n# `{name}`\n\n"
    if path.is_dir():
        links = [f"- [`{x.name}`]({path.name}/{PurePosixPath(page_uri(x)).name})\n" for x in files_in(path)]
        return head + "".join(links)
    text = path.read_text(encoding="utf-8").rstrip()
    fence = "`" * max(3, 1 + max((len(x) for x in re.findall(r"`+", text)), default=0))
    language = NAMES.get(path.name) or LANGUAGES.get(path.suffix, "text")
    return head + f'{fence} {{ .{language} linenums="1" }}\n{text}\n{fence}\n'


def source_file(path: Path, config: object) -> File:
    """Return the file of the site for a source: a page, or a copy."""
    uri = page_uri(path)
    if path.suffix in COPIED:
        return File.generated(config, uri, abs_src_path=str(path))
    return File.generated(config, uri, content=source_page(path))


def add_pages(files: Files, config: object, more: set[Path]) -> None:
    """Add the pages outside docs/, and those of all sources that a page links to, and of `more` sources."""
    for name in OUTSIDE:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    pages = [Path(page.abs_src_path) for page in files.documentation_pages() if page.abs_src_path]
    for path in sorted(linked_sources(pages) | more):
        files.append(source_file(path, config))
