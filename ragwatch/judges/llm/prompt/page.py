"""The page: what a model is shown of one sample. Every line is a heading of ours, or foreign text behind a mark.

    <sample 9f3c2a71>
    QUESTION
    qxt.1| How long are refunds?
    CONTEXTS
    [kqv]
    kqv.1| Refunds take five days.
    ANSWER
    rwd.1| Refunds take five days.
    rwd| I hope this helps.
    </sample 9f3c2a71>

Sections come in the order QUESTION, NEEDS, CONTEXTS, ANSWER, REFERENCE; one that was not put on the page has no
heading, one without content says `none`. Contexts are numbered by sentence; answer and reference by claim, and what
stands between two claims has a line without a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragwatch.judges.llm.prompt.escaping import MARK, escape, unescape
from ragwatch.judges.llm.prompt.marks import RandomMarks

_LINE = re.compile(rf"({MARK})\| ?(.*)")
_ITEM = re.compile(r"\[([a-z]{3,4})\]")
_FENCE = re.compile(r"</?sample [0-9a-f]{8}>")


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """One line of foreign text, as it stood in its text.

    Attributes:
        text: The words, not escaped.
        number: 1-based number of the sentence or claim; None for what stands between claims.
    """

    text: str
    number: int | None


@dataclass(frozen=True, slots=True)
class MarkedText:
    """One text in pieces, under its mark."""

    mark: str
    pieces: tuple[MarkedLine, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the numbered lines, in order."""
        return tuple(f"{self.mark}.{piece.number}" for piece in self.pieces if piece.number is not None)


@dataclass(frozen=True, slots=True)
class PromptPage:
    """What is shown. None: the section is not on the page.

    Attributes:
        fence: Eight hexadecimal digits around the page.
        contexts: In the retriever's order; a context without text is left out.
    """

    fence: str
    question: MarkedText | None
    contexts: tuple[MarkedText, ...] | None
    needs: MarkedText | None
    answer: MarkedText
    reference: MarkedText | None

    def render(self) -> str:
        """The page as text."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"<sample {self.fence}>"
        yield from _section("QUESTION", self.question)
        yield from _section("NEEDS", self.needs)
        if self.contexts is not None:
            yield "CONTEXTS"
            for block in self.contexts:
                yield f"[{block.mark}]"
                yield from _marked(block)
            if not self.contexts:
                yield "none"
        yield from _section("ANSWER", self.answer)
        yield from _section("REFERENCE", self.reference)
        yield f"</sample {self.fence}>"


def _section(heading: str, block: MarkedText | None) -> Iterator[str]:
    if block is not None:
        yield heading
        yield from _marked(block) if block.pieces else ("none",)


def _marked(block: MarkedText) -> Iterator[str]:
    for piece in block.pieces:
        number = "" if piece.number is None else f".{piece.number}"
        yield f"{block.mark}{number}| {escape(piece.text)}"


def sentences(marks: RandomMarks, text: str, spans: Iterable[tuple[int, int]]) -> MarkedText:
    """A text cut behind each span: no word is lost, and the line of a sentence holds what came before it.

    >>> sentences(Marks("seed"), "1. Tea.  2. Milk.", [(3, 7), (12, 17)]).pieces
    (Piece(text='1. Tea.', number=1), Piece(text='2. Milk.', number=2))
    """
    found: list[MarkedLine] = []
    position = 0
    for number, (_, end) in enumerate(spans, start=1):
        found.append(MarkedLine(text[position:end].strip(), number))
        position = end
    rest = text[position:].strip()
    return MarkedText(marks.new(), (*found, MarkedLine(rest, None)) if rest else tuple(found))


def claims(marks: RandomMarks, text: str, spans: Iterable[tuple[int, int]]) -> MarkedText:
    """A text cut around each span, with what stands between in lines without a number.

    >>> claims(Marks("seed"), "Well: tea. I hope this helps.", [(6, 10)]).pieces
    (Piece(text='Well:', number=None), Piece(text='tea.', number=1), Piece(text='I hope this helps.', number=None))
    """
    found: list[MarkedLine] = []
    position = 0
    for number, (start, end) in enumerate(spans, start=1):
        found.append(MarkedLine(text[position:start].strip(), None))
        found.append(MarkedLine(text[start:end], number))
        position = end
    found.append(MarkedLine(text[position:].strip(), None))
    return MarkedText(marks.new(), tuple(piece for piece in found if piece.text))


def listed(marks: RandomMarks, texts: Sequence[str]) -> MarkedText:
    """Short texts, one a line."""
    return MarkedText(marks.new(), tuple(MarkedLine(text, number) for number, text in enumerate(texts, start=1)))


@dataclass(frozen=True, slots=True)
class ForeignLine:
    """One line of foreign text, as a reader of the page sees it.

    Attributes:
        section: Heading it stands under.
        mark: Id of its text.
        number: Its number, None without one.
        text: The words, with escapes undone.
    """

    section: str
    mark: str
    number: int | None
    text: str


def lines(rendered: str) -> list[ForeignLine]:
    """Foreign text of a rendered page, line by line: what a test's model reads.

    Raises:
        ValueError: A line is neither a heading of ours nor marked.
    """
    found: list[ForeignLine] = []
    section = ""
    for line in rendered.split("\n"):
        marked = _LINE.fullmatch(line)
        if marked:
            mark, _, number = marked[1].partition(".")
            found.append(ForeignLine(section, mark, int(number) if number else None, unescape(marked[2])))
        elif line in ("QUESTION", "NEEDS", "CONTEXTS", "ANSWER", "REFERENCE"):
            section = line
        elif line != "none" and not _ITEM.fullmatch(line) and not _FENCE.fullmatch(line):
            raise ValueError("a line of the page has no mark")
    return found
