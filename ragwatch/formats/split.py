"""Cuts the passages out of one text, such as a prompt that contains them: the option `split` of a source.

docs/logs.md says what a passage of each kind is. `after` and `before` are texts between which the passages stand.
Without `before`, the last passage ends where the question is asked. What stands before the first passage is instruction
and is left out.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

# Elements that hold one passage, the most specific name first: <documents> and <context> may hold several others.
_NAMES = (
    "document", "doc", "passage", "chunk", "snippet", "excerpt", "article", "search_result", "result", "item", "file",
    "source", "reference", "context", "documents", "contexts", "sources", "search_results", "results", "knowledge",
    "docs", "passages", "chunks", "excerpts", "references", "items",
)  # fmt: skip
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


Cut = Callable[[str], "list[str] | None"]

_ASKS = (
    r"(?:(?:the |my |user'?s? |user |customer |original |follow-?up |new |current |standalone ){0,2}(?:question|query)"
    r"|human|user|answer the (?:question|query))\b[^\n:]{0,60}"
)
# The line on which a prompt asks the question: a label with a colon, or a heading.
_LABEL = re.compile(rf"(?im)^[ \t]*(?:[#*=_>-]{{0,8}}[ \t]*{_ASKS}:\**|[#*=]{{1,8}}[ \t]*{_ASKS}$)")
_CUE = re.compile(
    r"(?i)[ \t#*=_>-]{0,8}(?:(?:the |your |final |helpful ){0,2}(?:answer|response|reply)|assistant|ai)"
    r"[^\n:]{0,40}:\**[ \t]*"
    r"|</?[a-z_-]{1,40}>|\"{3,}|'{3,}|`{3,}|-{3,}|={3,}|"
)
_NOTHING = re.compile(
    r"(?i)\W{0,8}(?:none|n/?a|nothing|empty|no (?:relevant |matching )?(?:results?|documents?|contexts?|passages?"
    r"|sources?|information)\b[^\n]{0,60})\W{0,8}"
)
_NUMBER = r"(?P<{style}>\d{{1,3}})"
_MARKER = re.compile(
    r"(?im)^[ \t]{0,8}(?:"
    r"[\[<(*#=_ \t-]{0,8}(?:documents?|docs?|sources?|passages?|contexts?|chunks?|excerpts?|snippets?"
    r"|results?|references?|articles?|texts?|items?)[ \t_#.-]{0,3}[\[(]?"
    + _NUMBER.format(style="labelled")
    + r"(?!\w|\.\d)[\])>.:*=_ \t-]{0,8}"
    r"|\[" + _NUMBER.format(style="bracketed") + r"\][:.)]?"
    r"|\(" + _NUMBER.format(style="parenthesised") + r"\)[:.]?"
    r"|#?" + _NUMBER.format(style="plain") + r"[.):](?!\d)"
    r")"
)
_STYLES = ("labelled", "bracketed", "parenthesised", "plain")
_HEADING = re.compile(r"(?m)^(?:(#{1,6})[ \t]+\S|\*\*[^*\n]{1,100}\*\*:?[ \t]*$)")
_FENCE = re.compile(r"(?m)^[ \t]{0,3}(`{3,}|~{3,}|\"{3,})[^\n]*$")
_ITEM = re.compile(r"(?m)^[-*\u2022+][ \t]+")
BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
RULE = re.compile(r"(?m)^[ \t]{0,3}(?:-{3,}|\*{3,}|_{3,}|={3,})[ \t]*$")
ORDER = re.compile(
    r"(?i)[\s#*\d.)-]*(?:(?:please|now|then) )?(?:you are|use|write|answer|give|provide|respond|reply|cite|based on"
    r"|using|given|return|if)\b[^\n]*\b(?:answer|response|reply|question|query|citations?|cited|sources?|context|assistant)\b"
)
"""The first line of a paragraph that orders a model how to answer."""
_ASKED = re.compile(
    r"<(?P<tag>(?:user|customer)?_?(?:question|query|input|message))>(?P<text>[^<]{1,20000})</(?P=tag)>", re.IGNORECASE
)
_QUOTES = re.compile(r"(\"{3}|'{3}|`{3})\s*(.*?)\s*\1", re.DOTALL)
_MIN_QUESTION_CHARS = 8


@dataclass(frozen=True, slots=True)
class Splitter:
    """Cuts passages out of texts."""

    kind: str = "auto"  # one of `KINDS`
    after: str = ""  # text behind which the passages begin; empty for the start
    before: str = ""  # text before which they end; empty for where the question is asked

    @property
    def option(self) -> str | dict[str, str]:
        """The option of the configuration for it."""
        marks = {name: mark for name, mark in (("after", self.after), ("before", self.before)) if mark}
        return {"by": self.kind, **marks} if marks else self.kind

    def passages(self, text: str, question: str | None = None) -> list[str] | None:
        """Return the passages in a prompt, in its order, without the question; none if it says that there are none.

        None if no passage can be distinguished from the rest of the text.
        """
        span = self._span(text, question)
        if span is None:
            return None
        part = text[slice(*span)]
        cut = next((pieces for cut in _CUTS[self.kind] if (pieces := cut(part))), None)
        said = part.strip()
        if (self.after or self.before) and (not said or _NOTHING.fullmatch(said)):
            return []
        if cut is not None:
            if not self.before:
                cut[-1] = without_order(_without_tail(cut[-1], question))
            return [piece for passage in cut if (piece := passage.strip())]
        return [] if self.kind in ("xml", "auto") and xml_blocks(part) is not None else None

    def question(self, text: str) -> str | None:
        """Return the question that a prompt asks behind `before`, or behind its last label; None if there is none."""
        if (element := asked_in(text)) is not None:
            return element
        position = text.rfind(self.before) if self.before else 0
        asked = text[position + len(self.before) :] if position >= 0 else ""
        labels = [match.end() for match in _LABEL.finditer(asked)]
        if not self.before and not labels:
            return None
        return unquoted(_without_closing(asked[labels[-1] if labels else 0 :]).strip()) or None

    def _span(self, text: str, question: str | None) -> tuple[int, int] | None:
        start = text.find(self.after)
        if start < 0:
            return None
        start += len(self.after)
        if not self.before:
            return start, len(text)
        # The last place before the question, because passages come first and a question may quote anything.
        asked = text.rfind(question, start) if question else -1
        end = text.rfind(self.before, start, asked if asked >= 0 else len(text))
        return start, end if end >= 0 else len(text)


def before_question(text: str, question: str | None) -> str:
    """Return what a prompt says before its question: up to the question, or up to its label if it is unknown."""
    if question is None:
        ends = [match.end() for match in _LABEL.finditer(text)]
        return text[: ends[-1]] if ends else ""
    return text[: max(text.rfind(question), 0)].rstrip()


def _without_tail(passage: str, question: str | None) -> str:
    """Remove what a prompt says behind its last passage: the question, the cue for an answer, and closing marks."""
    passage = _without_closing(passage)
    if question is None:
        labels = [match.start() for match in _LABEL.finditer(passage) if match.start()]
        return _without_closing(passage[: labels[-1]]) if labels else passage
    question = question.strip()
    asked = passage.rfind(question) if len(question) >= _MIN_QUESTION_CHARS else -1
    if asked < 0:
        return passage
    line = passage.rfind("\n", 0, asked) + 1
    if _LABEL.match(passage[line:asked].rstrip()):
        return _without_closing(passage[:line])
    above = passage[:line].rstrip()
    label = above.rfind("\n") + 1
    if line == asked and _LABEL.fullmatch(above, label):
        return _without_closing(above[:label])
    return _without_closing(above) if line == asked and asked + len(question) == len(passage) else passage


def without_order(passage: str) -> str:
    """Return a passage without the paragraphs behind it that order a model how to answer."""
    begin, end = len(passage) - len(passage.lstrip()), len(passage)
    for blank in reversed([*BLANK_LINE.finditer(passage)]):
        if blank.start() >= end:
            continue
        if blank.start() <= begin or not ORDER.match(passage, blank.end(), end):
            break
        end = blank.start()
        while passage[end - 1].isspace():
            end -= 1
    return passage[:end]


def asked_in(prompt: str) -> str | None:
    """Return the text of the last element `<question>`, `<user_query>` or the like of a prompt; None without one."""
    elements = [element for match in _ASKED.finditer(prompt) if (element := match["text"].strip())]
    return elements[-1] if elements else None


def unquoted(text: str) -> str:
    """Return a text without the triple quotes around it."""
    quoted = _QUOTES.fullmatch(text)
    return quoted[2] if quoted else text


def _without_closing(text: str) -> str:
    """Remove closing marks, and the cue for an answer, from the end of a text."""
    while True:
        text = text.rstrip()
        line = text.rfind("\n") + 1
        if not line or not _CUE.fullmatch(text, line):
            return text
        text = text[:line]


def numbered(text: str, *, throughout: bool = False) -> list[str] | None:
    """Text behind markers of the most specific style; numbers out of order belong to the text.

    With `throughout` only if the text begins with one, and there are several; None otherwise.
    """
    markers: dict[str, list[re.Match[str]]] = {}
    for match in _MARKER.finditer(text):
        style = str(match.lastgroup)
        run = markers.setdefault(style, [])
        number = int(match[style])
        starts = number in (0, 1) or (throughout and not text[: match.start()].strip())
        if number == int(run[-1][style]) + 1 if run else starts:
            run.append(match)
    marks = next((markers[style] for style in _STYLES if markers.get(style)), [])
    if throughout and (len(marks) < 2 or text[: marks[0].start()].strip()):
        return None
    return _between([match.span() for match in marks], text) if marks else None


def _between(marks: Sequence[tuple[int, int]], text: str) -> list[str]:
    """The texts from the end of each mark to the start of the next."""
    starts = [*(start for start, _ in marks[1:]), len(text)]
    return [text[behind:start] for (_, behind), start in zip(marks, starts, strict=True)]


def _headings(text: str) -> list[str] | None:
    """Headings of the level that occurs most often, each with the text below it."""
    headings = [(match.start(), len(match[1]) if match[1] else 7) for match in _HEADING.finditer(text)]
    if not headings:
        return None
    times = Counter(level for _, level in headings)
    level = max(times, key=lambda candidate: (times[candidate], candidate))
    ends = [*(start for start, _ in headings[1:]), len(text)]
    pieces: list[str] = []
    for (start, depth), end in zip(headings, ends, strict=True):
        if depth == level:
            pieces.append(text[start:end])
        elif depth > level and pieces:  # a heading inside the passage
            pieces[-1] += text[start:end]
    return pieces


def _markdown(text: str) -> list[str] | None:
    fences = [match.span() for match in _FENCE.finditer(text)]
    if len(fences) > 1:
        return [text[behind:start] for (_, behind), (start, _) in zip(fences[::2], fences[1::2], strict=False)]
    rules = [match.span() for match in RULE.finditer(text)]
    if rules:
        return _between([(0, 0), *rules], text)
    items = [match.span() for match in _ITEM.finditer(text)]
    return _between(items, text) if len(items) > 1 else None


def _several(cut: Cut) -> Cut:
    """The same, for more than one passage: one heading or item is more likely a part of the text around it."""
    return lambda text: pieces if (pieces := cut(text)) and len(pieces) > 1 else None


def _xml(text: str) -> list[str]:
    return [block.text for block in xml_blocks(text) or ()]


_CUTS: Mapping[str, Sequence[Cut]] = MappingProxyType(
    {
        "auto": (_xml, numbered, _several(_headings), _several(_markdown)),
        "numbered": (numbered,),
        "xml": (_xml,),
        "headings": (_headings,),
        "markdown": (_markdown,),
        "paragraphs": (lambda text: [piece for piece in BLANK_LINE.split(text) if piece.strip()],),
        "rules": (lambda text: [piece for piece in RULE.split(text) if piece.strip()],),
        "lines": (lambda text: [line for line in text.splitlines() if line.strip()],),
        "whole": (lambda text: [text] if text.strip() else [],),
    }
)
KINDS = tuple(_CUTS)
