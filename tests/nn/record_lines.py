"""The lines of `lines.txt` by PyTorch."""

from typing import Any

from .evaluate_lines import LINES, evaluate


def record() -> dict[str, Any]:
    """All results and gradients; a name is the line, a slash, and which it is."""
    return {f"{line}/{key}".replace("/", "|"): x for line in LINES for key, x in evaluate(line, "torch").items()}
