"""Splits an answer into claims: the sentences and list items that state facts. `atomic_facts` splits these further.

A fragment of fewer than three words is joined with its neighbour on the same line. Labels ("Thought process:"),
headings, code blocks, lists of sources, questions, and sentences that are courtesy or about the passages (`kinds`,
`statistics.text.phrases`) are no claims; an answer that has no claim and says that it does not know is an abstention.
Code is left out because comparing words cannot check it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice, tee
from typing import NamedTuple

from ragwatch.judges.claims.kinds import asks, is_small_talk, kind_of, stated_before
from ragwatch.judges.claims.limits import Check, unlimited
from ragwatch.judges.claims.sentences import SentenceSpan, spans
from ragwatch.judges.claims.words import TOKEN, terms
from ragwatch.statistics.text.alphabet import visible_text
from ragwatch.statistics.text.citations import is_line_of_markers
from ragwatch.statistics.text.phrases import abstains, is_meta, without_leads

_MIN_CLAIM_WORDS = 3
_MAX_LABEL_WORDS = 6
_HEADING = re.compile(r"#{1,6}\s|[*_]{2}[^*_\n]{1,80}[*_]{2}:?$")
_BARE_NUMBER = re.compile(r"\(?(\d{1,2})[.)]")  # a list number on a line of its own, or between two sentences
_MAX_MARGIN = 8  # in an answer with no more characters than these around it, the number is the answer
_TURN = re.compile(
    r";\s|,? (?:but|however|yet|although|though|while|and unfortunately)\b,? "
    r"|,? and (?=(?:i|we|the (?:passage|context|document|text|article|excerpt|source)s?)\b)",
    re.IGNORECASE,
)
_COMMA = re.compile(r",\s")
_MAX_TURNS = 8  # per sentence
_CONCESSION = re.compile(r"\W{0,3}(?:while|whilst|although|though|even though)\b", re.IGNORECASE)
_ABOUT_TEXTS = re.compile(
    r"\b(?:i|we|my|our|you(?:['’]re| are| asked| mean| want)|(?:question|passage|context|document|text|article|excerpt"
    r"|source|search result)s?|information|content)\b",
    re.IGNORECASE,
)
_QUOTES = re.compile('["“”]')
_QUOTED = re.compile(
    r"""(?:(?<=\s)|(?<=[(\[*_—–:-])|^)["“](?=[^\s"“”])[^"“”\n]*(?:["”]|$)|^[^"“”\n]*(?<=[^\s\d"“”])["”](?=[\s.,;:!?)]|$)""",
    re.MULTILINE,
)
_SOURCES = re.compile(
    r"[ \t>#*_-]{0,8}(?:sources?|references?|citations?|bibliography|further reading|read more|learn more|links"
    r"|quellen?|fuentes?|références|referencias|referências|font[ei]s?|riferimenti|bron(?:nen)?)"
    r"[*_ \u00a0\u202f]{0,4}(?::[*_ \t]{0,6}|[*_ \t]{0,4}$)",
    re.IGNORECASE | re.MULTILINE,
)
_SOURCE = re.compile(
    r"https?://|\bwww\.|\w\.(?:pdf|md|html?|docx?|pptx?|xlsx?|txt|csv|json)\b"
    r"|\b(?:pp?|pages?|sections?|chapters?)\.? ?\d|§ ?\d|\[\^?\d{1,3}\^?\]|\(\d{4}\)|【",
    re.IGNORECASE,
)
_FOOTNOTE = re.compile(r"^[ \t]{0,8}(?:\[\^[\w-]{1,20}\^?\]:|[¹²³⁰⁴-⁹]{1,3}[ \t])", re.MULTILINE)
_SENTENCE = re.compile(r"[.!?]\s*$")
_REASONING = re.compile(  # of the model; its first tag may stand in the prompt, its last one be cut off
    r"^[ \t]{0,8}<(think(?:ing)?|reasoning)>.*?(?:</\1>|\Z)|\A(?:[^<]|<(?!/?think))*</think>[ \t]{0,8}(?=\n)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_KEPT = re.compile(r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")  # all but ends of lines
_SALUTATION = re.compile(r"[^\n\d,]{1,40},(?=[ \t]*\n\s*\S)")  # the first line of several
_ADDRESS = re.compile(r"(?:\[[^\]\n]{1,200}\])?[<(]?(?:https?://|www\.)\S{1,2000}")
_LISTED = re.compile(r"[*_ ]{0,4}\n\s{0,8}(?:[-*+•▪–]\s|\(?\d{1,2}[.)\[])")
_TABLE = re.compile(r"[ \t]{0,8}\n[ \t]{0,8}\|?[ \t:]{0,8}--")  # below the names of its columns
_YES_OR_NO = re.compile(r"\W{0,3}(?:yes|no|yeah|nope|true|false|correct)\b", re.IGNORECASE)


class ClaimText(NamedTuple):
    """One claim: `answer[start:end]`, and its text without leads and citation marks."""

    start: int
    end: int
    words: str  # its text as it is read; that of a fact begins with the subject of its sentence
    sentence: ClaimText | None = None  # the sentence that it is a part of; None when it is a whole one
    own: str = ""  # of a fact, its words without the subject


class AnswerClaims(NamedTuple):
    """The claims of an answer."""

    claims: tuple[ClaimText, ...]
    abstained: bool  # the answer says that it does not know, and has no claims
    only_asks: bool = False  # the answer asks the user something, and neither claims nor declines anything

    @property
    def sentences(self) -> tuple[ClaimText, ...]:
        """The claims, with the sentence in place of its facts."""
        return tuple(dict.fromkeys(claim.sentence or claim for claim in self.claims))


def claims_of(
    answer: str, question: str | None = None, *, max_claims: int | None = None, check: Check = unlimited
) -> AnswerClaims:
    """Split an answer into claims, or detect that it abstains.

    A bare "yes" or "no" claims what the question asks, so it gets the words of the question.

    With `max_claims` it stops after one more, which shows that there are too many. `check` is called for each sentence.

    >>> text = "Based on the context, tea is green [1]. I hope this helps!"
    >>> [text[claim.start:claim.end] for claim in claims_of(text).claims]
    ['Based on the context, tea is green [1].']
    >>> claims_of("I could not find that in the documents.").abstained
    True
    """
    answer, question = visible_text(answer), question and visible_text(question)
    claims: list[ClaimText] = []
    abstained = has_asked = False
    shown = _without_sources(answer)
    spoken = _without_quotes(shown)
    for start, end, is_question in _joined(shown, spoken, spans(shown), check):
        text = answer[start:end]
        if is_question:
            has_asked = True
            continue
        rest = _without_announcement(_without_abstention(text) if abstains(spoken[start:end]) else text)
        if not rest:
            abstained = True
            continue
        words = without_leads(rest)
        is_list_number = _BARE_NUMBER.fullmatch(text) and len(answer) > len(text) + _MAX_MARGIN
        is_label = _is_label(text, has_lead=words != rest) and not (text == shown.strip() and text[-1] in "*_")
        if (
            is_list_number
            or (rest == text and is_meta(spoken[start:end]))
            or is_label
            or _names_columns(answer, start, end)
        ):
            continue
        if text.rstrip("*_ ").endswith(":") and _LISTED.match(answer, end) and not _has_number(words):
            continue  # the items say what it announces
        if not terms(words):
            if not (question and _YES_OR_NO.match(text)):
                continue
            words = question
        claims.append(ClaimText(start, end, words))
        if max_claims is not None and len(claims) > max_claims:
            break
    return AnswerClaims(tuple(claims), abstained and not claims, has_asked and not abstained and not claims)


def other_sentences(answer: str, claims: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind (in words) of the sentences of an answer that are no claims.

    `claims` are start and end of what a judge took for claims, in addition to those of `claims_of`.

    >>> text = "Sure! Tea is green. Shall I say more?"
    >>> [(text[start:end], kind) for start, end, kind in other_sentences(text, [(6, 19)])]
    [('Sure!', 'courtesy'), ('Shall I say more?', 'question')]
    """
    answer = visible_text(answer)
    without_sources, thoughts = _without_sources(answer), [part.span() for part in _REASONING.finditer(answer)]
    placed = sorted([*claims, *((claim.start, claim.end) for claim in claims_of(answer).claims)])
    position = 0  # of the first claim that may overlap this sentence or a later one
    for span in spans(answer):
        while position < len(placed) and placed[position][1] <= span.start:
            position += 1
        if position < len(placed) and placed[position][0] < span.end:
            continue
        text = answer[span.start : span.end]
        if not _BARE_NUMBER.fullmatch(text):
            is_left_out = without_sources[span.start : span.end].isspace()
            is_thought = is_left_out and any(a <= span.start < b for a, b in thoughts)
            out = "reasoning" if is_thought else "sources" if is_left_out else None
            names_columns = _names_columns(answer, span.start, span.end)
            kind = "code" if span.block else out or ("heading" if names_columns else _other_kind(text))
            yield span.start, span.end, kind


def _other_kind(text: str) -> str:
    if _HEADING.match(text):
        return "heading"
    if text.rstrip("*_ ").endswith(":"):
        return "lead-in"
    kind = kind_of(text) or "no claim"
    return "about the passages" if kind == "meta" else kind


def _without_abstention(text: str) -> str:
    """The part of a sentence that is no abstention, before or behind a turn: nothing, if it is one as a whole.

    >>> _without_abstention("While the passages do not mention it, the tower was built by monks.")
    'the tower was built by monks.'
    >>> _without_abstention("The tower was built by monks, but I do not know when.")
    'The tower was built by monks'
    """
    turns = [*_COMMA.finditer(text)] if _CONCESSION.match(text) else []
    for turn in sorted([*turns, *_TURN.finditer(text)][:_MAX_TURNS], key=re.Match.end):
        head, tail = text[: turn.start()], text[turn.end() :]
        if abstains(head) and _states(tail):
            return tail
        if abstains(tail) and _states(head) and not _ABOUT_TEXTS.search(without_leads(head)):
            return _CONCESSION.sub("", head, count=1).strip()
    return ""


def _states(part: str) -> bool:
    return not abstains(part) and not is_meta(part) and len(terms(part)) >= _MIN_CLAIM_WORDS


def _without_quotes(answer: str) -> str:
    """The answer with spaces in place of quoted words, whose kind is not that of the sentence; the length stays.

    Not if all of it is between quotation marks.

    >>> _without_quotes('The bot said "I do not know."'), _without_quotes('"I do not know."')
    ('The bot said                 ', '"I do not know."')
    """
    if not _QUOTES.search(answer) or _QUOTES.sub("", answer.strip()) == answer.strip()[1:-1]:
        return answer
    return _QUOTED.sub(lambda part: _KEPT.sub(" ", part.group()), answer)


def _without_announcement(text: str) -> str:
    """A sentence without an announcement of the answer before a colon: "I can answer this: tea is green"."""
    head, colon, tail = text.partition(": ")
    is_announced = colon and is_meta(text) and is_meta(head + ":") and not is_meta(tail)
    return tail if is_announced and len(terms(without_leads(tail))) > 1 else text


def _is_label(text: str, *, has_lead: bool) -> bool:
    """Whether it is a heading, or ends in a colon and is short or has a lead ("The passages give these tips:")."""
    if _HEADING.match(text):
        return True
    return text.rstrip("*_ ").endswith(":") and (has_lead or len(TOKEN.findall(text)) <= _MAX_LABEL_WORDS)


def _names_columns(answer: str, start: int, end: int) -> bool:
    """Whether a line is the first one of a table in Markdown."""
    return answer[start] == "|" and _TABLE.match(answer, end) is not None


def _has_number(words: str) -> bool:
    return any(name[0].isdigit() for name in terms(words))


def _without_sources(answer: str) -> str:
    """The answer with spaces in place of its lists of sources and of reasoning; the length stays the same."""
    if "<" in answer:
        answer = _REASONING.sub(lambda part: _KEPT.sub(" ", part.group()), answer)
    if not _SOURCES.search(answer) and not _FOOTNOTE.search(answer):
        return answer
    lines, is_listed = [], False
    for line in answer.splitlines(keepends=True):
        head = _SOURCES.match(line)
        rest = line[head.end() :] if head else line
        is_entry = not rest.strip() or _SOURCE.search(rest) is not None
        note = _FOOTNOTE.match(line)
        is_note = note is not None and (not _SENTENCE.search(line) or _SOURCE.search(line, note.end()) is not None)
        is_listed = is_note or (is_entry and (head is not None or is_listed))
        lines.append(_KEPT.sub(" ", line) if is_listed else line)
    return "".join(lines)


def _joined(answer: str, spoken: str, parts: Iterable[SentenceSpan], check: Check) -> Iterator[tuple[int, int, bool]]:
    """Yield sentences, and whether they are questions, with fragments joined to their neighbour on the line.

    That is the sentence before it, else the next one. Sentences that state nothing are left out. `spoken` is the answer
    without quoted words.
    """
    joined: SentenceSpan | None = None
    is_fragment = False
    for whole in _unnumbered(answer, parts, check):
        text = spoken[whole.start : whole.end]
        is_question = asks(text)
        stated = stated_before(text) if is_question else 0
        part = whole._replace(end=whole.start + stated) if stated else whole
        text, is_question = spoken[part.start : part.end], is_question and not stated
        part_is_fragment = _is_fragment(answer, part)
        is_answer = text == answer.strip() and (
            part_is_fragment or text[-1].isalnum()
        )  # "Sure.", "I Will Always Love You"
        said = answer[part.start : part.end]
        has_words = text == said or any(map(str.isalnum, text))  # that are not quoted
        states_nothing = (
            _ADDRESS.fullmatch(text) is not None
            or is_line_of_markers(text)
            or (part.line == 0 and _SALUTATION.match(answer, part.start) is not None)
            or (has_words and is_small_talk(text) and is_small_talk(said) and not abstains(text))
        )
        if is_question or (states_nothing and not (is_answer or part.item)):
            if joined is not None:
                yield joined.start, joined.end, False
            joined = None
            if is_question:
                yield part.start, part.end, True
            continue
        if joined is not None and joined.line == part.line and (is_fragment or part_is_fragment):
            joined = joined._replace(end=part.end)
            is_fragment = is_fragment and part_is_fragment
        else:
            if joined is not None:
                yield joined.start, joined.end, False
            joined, is_fragment = part, part_is_fragment
    if joined is not None:
        yield joined.start, joined.end, False


def _unnumbered(answer: str, parts: Iterable[SentenceSpan], check: Check) -> Iterator[SentenceSpan]:
    """Yield the parts that are neither code nor numbers of a list in one line ("Boil it. 2. Drink it.")."""
    count = 1  # the first number starts the line or follows a colon, and is no part of its own
    earlier, now, later = tee(parts, 3)
    for before, part, after in zip(chain((None,), earlier), now, chain(islice(later, 1, None), (None,)), strict=False):
        check()
        if before is None or before.line != part.line:
            count = 1
        number = _BARE_NUMBER.fullmatch(answer, part.start, part.end)
        is_inside_line = before is not None and after is not None and before.line == part.line == after.line
        if number and is_inside_line and int(number[1]) == count + 1:
            count += 1
        elif not part.block:
            yield part


def _is_fragment(answer: str, part: SentenceSpan) -> bool:
    if part.end - part.start > 60 or answer[part.end - 1] == ":":  # two words are rarely longer; a label
        return False
    return len(TOKEN.findall(answer, part.start, part.end)) < _MIN_CLAIM_WORDS
