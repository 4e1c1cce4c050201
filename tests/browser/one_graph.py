"""A page with one graph beside the storage of its values, a source, and a step in which one more arrow is drawn."""

import streamlit as st

from project.components.stage import stage
from project.views.cited_facts import Line
from project.views.graph_layout import layer_graph
from project.views.picture import Cell, Edge, Frame, Picture, ribbon

st.set_page_config(layout="wide")
st.title("One graph")
READS = ((), (), (0, 1), (2,), (1,), (3, 4))
LINES = (1, 1, 2, 3, 3, 4)
nodes = [Cell(0, 0, f"n{k}", f"node {k}", "", (f"g{k}", f"line {line}")) for k, line in enumerate(LINES)]
graph = layer_graph("graph", "a graph", nodes, READS)
storage = ribbon("storage", "storage", [Cell(0, 0, f"s{k}", f"storage {k}", "", (f"g{k}",)) for k in (0, 5)], 2)
frames = Frame("The graph."), Frame("One more arrow.", edges=(Edge(("storage", 0, 1), ("storage", 0, 0), "other"),))
picture = Picture("A graph.", (graph.grid, storage), frames, (), graph.edges())
stage(picture, "board", [Line(k, f"line {k}") for k in range(1, 5)], "The source")
