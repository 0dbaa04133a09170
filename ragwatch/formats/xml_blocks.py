"""Finds passages in XML elements of a prompt, which is text with tags rather than an XML document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

# Elements that hold one passage, the most specific name first: <documents> and <context> may hold several others.
_NAMES = (
    *(
        "document",
        "doc",
        "passage",
        "chunk",
        "snippet",
        "excerpt",
        "article",
        "search_result",
        "result",
        "item",
        "file",
    ),
    *("source", "reference", "context", "documents", "contexts", "sources", "search_results", "results", "knowledge"),
    *("docs", "passages", "chunks", "excerpts", "references", "items"),
)
_SINGLE = _NAMES.index("context")
_CONTENTS = ("document_content", "document_contents", "page_content", "content", "text", "body")
_FREE = r"retrieved_\w{1,40}|knowledge\w{1,40}"
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{'|'.join((*_NAMES, *_CONTENTS))}|{_FREE})(?P<fields>[ \t\n][^<>]{{0,500}})?>",
    re.IGNORECASE,
)
_ID = re.compile(r"""\b(?:id|doc_id|document_id|index|source)\s*=\s*["']([^"']{1,200})["']""")


class _Element(NamedTuple):
    """An element of the text: where its content begins and ends, and its attributes."""

    name: str
    start: int
    end: int
    fields: str


class Block(NamedTuple):
    """What an element holds, and the id in its attributes; `is_list` if it may hold several passages."""

    text: str
    id: str | None
    is_list: bool


def xml_blocks(text: str) -> list[Block] | None:
    """Return the content of the elements that hold one passage each; None if there is no such element.

    Of nested elements of one name the outermost counts. An element without an end is text.

    >>> blocks = xml_blocks("<context><doc id='1'><title>T</title><text>Tea.</text></doc><doc>Milk.</doc></context>")
    >>> [(block.text, block.id) for block in blocks]
    [('Tea.', '1'), ('Milk.', None)]
    """
    if "</" not in text:
        return None
    elements = _elements(text)
    names = {element.name for element in elements} - {*_CONTENTS}
    if not names:
        return None
    name = min(names, key=lambda one: _NAMES.index(one) if one in _NAMES else len(_NAMES))
    contents = [element for element in elements if element.name in _CONTENTS]
    blocks = [element for element in elements if element.name == name]
    if name == "source" and len(contents) > len(blocks):  # the name of a passage, beside its content
        blocks = contents
    return _texts(text, blocks, contents)


def _texts(text: str, blocks: Sequence[_Element], contents: Sequence[_Element]) -> list[Block]:
    """The text of each block: that of the first element with the content inside it, else all of it."""
    texts: list[Block] = []
    inner = iter(contents)
    content = next(inner, None)
    for block in blocks:
        while content is not None and content.start < block.start:
            content = next(inner, None)
        inside = content is not None and content.end <= block.end
        part = content if content is not None and inside else block
        name = _ID.search(block.fields)
        is_list = part is block and name is None and block.name not in _NAMES[:_SINGLE]
        texts.append(Block(text[part.start : part.end], name[1] if name else None, is_list))
    return texts


def _elements(text: str) -> list[_Element]:
    """Elements of the known names that have an end, outermost of each name, in order of their start."""
    open_tags: dict[str, list[re.Match[str]]] = {}
    closed: dict[str, list[_Element]] = {}
    for tag in _TAG.finditer(text):
        name = tag["name"].lower()
        starts = open_tags.setdefault(name, [])
        if not tag["close"]:
            starts.append(tag)  # without an end if the prompt only names it
        elif starts:
            start, outer = starts.pop(), closed.setdefault(name, [])
            while outer and outer[-1].start > start.end():  # inside this one
                outer.pop()
            outer.append(_Element(name, start.end(), tag.start(), start["fields"] or ""))
    return sorted((element for outer in closed.values() for element in outer), key=lambda element: element.start)
