"""The pages: widgets select a view, and `project.views` computes what it shows.

The folder is not called `pages`, because Streamlit runs the files of a folder of that name as scripts when a page is opened
by its address.
"""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import streamlit as st


class Page(NamedTuple):
    """A page of the visualizer."""

    path: str
    """The address of the page, without the first slash."""
    title: str
    question: str
    """The question that the page answers."""
    module: str
    """The module of this folder whose function `page` draws the page."""
    topic: str = ""
    """The topic of one of `views.machine.QUESTIONS`: the map links to the page there."""

    def load(self) -> Callable[[], None]:
        """Return the function that draws the page. Its name is unique, because Streamlit identifies pages by it."""
        draw: Callable[[], None] = import_module(f"{__name__}.{self.module}").page

        def page() -> None:
            try:
                draw()
            except OverflowError:  # raised by number_input for an address with ?key=1e400
                st.error("The address has a number that is larger than any float; take it out.")

        page.__name__ = page.__qualname__ = f"page_{self.module}"
        return page


PAGES = (
    Page("", "Map", "Where am I?", "map"),
    Page("strides", "Storage and strides", "Where does an element lie, and what does a view change?", "strides", "storage"),
    Page(
        "broadcasting",
        "Broadcasting",
        "How do two shapes become one, and what does the gradient sum?",
        "broadcasting",
        "storage",
    ),
    Page("folds", "Map, zip, reduce", "What is one cell of a result made of, and in which order?", "folds", "threads"),
    Page("threads", "Threads and blocks", "Who does what: which thread of which block?", "threads", "threads"),
    Page("memory", "Memory", "What does a load of a warp ask of memory?", "memory", "memory"),
    Page("matmul", "Matmul", "Why are some products of matrices faster, and some wrong?", "matmul", "memory"),
    Page("fusion", "Fusion", "What becomes one kernel, and what does not?", "fusion", "fusion"),
    Page("autodiff", "Autodiff", "Where does a gradient come from?", "autodiff", "gradients"),
    Page("race", "Race the backends", "Who is fastest, at which size, and how far from the limit?", "race", "speed"),
    Page("train", "Train", "How does a network learn, step by step?", "train", "gradients"),
)

PASTED = Page("own", "Your kernel", "What does my kernel do?", "pasted_kernel")
OWN = Page("own", "Your kernel", "What does my kernel do?", "user_kernel")
"""The page for `minifuse app --kernel`, in place of PASTED."""
