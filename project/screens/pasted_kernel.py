"""The page Your kernel, for a kernel that is pasted or read from a file. It runs in a process that can only compute."""

from typing import TYPE_CHECKING

import streamlit as st

from minifuse.core.errors import MinifuseError

from ..components.text_file import text_file
from ..frame import PageContent, show_error, show_head, show_page, show_verdict
from ..sandbox.run import MAX_CHARACTERS, PastedRun, prepare_child, run_pasted
from ..views.user_kernel import MAX_THREADS

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

KERNEL = """from numba import cuda

@cuda.jit
def scale(x, y):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < x.size:
        y[i] = 2 * x[i]
"""
FORMULA = "cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x"
EXERCISE = KERNEL.replace(FORMULA, "cuda.threadIdx.x  # write the index formula")
EXAMPLES = {"a kernel": KERNEL, "exercise: the index formula": EXERCISE}
TEXT = "pasted_text"


def page() -> None:
    """Draw a launch of the pasted kernel, and the timeline of one of its threads."""
    first, one, two, three, four, five = show_head(
        "Your kernel", "Paste a numba.cuda kernel below: it runs lane by lane.", 1.1, 0.5, 0.95, 0.7, 0.7, 1.2
    )
    example = first.selectbox("begin with", list(EXAMPLES), key="pasted_example", bind="query-params", on_change=forget_text)
    grid = one.text_input("blocks", placeholder="2 or 2,2", key="pasted_grid", bind="query-params")
    block = two.text_input("threads of a block", placeholder="32 or 8,8", key="pasted_block", bind="query-params")
    of_block = three.number_input("look at block", 0, MAX_THREADS, 1, key="pasted_of_block", bind="query-params")
    thread = four.number_input("and its thread", 0, MAX_THREADS, 3, key="pasted_thread", bind="query-params")
    given = five.text_input("arguments", placeholder="x=64:float32 n=64", key="pasted_arguments", bind="query-params")
    prepare_child()
    place = st.container()
    source, verdict = choose_text(EXAMPLES[example])
    with place:
        try:
            with st.spinner("The kernel runs"):
                found = run_text(source, grid, block, given, (int(of_block), int(thread)))
        except MinifuseError as error:
            show_error(error)
            return
        finally:
            prepare_child()
        if example != "a kernel":
            st.caption(judge(found))
        show_verdict(verdict, f"{found.name} ({given or found.example}): {found.picture.sentence}")
        title = f"{found.name}: lanes of this warp; other counts of the launch"
        show_page(PageContent("pasted", found.picture, found.facts, found.lines, title))


def choose_text(example: str) -> "tuple[str, DeltaGenerator]":
    """Draw the field for the text, and the button for a file that fills it; return the text, and the place of the verdict.

    The field is below the picture, so the verdict is repeated above it.
    """
    with st.expander("The text that runs", expanded=True):
        verdict = st.empty()
        text = st.text_area("kernel", example, 220, key=TEXT, bind="query-params")
        text_file("pasted_file", "or a file", ".py,.txt", MAX_CHARACTERS + 1, replace_text)
        st.caption(
            "The last kernel of the text is launched. It runs in a process of its own, which has no files, no network and "
            "a few seconds."
        )
    return text or "", verdict


def replace_text(text: str) -> None:
    """Put the text of a file into the field."""
    st.session_state[TEXT] = text


def forget_text() -> None:
    """Take back the text, since another example was chosen."""
    st.session_state.pop(TEXT, None)


@st.cache_resource(max_entries=32, show_spinner=False)
def run_text(source: str, grid: str, block: str, arguments: str, of: tuple[int, int]) -> PastedRun:
    """Return the cached run of a text."""
    return run_pasted(source, grid, block, arguments, of)


def judge(found: PastedRun) -> str:
    """Say how far the exercise is solved, by what the threads wrote."""
    written, size = found.written
    if written == size:
        return f"Solved: each of the {size} elements of the output is written, once."
    return f"Not yet: {written} of {size} elements of the output are written by exactly one thread; change the index."
