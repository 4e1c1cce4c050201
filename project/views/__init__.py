"""What the pages show, as plain data: pure functions of layouts, traces and plans, without a line of Streamlit."""
