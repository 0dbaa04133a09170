"""Conversion between values and database rows. Texts are compressed; figures stay readable for SQL."""

import hashlib
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

import orjson

from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity, is_quantity_name, quantity_of
from ragwatch.model.sample import OTHER, Context, Draw, RelevantContext, Role, Sample, SampleRecord, Turn
from ragwatch.model.stages import Stage
from ragwatch.ports import PackedVerdict, ScoreRow, StoredVerdict
from ragwatch.statistics.segments import NO_STEP
from ragwatch.statistics.verdict import Judged, UnjudgedReason, Verdict
from ragwatch.statistics.verdict_line import VerdictLine, parse_verdict_line, verdict_line
from ragwatch.stores.texts import PackedText, damaged_text, excerpt, pack, unpack

Stored = TypeVar("Stored")
Value = TypeVar("Value")
_QUANTITIES = frozenset(Quantity)
_STAGES = frozenset(Stage)
_MAX_STEPS, _MAX_STEP_CHARS = 16, 64  # of one answer; of one name


def raises_store_error(convert: Callable[[Stored], Value]) -> Callable[[Stored], Value]:
    """Decorate a conversion of stored values to raise `StoreError` on damaged ones.

    >>> raises_store_error(lambda row: row["seq"])({})
    Traceback (most recent call last):
    ragwatch.errors.StoreError: state: a stored row is damaged: KeyError: 'seq'; restore a copy of the database
    """

    @wraps(convert)
    def wrapper(stored: Stored) -> Value:
        try:
            return convert(stored)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            details = f"{type(error).__name__}: {error}"
            raise StoreError(f"state: a stored row is damaged: {details}; restore a copy of the database") from error

    return wrapper


def number(value: object) -> float:
    """Return a value that must be a number (`TypeError`), because SQLite does not enforce column types."""
    if isinstance(value, float | int):
        return value
    raise TypeError(f"{value!r:.60} is not a number")


def text(value: object) -> str:
    """Return a value that must be a text (`TypeError`)."""
    if isinstance(value, str):
        return value
    raise TypeError(f"{value!r:.60} is not a text")


def sample_of(record: SampleRecord) -> Sample:
    """Build a sample from its stored canonical record. Version 0.1.0 stored no history."""
    relevant = None
    if "relevant_ids" in record:
        by_id = (RelevantContext(one["id"], None, one["grade"]) for one in record["relevant_ids"])
        relevant = (*by_id, *(RelevantContext(None, one["text"], one["grade"]) for one in record["relevant_texts"]))
    return Sample(
        id=record["id"],
        question=record["question"],
        contexts=tuple(
            Context(one["text"], one["id"], one["score"], one.get("step"), one.get("updated_at"))
            for one in record["contexts"]
        ),
        answer=record["answer"],
        at=record["at"],
        route=record["route"],
        metadata=record["metadata"],
        reference=record["reference"],
        history=tuple(Turn(Role(turn["role"]), turn["text"]) for turn in record.get("history", ())),
        relevant=relevant,
    )


# Beside the names of quantities, which older versions look for.
_SEGMENTS, _CRITERIA, _LANGUAGE, STEPS = "segments", "criteria", "language", "_steps"


def verdict_row(verdict: Verdict, *, rejudged: bool = False) -> dict[str, Any]:
    """Return the columns of table `verdicts` for a verdict, with the mark of a reading again if it is `rejudged`."""
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
        "scores": _scores(line, draw, rejudged=rejudged) if judged else None,
        "trace_id": draw.sample.trace_id,
        "line": pack(line),
    }


def _scores(line: VerdictLine, draw: Draw, *, rejudged: bool) -> str:
    extra = {
        _SEGMENTS: {key: value for key, value in draw.segments if value is not None},
        _CRITERIA: [reading["name"] for reading in line.get("criteria", ())],
        _LANGUAGE: line.get("language"),
        STEPS: _steps(line, draw),
    }
    mark = {"rejudged": True} if rejudged else {}  # at the begin: see `dialect.REJUDGED_MARK`
    return orjson.dumps({**mark, **line["scores"], **{name: value for name, value in extra.items() if value}}).decode()


def _steps(line: VerdictLine, draw: Draw) -> dict[str, list[int]]:
    """Numbers of contexts that each retrieval step returned, and of those used; nothing where either is unknown."""
    names = [context.step for context in draw.sample.contexts]
    steps: dict[str, list[int]] = {}
    if any(names) and line["scores"].get(Quantity.CONTEXT_USE) is not None:
        for name, context in zip(names, line["contexts"], strict=True):
            known = (name or NO_STEP)[:_MAX_STEP_CHARS]
            numbers = steps.setdefault(known if known in steps or len(steps) < _MAX_STEPS else OTHER, [0, 0])
            numbers[0] += 1
            numbers[1] += bool(context["used"])
    return steps


def known_scores(scores: Mapping[str, object]) -> list[tuple[str, object]]:
    """Return names and values of the quantities that this version supports: a newer one may have stored more."""
    criteria = criteria_in(scores)
    return [(name, value) for name, value in scores.items() if name in _QUANTITIES or name in criteria]


def criteria_in(scores: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of criteria among stored scores."""
    names = scores.get(_CRITERIA)
    known = names if isinstance(names, list) else []
    return tuple(name for name in known if isinstance(name, str) and is_quantity_name(name))


SCORE_COLUMNS = (
    "v.seq, v.key, v.at, v.route, v.judge, v.version, v.probability, CAST(v.scores AS text), v.reason, v.trace_id,"
    " v.stage"
)


@raises_store_error
def score_row(row: tuple[Any, ...]) -> ScoreRow:
    """Decode a row of `SCORE_COLUMNS`. Quantities of a newer version are ignored."""
    seq, key, at, route, judge, version, probability, scores, reason, trace_id, stage = row
    decoded = None
    segments: dict[str, str] = {}
    language = None
    try:
        if scores is not None:
            values = orjson.loads(scores)
            stored = known_scores(values)
            named, language = values.get(_SEGMENTS), values.get(_LANGUAGE)
            if isinstance(named, dict):
                segments = {key: value for key, value in named.items() if isinstance(value, str)}
            decoded = {quantity_of(name): None if value is None else number(value) for name, value in stored}
    except (ValueError, AttributeError, TypeError):
        decoded, reason = None, UnjudgedReason.DAMAGED
    return ScoreRow(
        seq=seq,
        key=text(key),
        at=number(at),
        route=text(route),
        judge=text(judge),
        version=text(version),
        probability=number(probability),
        scores=decoded,
        reason=reason,
        trace_id=trace_id,
        stage=Stage[stage.upper()] if stage in _STAGES else None,
        segments=segments,
        language=language if isinstance(language, str) else None,
    )


@raises_store_error
def draw_of(row: tuple[Any, ...]) -> Draw:
    """Decode (key, source, route, at, body, probability). A damaged text sets `damage`, and the sample is empty."""
    key, source, route, at, body, probability = row
    try:
        sample, damage = sample_of(unpack(body)), None
    except (StoreError, LookupError, TypeError) as error:
        sample, damage = Sample(key, None, (), ""), str(error)
    return Draw(
        key=text(key),
        sample=sample,
        source=text(source),
        route=text(route),
        probability=number(probability),
        at=number(at),
        damage=damage,
    )


@raises_store_error
def single_number(result: list[tuple[object, ...]]) -> float | None:
    """Return the only number of a result; None if it is NULL."""
    ((value,),) = result
    return None if value is None else number(value)


def digest(identity: str) -> bytes:
    """Digest of the id of a record."""
    return hashlib.blake2b(identity.encode("utf-8", "replace"), digest_size=16).digest()


VERDICT_COLUMNS = (
    "v.seq, v.key, v.judge, v.version, v.at, v.route, v.probability, v.outcome, v.reason, v.stage, v.fault,"
    " CAST(v.scores AS text), v.trace_id"
)
_TRACE_CHARS = 256


@raises_store_error
def verdict_of(row: tuple[Any, ...]) -> StoredVerdict:
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
def packed_verdict_of(row: tuple[Any, ...]) -> PackedVerdict:
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
