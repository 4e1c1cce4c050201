"""The content of the pages as plain data: pure functions of layouts, traces and plans, which do not import Streamlit."""
