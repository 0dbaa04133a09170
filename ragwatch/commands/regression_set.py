"""Writes failing answers as a regression set: rows of `ragwatch gate`, RAGAS or DeepEval, or a canary suite."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple

from ragwatch.commands.failing_answers import FailingAnswer
from ragwatch.core.canary.definition import (
    REDACTED,
    Canary,
    Category,
    Expected,
    Grade,
    canary_lines,
    comment_line,
    name_of,
)
from ragwatch.core.sample import Role, Sample

TAG = "regression"
MAX_SIMPLE_CONTEXTS = 2  # expected contexts of a simple question
_RAGAS_ROLES = MappingProxyType({Role.USER: "human", Role.ASSISTANT: "ai"})
_HEAD = (
    "# Questions with failing answers. Review each canary: keep it, correct what it expects, or delete it.",
    "# Contexts that the retriever never returned are missing: add them.",
)


class RegressionSet(NamedTuple):
    """A regression set as text.

    Attributes:
        text: Its content; empty if there is no row.
        rows: Number of rows.
        left_out: Number of answers that the format cannot hold, by reason.
    """

    text: str
    rows: int
    left_out: Mapping[str, int]


def regression_set(kind: str, answers: Sequence[FailingAnswer]) -> RegressionSet:
    """Write answers in a format, in their order."""
    return _suite(answers) if kind == "canaries" else _lines(answers, ROWS[kind])


def _lines(answers: Sequence[FailingAnswer], convert: Callable[[Sample], Mapping[str, object] | None]) -> RegressionSet:
    rows = [row for answer in answers if (row := convert(answer.sample)) is not None]
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return RegressionSet(text, len(rows), _counts({"need their conversation": len(answers) - len(rows)}))


def gate_row(sample: Sample) -> dict[str, object]:
    """Return the canonical record of a sample, without its time and metadata."""
    return {name: value for name, value in sample.to_record().items() if name not in ("at", "metadata")}


def ragas_row(sample: Sample) -> dict[str, object]:
    """Return the RAGAS record of a sample; a conversation is a list of messages."""
    ids = [context.id for context in sample.contexts]
    turns = [
        {"type": _RAGAS_ROLES[turn.role], "content": turn.text} for turn in sample.history if turn.role in _RAGAS_ROLES
    ]
    asked = sample.question
    return {
        "id": sample.id,
        "user_input": [*turns, {"type": "human", "content": asked}] if turns else asked,
        "response": sample.answer,
        "retrieved_contexts": [context.text for context in sample.contexts],
        **({"retrieved_context_ids": ids} if ids and all(ids) else {}),
        "reference": sample.reference,
        "route": sample.route,
    }


def deepeval_row(sample: Sample) -> dict[str, object] | None:
    """Return the DeepEval test case of a sample; None for a follow-up question, which means nothing alone."""
    if sample.history:
        return None
    return {
        "id": sample.id,
        "input": sample.question,
        "actual_output": sample.answer,
        "retrieval_context": [context.text for context in sample.contexts],
        "expected_output": sample.reference,
        "route": sample.route,
    }


ROWS: Mapping[str, Callable[[Sample], Mapping[str, object] | None]] = MappingProxyType(
    {"gate": gate_row, "ragas": ragas_row, "deepeval": deepeval_row}
)


def _suite(answers: Iterable[FailingAnswer]) -> RegressionSet:
    lines: list[str] = []
    names: set[str] = set()
    left_out = {"need their conversation": 0, "redacted questions": 0, "without a context that is known as relevant": 0}
    for answer in answers:
        question = answer.sample.question or ""
        expected, by_people = _expected(answer)
        if answer.sample.history:
            left_out["need their conversation"] += 1
        elif REDACTED.search(question):
            left_out["redacted questions"] += 1
        elif not expected and not by_people:
            left_out["without a context that is known as relevant"] += 1
        else:
            canary = _canary(answer.sample, expected, names)
            names.add(canary.name)
            lines += [*map(comment_line, _comments(answer, by_people=by_people)), *canary_lines(canary)]
    text = "\n".join([*_HEAD, "items:", *lines, ""]) if lines else ""
    return RegressionSet(text, len(names), _counts(left_out))


def _counts(left_out: Mapping[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in left_out.items() if count}


def _canary(sample: Sample, expected: tuple[Expected, ...], names: set[str]) -> Canary:
    simple = len(expected) <= MAX_SIMPLE_CONTEXTS
    category = Category.SIMPLE_FACTUAL if simple else Category.COMPLEX_FACTUAL
    query = " ".join((sample.question or "").split())
    return Canary(
        name_of(query, names),
        query,
        expected,
        category if expected else Category.NEGATIVE,
        reference=sample.reference,
        tags=(TAG,),
    )


def _expected(answer: FailingAnswer) -> tuple[tuple[Expected, ...], bool]:
    """The contexts that are relevant to a question, and whether people said so, or else the judge."""
    relevant = answer.sample.relevant
    if relevant is not None:
        known = [_context(one.id, one.text, one.grade) for one in relevant]
        usable = tuple(one for one in known if one is not None)
        return usable, bool(usable) or not relevant
    pairs = zip(answer.sample.contexts, answer.verdict.contexts, strict=False)
    by_judge = dict.fromkeys(_context(context.id, context.text, 1) for context, read in pairs if read.relevant)
    return tuple(one for one in by_judge if one is not None), False


def _context(name: str | None, text: str | None, grade: int) -> Expected | None:
    """A context by its id, or by its text if there is no id and the text is not redacted."""
    level = Grade.HIGHLY_RELEVANT if grade >= Grade.HIGHLY_RELEVANT else Grade.RELEVANT
    if name:
        return Expected(name, None, level)
    return Expected(None, text, level) if text and text.strip() and not REDACTED.search(text) else None


def _comments(answer: FailingAnswer, *, by_people: bool) -> Iterator[str]:
    verdict = answer.verdict
    at = datetime.fromtimestamp(verdict.at, UTC)
    yield f"stage at fault {verdict.stage or 'unknown'}, by {verdict.judge}, {at:%Y-%m-%d %H:%M} UTC"
    yield f"relevant by {'people' if by_people else verdict.judge}"
