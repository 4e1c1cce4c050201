"""Links to the pages of the visualizer that show the graph of a case of module 5, written as a formula."""

from math import prod
from urllib.parse import urlencode

from .fusion import Graph
from .graph_evaluation import live_nodes
from .programs import ARGUMENT_NAMES, OPERATOR_FORMATS

MAX_INPUTS, MAX_CALLS, MAX_NUMBER = 4, 24, 1e9  # of a formula of the visualizer
MAX_ELEMENTS = {"autodiff": 64, "fusion": 1 << 22}  # of a value, by page
MAX_CHARACTERS = 160
METHODS = {"exp": "exp()", "log": "log()", "sum": "sum(1, keepdim=True)", "max": "max(1, keepdim=True)"}
FORMATS = {op: text for op, text in OPERATOR_FORMATS.items() if op != "lt"} | {"lt": "({} < {}) * 1.0", "neg": "-{}"}


def graph_formula(graph: Graph, max_elements: int) -> str:
    """Return the formula of a graph in the syntax of the visualizer; "" if its pages do not show it.

    They show functions with one result, of a few small inputs.

    Examples
    --------
    >>> from minifuse.course.fusion import Node
    >>> x, two = Node("input", value=0, shape=(4, 5)), Node("constant", value=2.0)
    >>> scaled, power = Node("mul", (0, 1), shape=(4, 5)), Node("exp", (2,), shape=(4, 5))
    >>> graph_formula(Graph((x, two, scaled, power, Node("sub", (3, 0), shape=(4, 5))), (4,)), max_elements=64)
    '(x * 2.0).exp() - x'
    """
    texts, calls = dict[int, str](), dict[int, int]()
    live, inputs = live_nodes(graph), 0
    if len(set(graph.outputs)) != 1:
        return ""
    for k in live:
        op, operands, value, shape = graph.nodes[k]
        names = [texts[i] for i in operands]
        own = 1 + (op == "lt")
        if op == "input":
            texts[k], own, inputs = ARGUMENT_NAMES[int(value or 0) % len(ARGUMENT_NAMES)], 0, inputs + 1
        elif op == "constant" and abs(value or 0.0) <= MAX_NUMBER:
            texts[k], own = repr(value) if repr(value)[0] != "-" else f"({value!r})", 0
        elif op in METHODS:
            texts[k] = f"{names[0]}.{METHODS[op]}"
        elif op == "maximum":
            texts[k] = f"maximum({', '.join(map(without_parentheses, names))})"
        elif op in FORMATS:
            texts[k] = f"({FORMATS[op].format(*names)})"
        else:
            return ""
        calls[k] = own + sum(calls[i] for i in operands)
        if len(texts[k]) > MAX_CHARACTERS or calls[k] > MAX_CALLS or prod(shape) > max_elements:
            return ""
    output = graph.outputs[0]
    return without_parentheses(texts[output]) if calls[output] and 0 < inputs <= MAX_INPUTS else ""


def without_parentheses(text: str) -> str:
    """Return a formula without the parentheses around all of it."""
    return text[1:-1] if text.startswith("(") and closes_at(text) == len(text) - 1 else text


def closes_at(text: str) -> int:
    """Return where the first parenthesis of a text is closed."""
    depth = 0
    for k, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return k
    return -1


def page_link(page: str, graph: Graph) -> str:
    """Return the page "fusion" or "autodiff" of the function of a graph; without a function if it does not show it."""
    formula = graph_formula(graph, MAX_ELEMENTS[page])
    if not formula:
        return page
    inputs = [node for node in graph.nodes if node.op == "input"]
    shapes = "; ".join(f"{ARGUMENT_NAMES[k]}: {', '.join(map(str, node.shape))}" for k, node in enumerate(inputs[:6]))
    return f"{page}?{urlencode({f'{page}_own': formula, f'{page}_shapes': shapes})}"
