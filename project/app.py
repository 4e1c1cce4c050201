"""The visualizer: `minifuse app`, or `streamlit run project/app.py`. This file sets up window and navigation."""

import os
import sys
from pathlib import Path

import streamlit as st

if __package__ in (None, ""):  # run as a script by Streamlit
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from project import warm_up
from project.screens import OWN, PAGES
from project.screens.user_kernel import KERNEL

ROOM = """
.block-container { padding: 3rem 2rem; }
[data-testid="stCode"] code { font-size: 0.75rem; }
"""  # leaves room for source and picture; as a [theme] of the configuration it would disable the dark theme

st.set_page_config(page_title="minifuse", layout="wide", initial_sidebar_state="auto")
st.html(f"<style>{ROOM}</style>")
st.navigation(
    [
        st.Page(found.load(), title=found.title, url_path=found.path, default=not found.path)
        for found in (PAGES if KERNEL not in os.environ else (*PAGES, OWN))
    ]
).run()
warm_up.begin()  # once per server, after its first page is drawn
