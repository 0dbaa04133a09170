"""The rule: a page -> the reply to it, from what the embedded judge reads there. The same page, the same reply.

Quotes are taken from the page as it is seen, escapes and all, because a model copies what it sees.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from loopback.page import ESCAPE, Line, Page, text_of
from ragwatch.judges.claims.claims import AnswerClaims, ClaimText, claims_of
from ragwatch.judges.claims.words import TOKEN, fold, term, terms
from ragwatch.judges.lexical.features import claim_words, coverage, match, weigh
from ragwatch.judges.lexical.passages import PreparedPassage, passage
from ragwatch.judges.lexical.reader import Thresholds, read
from ragwatch.judges.lexical.tables import shipped
from ragwatch.model.evidence import Address, Cell, ClaimVerdict, Evidence
from ragwatch.model.sample import Context, Role, Sample, Turn

_APART = "\n\n"  # keeps the lines of a page apart when they are read as one text again
_QUOTE_WORDS = 10
_ANSWERED = 0.5
_MOST_NEEDS = 3
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"{ESCAPE.pattern}|[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_PARTS = re.compile(r"\?\s+|;\s+|,? and (?=(?:what|which|who|when|where|why|how)\b)", re.IGNORECASE)


def reply_to(page: Page) -> dict[str, Any]:
    """Everything that may be asked about a page. What was not asked for is for `model.fit` to leave out."""
    reading = _Reading(page, page.answer)
    reply: dict[str, Any] = {
        "claims": _compared(page, page.answer, page.reference, "in_reference"),
        "contexts": reading.contexts(),
        "needs": reading.needs(),
        "address": reading.address(),
    }
    if page.reference:
        reply["reference"] = _compared(page, page.reference, page.answer, "in_answer")
    return reply


def _compared(page: Page, text: Sequence[Line], other: Sequence[Line], key: str) -> list[dict[str, Any]]:
    """Claims of a text, looked up in the contexts, and in the other text under `key`."""
    rows = _Reading(page, text).claims()
    if not other:
        return rows
    beside = Page(page.fence, page.question, [("other", list(other))])
    found = {row["id"]: row["verdict"].startswith("supported") for row in _Reading(beside, text).claims()}
    return [{**row, key: "yes" if found[row["id"]] else "no"} for row in rows]


@dataclass(slots=True)
class _Column:
    """A context of the page: its lines, the text they make, and where each begins in it."""

    mark: str
    lines: Sequence[Line]
    passage: PreparedPassage
    starts: list[int]

    def line(self, sentence: int) -> Line:
        """The line that a sentence of the text stands on."""
        return self.lines[bisect_right(self.starts, self.passage.offsets[sentence][0]) - 1]


def _column(mark: str, lines: Sequence[Line]) -> _Column:
    lengths = [len(line.meant) + len(_APART) for line in lines]
    return _Column(mark, lines, passage(text_of(lines, _APART)), [0, *accumulate(lengths[:-1])])


class _Reading:
    """One page, read with these lines as the answer."""

    def __init__(self, page: Page, answer: Sequence[Line]) -> None:
        self._page = page
        self._lines = [line for line in answer if line.numbered]
        self._answer = text_of(answer)
        self._question = text_of(page.question, " ")
        self._columns = [_column(mark, lines) for mark, lines in page.contexts]
        self._said = _said(self._lines, self._question)
        self._words = [claim_words(one.words, shipped().rarity) for one in self._said]

    @cached_property
    def evidence(self) -> Evidence:
        """What the embedded judge reads, with the page's own lines as claims."""
        abstained = not self._lines and claims_of(self._answer, self._question).abstained
        contexts = tuple(Context(text_of(column.lines, _APART)) for column in self._columns)
        history = tuple(Turn(Role(role), text_of(lines)) for role, lines in self._page.history)
        sample = Sample("page", self._question or None, contexts, text_of(self._lines), history=history)
        return read(sample, AnswerClaims(tuple(self._said), abstained), shipped(), Thresholds())

    def claims(self) -> list[dict[str, Any]]:
        """A row for each numbered line. What only all contexts together support is put down to the best of them."""
        return [self._claim(row) for row in range(len(self._lines))]

    def _claim(self, row: int) -> dict[str, Any]:
        claim = self.evidence.claims[row]
        cells: list[dict[str, str]] = []
        if claim.verdict is ClaimVerdict.SUPPORTED:
            ranks = claim.contexts or self._best(row)
            cells = [{"context": self._columns[rank].mark, "quote": self._quote(row, rank)} for rank in ranks]
        verdict = claim.verdict if cells or claim.verdict is not ClaimVerdict.SUPPORTED else "not_in_context"
        jointly = "_jointly" * (Cell.JOINTLY in claim.cells)
        return {"id": self._lines[row].id, "verdict": f"{verdict}{jointly}", "cells": cells}

    def _best(self, row: int) -> tuple[int, ...]:
        found = [match(self._words[row], column.passage) for column in self._columns]
        ranks = [rank for rank, one in enumerate(found) if one.sentence is not None]
        return (max(ranks, key=lambda rank: found[rank].sentence_recall),) if ranks else ()

    def _quote(self, row: int, rank: int) -> str:
        """The words of the best line that hold most of the claim."""
        column = self._columns[rank]
        sentence = match(self._words[row], column.passage).sentence
        line = column.line(sentence or 0)
        return _window(line.seen, frozenset(self._words[row].rarity))

    def contexts(self) -> list[dict[str, Any]]:
        """A row for each context: the lines of it that carry the answer (or, where nothing was drawn, the question)."""
        drawn = any(claim.verdict is ClaimVerdict.SUPPORTED for claim in self.evidence.claims)
        found = []
        for rank, column in enumerate(self._columns):
            useful = self._carriers(rank) if drawn else self._covering(rank)
            if self.evidence.contexts[rank].relevant is not True:
                useful = []
            elif not useful:
                useful = [column.lines[0].id]
            found.append({"id": column.mark, "useful": useful})
        return found

    def _carriers(self, rank: int) -> list[str]:
        column = self._columns[rank]
        lines: set[str] = set()
        for claim, words in zip(self.evidence.claims, self._words, strict=True):
            one = match(words, column.passage)
            if claim.verdict is ClaimVerdict.SUPPORTED:
                lines.update(column.line(index).id for index in one.carriers)
            if claim.cells[rank] and one.sentence is not None:
                lines.add(column.line(one.sentence).id)
        return [line.id for line in column.lines if line.id in lines]

    def _covering(self, rank: int) -> list[str]:
        asked = weigh(terms(self._question), shipped().rarity)
        column = self._columns[rank]
        covers = [coverage(asked, sentence) >= _ANSWERED for sentence in column.passage.sentences]
        lines = {column.line(index).id for index, carries in enumerate(covers) if carries}
        return [line.id for line in column.lines if line.id in lines]

    def needs(self) -> list[dict[str, str]]:
        """The sub-questions on the page, else the parts of the question: answered where a context holds half of it."""
        given = [(line.id, line.meant) for line in self._page.needs if line.numbered]
        parts = [part.strip() for part in _PARTS.split(self._question) if terms(part)][:_MOST_NEEDS]
        named = given or [("", part.rstrip("?")) for part in parts]
        return [{"id": name, "question": part, "answered": self._covered(part)} for name, part in named]

    def _covered(self, part: str) -> str:
        weights = weigh(terms(part), shipped().rarity)
        best = max((coverage(weights, column.passage.terms) for column in self._columns), default=0.0)
        return "yes" if best >= _ANSWERED else "no"

    def address(self) -> str:
        """How the answer addresses the question; partially where words cannot tell."""
        return str(self.evidence.address or Address.PARTIALLY)


def _said(lines: Sequence[Line], question: str) -> list[ClaimText]:
    """The page's claims, with the words that our own reader would take from each line."""
    found, start = [], 0
    for line in lines:
        text = line.meant
        inner = " ".join(said.words for said in claims_of(text, question).claims)
        found.append(ClaimText(start, start + max(1, len(text)), inner or text))
        start += len(text) + 1
    return found


def _window(seen: str, wanted: frozenset[str]) -> str:
    """The run of words that holds most of what is wanted; the first among equals; no escape is torn."""
    words = [found for found in _WORD.finditer(seen) if not ESCAPE.fullmatch(found[0])]
    hits = [sum(term(token) in wanted for token in TOKEN.findall(fold(word[0]))) for word in words]
    last = max(0, len(words) - _QUOTE_WORDS)
    start = max(range(last + 1), key=lambda at: sum(hits[at : at + _QUOTE_WORDS]))
    run = words[start : start + _QUOTE_WORDS]
    return seen[run[0].start() : run[-1].end()] if run else seen
