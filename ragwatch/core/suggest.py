"""Suggests canaries from judged traffic, as a first labelled set that a person reviews.

A question is suggested if its answer was fully supported and relevant, and the judge recorded which contexts support
it. Follow-up questions are left out, because a canary is asked without a conversation before it. The canary expects
these contexts, so it detects when the retriever no longer returns them. It cannot detect contexts that the retriever
never returned: a person must review each canary and add what is missing.
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
from ragwatch.core.verdict_line import VerdictRecord

MIN_FAITHFULNESS, MIN_RELEVANCY = 0.95, 1.0
MAX_SIMPLE_CONTEXTS = 2  # expected contexts of a simple question
TAG = "suggested"
_TOKEN = re.compile(r"\[[A-Z_]+:[0-9a-f]{6}\]")


@dataclass(frozen=True, slots=True)
class CanarySuggestion:
    """A suggested canary.

    Attributes:
        canary: The canary.
        weight: Estimated number of requests with this question: sum of 1 / sampling probability.
        answers: Number of judged answers.
        faithfulness: Mean faithfulness of these answers.
    """

    canary: Canary
    weight: float
    answers: int
    faithfulness: float


@dataclass(frozen=True, slots=True)
class _SupportedAnswer:
    """An answer with high scores, and the contexts that support it."""

    question: str
    used: tuple[Expected, ...]
    weight: float
    faithfulness: float


def suggest(
    verdicts: Iterable[tuple[VerdictRecord, Mapping[str, Any] | None]],
    *,
    known: Collection[str] = (),
    limit: int = 50,
) -> list[CanarySuggestion]:
    """Suggests canaries from stored verdicts, the most frequent question first.

    Args:
        verdicts: Stored verdicts, each with its sample in canonical form (None if it is no longer stored).
        known: Questions that already have a canary.
        limit: Maximum number of suggestions.
    """
    known_keys = {key_of(question, "") for question in known}
    by_question: defaultdict[str, list[_SupportedAnswer]] = defaultdict(list)
    for verdict, sample in verdicts:
        answer = None if sample is None else _answer(verdict, sample)
        if answer is not None and (key := key_of(answer.question, "")) not in known_keys:
            by_question[key].append(answer)
    suggestions = [suggestion for answers in by_question.values() if (suggestion := _suggestion(answers)) is not None]
    suggestions.sort(key=lambda suggestion: (-suggestion.weight, suggestion.canary.query))
    return _with_unique_names(suggestions[:limit])


def _answer(verdict: VerdictRecord, sample: Mapping[str, Any]) -> _SupportedAnswer | None:
    """Returns the answer if its scores are high enough and its question is usable."""
    question = sample.get("question")
    faithfulness, relevancy = (verdict.scores[key] for key in (Quantity.FAITHFULNESS, Quantity.ANSWER_RELEVANCY))
    if faithfulness is None or faithfulness < MIN_FAITHFULNESS or relevancy is None or relevancy < MIN_RELEVANCY:
        return None
    if not isinstance(question, str) or not question.strip() or _TOKEN.search(question):
        return None  # a redacted question differs from the original query
    if sample.get("history"):
        return None  # a follow-up question may mean nothing without the turns before
    used = dict.fromkeys(
        expected
        for context, read in zip(sample.get("contexts", ()), verdict.contexts, strict=False)
        if read.used and (expected := _expected(context)) is not None
    )
    weight = 1.0 / (verdict.probability or 1.0)
    return _SupportedAnswer(" ".join(question.split()), tuple(used), weight, faithfulness) if used else None


def _expected(context: Mapping[str, Any]) -> Expected | None:
    """Returns a used context by its id, or by its text if there is no id and the text is not redacted."""
    name, text = context.get("id"), context.get("text")
    if name:
        return Expected(str(name))
    return Expected(None, text) if text and text.strip() and not _TOKEN.search(text) else None


def _suggestion(answers: list[_SupportedAnswer]) -> CanarySuggestion | None:
    """Returns the canary of one question: its most frequent wording, and the contexts of at least half its answers."""
    uses: Counter[Expected] = Counter(context for answer in answers for context in answer.used)
    expected = tuple(context for context, count in uses.items() if 2 * count >= len(answers))
    if not expected:
        return None
    texts = Counter(answer.question for answer in answers)
    query = min(texts, key=lambda text: (-texts[text], text))
    category = Category.SIMPLE_FACTUAL if len(expected) <= MAX_SIMPLE_CONTEXTS else Category.COMPLEX_FACTUAL
    expected = tuple(sorted(expected, key=lambda context: context.label))
    return CanarySuggestion(
        Canary(name_of(query), query, expected, category, tags=(TAG,)),
        fsum(answer.weight for answer in answers),
        len(answers),
        fsum(answer.faithfulness for answer in answers) / len(answers),
    )


def _with_unique_names(suggestions: Iterable[CanarySuggestion]) -> list[CanarySuggestion]:
    """Renames canaries with equal names: `Is it on?` and `Is it on!` are two questions."""
    names: set[str] = set()
    renamed = []
    for suggestion in suggestions:
        name = name_of(suggestion.canary.query, names)
        names.add(name)
        renamed.append(replace(suggestion, canary=replace(suggestion.canary, name=name)))
    return renamed


def suite_text(suggestions: Iterable[CanarySuggestion]) -> str:
    """Returns the suggestions as a suite file in YAML, with the figures of each suggestion in a comment.

    >>> print(suite_text([CanarySuggestion(Canary("n", "Why?", (Expected("d1"),), tags=(TAG,)), 12.0, 3, 1.0)]), end="")
    # Suggested from judged traffic. Review each canary: keep it, correct what it expects, or delete it.
    # Contexts that the retriever never returned are missing: add them.
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
        "# Suggested from judged traffic. Review each canary: keep it, correct what it expects, or delete it.",
        "# Contexts that the retriever never returned are missing: add them.",
        "items:",
    ]
    for suggestion in suggestions:
        canary, answers, mean = suggestion.canary, suggestion.answers, suggestion.faithfulness
        lines += [
            f"  # asked about {suggestion.weight:.0f} times; {answers} judged answers, faithfulness {mean:.2f}",
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
    """Returns a double-quoted YAML scalar, in which quotes, backslashes and non-printable characters are escaped."""
    parts = []
    for char in text:
        if char in '\\"':
            parts.append(f"\\{char}")
        elif char.isprintable():
            parts.append(char)
        else:
            parts.append(f"\\U{ord(char):08x}")
    return f'"{"".join(parts)}"'
