"""The page of the gallery, docs/gallery.md, as text."""

from project.gallery.items import ITEMS, Item

APP = "http://127.0.0.1:8501"
IMAGES = "images/gallery"
HEAD = """# Gallery

<!-- made by `python -m project.gallery`; do not edit -->

Views of [the visualizer](guide/app.md). The kernels of the library run in [the interpreter](guide/simulator.md), on any
machine, and all numbers are computed. Start the visualizer, and each link "Open" leads to that very view, where you can
change everything:

```console
$ pip install "minifuse[app]"
$ minifuse app
The visualizer is at http://127.0.0.1:8501    (Ctrl-C ends it)
```

Each picture opens in full size. Those that move stand still if your system asks for reduced motion; the link "Still picture"
has one step of them.
"""


def write_page() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *map(section, ITEMS)])


def section(item: Item) -> str:
    """Return the section of an item."""
    file = f"{IMAGES}/{item.name}.svg"
    links = [f"[Open]({APP}/{escape(item.address)})"]
    links += [f"[Still picture]({IMAGES}/{item.name}-still.svg)"] if item.is_moving else []
    start = f", for an app that was started with `minifuse app --kernel {item.kernel}`" if item.kernel else ""
    return f"## {item.title}\n\n[![{item.alt}]({file})]({file})\n\n{item.said}\n\n{' · '.join(links)}{start}\n"


def escape(address: str) -> str:
    """Return an address in which Markdown sees no brackets and spaces."""
    codes = {character: f"%{ord(character):02X}" for character in '()[]@;," '}
    return address.translate(str.maketrans(codes))
