"""Render the slides of docs/course/decks to PDF, a file for each module, with a browser that prints.

    python docs/make_decks.py build/decks
    python docs/make_decks.py build/decks --notes

In a deck, `---` begins a slide, and a comment `<!-- ... -->` is a note for the speaker, which is not printed. `--notes`
writes the notes of each deck into a text file beside its PDF.
It needs Chromium (MINIFUSE_CHROMIUM names one) and markdown-it-py. Examples on slides run as those of all pages do.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from markdown_it import MarkdownIt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from project.screenshots import CHROMIUM, find_chromium

NOTES_WIDTH = 77  # characters of a line, which is indented by three
DECKS = Path(__file__).parent / "course" / "decks"
NOTE = re.compile(r"<!--(.*?)-->", re.DOTALL)
STYLE = """
@page { size: 13.333in 7.5in; margin: 0 }
* { box-sizing: border-box }
body { margin: 0; font: 25px/1.38 "DejaVu Sans", "Helvetica Neue", Arial, sans-serif; color: #2f2d2b }
section { width: 13.333in; height: 7.5in; padding: .5in .75in .6in; overflow: hidden; position: relative;
  break-after: page; display: flex; flex-direction: column }
section:last-child { break-after: auto }
section::after { content: attr(data-foot); position: absolute; right: .75in; bottom: .25in; font-size: 14px; color: #6f6a66 }
h1 { font-size: 56px; margin: 2.2in 0 .1in; color: #0072b2 }
h2 { font-size: 38px; margin: 0 0 .2in; color: #0072b2 }
p, ul, ol, pre, table { margin: 0 0 .16in }
li { margin-bottom: .05in }
code, pre { font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace }
code { font-size: .86em; background: #f3f1ee; padding: 0 .15em }
pre { background: #f3f1ee; padding: .12in .18in; line-height: 1.25; border-left: 6px solid #0072b2 }
pre code { background: none; padding: 0; font-size: 18px; white-space: pre-wrap }
pre:has(.language-text) { border-left-color: #c65500 }
table { border-collapse: collapse }
th, td { text-align: left; padding: .05in .2in .05in 0; border-bottom: 1px solid #d8d3cd; vertical-align: top }
p:has(> img:only-child) { flex: 1 1 0; min-height: 0; display: flex; justify-content: center }
img { max-width: 100%; max-height: 100%; object-fit: contain }
"""


def slides(text: str) -> list[str]:
    """Return the slides of a deck as Markdown, with their notes."""
    return [part.strip() for part in re.split(r"^---$", text, flags=re.MULTILINE)]


def notes(slide: str) -> str:
    """Return the notes of a slide."""
    return " ".join(" ".join(NOTE.findall(slide)).split())


def speaker_notes(path: Path) -> str:
    """Return the notes of a deck as text: the number and the title of each slide, and its note."""
    parts = []
    for number, slide in enumerate(slides(path.read_text(encoding="utf-8")), 1):
        title = slide.splitlines()[0].lstrip("# ")
        parts.append(f"{number}. {title}\n{textwrap.indent(textwrap.fill(notes(slide), NOTES_WIDTH), '   ')}\n")
    return "\n".join(parts)


def to_html(path: Path) -> str:
    """Return a deck as an HTML document, a section for each slide."""
    parse, sections = MarkdownIt("commonmark").enable("table"), []
    text = path.read_text(encoding="utf-8")
    all_slides = slides(re.sub(r"\n{3,}", "\n\n", text))  # two empty lines in examples would cost a line of the slide
    for number, slide in enumerate(all_slides, 1):
        foot = f"minifuse course · module {path.stem[0]} · {number}/{len(all_slides)}"
        sections.append(f'<section data-foot="{foot}">{parse.render(NOTE.sub("", slide))}</section>')
    base = f'<base href="{path.resolve().parent.as_uri()}/">'
    return f'<!doctype html><meta charset="utf-8">{base}<style>{STYLE}</style>{"".join(sections)}'


def render(path: Path, folder: Path) -> Path:
    """Print a deck to a PDF file in a folder, and return its path."""
    executable = find_chromium()
    if executable is None:
        raise SystemExit(
            f"no browser prints the slides: install one of {', '.join(CHROMIUM)} (on Debian: apt install chromium), or set "
            "MINIFUSE_CHROMIUM to the path of one"
        )
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{path.stem}.pdf"
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "deck.html"
        page.write_text(to_html(path), encoding="utf-8")
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={place}/profile",
        ]
        options += ["--allow-file-access-from-files", "--no-pdf-header-footer", f"--print-to-pdf={target.resolve()}"]
        subprocess.run([executable, *options, page.as_uri()], check=True, capture_output=True, timeout=300)
    return target


def main() -> None:
    """Render all decks."""
    parser = argparse.ArgumentParser(description="Render the slides of the course to PDF.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build", "decks"), help="where to write the files")
    parser.add_argument("--notes", action="store_true", help="also write the notes for the speaker, as text")
    options = parser.parse_args()
    for path in sorted(DECKS.glob("[0-9]*.md")):
        sys.stdout.write(f"{render(path, options.folder)}\n")
        if options.notes:
            target = options.folder / f"{path.stem}-notes.txt"
            target.write_text(speaker_notes(path), encoding="utf-8")
            sys.stdout.write(f"{target}\n")


if __name__ == "__main__":
    main()
