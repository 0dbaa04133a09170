"""Builds the form of a sample that a person labels, and reads what the person has chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict, TypeVar

from ragwatch.core.evidence import ClaimVerdict
from ragwatch.core.labels.label import Label
from ragwatch.core.labels.questions import CLAIM, HOLDS, NAMES, REPLIES, LabelTask, TaskClaim, label_questions
from ragwatch.core.labels.selection import scores_of
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.web.sample_page import (
    ANSWER_CHARS,
    CONTEXT_CHARS,
    MAX_CLAIMS,
    MAX_CONTEXTS,
    QUOTE_CHARS,
    MarkedClaim,
    asked,
    cut,
    segments,
)
from ragwatch.web.samples import ParameterError, shortened

Meaning = TypeVar("Meaning")
MAX_NOTE_CHARS = 1000  # in a form, whose length is limited
_COUNTED = 10_000  # claims of one answer
CRITERION = "criterion."  # prefix of the names of fields
CALIBRATING = (Quantity.FAITHFULNESS, Quantity.TOP_RANKED_IGNORED)
"""What is asked about an answer to calibrate levels: two questions, so that fifty answers take a quarter of an hour."""


class AnswerPart(TypedDict):
    """A part of an answer, with the numbers of the claims that it belongs to and of those that end with it."""

    text: str
    claims: list[int]
    ends: list[int]


def task_view(task: LabelTask, *, calibrating: bool = False) -> dict[str, object]:
    """Builds the data of the page for one sample: its texts, with the claims marked, and the questions.

    When calibrating, only the questions of `CALIBRATING` are asked, about the answer as a whole.
    """
    sample = task["sample"]
    claims = [] if calibrating else task["claims"]
    return {
        "key": task["key"],
        "route": task["route"],
        **asked(sample),
        "answer": list(_marked(sample["answer"][:ANSWER_CHARS], claims[:MAX_CLAIMS])),
        "contexts": [
            {
                "rank": rank,
                "id": None if context.get("id") is None else shortened(str(context["id"]), QUOTE_CHARS),
                "body": cut(context["text"], CONTEXT_CHARS),
            }
            for rank, context in enumerate(sample["contexts"][:MAX_CONTEXTS], start=1)
        ],
        "contexts_left_out": max(0, len(sample["contexts"]) - MAX_CONTEXTS),
        "claims": len(claims),
        "claims_left_out": max(0, len(claims) - MAX_CLAIMS),
        "questions": list(_questions(task, claims, CALIBRATING if calibrating else None)),
        "note_chars": MAX_NOTE_CHARS,
    }


def _marked(answer: str, claims: Sequence[TaskClaim]) -> Iterator[AnswerPart]:
    """Parts of an answer, each with the numbers of the claims that it belongs to; all claims are marked alike."""
    alike: list[MarkedClaim] = [
        {"number": number, "start": claim["start"], "end": claim["end"], "verdict": ClaimVerdict.SUPPORTED}
        for number, claim in enumerate(claims, start=1)
    ]
    start = 0
    for part in segments(answer, alike):
        end = start + len(part["text"])
        places = ((claim["number"], claim["start"], claim["end"]) for claim in alike)
        inside = [
            number
            for number, first, last in places
            if first is not None and last is not None and first <= start and end <= last
        ]
        yield {"text": part["text"], "claims": inside, "ends": [claim["number"] for claim in part["ends"]]}
        start = end


def _questions(
    task: LabelTask, claims: Sequence[TaskClaim], quantities: Sequence[Quantity] | None
) -> Iterator[dict[str, object]]:
    for number, claim in enumerate(claims[:MAX_CLAIMS], start=1):
        yield {
            "name": f"c{number}",
            "claim": number,
            "text": shortened(claim["text"], QUOTE_CHARS),
            "replies": NAMES["claim"],
        }
    criteria = [(one["name"], one["question"]) for one in task.get("criteria", ())]
    has_contexts = bool(task["sample"]["contexts"])
    for question in label_questions(has_claims=bool(claims), has_contexts=has_contexts, criteria=criteria):
        if quantities is not None and question.quantity not in quantities:
            continue
        prefix = CRITERION if question.quantity.is_criterion else ""
        yield {
            "name": f"{prefix}{question.quantity}",
            "claim": None,
            "text": question.text,
            "replies": NAMES[question.kind],
        }


def label_record(values: Mapping[str, str], *, key: str, annotator: str, at: float) -> dict[str, object]:
    """Reads the label in the fields of a form, as a record. A question without a reply is skipped.

    Raises:
        ParameterError: A field has a value that the form does not offer.
    """
    count = values.get("claims", "0")
    if not (count.isascii() and count.isdigit() and int(count) <= _COUNTED):
        raise ParameterError("claims: not the number of claims of an answer; reload the page")
    claims = tuple(_reply(values, f"c{number}", CLAIM) for number in range(1, int(count) + 1))
    scores: dict[Quantity, float] = {}
    for name in values:
        is_criterion = name.startswith(CRITERION)
        if is_criterion or name in REPLIES:
            score = _reply(values, name, HOLDS if is_criterion else REPLIES[name])
            if score is not None:
                scores[quantity_of(name.removeprefix(CRITERION))] = score
    note = values.get("note", "").replace("\r\n", "\n")
    if len(note) > MAX_NOTE_CHARS:
        raise ParameterError(f"note: more than {MAX_NOTE_CHARS} characters")
    return Label(key, annotator, at, scores_of(claims, scores), claims, note=note).to_record()


def _reply(values: Mapping[str, str], name: str, meanings: Mapping[str, Meaning | None]) -> Meaning | None:
    reply = values.get(name)
    if reply is None:
        return None
    if reply not in meanings:
        raise ParameterError(f"{name[:50]}: not one of {', '.join(meanings)}; reload the page")
    return meanings[reply]
