"""Decodes stored verdicts, traits, runs and labels. The columns of a verdict come in the order of `VERDICT_COLUMNS`."""

from __future__ import annotations

import orjson

from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.ports import PackedVerdict, ScoreRow, StoredRun, StoredVerdict
from ragwatch.statistics.causes.traits import Traits
from ragwatch.statistics.labels.label import Label, from_record
from ragwatch.statistics.verdict_line import parse_verdict_line
from ragwatch.stores.rows import ScoreCells, criteria_in, known_scores, number, raises_store_error, score_row, text
from ragwatch.stores.texts import PackedText, damaged_text, excerpt, unpack

VERDICT_COLUMNS = (
    "seq",
    "key",
    "judge",
    "version",
    "at",
    "route",
    "probability",
    "outcome",
    "reason",
    "stage",
    "fault",
    "scores",
    "trace_id",
)
_TRACE_CHARS = 256


@raises_store_error
def verdict_of(row: tuple[*tuple[object, ...], bytes, bytes | None]) -> StoredVerdict:
    """Decode `VERDICT_COLUMNS`, line and sample. A damaged text is left out and reported in `damage`."""
    *columns, packed_line, body = row
    damage: list[str] = []
    extra_fields = _extra_fields(columns)
    try:
        line = {**unpack(packed_line), **extra_fields}
        verdict = parse_verdict_line(line)
    except (StoreError, ValueError) as error:
        damage.append(str(error if isinstance(error, StoreError) else damaged_text(error)))
        line = line_from_columns(columns)
        verdict = parse_verdict_line(line)
    sample = None
    try:
        sample = None if body is None else unpack(body)
    except StoreError as error:
        damage.append(str(error))
    return StoredVerdict(verdict, line, sample, damage[0] if damage else None)


@raises_store_error
def summary_of(row: tuple[object, ...]) -> StoredVerdict:
    """Decode `VERDICT_COLUMNS`, beginning of the line, whether there is a sample, and its beginning."""
    *columns, packed_line, has_sample, body = row
    sample, damage = None, None
    line = line_from_columns(columns)
    try:
        line["id"] = excerpt(packed_line).get("id", line["id"])
        sample = excerpt(body) if has_sample else None
    except StoreError as error:
        damage = str(error)
    verdict = parse_verdict_line(line)
    return StoredVerdict(verdict, {name: value for name, value in line.items() if value != []}, sample, damage)


@raises_store_error
def packed_verdict_of(row: tuple[int, *tuple[object, ...], bytes, bytes | None]) -> PackedVerdict:
    """Decode `VERDICT_COLUMNS`, line and sample, without decompressing these."""
    *columns, line, body = row
    sample = None if body is None else PackedText(body)
    bare = line_from_columns(columns)
    return PackedVerdict(
        seq=int(row[0]),
        verdict=parse_verdict_line(bare),
        place=_extra_fields(columns),
        bare=bare,
        line=PackedText(line),
        sample=sample,
    )


def _extra_fields(columns: list[object]) -> dict[str, object]:
    """Return the fields beyond the verdict line of the contract."""
    _, key, judge, _, at, route, probability, *_, trace_id = columns
    trace_id = trace_id if trace_id is None else str(trace_id)[:_TRACE_CHARS]
    return {
        "key": text(key),
        "judge_name": text(judge),
        "route": text(route),
        "at": number(at),
        "probability": number(probability),
        "trace_id": trace_id,
    }


def line_from_columns(columns: list[object]) -> dict[str, object]:
    """Rebuild a verdict line from its columns, without texts, for a line that is damaged or too large to show."""
    _, key, _, version, _, _, _, outcome, reason, stage, fault, scores, _ = columns
    stored = _stored(scores)
    names = criteria_in(stored)
    criteria = {"criteria": [{"name": name, "answer": None, "quote": None} for name in names]} if names else {}
    unknown = dict.fromkeys(("seconds", "input_tokens", "output_tokens", "cost_usd"))
    return {
        "id": key,
        "outcome": outcome,
        "reason": reason,
        "scores": dict.fromkeys(map(str, Quantity)) | dict(known_scores(stored)),
        "stage": stage,
        "fault": fault,
        "claims": [],
        "contexts": [],
        "missing": [],
        "address": None,
        "reference": None,
        **criteria,
        "judge": {"kind": "", "version": version, **unknown},
        **_extra_fields(columns),
    }


def _stored(packed: object) -> dict[str, object]:
    try:
        stored = orjson.loads(packed) if isinstance(packed, str | bytes) else {}
    except ValueError:
        return {}
    return stored if isinstance(stored, dict) else {}


@raises_store_error
def run_of(row: tuple[str, str, float, object, bytes]) -> StoredRun:
    """Decode (kind, name, at, failing, body)."""
    kind, name, at, failing, body = row
    return StoredRun(kind, name, at, bool(failing), unpack(body))


@raises_store_error
def label_of(row: tuple[bytes, *tuple[object, ...]]) -> Label:
    """Decode a row that begins with the body of a label."""
    record = unpack(row[0])
    try:
        known = known_scores({**record["scores"], "criteria": record.get("criteria")})
        return from_record({**record, "scores": dict(known)})
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise damaged_text(error) from error


@raises_store_error
def answer_of(row: tuple[*ScoreCells, bytes | None]) -> tuple[ScoreRow, Traits | None]:
    """Decode a row of `queries.answers_statement`; damaged traits are None, as if there were none."""
    body, traits = row[-1], None
    if body is not None:
        try:
            traits = unpack(body)
        except StoreError:
            traits = None
    return score_row(row[:-1]), traits
