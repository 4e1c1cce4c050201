"""The pages of the API reference: every public name, on the page of the topic of its module.

A page begins with a table of its names; below, each has its signature and docstring, rendered by mkdocstrings, its other
names, an example, and a link to its source.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docs.site.element_types import element_types
from docs.site.examples import example_of
from docs.site.links import ROOT, page_uri
from docs.site.public_names import Entry, docstring, entries, public_module
from docs.site.topics import GROUPS, MODULES, TOPICS, Topic

MEMBERS = {  # object -> members that its section shows
    "mf.Tensor": "false",  # they are objects of their own
    "mf.cache": "[stats, kernels, clear, check, set_plan_limit]",
    "minifuse.jit.fuse.Fused": "[explain, source, plan, compile, stats]",
}


@cache
def entries_of(topic: Topic) -> list[Entry]:
    """Return the objects of a page, by their names."""
    return sorted((entry for entry in entries() if topic_of(entry) is topic), key=lambda entry: entry.title.lower())


def topic_of(entry: Entry) -> Topic:
    """Return the page of an object: that of its module."""
    return topic_of_module(entry.module)


@cache
def topic_of_module(module: str) -> Topic:
    """Return the page of the names that a module defines. Raise LookupError if there is none."""
    for topic in TOPICS:
        if topic.has(module):
            return topic
    raise LookupError(f"public names are defined in {module}, which no page of TOPICS has; add the module to one")


def link(entry: Entry, text: str, folder: str = "") -> str:
    """Return a link to an object, from a page of the reference."""
    return f"[`{text}`]({folder}{topic_of(entry).name}.md#{entry.title})"


def page(topic: Topic) -> str:
    """Return a page as Markdown."""
    found = entries_of(topic)
    rows = "".join(f"| {link(entry, entry.title)} | {cell(entry.summary)} |\n" for entry in found)
    head = "---\nsearch: { boost: 2 }\n---\n\n"  # before pages that only mention a name
    rules = f"{topic.rules} [Conventions](index.md#conventions) hold unless a section says otherwise.".lstrip()
    sections = "\n".join(map(section, found))
    return f"{head}# {topic.title}\n\n{topic.text}\n\n{rules}\n\n| name | summary |\n|---|---|\n{rows}\n{sections}"


def cell(text: str) -> str:
    """Return text as a cell of a table."""
    return text.replace("|", r"\|").replace("*", r"\*").replace("[", r"\[").replace("<", r"\<")


def section(entry: Entry) -> str:
    """Return the section of an object."""
    topic = topic_of(entry).name
    anchors = "".join(f'<span id="{name}"></span>' for name in entry.names)
    options = f"    options:\n      heading: {entry.title!r}\n      toc_label: {entry.title.rpartition('.')[2]!r}\n"
    heading = f"{anchors}\n\n::: {entry.identifier}\n{options}{members(entry)}"
    return "\n".join([heading, example_of(entry, topic), element_types(entry, topic), footer(entry)]) + "\n"


def members(entry: Entry) -> str:
    """Return the option that chooses the members that are shown; without one, all are."""
    return f"      members: {MEMBERS[entry.title]}\n" if entry.title in MEMBERS else ""


def footer(entry: Entry) -> str:
    """Return a line with all names of an object, and its source."""
    names = " · ".join(f"`{name.replace('mf.Tensor.', 'x.')}`" for name in entry.names)
    return f"{names} · [source](../{page_uri(source(entry))})\n{{ .names }}\n"


def source(entry: Entry) -> Path:
    """Return the file that defines an object, or makes it."""
    path = ROOT / (entry.module.replace(".", "/") + ".py")
    return path if path.exists() else path.with_suffix("") / "__init__.py"


def sources() -> set[Path]:
    """Return the files that define public objects."""
    return {source(entry) for entry in entries()}


def index() -> str:
    """Return the first page: all topics with their names."""
    return "# API\n\n" + INTRODUCTION + "".join(index_parts())


INTRODUCTION = """\
Every public name, by topic. Names follow PyTorch, and NumPy's names of functions and parameters are accepted, too.
`mf` is `import minifuse as mf`; `x` is a tensor. A function of the library is also a method,
`x.roll(1)`, and where PyTorch has one, a twin in place: `x.relu_()`. The search finds all of them.

## Conventions

Unless a page or a section says otherwise:

- **Shapes.** Operands are [broadcast](../guide/layouts.md#stride-0-broadcasting) as in NumPy. `dim` counts from 0, or from
  the end if it is negative; `keepdim=True` keeps a reduced dim with size 1.
- **Element types.** Operands of several types are promoted as in NumPy 2; a Python number adapts to the tensor. Functions
  with a real result, such as `exp`, compute integers in float64. The line "Element types" of a section is measured: its
  example runs again with operands of each type.
- **Errors.** A wrong shape or dim raises [`ShapeError`](errors.md#mf.ShapeError), a wrong element type or an operand that is
  no tensor [`DTypeError`](errors.md#mf.DTypeError), an index out of range
  [`IndexingError`](errors.md#mf.IndexingError), tensors of several backends [`BackendError`](errors.md#mf.BackendError). In
  a fused function, what needs values raises [`FuseError`](errors.md#mf.FuseError).
- **Gradients.** Each function of floats has its derivative, of any order, unless its page says that it has none.

"""


def index_parts() -> Iterator[str]:
    """Yield the modules, then the groups of topics, each topic with links to its names."""
    rows = [
        f"| [`{name}`]({page}.md) | {cell(docstring(public_module(name)).partition(chr(10))[0])} |\n"
        for name, page in MODULES.items()
    ]
    yield f"## Modules\n\n| module | contents |\n|---|---|\n{''.join(rows)}\n"
    for group, topics in GROUPS.items():
        yield f"## {group}\n\n"
        for topic in topics:
            names = ", ".join(link(e, e.title.removeprefix("mf.")) for e in entries_of(topic))
            yield f"### [{topic.title}]({topic.name}.md)\n\n{topic.text}\n\n{names}\n\n"


def pages() -> dict[str, str]:
    """Return all pages: path in docs/ -> Markdown."""
    return {"api/index.md": index(), **{f"api/{topic.name}.md": page(topic) for topic in TOPICS}}


def nav() -> list[object]:
    """Return the part of the navigation."""
    return ["api/index.md", *[{group: [f"api/{t.name}.md" for t in topics]} for group, topics in GROUPS.items()]]
