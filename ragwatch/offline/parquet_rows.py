"""Columns of exported verdicts, and the conversion of stored verdicts to rows. What is unknown is null."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ragwatch.model.quantities import Quantity, ReferenceQuantity
from ragwatch.model.sample import SampleRecord, value_at
from ragwatch.model.stages import Stage
from ragwatch.statistics.verdict_line import ClaimRecord, VerdictRecord
from ragwatch.stores.days import DayVerdict
from ragwatch.stores.kept_texts import Texts

Redact = Callable[[str], str]

SCHEMA_VERSION = 1
"""It increases when a column is renamed, removed or changes its meaning; added columns do not change it."""


class Column(NamedTuple):
    """A column, or a field of the objects in one, whose type is then a tuple of such fields. Required: never null."""

    name: str
    type: str | tuple[Column, ...]
    meaning: str
    required: bool = False


CLAIM = (
    Column("verdict", "string", "`supported`, `contradicted`, `not_in_context` ..."),
    Column("support", "double", "probability that the contexts support it"),
    Column("contexts", "list<int32>", "positions of the contexts that support it, from 0"),
    Column("joint", "bool", "whether only these contexts together support it"),
    Column("said_by_user", "bool", "whether it repeats the user, so that no score counts it"),
    Column("facts", "int32", "number of facts it counts for"),
    Column("start_char", "int32", "place of its first character in the answer"),
    Column("end_char", "int32", "place after its last character"),
    Column("text", "string", "the claim (with `--texts`)"),
    Column("evidence", "string", "the sentence that supports or contradicts it (with `--texts`)"),
)
CONTEXT = (
    Column("id", "string", "its id in the log"),
    Column("relevant", "bool", "whether it is relevant to the question"),
    Column("used", "bool", "whether a claim uses it"),
    Column("relevance", "double", "relevance in [0, 1], where the judge gives a number"),
    Column("score", "double", "score of the retriever"),
    Column("text", "string", "the passage (with `--texts`)"),
)
COLUMNS = (
    Column("seq", "int64", "number of the verdict in the order of settlement", required=True),
    Column("key", "string", "identity of the answer: a hash of its source and id", required=True),
    Column("id", "string", "id of the answer in the log", required=True),
    Column("source", "string", "name of the source"),
    Column("answered_at", "timestamp", "time of the answer (UTC)", required=True),
    Column("judge", "string", "name of the judge", required=True),
    Column("judge_kind", "string", "kind of the judge"),
    Column("judge_version", "string", "version of the judge; scores of two versions are not comparable", required=True),
    Column("probability", "double", "inclusion probability; 1 / probability is the weight", required=True),
    Column("outcome", "string", "`judged` or `unjudged`", required=True),
    Column("reason", "string", "why it is unjudged"),
    Column("stage", "string", "stage at fault, `none` for a good answer"),
    Column("fault", "string", "why the top-ranked context was not used"),
    *(Column(str(quantity), "double", "score in [0, 1]") for quantity in Quantity),
    *(Column(f"expected_{quantity}", "double", "calibrated expectation of the score") for quantity in Quantity),
    *(Column(str(quantity), "double", "score by the reference, in [0, 1]") for quantity in ReferenceQuantity),
    Column("criteria", "map<string, double>", "score by name of a criterion, without unknown ones"),
    Column("address", "string", "how the answer addresses the question"),
    Column("unread", "string", "why its claims could not be read"),
    Column("claims", CLAIM, "claims of the answer, in order"),
    Column("contexts", CONTEXT, "contexts, best-ranked first"),
    Column("judge_seconds", "double", "duration of the reading"),
    Column("input_tokens", "int64", "tokens sent"),
    Column("output_tokens", "int64", "tokens received"),
    Column("cost_usd", "double", "cost of the calls in US dollars"),
    Column("trace_id", "string", "trace of the request"),
    Column("metadata", "map<string, string>", "metadata values of the keys named with `--metadata`"),
    Column("question", "string", "the question (with `--texts`)"),
    Column("answer", "string", "the answer (with `--texts`)"),
    Column("reference", "string", "the known good answer (with `--texts`)"),
    Column("missing", "list<string>", "what the question needs and no context contains (with `--texts`)"),
    Column("damaged", "bool", "whether stored texts are damaged, so that only columns are known", required=True),
)


@dataclass(frozen=True, slots=True)
class RowRules:
    """What rows contain."""

    redact: Redact | None = None  # redacts a text; None to export no texts
    kept: str = Texts.ALL  # of which answers the store may keep texts and metadata (`store.texts`)
    metadata: tuple[str, ...] = ()  # keys or paths of the metadata values to export

    def allow(self, verdict: VerdictRecord) -> bool:
        """Whether texts of an answer may be exported, also if the store has not deleted them yet."""
        if self.kept == Texts.FAILING:
            return verdict.judged and verdict.stage not in (None, Stage.NONE)
        return self.kept == Texts.ALL


def row_of(item: DayVerdict, rules: RowRules) -> dict[str, object]:
    """Convert a stored verdict to values by column. Those that are unknown are None, never 0."""
    verdict, judge = item.stored.verdict, item.stored.verdict.read_by
    allowed = rules.allow(verdict)
    sample: SampleRecord = (item.stored.sample if allowed else None) or {}
    redact = rules.redact if allowed else None
    read = verdict.judged and item.stored.damage is None
    return {
        "seq": item.seq,
        "key": verdict.key,
        "id": _valid(verdict.id),
        "source": _valid(item.source),
        "answered_at": round(verdict.at * 1e6),
        "judge": verdict.judge,
        "judge_kind": judge.kind or None,
        "judge_version": judge.version,
        "probability": verdict.probability,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "stage": verdict.stage,
        "fault": verdict.fault,
        **{str(quantity): _number(verdict.scores.get(quantity)) for quantity in Quantity},
        **{str(quantity): _number(verdict.reference.get(quantity)) for quantity in ReferenceQuantity},
        "criteria": _criteria(verdict),
        "address": verdict.address,
        "unread": verdict.unread,
        "claims": [_claim(claim, redact) for claim in verdict.claims] if read else None,
        "contexts": list(_contexts(verdict, sample.get("contexts") or (), redact)) if read else None,
        "judge_seconds": _number(judge.seconds),
        "input_tokens": judge.input_tokens,
        "output_tokens": judge.output_tokens,
        "cost_usd": _number(judge.cost_usd),
        "trace_id": _valid(verdict.trace_id),
        "metadata": _metadata(sample.get("metadata") or {}, rules.metadata) if sample else None,
        "question": _text(sample.get("question"), redact),
        "answer": _text(sample.get("answer"), redact),
        "reference": _text(sample.get("reference"), redact),
        "missing": [_text(text, redact) for text in verdict.missing] if redact is not None and read else None,
        "damaged": item.stored.damage is not None,
    }


def _claim(claim: ClaimRecord, redact: Redact | None) -> dict[str, object]:
    return {
        "verdict": str(claim.verdict),
        "support": _number(claim.support),
        "contexts": list(claim.contexts),
        "joint": claim.joint,
        "said_by_user": claim.said_by_user,
        "facts": claim.facts,
        "start_char": claim.start,
        "end_char": claim.end,
        "text": _text(claim.text or None, redact),  # empty where the store has deleted it
        "evidence": _text(claim.evidence, redact),
    }


def _contexts(
    verdict: VerdictRecord, stored: Sequence[Mapping[str, object]], redact: Redact | None
) -> Iterator[dict[str, object]]:
    for rank, context in enumerate(verdict.contexts):
        passage = stored[rank] if rank < len(stored) else {}
        yield {
            "id": _valid(context.id),
            "relevant": context.relevant,
            "used": context.used,
            "relevance": _number(context.relevance),
            "score": _number(passage.get("score")),
            "text": _text(passage.get("text"), redact),
        }


def _text(text: object, redact: Redact | None) -> str | None:
    """Redact a text; None if it is unknown or not exported."""
    return _valid(redact(text)) if redact is not None and isinstance(text, str) else None


def _valid(text: str | None) -> str | None:
    """Replace lone surrogates, which truncated escapes in a log produce: they cannot be encoded."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, float | int) and math.isfinite(value) else None


def _criteria(verdict: VerdictRecord) -> list[tuple[str, float]] | None:
    known = ((quantity, _number(score)) for quantity, score in verdict.scores.items() if quantity.is_criterion)
    return [(str(quantity), score) for quantity, score in known if score is not None] or None


def _metadata(metadata: Mapping[str, object], keys: Sequence[str]) -> list[tuple[str, str]] | None:
    if not keys:
        return None
    texts = []
    for key in keys:
        if (value := value_at(metadata, key)) is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            texts.append((key, _valid(text) or ""))
    return texts
