"""Samples: the stored verdicts that a request asks for. Parameters are checked one by one; nothing else is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from typing import Any
from urllib.parse import urlencode

from ragwatch.core.scores import Quantity
from ragwatch.core.stage import Stage
from ragwatch.ports import PackedVerdict, Query, Store, StoredVerdict

KEY = re.compile(r"[0-9a-f]{32}")
MOST = 500
FAILING = 10
QUESTION_CHARS = 140
EXCERPT_CHARS = 300
_EXCERPTS = ("id", "question", "answer")
_PARAMETERS = ("route", "stage", "judge", "outcome", "quantity", "below", "above", "since", "until", "limit")
_SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_FAULTY = (Stage.RETRIEVAL, Stage.GENERATION, Stage.ALIGNMENT)


class Outcome(StrEnum):
    """What may have become of a draw."""

    JUDGED = "judged"
    UNJUDGED = "unjudged"


class ParameterError(ValueError):
    """A request asks for something that cannot be; the text names the parameter and what to write instead."""


def query_of(parameters: Iterable[tuple[str, str]], *, now: float) -> Query:
    """The search that a request asks for. Scores lie strictly below and above; answers from `since` on, before `until`.

    Args:
        parameters: Names and values, as they stand in the address.
        now: Seconds since the epoch; `since` and `until` such as `2h` are that long ago.

    >>> found = query_of([("quantity", "faithfulness"), ("below", "0.5"), ("since", "1h")], now=10_000.0)
    >>> found.below, found.since
    (0.5, 6400.0)

    Raises:
        ParameterError: A parameter is unknown, repeated, or has no meaning.
    """
    given: dict[str, str] = {}
    for name, value in parameters:
        if name not in _PARAMETERS:
            raise ParameterError(f"{name}: not a parameter; there are {', '.join(_PARAMETERS)}")
        if name in given:
            raise ParameterError(f"{name}: given twice")
        given[name] = value
    for name in ("below", "above"):
        if name in given and "quantity" not in given:
            raise ParameterError(f"{name}: needs a quantity")
    quantity = _one_of(given, "quantity", Quantity)
    return Query(
        route=given.get("route"),
        judge=given.get("judge"),
        stage=_one_of(given, "stage", Stage),
        outcome=_one_of(given, "outcome", Outcome),
        quantity=None if quantity is None else Quantity(quantity),
        below=_number(given, "below"),
        above=_number(given, "above"),
        since=_moment(given, "since", now),
        until=_moment(given, "until", now),
        limit=_limit(given.get("limit", "50")),
    )


def _one_of(given: Mapping[str, str], name: str, allowed: type[StrEnum]) -> str | None:
    value = given.get(name)
    if value is not None and value not in set(allowed):
        raise ParameterError(f"{name}: not one of {', '.join(allowed)}")
    return value


def _number(given: Mapping[str, str], name: str) -> float | None:
    if name not in given:
        return None
    value = _finite(given[name])
    if value is None:
        raise ParameterError(f"{name}: not a number")
    return value


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def _moment(given: Mapping[str, str], name: str, now: float) -> float | None:
    """An instant: how long ago, in seconds since the epoch, or as ISO 8601 (UTC where it does not say)."""
    if name not in given:
        return None
    text = given[name].strip()
    past, value = span_of(text), _finite(text)
    if past is not None or value is not None:
        return value if past is None else now - past
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise ParameterError(f"{name}: not a time; write 2h or 3d (ago), or 2026-01-31T12:00") from error


def span_of(text: str) -> float | None:
    """A length of time in seconds; None when the text is none.

    >>> span_of("15m"), span_of("1.5h"), span_of("soon")
    (900.0, 5400.0, None)
    """
    match = _SPAN.fullmatch(text)
    return None if match is None else float(match[1]) * _SECONDS[match[2]]


def _limit(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= MOST:
        raise ParameterError(f"limit: not a whole number from 1 to {MOST}")
    return int(text)


def line(found: StoredVerdict) -> dict[str, Any]:
    """A stored verdict as lists in JSON hold it: `sample` is its beginning; what cannot be read says `error`."""
    told = {"verdict": found.verdict, "sample": found.sample}
    return told if found.damage is None else told | {"error": found.damage}


def short(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Id, question and answer of a sample, cut short: those of them that it has.

    >>> short({"id": "r1", "answer": "x" * 1000})["answer"][-2:]
    'x…'
    """
    cut = {name: sample[name] for name in _EXCERPTS if name in sample}
    return {
        name: f"{text[: EXCERPT_CHARS - 1]}…" if len(text or "") > EXCERPT_CHARS else text for name, text in cut.items()
    }


def whole_query_of(parameters: Iterable[tuple[str, str]], *, now: float) -> tuple[Query, bool]:
    """The search of a request for JSON, and whether it wants whole texts (`texts=true`).

    `after` is where the page before ended; only the address in its `next` knows.

    Raises:
        ParameterError: A parameter is unknown, repeated, or has no meaning.
    """
    pairs = list(parameters)
    more = {name: value for name, value in pairs if name in ("texts", "after")}
    query = query_of((each for each in pairs if each[0] not in more), now=now)
    if len(more) < sum(name in more for name, _ in pairs):
        raise ParameterError(f"{min(more)}: given twice")
    if more.get("texts", "false") not in ("true", "false"):
        raise ParameterError("texts: not true or false")
    after = None if "after" not in more else _place(more["after"])
    return replace(query, after=after), more.get("texts") == "true"


def _place(text: str) -> tuple[float, int]:
    at, _, seq = text.partition(",")
    value = _finite(at)
    if value is None or not re.fullmatch(r"[0-9]{1,18}", seq):
        raise ParameterError("after: not a place; take the whole address from `next`")
    return value, int(seq)


def following(pairs: Iterable[tuple[str, str]], query: Query) -> Callable[[PackedVerdict, int], str]:
    """From the last row of a page, and how many it has, to the address of the next page of the same search."""
    kept = [(name, value) for name, value in pairs if name not in ("after", "limit", "since", "until")]
    kept += [(name, repr(at)) for name, at in (("since", query.since), ("until", query.until)) if at is not None]

    def address(last: PackedVerdict, sent: int) -> str:
        place = f"{last.place['at']!r},{last.seq}"
        return f"/api/v1/samples?{urlencode([*kept, ('limit', query.limit - sent), ('after', place)])}"

    return address


def failing(store: Store) -> list[dict[str, Any]]:
    """The newest answers with a stage at fault, newest first, as the overview lists them.

    Raises:
        StoreError: The store cannot be read.
    """
    found = [each for stage in _FAULTY for each in store.summaries(Query(stage=stage, limit=FAILING))]
    newest = sorted(found, key=lambda each: float(each.verdict["at"]), reverse=True)[:FAILING]
    return [_short(each) for each in newest]


def _short(found: StoredVerdict) -> dict[str, Any]:
    verdict = found.verdict
    question = None if found.sample is None else found.sample.get("question")
    if isinstance(question, str) and len(question) > QUESTION_CHARS:
        question = question[: QUESTION_CHARS - 1] + "…"
    return {
        "key": verdict["key"],
        "at": verdict["at"],
        "route": verdict["route"],
        "judge": verdict.get("judge_name"),
        "stage": verdict["stage"],
        "question": question,
        **({} if found.damage is None else {"error": found.damage}),
    }
