"""The pages: widgets select a view, and `project.views` computes what it shows.

The folder is not called `pages`, because Streamlit runs the files of a folder of that name as scripts when a page is opened
by its address.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple

import streamlit as st

from ..frame import show_error, show_head
from ..public import OWN_CODE, NotOfferedError, policy

if TYPE_CHECKING:
    from streamlit.navigation.page import StreamlitPage


class Page(NamedTuple):
    """A page of the visualizer."""

    path: str
    """The address of the page, without the first slash."""
    title: str
    question: str
    """The question that the page answers."""
    module: str
    """The module of this folder whose function `page` draws the page."""
    lesson: str = ""
    """One sentence that the page shows to be true."""
    needs: str = ""
    """The part of `project.public` without which a server does not offer the page."""

    def load(self) -> Callable[[], None]:
        """Return the function that draws the page. Its name is unique, because Streamlit identifies pages by it."""
        draw: Callable[[], None] = import_module(f"{__name__}.{self.module}").page

        def page() -> None:
            try:
                policy().check_part(self.needs)
                draw()
            except NotOfferedError as error:
                show_head(self.title, self.question)
                show_error(error)
            except OverflowError:  # raised by number_input for an address with ?key=1e400
                st.error("The address has a number that is larger than any float; take it out.")
            show_next(self)

        page.__name__ = page.__qualname__ = f"page_{self.module}"
        return page


PAGES = (
    Page("", "Map", "Where am I?", "map"),
    Page(
        "strides",
        "Storage and strides",
        "Where does an element lie, and what does a view change?",
        "strides",
        "A tensor is a line of numbers and a rule; a view changes the rule and copies nothing.",
    ),
    Page(
        "broadcasting",
        "Broadcasting",
        "How do two shapes become one, and what does the gradient sum?",
        "broadcasting",
        "A small tensor is repeated without being copied, and its gradient adds up what was repeated.",
    ),
    Page(
        "folds",
        "Map, zip, reduce",
        "What is one cell of a result made of, and in which order?",
        "folds",
        "Each cell of a result reads some cells of the inputs; a reduction adds them along a tree.",
    ),
    Page(
        "threads",
        "Threads and blocks",
        "Who does what: which thread of which block?",
        "threads",
        "Each thread puts its numbers into a formula, and gets its element.",
    ),
    Page(
        "memory",
        "Memory",
        "What does a load of a warp ask of memory?",
        "memory",
        "32 threads ask at once: neighbors share a sector, and scattered ones fetch eight times as much.",
    ),
    Page(
        "matmul",
        "Matmul",
        "Why are some products of matrices faster, and some wrong?",
        "matmul",
        "Tiles in shared memory let a value that was loaded once be used many times.",
    ),
    Page(
        "fusion",
        "Fusion",
        "What becomes one kernel, and what does not?",
        "fusion",
        "Operators that read what the one before wrote become one kernel, and save its trips to memory.",
    ),
    Page(
        "schedules",
        "Schedules",
        "Who computes which element of a kernel, and what does that ask of memory?",
        "schedules",
        "The same loops, dealt out to other threads, ask for eight times the sectors.",
    ),
    Page(
        "autodiff",
        "Autodiff",
        "Where does a gradient come from?",
        "autodiff",
        "The calls are walked backward, and gradients that meet are added.",
    ),
    Page(
        "train",
        "Train",
        "How does a network learn, step by step?",
        "train",
        "Many small steps against the gradient bend the boundary around the points.",
    ),
    Page(
        "race",
        "Race the backends",
        "Do all compute the same, and who is fastest at which size?",
        "race",
        "All backends compute the same but for the last bits, and differ in speed by the size.",
    ),
    Page(
        "devices",
        "Devices",
        "How do many devices work together, and when do they wait?",
        "devices",
        "Devices pass parts around a ring, hide messages behind work, and wait at the ends of a pipeline.",
    ),
)
"""The pages in the order in which they build on one another: the path of the map."""

PASTED = Page("own", "Your kernel", "What does my kernel do?", "pasted_kernel", needs=OWN_CODE)
OWN = Page("own", "Your kernel", "What does my kernel do?", "user_kernel", needs=OWN_CODE)
"""The page for `minifuse app --kernel`, in place of PASTED."""


def show_next(page: Page) -> None:
    """Draw a link to the next page of the path."""
    if page in PAGES[:-1]:
        number = PAGES.index(page) + 1
        found = PAGES[number]
        st.page_link(page_of(found), label=f"Next: {number} {found.title}", icon=":material/arrow_forward:")


def page_of(found: Page) -> "StreamlitPage":
    """Return a page as Streamlit's navigation has it: without an entry if this server does not offer the page."""
    entry: Literal["visible", "hidden"] = "visible" if policy().offers(found.needs) else "hidden"
    return st.Page(found.load(), title=found.title, url_path=found.path, default=not found.path, visibility=entry)
