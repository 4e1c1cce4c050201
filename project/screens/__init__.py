"""The pages: widgets, what they choose as a view, and the view as a picture. What is shown is made in `project.views`.

The folder is not called `pages`, since Streamlit runs the files of such a folder as scripts when a page is opened by its
address.
"""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import streamlit as st


class Page(NamedTuple):
    """One page: its address, its title, its question, and the module whose `page` draws it."""

    path: str
    title: str
    question: str
    module: str

    def load(self) -> Callable[[], None]:
        """The function that draws it, which has a name of its own, since Streamlit tells pages by it."""
        draw: Callable[[], None] = import_module(f"{__name__}.{self.module}").page

        def page() -> None:
            try:
                draw()
            except OverflowError:  # of number_input, for an address with ?key=1e400
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
"""A page that is there where `minifuse app` was given a kernel."""
