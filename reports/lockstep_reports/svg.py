"""Building SVG as a tree, so that no text can ever become markup."""

from __future__ import annotations

from xml.etree import ElementTree

from markupsafe import Markup

Attribute = str | float | int | None

GLYPH_WIDTH = 0.6
"""Average width of a glyph in a sans-serif font, as a share of its size: generous, so that labels stay apart."""


class Node:
    """One SVG element; methods add children and return them."""

    def __init__(self, element: ElementTree.Element) -> None:
        self._element = element

    def add(self, tag: str, *, text: str | None = None, title: str | None = None, **attributes: Attribute) -> Node:
        """Append `<tag>`; `title` is what a pointer or a screen reader gets."""
        child = ElementTree.SubElement(self._element, tag, _written(attributes))
        child.text = text
        if title is not None:
            ElementTree.SubElement(child, "title").text = title
        return Node(child)

    def group(self, class_: str | None = None) -> Node:
        return self.add("g", class_=class_)

    def line(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)

    def rect(
        self, x: float, y: float, width: float, height: float, class_: str, *, title: str | None = None, rx: float = 0
    ) -> None:
        self.add(
            "rect", title=title, x=x, y=y, width=max(width, 0), height=max(height, 0), rx=rx or None, class_=class_
        )

    def label(self, x: float, y: float, text: str, class_: str = "", *, anchor: str | None = None) -> None:
        self.add("text", text=text, x=x, y=y, class_=class_ or None, text_anchor=anchor)

    def markup(self) -> Markup:
        # Safe by construction: ElementTree escapes every text and attribute in the tree.
        return Markup(ElementTree.tostring(self._element, encoding="unicode"))  # noqa: S704


def figure(*, width: float, height: float, title: str, description: str, class_: str) -> Node:
    """The root of a picture that scales with its container and can be read aloud."""
    attributes: dict[str, Attribute] = {"viewBox": f"0 0 {_number(width)} {_number(height)}", "role": "img"}
    root = ElementTree.Element(
        "svg", _written({**attributes, "class_": class_, "aria_label": f"{title}. {description}"})
    )
    ElementTree.SubElement(root, "title").text = title
    ElementTree.SubElement(root, "desc").text = description
    return Node(root)


def text_width(text: str, size: float = 11) -> float:
    return len(text) * size * GLYPH_WIDTH


def clipped(text: str, width: float, size: float = 11) -> str:
    """`text`, shortened with an ellipsis to fit; empty when not even two glyphs would."""
    room = int(width / (size * GLYPH_WIDTH))
    if len(text) <= room:
        return text
    return f"{text[: room - 1].rstrip()}…" if room >= 3 else ""


def _written(attributes: dict[str, Attribute]) -> dict[str, str]:
    return {
        name.rstrip("_").replace("_", "-"): value if isinstance(value, str) else _number(value)
        for name, value in attributes.items()
        if value is not None
    }


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
