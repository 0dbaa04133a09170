"""Claims: the sentences and list items of an answer that say something about the world.

A fragment of fewer than three words is read with its neighbour on the same line. Labels ("Thought process:"),
headings, code blocks and sentences about the passages claim nothing; an answer that has no claim and says that it
does not know is an abstention. Code is left out because words cannot tell right code from wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from ragwatch.core.alphabet import settled
from ragwatch.core.phrases import abstains, is_meta, without_leads
from ragwatch.judges.lexical.limits import Check, unlimited
from ragwatch.judges.lexical.sentences import SentenceSpan, iterate_spans
from ragwatch.judges.lexical.words import TOKEN, terms

_FRAGMENT_WORDS = 3
_LABEL_WORDS = 6
_HEADING = re.compile(r"#{1,6}\s|[*_]{2}[^*_\n]{1,80}[*_]{2}:?$")
_BARE_NUMBER = re.compile(r"\(?(\d{1,2})[.)]")  # a list number on a line of its own, or between two sentences
_MARGIN = 8  # an answer that is little more than such a number means the number
_TURN = re.compile(r";\s|,? (?:but|however|yet|although|though|while)\b,? ", re.IGNORECASE)
_COMMA = re.compile(r",\s")
_TURNS = 8  # turns of a sentence that are looked at
_CONCESSION = re.compile(r"\W{0,3}(?:while|whilst|although|though|even though)\b", re.IGNORECASE)
_YES_OR_NO = re.compile(r"\W{0,3}(?:yes|no|yeah|nope|true|false|correct)\b", re.IGNORECASE)


class ClaimText(NamedTuple):
    """One claim: `answer[start:end]`, and the text its words are taken from (no leads, no citation marks)."""

    start: int
    end: int
    words: str


class AnswerClaims(NamedTuple):
    """What an answer says.

    Attributes:
        claims: In the order of the answer.
        abstained: It says that it does not know, and claims nothing.
    """

    claims: tuple[ClaimText, ...]
    abstained: bool


def claims_of(
    answer: str, question: str | None = None, *, most: int | None = None, check: Check = unlimited
) -> AnswerClaims:
    """The claims of an answer, or the fact that it abstains.

    A bare "yes" or "no" claims what the question asks, so it is read with the question's words.

    Args:
        answer: The answer.
        question: What was asked; None when unknown.
        most: Claims after which cutting stops: one more is returned, and tells that there are too many.
        check: Called after each sentence.

    >>> text = "Based on the context, tea is green [1]. I hope this helps!"
    >>> [text[claim.start:claim.end] for claim in claims_of(text).claims]
    ['Based on the context, tea is green [1].']
    >>> claims_of("I could not find that in the documents.").abstained
    True
    """
    answer, question = settled(answer), question and settled(question)
    found: list[ClaimText] = []
    abstained = False
    for start, end in _glued(answer, iterate_spans(answer), check):
        text = answer[start:end]
        rest = _past_announcement(_past_abstention(text))
        if not rest:
            abstained = True
            continue
        words = without_leads(rest)
        if (rest == text and is_meta(text)) or _is_label(text, led=words != rest) or _is_list_number(text, answer):
            continue
        if not terms(words):
            if not (question and _YES_OR_NO.match(text)):
                continue
            words = question
        found.append(ClaimText(start, end, words))
        if most is not None and len(found) > most:
            break
    return AnswerClaims(tuple(found), abstained and not found)


def _past_abstention(text: str) -> str:
    """The part of a sentence that claims something: all of it, nothing, or what follows "..., but".

    >>> _past_abstention("While the passages do not mention it, the tower was built by monks.")
    'the tower was built by monks.'
    """
    if not abstains(text):
        return text
    turns = [*_COMMA.finditer(text)] if _CONCESSION.match(text) else []
    for turn in sorted([*turns, *_TURN.finditer(text)][:_TURNS], key=re.Match.end):
        head, tail = text[: turn.start()], text[turn.end() :]
        if abstains(head) and not abstains(tail) and not is_meta(tail) and len(terms(tail)) >= _FRAGMENT_WORDS:
            return tail
    return ""


def _past_announcement(text: str) -> str:
    """A sentence without what speaks of the answer before its colon: "I can answer this: tea is green"."""
    head, colon, tail = text.partition(": ")
    announced = colon and is_meta(text) and is_meta(head + ":") and not is_meta(tail)
    return tail if announced and len(terms(tail)) > 1 else text


def _is_label(text: str, *, led: bool) -> bool:
    """A heading, or a short (or `led`: "The passages give these tips:") line that ends in a colon."""
    if _HEADING.match(text):
        return True
    return text.rstrip("*_ ").endswith(":") and (led or len(TOKEN.findall(text)) <= _LABEL_WORDS)


def _is_list_number(text: str, answer: str) -> bool:
    return _BARE_NUMBER.fullmatch(text) is not None and len(answer) > len(text) + _MARGIN


def _glued(answer: str, parts: Iterable[SentenceSpan], check: Check) -> Iterator[tuple[int, int]]:
    """Sentences, with fragments joined to the sentence before them on their line, else to the one behind."""
    joined: SentenceSpan | None = None
    waiting = False
    for part in _unnumbered(answer, parts, check):
        short = _is_fragment(answer, part)
        if joined is not None and joined.line == part.line and (waiting or short):
            joined = joined._replace(end=part.end)
            waiting = waiting and short
        else:
            if joined is not None:
                yield joined.start, joined.end
            joined, waiting = part, short
    if joined is not None:
        yield joined.start, joined.end


def _unnumbered(answer: str, parts: Iterable[SentenceSpan], check: Check) -> Iterator[SentenceSpan]:
    """The parts that are no code, and no numbers of a list that runs on in one line ("Boil it. 2. Drink it.")."""
    count = 1  # the first one opens the line, or follows a colon: it was told from a sentence before
    for before, part, behind in _neighbours(parts):
        check()
        if before is None or before.line != part.line:
            count = 1
        number = _BARE_NUMBER.fullmatch(answer, part.start, part.end)
        runs_on = before is not None and behind is not None and before.line == part.line == behind.line
        if number and runs_on and int(number[1]) == count + 1:
            count += 1
        elif not part.block:
            yield part


def _neighbours(
    parts: Iterable[SentenceSpan],
) -> Iterator[tuple[SentenceSpan | None, SentenceSpan, SentenceSpan | None]]:
    """Each part with the one before and the one behind it."""
    before: SentenceSpan | None = None
    part: SentenceSpan | None = None
    for behind in chain(parts, (None,)):
        if part is not None:
            yield before, part, behind
        before, part = part, behind


def _is_fragment(answer: str, part: SentenceSpan) -> bool:
    if part.end - part.start > 60:  # three words are rarely longer; saves counting in long sentences
        return False
    if answer[part.end - 1] == ":":  # a label
        return False
    return len(TOKEN.findall(answer, part.start, part.end)) < _FRAGMENT_WORDS
