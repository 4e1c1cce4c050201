"""Make one stand-alone SVG of the steps of a picture that the app saved: each element once, shown in its steps.

An image in a page has no pointer, no focus and no screen reader inside it, so what serves them is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from project.gallery.animation import allow_motion, colors, keyframes, rules, spans_of

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

SVG = "{http://www.w3.org/2000/svg}"
LINE = 19  # height of a line of the sentence
PAD = 6  # around the picture, so that its ground has a rim
KEPT = {"class", "transform", "x", "y", "width", "height", "rx", "d", "style", "id", "viewBox", "refX", "refY", "fill"}
KEPT |= {"markerWidth", "markerHeight", "markerUnits", "orient", "patternUnits", "patternTransform", "stroke-width"}
KEPT |= {"marker-end", "pathLength", "mask", "maskUnits"}
DROPPED = {"title", "style"}

Steps = frozenset[int]
Group = Mapping[int, "Element"]
"""The elements at one place of the picture, by the number of the step."""


class Writer:
    """The text of a picture, and the sets of steps in which parts of it are shown."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.parts: list[str] = []
        self.sets: dict[Steps, str] = {}

    def write(self, group: Group) -> None:
        """Write the elements at one place: once if all are equal, else in as few parts as possible."""
        elements = list(group.values())
        texts = {step: serialize(element) for step, element in group.items()}
        shapes = {(x.tag, tuple(x.attrib.items()), x.text) for x in elements}
        if len(set(texts.values())) == 1:
            self.parts.append(texts[min(texts)])
        elif len(shapes) == 1 and elements[0].tag != "text":  # the lines of a text cannot be in groups
            self.parts.append(serialize_start(elements[0]))
            self.write_children({step: list(element) for step, element in group.items()})
            self.parts.append(f"</{elements[0].tag}>")
        else:
            self.write_variants(texts)

    def write_children(self, children: Mapping[int, Sequence["Element"]]) -> None:
        """Write the children of an element in all steps: place by place, or by their text if their number changes."""
        if len({len(found) for found in children.values()}) == 1:
            for k in range(len(next(iter(children.values())))):
                self.write({step: found[k] for step, found in children.items()})
            return
        shown: dict[str, set[int]] = {}
        for step, found in children.items():
            for element in found:
                shown.setdefault(serialize(element), set()).add(step)
        for text, steps in shown.items():
            self.show(text, frozenset(steps))

    def write_variants(self, texts: Mapping[int, str]) -> None:
        """Write different elements at one place, each shown in its steps."""
        for text in dict.fromkeys(texts.values()):
            self.show(text, frozenset(step for step in texts if texts[step] == text))

    def show(self, text: str, steps: Steps) -> None:
        """Write an element that is shown in some steps."""
        if len(steps) < self.count:
            name = self.sets.setdefault(steps, f"f{len(self.sets)}")
            text = f'<g class="{name}" data-steps="{" ".join(map(str, sorted(steps)))}">{text}</g>'
        self.parts.append(text)


def serialize_start(element: "Element") -> str:
    """Return the start of an element, and its text."""
    inside = "".join(f' {name}="{escape(value)}"' for name, value in element.attrib.items())
    return f"<{element.tag}{inside}>{escape(element.text or '', quote=False)}"


def serialize(element: "Element") -> str:
    """Return an element as text."""
    return f"{serialize_start(element)}{''.join(map(serialize, element))}</{element.tag}>"


def simplify(element: "Element") -> "Element | None":
    """Return an element without what only a pointer or a screen reader needs; None if nothing is seen of it."""
    tag = element.tag.removeprefix(SVG)
    classes = (element.get("class") or "").split()
    if tag in DROPPED or "hit" in classes or (tag == "path" and not element.get("d")):
        return None
    made = ElementTree.Element(tag, {name: value for name, value in element.attrib.items() if name in KEPT and value})
    made.text = element.text
    made.extend(found for child in element if (found := simplify(child)) is not None)
    return made


def read(svg: str) -> tuple["Element", float]:
    """Return a saved picture with the sentence in a group of its own, and the height of the sentence."""
    root = simplify(ElementTree.fromstring(svg))
    assert root is not None
    _, top, _, _ = map(float, root.get("viewBox", "").split())
    titles = [child for child in root if child.tag == "text" and child.get("class") == "title"]
    sentence = ElementTree.Element("g")
    for k, title in enumerate(titles):
        root.remove(title)
        title.set("y", f"{(k + 1) * LINE}")  # from the top of the picture
        sentence.append(title)
    root.append(sentence)
    return root, -top


def classes_of(roots: Iterable["Element"]) -> set[str]:
    """Return the classes of all elements."""
    return {name for root in roots for element in root.iter() for name in (element.get("class") or "").split()}


def join_frames(saved: Sequence[str], still: int, seconds: float, title: str) -> str:
    """Return one picture of saved ones, which shows each for its part of `seconds`, and the one numbered `still` at rest."""
    pictures = [read(svg) for svg in saved]
    roots = [root for root, _ in pictures]
    above = max(top for _, top in pictures)
    for root in roots:
        for child in root[-1]:
            child.set("y", f"{float(child.get('y', '0')) - above:g}")
    boxes = [[float(x) for x in root.get("viewBox", "").split()] for root in roots]
    width, below = max(box[2] for box in boxes), max(box[3] + box[1] for box in boxes)
    everything = ElementTree.Element("g")
    everything.extend(child for root in roots for child in root if child.tag != "defs")
    used = serialize(everything)
    for definitions in [found for root in roots for found in root.iter("defs")]:
        for marker in [found for found in definitions if found.tag == "marker"]:
            if f"url(#{marker.get('id')})" not in used:
                definitions.remove(marker)
    writer = Writer(len(saved))
    writer.write_children({step: list(root) for step, root in enumerate(roots)})
    rest, moving = "", ""
    for steps, name in writer.sets.items():
        rest += "" if still in steps else f".{name}{{visibility:hidden}}"
        share = seconds / len(saved)
        spans = [(begin * share, end * share) for begin, end in spans_of(steps)]
        moving += keyframes(f".{name}", spans, seconds)
    style = colors() + rules(classes_of(roots)) + rest + (allow_motion(moving) if moving else "")
    x, y, w, h = -PAD, -above - PAD, width + 2 * PAD, above + below + 2 * PAD
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" viewBox="{x:g} {y:g} {w:g} {h:g}" width="{w:g}" '
        f'height="{h:g}">\n<title>{escape(title)}</title>\n<style>{style}</style>\n'
        f'<rect class="ground" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="10"/>\n'
        + "".join(writer.parts)
        + "\n</svg>\n"
    )
