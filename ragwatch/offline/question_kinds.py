"""Sorts the questions of live traffic into the kinds that a test set needs: head, edge, multi-hop and temporal ones.

Head questions are the most frequent ones, which make 80 % of the traffic together. Edge questions are phrased oddly
(their words are rare in the other questions), ambiguous (the retrieval scores of their contexts lie close together) or
have no good answer (the service abstains). Multi-hop questions need more than one context. Temporal ones name a date
that is later than the last update of the index, or ask about today and what is newest. Comparative ones compare.
"""

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from math import ceil, fsum

from ragwatch.statistics.text.vocabulary import NoveltyMeter, learn, words_of
from ragwatch.statistics.text.vocabulary import Vocabulary as _Vocabulary

HEAD_SHARE = 0.8
EDGE_SHARE = 0.1
"""Share of the questions that are the oddest, and that are the most ambiguous."""
MIN_QUESTIONS = 10
"""Number of questions from which odd and ambiguous ones are told apart."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DATE = re.compile(
    r"\b(?P<iso>(?:19|20)\d\d-[01]\d(?:-[0-3]\d)?)\b"
    rf"|\b(?:{_MONTH},? )?(?:[0-3]?\d(?:st|nd|rd|th)?,? )?(?P<year>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_MAX_CHARS = 20_000
_NOW = re.compile(
    r"\b(?:today(?:'s|’s)?|tonight|yesterday|tomorrow|nowadays|right now|currently|so far|latest|newest|most recent"
    r"|(?:this|last|next) (?:morning|week|month|quarter|year)"
    r"|(?:up ?coming|current|recent) (?:release|version|changes?))\b",
    re.IGNORECASE,
)
_COMPARISON = re.compile(
    r"\b(?:compare[sd]?|comparison|versus|vs|differences? (?:between|of|from)|differ(?:s|ent)? from|in contrast to"
    r"|(?:better|worse|cheaper|faster|slower|more|less|rather|other|larger|smaller|older|newer|longer|shorter) than"
    r"|which (?:of|one) [^.?!]{0,80}\bor\b)",
    re.IGNORECASE,
)


class QuestionKind(StrEnum):
    """Why a question belongs into a test set."""

    HEAD = "head"
    ODD_PHRASING = "odd_phrasing"
    AMBIGUOUS = "ambiguous"
    NO_GOOD_ANSWER = "no_good_answer"
    MULTI_HOP = "multi_hop"
    TEMPORAL = "temporal"
    COMPARATIVE = "comparative"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question of live traffic, with what is known of its answers."""

    text: str
    weight: float  # estimated number of requests: sum of 1 / sampling probability
    answers: int
    abstained: int = 0
    several: int = 0  # number of these of which no context alone supports all claims
    spread: float | None = None  # mean relative spread of the retrieval scores: 0 if all are equal; None without scores


def kinds_of(questions: Sequence[AskedQuestion], indexed: str | None) -> list[dict[QuestionKind, str]]:
    """Return, for each question, its kinds with the reason for each, as text for people.

    `indexed` is the date of the last update of the index, as YYYY-MM-DD; without it, dates tell nothing.
    """
    reasons: list[dict[QuestionKind, str]] = [{} for _ in questions]
    total = fsum(question.weight for question in questions)
    for index in _head(questions):
        reasons[index][QuestionKind.HEAD] = f"{questions[index].weight / total:.1%} of the traffic"
    for index, strangeness in _oddest(questions):
        reasons[index][QuestionKind.ODD_PHRASING] = (
            f"its words are rare in other questions: strangeness {strangeness:.2f}"
        )
    for index in _flattest(questions):
        spread = questions[index].spread
        reasons[index][QuestionKind.AMBIGUOUS] = f"no context stands out: retrieval scores spread by {spread:.1%}"
    for kinds, question in zip(reasons, questions, strict=True):
        if 2 * question.abstained >= question.answers:
            reason = f"{question.abstained} of {question.answers} answers decline to answer"
            kinds[QuestionKind.NO_GOOD_ANSWER] = reason
        if question.several and 2 * question.several >= question.answers - question.abstained:
            kinds[QuestionKind.MULTI_HOP] = (
                f"{question.several} of {question.answers} answers need more than one context"
            )
        kinds |= dict(_by_wording(question.text, indexed))
    return reasons


def _by_wording(text: str, indexed: str | None) -> Iterator[tuple[QuestionKind, str]]:
    later = None if indexed is None else later_date(text, indexed)
    if later is not None:
        yield QuestionKind.TEMPORAL, f"asks about {later}; the index is of {indexed}"
    elif (now := _NOW.search(text[:_MAX_CHARS])) is not None:
        yield QuestionKind.TEMPORAL, f"asks about {now[0].lower()}"
    if (comparison := _COMPARISON.search(text[:_MAX_CHARS])) is not None:
        yield QuestionKind.COMPARATIVE, f"compares: {comparison[0].lower()}"


def _head(questions: Sequence[AskedQuestion]) -> list[int]:
    """The most frequent questions, which make `HEAD_SHARE` of the traffic together."""
    order = sorted(range(len(questions)), key=lambda index: (-questions[index].weight, questions[index].text))
    limit = HEAD_SHARE * fsum(question.weight for question in questions)
    before = accumulate((questions[index].weight for index in order), initial=0.0)
    return [index for index, weight in zip(order, before, strict=False) if weight < limit]


def _oddest(questions: Sequence[AskedQuestion]) -> list[tuple[int, float]]:
    """Questions whose words are rarest in the others, with their strangeness; none if there are few questions."""
    if len(questions) < MIN_QUESTIONS:
        return []
    meter = NoveltyMeter(learn(_Vocabulary(), (question.text for question in questions)))
    strange = [
        (index, value[0]) for index, question in enumerate(questions) if (value := meter.strangeness([question.text]))
    ]
    strange.sort(key=lambda pair: (-pair[1], questions[pair[0]].text))
    return strange[: ceil(EDGE_SHARE * len(questions))]


def _flattest(questions: Sequence[AskedQuestion]) -> list[int]:
    known = [
        (question.spread, question.text, index)
        for index, question in enumerate(questions)
        if question.spread is not None
    ]
    flattest = sorted(known)[: ceil(EDGE_SHARE * len(known))] if len(known) >= MIN_QUESTIONS else []
    return [index for _, _, index in flattest]


def relative_spread(scores: Sequence[float]) -> float | None:
    """Return the range of retrieval scores divided by the largest in size; None with fewer than two.

    >>> relative_spread([0.9, 0.45, 0.6]), relative_spread([0.9]), relative_spread([0.0, 0.0])
    (0.5, None, 0.0)
    """
    if len(scores) < 2:
        return None
    size = max(abs(score) for score in scores)
    return (max(scores) - min(scores)) / size if size > 0.0 else 0.0


def _dates(text: str) -> Iterable[tuple[str, str, str]]:
    """Yield first and last day of each date, month or year in a text, as YYYY-MM-DD, and how the text writes it."""
    for match in _DATE.finditer(text[:_MAX_CHARS]):
        year, month, day = (match["iso"] or match["year"])[:4], 0, 0
        if match["iso"]:
            month, day = int(match["iso"][5:7]), int(match["iso"][8:10] or 0)
            if not 1 <= month <= len(_MONTHS) or day > monthrange(int(year), month)[1]:
                continue
        elif match["month"]:
            month = _MONTHS.index(match["month"].lower()) + 1
        last_month = month or len(_MONTHS)
        last = day or monthrange(int(year), last_month)[1]
        yield f"{year}-{month or 1:02}-{day or 1:02}", f"{year}-{last_month:02}-{last:02}", match[0]


def later_date(text: str, indexed: str) -> str | None:
    """Return the first date in a text that begins after another, as the text writes it; None if there is none.

    >>> later_date("What changed since March 2031?", "2031-02-27"), later_date("In 2031?", "2031-02-27")
    ('March 2031', None)
    """
    return next((written for first, _, written in _dates(text) if first > indexed), None)


def newest_date(texts: Iterable[str]) -> str | None:
    """Return the latest date that texts name, a year or month by its last day; None if they name none."""
    return max((last for text in texts for _, last, _ in _dates(text)), default=None)


@dataclass(frozen=True, slots=True)
class VocabularyCoverage:
    """How much of the words of the questions a test set holds: `words` of them, and their share of the traffic."""

    share: float | None
    words: int
    of: int


def vocabulary_coverage(questions: Sequence[AskedQuestion], chosen: Iterable[str]) -> VocabularyCoverage:
    """Return the coverage of the vocabulary of questions by the chosen ones."""
    covered = {word for text in chosen for word in words_of(text)}
    weights: dict[bytes, float] = {}
    for question in questions:
        for word in words_of(question.text):
            weights[word] = weights.get(word, 0.0) + question.weight
    total = fsum(weights.values())
    known = [word for word in weights if word in covered]
    return VocabularyCoverage(
        fsum(weights[word] for word in known) / total if total else None, len(known), len(weights)
    )
