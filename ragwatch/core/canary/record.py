"""Records: a canary and its report as plain JSON values, and back, so that a store need not know what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragwatch.core.canary.definition import (
    KEPT_CHARS,
    Canary,
    Category,
    Direction,
    Expected,
    Failure,
    Grade,
    Hit,
    Retrieved,
)
from ragwatch.core.canary.report import CanaryOutcome, CanaryReport
from ragwatch.core.ranking import Ranking


def to_record(found: CanaryReport) -> dict[str, Any]:
    """The report as JSON values. Of each passage's text it keeps `KEPT_CHARS` characters, of an answer all."""
    return {
        "canary": _canary_record(found.canary),
        "at": found.at,
        "cutoff": found.cutoff,
        "outcome": str(found.outcome),
        "failure": _word(found.failure),
        "met": None if found.ranking is None else [list(hit) for hit in found.ranking.hits],
        "retrieved": {
            "hits": [[hit.id, hit.text and hit.text[:KEPT_CHARS], hit.score] for hit in found.retrieved.hits],
            "direction": _word(found.retrieved.direction),
            "seconds": found.retrieved.seconds,
            "failure": _word(found.retrieved.failure),
            "detail": found.retrieved.detail,
            "answer": found.retrieved.answer,
        },
    }


def from_record(record: Mapping[str, Any]) -> CanaryReport:
    """The report that `to_record` wrote; long texts of passages are cut.

    Raises:
        KeyError, ValueError, TypeError: The record is not one of ours.
    """
    canary, retrieved = _canary(record["canary"]), record["retrieved"]
    hits, direction, failure = record["met"], retrieved["direction"], retrieved["failure"]
    return CanaryReport(
        canary,
        record["at"],
        record["cutoff"],
        Retrieved(
            tuple(Hit(*hit) for hit in retrieved["hits"]),
            None if direction is None else Direction(direction),
            retrieved["seconds"],
            None if failure is None else Failure(failure),
            retrieved["detail"],
            retrieved["answer"],
        ),
        CanaryOutcome(record["outcome"]),
        None if record["failure"] is None else Failure(record["failure"]),
        None if hits is None else Ranking(tuple(int(each.grade) for each in canary.expected), tuple(map(tuple, hits))),
    )


def _canary_record(canary: Canary) -> dict[str, Any]:
    return {
        "name": canary.name,
        "query": canary.query,
        "expected": [[each.id, each.text, int(each.grade)] for each in canary.expected],
        "category": str(canary.category),
        "min_relevance_score": canary.min_relevance_score,
        "min_recall": canary.min_recall,
        "reference": canary.reference,
        "tags": list(canary.tags),
    }


def _canary(record: Mapping[str, Any]) -> Canary:
    return Canary(
        record["name"],
        record["query"],
        tuple(Expected(name, text, Grade(grade)) for name, text, grade in record["expected"]),
        Category(record["category"]),
        record["min_relevance_score"],
        record["min_recall"],
        record["reference"],
        tuple(record["tags"]),
    )


def _word(value: object) -> str | None:
    return None if value is None else str(value)
