"""Reads labels from the rows of a file, for `ragwatch label --import`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping

from ragwatch.core.evidence import ClaimVerdict
from ragwatch.core.labels.label import Label, parse_label
from ragwatch.core.labels.selection import scores_of
from ragwatch.core.sampling import key_of
from ragwatch.model.quantities import Quantity, quantity_of


def parse_row(line: bytes) -> object:
    """Decode the JSON value in a line. Raises `ValueError` if it is not JSON; the message says why."""
    try:
        return json.loads(line.strip())
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg.removesuffix(' at')} at character {error.pos}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def label_record(row: object, annotator: str, now: float, quantities: Collection[Quantity]) -> dict[str, object]:
    """Convert a row of an imported file to the record of a label.

    Args:
        row: Has `key`, or `source` and `id`; `scores`, `claims` or both; the other fields of a label are optional.
        annotator: Used if the row names none.
        now: Used if the row has no time, in seconds since the epoch.
        quantities: Quantities of ragwatch and configured criteria.

    Raises:
        ValueError: The row is not a label; the message says why.
    """
    if not isinstance(row, dict):
        raise ValueError('is no JSON object; write {"key": ..., "scores": {...}}')  # noqa: TRY004 - as for all rows
    claims = tuple(_claims(row))
    probability, revoked, owner = (row.get(name) for name in ("probability", "revoked", "owner"))
    label = Label(
        key=_key(row),
        annotator=_text("annotator", row.get("annotator") or annotator),
        at=now if row.get("at") is None else _number("at", row["at"]),
        scores={**scores_of(claims, {}), **dict(_scores(row, quantities))},
        claims=claims,
        probability=None if probability is None else _number("probability", probability),
        note=str(row.get("note") or ""),
        owner=None if owner is None else _text("owner", owner),  # this and the others below are those of an export
        without={name: _number("without", value) for name, value in _object(row, "without").items()},
        revoked=None if revoked is None else _number("revoked", revoked),
        earlier=tuple(_earlier(row)),
    )
    return parse_label(label.to_record(), now).to_record()


def _key(row: Mapping[str, object]) -> str:
    if "key" in row:
        return _text("key", row["key"])
    if "source" not in row or "id" not in row:
        raise ValueError("names no answer; give its `key`, or `source` and `id`")
    return key_of(_text("source", row["source"]), _text("id", row["id"]))


def _text(name: str, value: object) -> str:
    """A text, or a whole number as text: ids are logged as both."""
    if (isinstance(value, str) and value) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise ValueError(f"{name}: {value!r:.60} is no text; write a text")


def _number(name: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: {value!r:.60} is no number; write a number") from error


def _object(row: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = row.get(name)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"{name}: {value!r:.60} is no JSON object")
    return value or {}


def _list(row: Mapping[str, object], name: str) -> list[object]:
    value = row.get(name)
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{name}: {value!r:.60} is no list")
    return value or []


def _scores(row: Mapping[str, object], quantities: Collection[Quantity]) -> Iterator[tuple[Quantity, float]]:
    for name, score in _object(row, "scores").items():
        if name not in quantities:
            raise ValueError(f"scores: {name!r:.60} is no quantity; use one of: {', '.join(quantities)}")
        yield quantity_of(name), _number(f"scores.{name}", score)


def _claims(row: Mapping[str, object]) -> Iterator[ClaimVerdict | None]:
    for verdict in _list(row, "claims"):
        if verdict is not None and verdict not in list(ClaimVerdict):
            raise ValueError(f"claims: {verdict!r:.60} is not known; use one of: {', '.join(ClaimVerdict)}, or null")
        yield None if verdict is None else ClaimVerdict(str(verdict))


def _earlier(row: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for record in _list(row, "earlier"):
        if not isinstance(record, dict):
            raise ValueError(f"earlier: {record!r:.60} is no JSON object")  # noqa: TRY004 - the same
        yield record
