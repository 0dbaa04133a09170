"""The page that a judge is shown, read back from its text form as a model would read it: by its marks alone."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_OPEN = re.compile(r"^<sample ([0-9a-f]{8})>$", re.MULTILINE)
_LINE = re.compile(r"([b-df-hj-np-tv-z]{3,4})(?:\.(\d+))?\|(?: (.*))?")
_CONTEXT = re.compile(r"\[([b-df-hj-np-tv-z]{3,4})\]")
_SPEAKER = re.compile(r"\[(user|assistant|other)\]")
_SECTIONS = frozenset({"HISTORY", "QUESTION", "CONTEXTS", "NEEDS", "ANSWER", "REFERENCE"})
ESCAPE = re.compile(r"¤(?:(?!b)([0-9a-f]{1,6});|(.))")  # `¤b` is a bar, whatever follows
_SHORT = {"n": "\n", "r": "\r", "t": "\t", "b": "|", "l": "<", "¤": "¤"}


class PageError(ValueError):
    """The text holds no page, or a line in it that no writer of pages makes."""


@dataclass(frozen=True, slots=True)
class Line:
    """One marked line."""

    id: str  # mark and number (`rwd.1`); the mark alone where the line has no number
    seen: str  # the text as it stands on the page
    numbered: bool  # false for text between claims

    @property
    def meant(self) -> str:
        """The text with its escapes undone."""
        return unescape(self.seen)


@dataclass(slots=True)
class Page:
    """What stands between the fences. Contexts are (id, lines) in order, the history is (speaker, lines) in order."""

    fence: str
    question: list[Line] = field(default_factory=list)
    contexts: list[tuple[str, list[Line]]] = field(default_factory=list)
    needs: list[Line] = field(default_factory=list)
    answer: list[Line] = field(default_factory=list)
    reference: list[Line] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    history: list[tuple[str, list[Line]]] = field(default_factory=list)


def unescape(text: str) -> str:
    r"""A text without the escapes of the page.

    >>> unescape("one¤ntwo kqv.1¤b ¤200b; ¤¤") == "one\ntwo kqv.1| \u200b ¤"
    True
    """
    return ESCAPE.sub(_meant, text) if "¤" in text else text


def _meant(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _SHORT.get(found[2], found[0])


def text_of(lines: Iterable[Line], joint: str = "\n") -> str:
    """The meant text of some lines."""
    return joint.join(line.meant for line in lines)


def parse(prompt: str) -> Page:
    r"""The first page in a prompt.

    Raises:
        PageError: There is none, it never closes, or a line has neither mark nor meaning.

    >>> page = parse("Judge:\n<sample 0a1b2c3d>\nQUESTION\nqxt.1| Why?\nANSWER\nrwd.1| Tea.\n</sample 0a1b2c3d>")
    >>> page.fence, page.question[0].meant, page.answer[0].id
    ('0a1b2c3d', 'Why?', 'rwd.1')
    """
    opened = _OPEN.search(prompt)
    if not opened:
        raise PageError("no page")
    body, closed, _ = prompt[opened.end() :].partition(f"\n</sample {opened[1]}>")
    if not closed:
        raise PageError("the page never closes")
    page = Page(opened[1])
    section = ""
    for raw in _lines(body):
        if raw in _SECTIONS:
            section = raw
            page.sections.append(raw)
        else:
            _place(page, section, raw)
    return page


def _lines(body: str) -> Iterator[str]:
    """Lines as a model tells them apart: also by the separators that only Unicode knows."""
    return (line for line in body.splitlines() if line)


def _place(page: Page, section: str, raw: str) -> None:
    if raw == "none":
        return
    head = _CONTEXT.fullmatch(raw) if section == "CONTEXTS" else None
    if head:
        page.contexts.append((head[1], []))
        return
    speaker = _SPEAKER.fullmatch(raw) if section == "HISTORY" else None
    if speaker:
        page.history.append((speaker[1], []))
        return
    lines = _lines_of(page, section)
    marked = _LINE.fullmatch(raw)
    if lines is None or not marked:
        raise PageError(f"a line of section {section or 'none'!r} without a mark: {raw[:60]!r}")
    mark, number, text = marked.groups()
    lines.append(Line(f"{mark}.{number}" if number else mark, text or "", number is not None))


def _lines_of(page: Page, section: str) -> list[Line] | None:
    if section in ("CONTEXTS", "HISTORY"):
        blocks = page.contexts if section == "CONTEXTS" else page.history
        return blocks[-1][1] if blocks else None
    known = {"QUESTION": page.question, "NEEDS": page.needs, "ANSWER": page.answer, "REFERENCE": page.reference}
    return known.get(section)


def page_lines(rendered: str) -> list[tuple[str, Line]]:
    """Section and line, in order; a line that is neither a heading nor marked is an error."""
    page = parse(rendered)
    blocks = [("HISTORY", lines) for _, lines in page.history] + [("QUESTION", page.question), ("NEEDS", page.needs)]
    blocks += [("CONTEXTS", lines) for _, lines in page.contexts]
    blocks += [("ANSWER", page.answer), ("REFERENCE", page.reference)]
    return [(section, line) for section, lines in blocks for line in lines]
