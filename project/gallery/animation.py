"""Colors and motion of stand-alone SVG files, which pages show as images."""

import re
from collections.abc import Sequence

Span = tuple[float, float]

LIGHT = {
    "ink": "#1f2328", "paper": "#ffffff", "line": "#bcbdbf", "soft": "#65686b",
    "load": "#0072b2", "store": "#c65500", "shared": "#00785a",
    "pale-load": "#d3e7f5", "pale-store": "#fbe3d2", "pale-shared": "#eaf6f1",
}  # fmt: skip
DARK = {
    "ink": "#e6e7ea", "paper": "#14161d", "line": "#53555b", "soft": "#a3a5a9",
    "load": "#63b8ee", "store": "#ff9a4d", "shared": "#3fd0a4",
    "pale-load": "#12384f", "pale-store": "#4c2a10", "pale-shared": "#0f2a24",
}  # fmt: skip


def declare(colors: dict[str, str]) -> str:
    """Return a rule that defines colors as variables."""
    return "svg{" + ";".join(f"--{name}:{value}" for name, value in colors.items()) + "}"


# A browser asks the page that shows an image whether it is dark: by its `color-scheme`, or else by the system.
COLORS = f"{declare(LIGHT)}@media (prefers-color-scheme:dark){{{declare(DARK)}}}"


def keyframes(selector: str, spans: Sequence[Span], seconds: float) -> str:
    """Return the rules that show elements in spans of time, and hide them in between, again and again."""
    name = selector.replace(".", "").replace(" ", "-")
    shown = any(begin <= 0 for begin, _ in spans)
    steps = [(0.0, shown)]
    for begin, end in spans:
        steps += [(begin, True)] * (begin > 0) + [(end, False)] * (end < seconds)
    inside = "".join(f"{100 * t / seconds:.4g}%{{visibility:{'visible' if on else 'hidden'}}}" for t, on in steps)
    return f"@keyframes {name}{{{inside}}}{selector}{{animation:{name} {seconds:g}s step-end infinite}}"


def hold(svg: str) -> str:
    """Return a moving picture without its motion: the still picture that readers see who ask for reduced motion."""
    return MOTION.sub("", svg)


MOTION = re.compile(r"@media \(prefers-reduced-motion:no-preference\)\{(?:[^{}]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\})*\}")
