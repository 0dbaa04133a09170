"""Finds passages in XML elements of a prompt, which is text with tags rather than an XML document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

# Elements that hold one passage, the most specific name first: <documents> and <context> may hold several others.
_NAMES = (
    *("document", "doc", "passage", "chunk", "snippet", "excerpt", "article", "search_result", "result", "item"),
    *("source", "reference", "context", "documents", "contexts", "sources", "search_results", "results", "knowledge"),
)
_CONTENTS = ("document_content", "document_contents", "page_content", "content", "text", "body")
_ID_ATTRIBUTE = r"(?:[ \t\n][^<>]{0,500})?"
_TAG = re.compile(rf"<(/?)({'|'.join((*_NAMES, *_CONTENTS))}){_ID_ATTRIBUTE}>", re.IGNORECASE)


class _Element(NamedTuple):
    """An element of the text: where its content begins and ends."""

    name: str
    start: int
    end: int


def xml_blocks(text: str) -> list[str] | None:
    """Return the content of the elements that hold one passage each; None if there is no such element.

    Of nested elements of one name the outermost counts. An element without an end is text.

    >>> xml_blocks("<context><doc id='1'><title>Tea</title><text>Tea is green.</text></doc><doc>Milk.</doc></context>")
    ['Tea is green.', 'Milk.']
    """
    elements = _elements(text)
    names = {element.name for element in elements}
    name = next((name for name in _NAMES if name in names), None)
    if name is None:
        return None
    contents = [element for element in elements if element.name in _CONTENTS]
    blocks = [element for element in elements if element.name == name]
    if name == "source" and len(contents) > len(blocks):  # the name of a passage, beside its content
        blocks = contents
    return _texts(text, blocks, contents)


def _texts(text: str, blocks: Sequence[_Element], contents: Sequence[_Element]) -> list[str]:
    """The text of each block: that of the first element with the content inside it, else all of it."""
    texts: list[str] = []
    inner = iter(contents)
    content = next(inner, None)
    for block in blocks:
        while content is not None and content.start < block.start:
            content = next(inner, None)
        inside = content is not None and content.end <= block.end
        part = content if content is not None and inside else block
        texts.append(text[part.start : part.end])
    return texts


def _elements(text: str) -> list[_Element]:
    """Elements of the known names that have an end, outermost of each name, in order of their start."""
    open_tags: dict[str, list[int]] = {}
    elements: list[_Element] = []
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        starts = open_tags.setdefault(name, [])
        if not tag[1]:
            starts.append(tag.end())
        elif starts:
            start = starts.pop()
            if not starts:
                elements.append(_Element(name, start, tag.start()))
    elements.sort(key=lambda element: element.start)
    return elements
