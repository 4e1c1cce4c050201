"""The visualizer: `minifuse app`, or `streamlit run project/app.py`. This file sets up window and navigation."""

import os
import sys
from pathlib import Path

import streamlit as st

if __package__ in (None, ""):  # run as a script by Streamlit
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from project import turns, warm_up
from project.screens import OWN, PAGES, PASTED, page_of
from project.screens.user_kernel import KERNEL

ENGINE = "MINIFUSE_ENGINE_FOLDER"  # environment variable that `minifuse --engine FOLDER app` sets: a student's functions run

ROOM = """
[data-testid="stHeader"] { height: 2.75rem; min-height: 2.75rem; }
.block-container { padding: 2.9rem 1.5rem 1rem; max-width: none; }
.block-container > [data-testid="stVerticalBlock"] { gap: 0.35rem; }
[data-testid="stMain"] h1 { font-size: 1.35rem; padding: 0; }
[data-testid="stMain"] h2 { font-size: 1.15rem; line-height: 1.4; padding: 0.5rem 0; }
.st-key-head [data-testid="stColumn"]:first-child [data-testid="stVerticalBlock"] { gap: 0; }
.st-key-head h1 { line-height: 1.4; }
.st-key-head [data-testid="stMarkdownContainer"] { margin-bottom: 0; }
.st-key-head [data-testid="stCaptionContainer"] { line-height: 1.3; margin: 0; }
:is([data-testid="stCaptionContainer"], [data-testid="stSlider"], button[data-selected]),
:is([data-testid="stCaptionContainer"], [data-testid="stSlider"], button[data-selected]) * {
  color: inherit !important;
  opacity: 1;
}
@media (max-width: 640px) {
  .block-container { padding: 2.9rem 0.75rem 1rem; }
  .block-container > [data-testid="stVerticalBlock"] > * { order: 4; }
  .block-container > [data-testid="stVerticalBlock"] > :has([data-testid^="stBidiComponent"]) { order: 2; }
  .st-key-head, :has(> .st-key-head), .st-key-head [data-testid="stLayoutWrapper"],
  .st-key-head [data-testid="stHorizontalBlock"] { display: contents !important; }
  .st-key-head [data-testid="stColumn"] { order: 3; }
  .st-key-head [data-testid="stColumn"]:first-child { order: 1; }
}
[data-testid="stCode"] code { font-size: 0.75rem; }
[class*="st-key-card-"] { position: relative; }
[class*="st-key-card-"] * { position: static; }
[class*="st-key-card-"] a::after { content: ""; position: absolute; inset: 0; border-radius: inherit; }
[class*="st-key-card-"]:is(:hover, :focus-within) { background: color-mix(in srgb, currentColor 6%, transparent); }
"""  # leaves room for the picture; as a [theme] of the configuration it would disable the dark theme

EMBEDDED = """
.st-key-head, [data-testid="stHeader"], [data-testid="stExpander"], .st-key-next { display: none !important; }
.block-container { padding: 0.5rem !important; }
"""  # of a page inside another one, with ?embed=true: the stage alone

st.set_page_config(page_title="minifuse", layout="wide", initial_sidebar_state="collapsed")
st.html(f"<style>{ROOM}{EMBEDDED if st.context.is_embedded else ''}</style>")
if ENGINE in os.environ:
    from minifuse.course.student_engine import use_engine_once

    use_engine_once(os.environ[ENGINE])
chosen = st.navigation(
    [page_of(found) for found in (*PAGES, OWN if KERNEL in os.environ else PASTED)],
    position="top",
)
turns.admit(chosen.url_path)
chosen.run()
warm_up.begin()  # once per server, after its first page is drawn
