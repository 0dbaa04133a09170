"""Checks of words and dates: question terms that no chunk holds, and documents older than what is asked about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ragwatch.core.checklist.definition import (
    Check,
    Finding,
    Question,
    distinct,
    measured,
    not_measurable,
    percent,
)
from ragwatch.core.chunks import near_duplicates

Terms = Callable[[str], Iterable[str]]
"""Splits a text into content terms; function words are left out."""

MIN_QUESTIONS, MIN_CHUNKS = 10, 10
MAX_UNKNOWN = 0.2  # share of questions with a term that no chunk holds
MAX_STALE = 0.05
MAX_TERMS = 10
_EDGES = ".,;:!?\"'()[]“”‘’«»"
_REQUESTS = (
    "happen tell explain describe list show give please help find know want need mean say look anyone possible way"
)
_TOKEN = re.compile(r"\[[A-Z_]+:[0-9a-f]{6}\]")
_DAY = re.compile(r"(?<!\d)(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)")
_YEAR = re.compile(r"(?<![\d.,$€£-])(?:19|20)\d\d(?![\d-]|[.,]\d)")
_MAX_CHARS = 20_000


def vocabulary(questions: Sequence[Question], terms: Terms) -> Finding:
    """Checks whether questions use terms that no retrieved chunk holds, of any question."""
    asked = [(question, question.text) for question in questions if question.text]
    chunks = distinct(questions)
    if len(asked) < MIN_QUESTIONS or len(chunks) < MIN_CHUNKS:
        return not_measurable(
            Check.VOCABULARY, f"fewer than {MIN_QUESTIONS} questions with a text, or {MIN_CHUNKS} chunks, are stored"
        )
    held = {term for chunk, _ in chunks.values() for term in terms((chunk.text or "")[:_MAX_CHARS])}
    held |= {*terms(_REQUESTS)}
    missing = {question.id: _missing(text, held, terms) for question, text in asked}
    affected = [question for question, _ in asked if missing[question.id]]
    counts = Counter(term for names in missing.values() for term in names)
    words = {term: word for names in reversed(missing.values()) for term, word in names.items()}
    share = len(affected) / len(asked)
    often = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_TERMS]
    return measured(
        Check.VOCABULARY,
        share,
        MAX_UNKNOWN,
        f"{len(affected)} of {len(asked)} questions ({percent(share)}) have a term that no retrieved chunk holds",
        evidence=[
            *([f"most frequent: {', '.join(f'{words[term]} ({count})' for term, count in often)}"] if often else []),
            *_failures(affected, [question for question, _ in asked if not missing[question.id]]),
        ],
        figures={"questions": len(asked), "affected": len(affected), "terms": len(counts)},
        examples=(question.id for question in affected),
    )


def _missing(text: str, held: set[str], terms: Terms) -> dict[str, str]:
    """Returns the terms of a question that are not held, each with the word that it comes from."""
    words = [word.strip(_EDGES) for word in _TOKEN.sub(" ", text[:_MAX_CHARS]).casefold().split()]
    pairs = ((name, word) for word in words for name in terms(word) if not any(char.isdigit() for char in name))
    return {name: word for name, word in pairs if name not in held}


def _failures(with_term: Sequence[Question], without: Sequence[Question]) -> list[str]:
    """Returns how often retrieval failed on either side, which tells whether the terms matter."""
    shares = []
    for side in (with_term, without):
        known = [question.retrieval_failed for question in side if question.retrieval_failed is not None]
        if not known:
            return []
        shares.append(percent(sum(known) / len(known)))
    return [f"the judge names retrieval at fault for {shares[0]} of these questions, and for {shares[1]} of the others"]


def freshness(questions: Sequence[Question]) -> Finding:
    """Checks whether questions name a date after the newest one in the chunks, and whether old versions remain.

    Dates after the newest answer are ignored in chunks, because they are numbers or lie in the future.
    """
    chunks = distinct(questions)
    last = max((question.day for question in questions), default="") or "9999"
    dates = [_newest(f"{chunk.id or ''} {chunk.text}", last) for chunk, _ in chunks.values()]
    newest = max([*dates, *(date for question in questions for date in question.dates)], default="")
    if not newest:
        return not_measurable(
            Check.FRESHNESS,
            "no chunk, id, `updated_at` of a context or metadata of a sample (`indexed_at`) names a date",
        )
    asked = [question for question in questions if question.text]
    late = [question for question in asked if _newest(question.text or "", f"{last[:4]}-99")[: len(newest)] > newest]
    old = _old_versions(list(chunks), [chunk.text or "" for chunk, _ in chunks.values()], dates)
    outdated = [question for question in questions if any(chunk.key in old for chunk in question.chunks)]
    affected = dict.fromkeys(question.id for question in (*late, *outdated))
    return measured(
        Check.FRESHNESS,
        len(affected) / len(questions),
        MAX_STALE,
        f"{len(late)} of {len(asked)} questions name a date after the newest one in the documents ({newest}), and "
        f"{len(outdated)} retrieved an old version of a text",
        evidence=[
            *([] if last == "9999" else [f"the newest answer is of {last}"]),
            *([f"old versions, for example: {', '.join(sorted(old)[:3])[:200]}"] if old else []),
        ],
        figures={"questions": len(questions), "late": len(late), "outdated": len(outdated), "old_versions": len(old)},
        examples=affected,
    )


def _newest(text: str, last: str) -> str:
    """Returns the newest date up to `last` in a text, as `YYYY-MM-DD` or, without a day, `YYYY`; empty for none."""
    text = text[:_MAX_CHARS]
    return max((date for date in (*_DAY.findall(text), *_YEAR.findall(text)) if date <= last), default="")


def _old_versions(keys: Sequence[str], texts: Sequence[str], dates: Sequence[str]) -> set[str]:
    """Returns the keys of texts of which a near-duplicate has a newer date."""
    return {
        keys[index]
        for group in near_duplicates(texts)
        for index in group
        if dates[index] and dates[index] < max(dates[other] for other in group)[: len(dates[index])]
    }
