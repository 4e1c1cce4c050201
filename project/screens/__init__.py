"""The pages: widgets select a view, and `project.views` computes what it shows.

The folder is not called `pages`, because Streamlit runs the files of a folder of that name as scripts when a page is opened
by its address.
"""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import streamlit as st


class Page(NamedTuple):
    """A page: its address, title and question, and the module whose function `page` draws it."""

    path: str
    title: str
    question: str
    module: str

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
    Page("strides", "Storage and strides", "Where does an element lie, and what does a view change?", "strides"),
    Page("broadcasting", "Broadcasting", "How do two shapes become one, and what does the gradient sum?", "broadcasting"),
    Page("folds", "Map, zip, reduce", "What is one cell of a result made of, and in which order?", "folds"),
    Page("threads", "Threads and blocks", "Who does what: which thread of which block?", "threads"),
    Page("memory", "Memory", "What does a load of a warp ask of memory?", "memory"),
    Page("matmul", "Matmul", "Why are some products of matrices faster, and some wrong?", "matmul"),
    Page("fusion", "Fusion", "What becomes one kernel, and what does not?", "fusion"),
    Page("autodiff", "Autodiff", "Where does a gradient come from?", "autodiff"),
    Page("race", "Race the backends", "Who is fastest, at which size, and how far from the limit?", "race"),
    Page("train", "Train", "How does a network learn, step by step?", "train"),
)

OWN = Page("own", "Your kernel", "What does my kernel do?", "user_kernel")
"""The page for `minifuse app --kernel`."""
