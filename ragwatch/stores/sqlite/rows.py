"""Rows: core values to and from what SQLite keeps. Texts are compressed; figures stay readable for SQL."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

import orjson

from ragwatch.core.sample import Context, Draw, Sample
from ragwatch.core.scores import Quantity
from ragwatch.core.stage import Stage
from ragwatch.core.verdict import Judged, UnjudgedReason, Verdict
from ragwatch.core.verdict_line import verdict_line
from ragwatch.errors import StoreError
from ragwatch.ports import ScoreRow
from ragwatch.stores.sqlite.texts import damaged

Given = TypeVar("Given")
Made = TypeVar("Made")
_QUANTITIES = frozenset(Quantity)
FAST = 1  # zlib level: 90 us for a 6 KB sample, and most of what level 9 saves


def sound(convert: Callable[[Given], Made]) -> Callable[[Given], Made]:
    """A conversion of what is stored, which may raise anything where that is damaged, as one that says so.

    >>> sound(lambda row: row["seq"])({})
    Traceback (most recent call last):
    ragwatch.errors.StoreError: state: a stored row is damaged: KeyError: 'seq'; restore a copy of the database
    """

    @wraps(convert)
    def checked(given: Given) -> Made:
        try:
            return convert(given)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            why = f"{type(error).__name__}: {error}"
            raise StoreError(f"state: a stored row is damaged: {why}; restore a copy of the database") from error

    return checked


def number(value: Any) -> float:  # noqa: ANN401 - a cell
    """A cell that holds a number. SQLite lets any cell hold anything, and damage makes use of it.

    Raises:
        TypeError: It does not.
    """
    if isinstance(value, float | int):
        return value
    raise TypeError(f"{value!r:.60} is no number")


def text(value: Any) -> str:  # noqa: ANN401 - a cell
    """A cell that holds a text.

    Raises:
        TypeError: It does not.
    """
    if isinstance(value, str):
        return value
    raise TypeError(f"{value!r:.60} is no text")


def pack(value: Mapping[str, Any]) -> bytes:
    """JSON, compressed. Lone surrogates (torn escapes in a log) are legal here, which is why orjson is not used."""
    return zlib.compress(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii"), FAST)


def unpack(body: bytes) -> dict[str, Any]:
    """What `pack` was given.

    Raises:
        StoreError: It is not what was written.
    """
    try:
        value = json.loads(zlib.decompress(body))
    except (zlib.error, ValueError, TypeError) as error:
        raise damaged(error) from error
    if not isinstance(value, dict):
        raise damaged("it is no JSON object")
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


@sound
def score_row(row: tuple[Any, ...]) -> ScoreRow:
    """A row of `SCORE_COLUMNS`. A quantity that only a newer version knows is left to it."""
    seq, key, at, route, judge, version, probability, scores, reason, trace_id = row
    known = None
    try:
        if scores is not None:
            stored = known_scores(orjson.loads(scores))
            known = {Quantity(name): None if value is None else number(value) for name, value in stored}
    except (ValueError, AttributeError, TypeError):
        known, reason = None, UnjudgedReason.DAMAGED
    place = (seq, text(key), number(at), text(route), text(judge), text(version), number(probability))
    return ScoreRow(*place, known, reason, trace_id)


@sound
def draw_of(row: tuple[Any, ...]) -> Draw:
    """A draw from (key, source, route, at, body, probability). One whose text is damaged says so, and has none."""
    key, source, route, at, body, probability = row
    try:
        sample, damage = sample_of(unpack(body)), None
    except (StoreError, LookupError, TypeError) as error:
        sample, damage = Sample(key, None, (), ""), str(error)
    return Draw(text(key), sample, text(source), text(route), number(probability), number(at), damage)


@sound
def newest_of(found: list[tuple[Any, ...]]) -> float | None:
    """The only number of an answer; None where it is NULL."""
    ((value,),) = found
    return None if value is None else number(value)
