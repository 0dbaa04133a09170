"""Suggest: canaries out of judged traffic, for a person to accept. A labelled set should not start from nothing.

A question is proposed when its answer was fully supported and to the point, and the judge saw which contexts support
it. These are what the retriever found when all was well: a canary made of them notices when it no longer does. It
cannot notice what the retriever never found, so a person must look at each, and add what is missing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

from ragwatch.core.canary.definition import Canary, Category, Expected, name_of
from ragwatch.core.compare import key_of
from ragwatch.core.scores import Quantity

FAITHFUL, RELEVANT = 0.95, 1.0
SIMPLE = 2  # contexts that a simple question takes at most
TAG = "suggested"
_TOKEN = re.compile(r"\[[A-Z_]+:[0-9a-f]{6}\]")


@dataclass(frozen=True, slots=True)
class CanarySuggestion:
    """A canary to be accepted.

    Attributes:
        canary: What is proposed.
        weight: How often it was asked, estimated: sum of 1 / sampling probability.
        answers: Judged answers behind it.
        faithfulness: Their mean faithfulness.
    """

    canary: Canary
    weight: float
    answers: int
    faithfulness: float


@dataclass(frozen=True, slots=True)
class _SupportedAnswer:
    """A well supported answer."""

    question: str
    used: tuple[Expected, ...]
    weight: float
    faithfulness: float


def suggest(
    found: Iterable[tuple[Mapping[str, Any], Mapping[str, Any] | None]],
    *,
    known: Collection[str] = (),
    limit: int = 50,
) -> list[CanarySuggestion]:
    """Canaries that stored verdicts propose, the most frequent question first.

    Args:
        found: Stored verdict lines, each with its sample in canonical form (None: no longer kept).
        known: Questions that are canaries already.
        limit: Most that are wanted.
    """
    taken = {key_of(each, "") for each in known}
    by_question: defaultdict[str, list[_SupportedAnswer]] = defaultdict(list)
    for verdict, sample in found:
        answer = None if sample is None else _answer(verdict, sample)
        if answer is not None and (key := key_of(answer.question, "")) not in taken:
            by_question[key].append(answer)
    made = [each for answers in by_question.values() if (each := _suggestion(answers)) is not None]
    made.sort(key=lambda each: (-each.weight, each.canary.query))
    return _named(made[:limit])


def _answer(verdict: Mapping[str, Any], sample: Mapping[str, Any]) -> _SupportedAnswer | None:
    """The answer, where it is good enough to learn from."""
    question, scores = sample.get("question"), verdict.get("scores") or {}
    faithfulness, relevancy = (scores.get(each) for each in (Quantity.FAITHFULNESS, Quantity.ANSWER_RELEVANCY))
    if faithfulness is None or faithfulness < FAITHFUL or relevancy is None or relevancy < RELEVANT:
        return None
    if not isinstance(question, str) or not question.strip() or _TOKEN.search(question):
        return None  # a redacted question is not what was asked
    used = dict.fromkeys(
        expected
        for context, read in zip(sample.get("contexts", ()), verdict.get("contexts", ()), strict=False)
        if read["used"] and (expected := _expected(context)) is not None
    )
    weight = 1.0 / float(verdict.get("probability") or 1.0)
    return _SupportedAnswer(" ".join(question.split()), tuple(used), weight, faithfulness) if used else None


def _expected(context: Mapping[str, Any]) -> Expected | None:
    """A used context by its id, or else by its text, unless that is no longer what the retriever returns."""
    name, text = context.get("id"), context.get("text")
    if name:
        return Expected(str(name))
    return Expected(None, text) if text and text.strip() and not _TOKEN.search(text) else None


def _suggestion(answers: list[_SupportedAnswer]) -> CanarySuggestion | None:
    """The canary of one question: what at least half of its answers used, as it was asked most often."""
    uses: Counter[Expected] = Counter(each for answer in answers for each in answer.used)
    expected = tuple(each for each, count in uses.items() if 2 * count >= len(answers))
    if not expected:
        return None
    texts = Counter(answer.question for answer in answers)
    query = min(texts, key=lambda text: (-texts[text], text))
    category = Category.SIMPLE_FACTUAL if len(expected) <= SIMPLE else Category.COMPLEX_FACTUAL
    return CanarySuggestion(
        Canary(name_of(query), query, tuple(sorted(expected, key=lambda each: each.label)), category, tags=(TAG,)),
        fsum(answer.weight for answer in answers),
        len(answers),
        fsum(answer.faithfulness for answer in answers) / len(answers),
    )


def _named(made: Iterable[CanarySuggestion]) -> list[CanarySuggestion]:
    """The suggestions under names that differ: `Is it on?` and `Is it on!` are two questions."""
    names: set[str] = set()
    found = []
    for each in made:
        name = name_of(each.canary.query, names)
        names.add(name)
        found.append(replace(each, canary=replace(each.canary, name=name)))
    return found


def suite_text(suggestions: Iterable[CanarySuggestion]) -> str:
    """The suggestions as a suite file in YAML, with what a person needs to decide about each in a comment.

    >>> print(suite_text([Suggestion(Canary("n", "Why?", (Expected("d1"),), tags=(TAG,)), 12.0, 3, 1.0)]), end="")
    # Suggested from judged traffic. Look at each: keep it, mend what it expects, or delete it.
    # What the retriever never found is not in here: add it.
    items:
      # asked about 12 times; 3 judged answers, faithfulness 1.00
      - query: "Why?"
        name: "n"
        category: simple_factual
        tags: ["suggested"]
        expected:
          - id: "d1"
    """
    lines = [
        "# Suggested from judged traffic. Look at each: keep it, mend what it expects, or delete it.",
        "# What the retriever never found is not in here: add it.",
        "items:",
    ]
    for each in suggestions:
        canary, mean = each.canary, each.faithfulness
        lines += [
            f"  # asked about {each.weight:.0f} times; {each.answers} judged answers, faithfulness {mean:.2f}",
            f"  - query: {_quoted(canary.query)}",
            f"    name: {_quoted(canary.name)}",
            f"    category: {canary.category}",
            f"    tags: [{', '.join(map(_quoted, canary.tags))}]",
            "    expected:",
            *(
                f"      - id: {_quoted(context.id)}" if context.id else f"      - text: {_quoted(context.text or '')}"
                for context in canary.expected
            ),
        ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A double-quoted scalar of YAML: whatever is not printable is escaped, so that no text can end it."""
    parts = []
    for each in text:
        if each in '\\"':
            parts.append(f"\\{each}")
        elif each.isprintable():
            parts.append(each)
        else:
            parts.append(f"\\U{ord(each):08x}")
    return f'"{"".join(parts)}"'
