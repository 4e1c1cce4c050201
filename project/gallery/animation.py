"""Colors and motion of stand-alone SVG files, which pages show as images.

The colors are those of the app, by its style sheet. A browser asks the page that shows an image whether it is dark: by the
`color-scheme` of the page, or else by the system. All motion is in one rule, which holds where readers allow motion; without
it, the picture stands still.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

SHEET = (Path(__file__).parents[1] / "components" / "stage.css").read_text(encoding="utf-8")
LIGHT, DARK = "#1f2328;--paper:#ffffff", "#e6e7ea;--paper:#14161d"  # ink and paper
ALWAYS = {"picture", "cell", "swatch"}
DROPPED = re.compile(r"(cursor|outline|pointer-events|user-select): [^;]*;?")
MOTION = re.compile(r"@media \(prefers-reduced-motion:no-preference\)\{(?:[^{}]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\})*\}")

Span = tuple[float, float]


def colors() -> str:
    """Return the rules that define the colors of the app as variables, for light and for dark pages."""
    light, dark = re.findall(r"^\.board(?:\[data-theme=\"dark\"\])? \{(.*?)^\}", SHEET, re.M | re.S)
    named = [";".join(re.findall(r"(--[\w-]+: #\w+)", block)).replace(": ", ":") for block in (light, dark)]
    mixed = ";".join(re.findall(r"(--(?:line|soft): .*?);", light))
    return (
        f"svg{{--ink:{LIGHT};{named[0]};{mixed}}}"
        f"@media (prefers-color-scheme:dark){{svg{{--ink:{DARK};{named[1]}}}}}.ground{{fill:var(--paper)}}"
    )


def rules(classes: Collection[str]) -> str:
    """Return the rules of the style sheet of the app that elements with these classes need."""
    before_media = SHEET.partition("@keyframes")[0]
    found = []
    for selector, body in re.findall(r"([^{}/]+?) \{([^{}]*)\}", re.sub(r"/\*.*?\*/", "", before_media, flags=re.S)):
        named = set(re.findall(r"\.([a-z][\w-]*)", selector))
        rest = named - ALWAYS
        if (
            named
            and (not rest or rest & set(classes))
            and ":focus" not in selector
            and (kept := " ".join(DROPPED.sub("", body).split()))
        ):
            found.append(f"{selector.strip()}{{{kept}}}")
    return "".join(found)


def spans_of(frames: Iterable[int]) -> list[tuple[int, int]]:
    """Return runs of consecutive numbers, each from its first one to before the next that is missing.

    Examples
    --------
    >>> spans_of({0, 1, 4})
    [(0, 2), (4, 5)]
    """
    found: list[tuple[int, int]] = []
    for frame in sorted(frames):
        if found and found[-1][1] == frame:
            found[-1] = found[-1][0], frame + 1
        else:
            found.append((frame, frame + 1))
    return found


def keyframes(selector: str, spans: Sequence[Span], seconds: float) -> str:
    """Return the rules that show elements in spans of time, and hide them in between, again and again."""
    name = selector.replace(".", "").replace(" ", "-")
    steps = [(0.0, any(begin <= 0 for begin, _ in spans))]
    for begin, end in spans:
        steps += [(begin, True)] * (begin > 0) + [(end, False)] * (end < seconds)
    inside = "".join(f"{100 * t / seconds:.4g}%{{visibility:{'visible' if on else 'hidden'}}}" for t, on in steps)
    return f"@keyframes {name}{{{inside}}}{selector}{{animation:{name} {seconds:g}s step-end infinite}}"


def allow_motion(moving: str) -> str:
    """Return rules that hold only where readers allow motion."""
    return f"@media (prefers-reduced-motion:no-preference){{{moving}}}"


def hold(svg: str) -> str:
    """Return a moving picture without its motion: the still picture that readers see who ask for reduced motion."""
    return MOTION.sub("", svg)
