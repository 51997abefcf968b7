"""A report parsed back into elements, far enough for tests to find what it says."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "link", "img", "br", "hr", "input", "use"}


@dataclass
class Element:
    """One element with its text and children."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())

    @property
    def text(self) -> str:
        """All text inside, in document order, with white space collapsed."""
        return " ".join("".join(self.texts).split())

    def find(self, tag: str, class_: str | None = None) -> list[Element]:
        """All descendants with this tag, and this class if one is given."""
        found = [child for child in self.children if child.tag == tag and (class_ is None or class_ in child.classes)]
        return found + [match for child in self.children for match in child.find(tag, class_)]

    def everything(self) -> list[Element]:
        return [self, *(element for child in self.children for element in child.everything())]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("document")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.texts.append(data)


def read(path: Path) -> Element:
    """The whole page as a tree; a tag that is not closed where it should be is an error."""
    parser = _Parser()
    parser.feed(path.read_text(encoding="utf-8"))
    parser.close()
    assert parser._open == [parser.root], "not every element is closed"
    return parser.root


def section(page: Element, name: str) -> Element:
    return next(it for it in page.find("section") if it.attributes.get("id") == name)
