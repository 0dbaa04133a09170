"""Rows: core values to and from what SQLite keeps. Texts are compressed; figures stay readable for SQL."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import orjson

from ragwatch.core.sample import Context, Draw, Sample
from ragwatch.core.scores import Quantity
from ragwatch.core.stage import Stage
from ragwatch.core.verdict import Judged, Verdict
from ragwatch.core.verdict_line import verdict_line
from ragwatch.errors import StoreError
from ragwatch.ports import ScoreRow

_QUANTITIES = frozenset(Quantity)
FAST = 1  # zlib level: 90 us for a 6 KB sample, and most of what level 9 saves


def pack(value: Mapping[str, Any]) -> bytes:
    """JSON, compressed. Lone surrogates (torn escapes in a log) are legal here, which is why orjson is not used."""
    return zlib.compress(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii"), FAST)


def unpack(body: bytes) -> dict[str, Any]:
    """What `pack` was given.

    Raises:
        StoreError: It is not what was written.
    """
    try:
        value: dict[str, Any] = json.loads(zlib.decompress(body))
    except (zlib.error, ValueError) as error:
        raise StoreError(f"state: a stored text is damaged: {error}; restore a copy of the database") from error
    return value


def sample_of(record: Mapping[str, Any]) -> Sample:
    """The sample that was stored as this canonical record."""
    return Sample(
        id=record["id"],
        question=record["question"],
        contexts=tuple(Context(text=each["text"], id=each["id"], score=each["score"]) for each in record["contexts"]),
        answer=record["answer"],
        at=record["at"],
        route=record["route"],
        metadata=record["metadata"],
        reference=record["reference"],
    )


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """Columns of table `verdicts`."""
    draw, line = verdict.draw, verdict_line(verdict)
    judged = isinstance(verdict, Judged)
    return {
        "key": draw.key,
        "judge": verdict.reading.judge,
        "version": verdict.reading.version,
        "at": draw.at,
        "route": draw.route,
        "probability": draw.probability,
        "outcome": line["outcome"],
        "reason": line["reason"],
        "stage": line["stage"],
        "fault": line["fault"],
        "failing": int(not judged or line["stage"] not in (None, Stage.NONE)),
        "scores": orjson.dumps(line["scores"]).decode() if judged else None,
        "trace_id": draw.sample.trace_id,
        "line": pack(line),
    }


def known_scores(scores: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Names and values of the quantities that there are: what is stored may be of a newer version."""
    return [(name, value) for name, value in scores.items() if name in _QUANTITIES]


SCORE_COLUMNS = "seq, key, at, route, judge, version, probability, scores, reason, trace_id"


def score_row(row: tuple[Any, ...]) -> ScoreRow:
    """A row of `SCORE_COLUMNS`. A quantity that only a newer version knows is left to it."""
    seq, key, at, route, judge, version, probability, scores, reason, trace_id = row
    known = None if scores is None else {Quantity(name): value for name, value in known_scores(orjson.loads(scores))}
    return ScoreRow(seq, key, at, route, judge, version, probability, known, reason, trace_id)


def draw_of(row: tuple[Any, ...]) -> Draw:
    """A draw from (key, source, route, at, body, probability)."""
    key, source, route, at, body, probability = row
    return Draw(key, sample_of(unpack(body)), source, route, probability, at)
