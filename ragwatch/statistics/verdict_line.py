"""Verdict line: one verdict as a JSON object, as `ragwatch judge` prints it and the store keeps it; both directions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NotRequired, TypedDict

from ragwatch.model.evidence import Cell, Claim, ClaimVerdict, CriterionAnswer, CriterionReading, Evidence
from ragwatch.model.quantities import Quantity, ReferenceQuantity, quantity_of
from ragwatch.statistics.reference import StatementLine, read_statement, reference_line
from ragwatch.statistics.verdict import Judged, Verdict

_DIGITS = 6
_JUDGED = "judged"
_QUANTITIES, _REFERENCE_QUANTITIES = tuple(Quantity), tuple(ReferenceQuantity)  # enumerations are slow to iterate
_NUMBERS = (float, int)
_UNREAD = Evidence((), ())
_TEXTS = ("trace_id", "reason", "stage", "fault", "address", "unread", "language")
"""Fields that are texts, or absent."""


class ContextLine(TypedDict):
    """A context as JSON values."""

    id: str | None
    relevant: bool | None
    used: bool | None
    relevance: float | None


class VerdictLine(TypedDict):
    """A verdict as JSON values."""

    id: str
    outcome: str
    reason: str | None
    scores: dict[str, float | None]
    expected: dict[str, float | None]  # empty since 0.3.0, which averages scores alone
    stage: str | None
    counted_as: NotRequired[str]
    fault: str | None
    claims: list[dict[str, Any]]  # the fields of `ClaimRecord`; lines of older versions lack some
    citations: NotRequired[list[dict[str, int]]]
    contexts: list[ContextLine]
    missing: list[str]
    address: str | None
    reference: dict[str, float | list[str] | list[StatementLine] | None] | None
    unread: str | None
    language: NotRequired[str]
    instructions: NotRequired[list[str]]
    criteria: NotRequired[list[dict[str, str | None]]]
    judge: dict[str, str | float]


class ClaimRecord(NamedTuple):
    """A claim in a verdict line; without offsets it is no verbatim part of the answer."""

    text: str
    start: int | None
    end: int | None
    verdict: ClaimVerdict
    support: float | None  # probability that the contexts together support it; None if the judge gives no probability
    contexts: tuple[int, ...]  # positions of those that support it, from 0: each alone or, if `joint`, together
    evidence: str | None
    said_by_user: bool = False  # whether it only repeats what the user stated earlier; no score counts it
    joint: bool = False  # whether none of `contexts` supports it alone
    informed: tuple[int, ...] = ()  # positions of those that a claim without support has its content from
    facts: int = 1

    def cell(self, rank: int) -> Cell | None:
        """What the context at this position is to the claim."""
        if rank in self.contexts:
            return Cell.JOINTLY if self.joint else Cell.ALONE
        return Cell.INFORMED if rank in self.informed else None


class CitationRecord(NamedTuple):
    """A citation in a verdict line."""

    context: int  # position of the context that is cited, from 0; it may be after the last
    start: int
    end: int
    supports: bool  # whether it is rightly cited: it supports what it is cited for


class ContextRecord(NamedTuple):
    """A context in a verdict line."""

    id: str | None
    relevant: bool | None
    used: bool | None  # whether a claim uses it (see `model.evidence`); None if not read
    relevance: float | None  # relevance as a number in [0, 1]; None if the judge gives none


class JudgeRecord(NamedTuple):
    """The judge in a verdict line, and what the verdict cost; None where that is not stored."""

    kind: str
    version: str
    seconds: float | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """A stored verdict line, decoded."""

    key: str  # identity of the sample in the store
    id: str
    at: float  # when it was answered, in seconds since the epoch
    route: str
    judge: str
    probability: float
    trace_id: str | None
    outcome: str
    reason: str | None
    stage: str | None  # stage at fault; None if unknown. A text, because another version of ragwatch may have stored it
    fault: str | None  # why the top-ranked context was not used
    scores: Mapping[Quantity, float | None]  # score by quantity of this version; None if it is undefined or unread
    claims: tuple[ClaimRecord, ...]
    contexts: tuple[ContextRecord, ...]
    missing: tuple[str, ...]  # what the question needs and no context contains
    address: str | None  # how the answer addresses the question
    reference: Mapping[ReferenceQuantity, float | None]  # score by quantity; empty without a reference
    read_by: JudgeRecord  # kind and version of the judge, with cost
    unread: str | None = None  # why its claims could not be read (`language`, `short_answer`); None where they were
    citations: tuple[CitationRecord, ...] = ()
    instructions: tuple[str, ...] = ()  # where a prompt injection is suspected
    criteria: tuple[CriterionReading, ...] = ()
    statements: tuple[StatementLine, ...] = ()  # claims of the reference, and which words of which context support them
    language: str | None = None  # that was read, where the judge's accuracy in it is not known

    @property
    def judged(self) -> bool:
        """Whether the judge could read the sample."""
        return self.outcome == _JUDGED

    @property
    def judge_version(self) -> str:
        """Version of the judge."""
        return self.read_by.version


def parse_verdict_line(line: Mapping[str, Any]) -> VerdictRecord:
    """Decode a verdict line with the fields that the store adds; raises ValueError if it is none."""
    try:
        return _verdict_record(line)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"not a verdict line: {type(error).__name__}: {error}") from error


def _verdict_record(line: Mapping[str, Any]) -> VerdictRecord:
    criteria = {str(one["name"]): one for one in line.get("criteria") or ()}
    scores, reference, judge = (line.get(name) or {} for name in ("scores", "reference", "judge"))
    return VerdictRecord(
        key=str(line["key"]),
        id=str(line["id"]),
        at=float(line["at"]),
        route=str(line["route"]),
        judge=str(line["judge_name"]),
        probability=float(line["probability"]),
        outcome=str(line["outcome"]),
        scores={quantity: _number(scores.get(quantity)) for quantity in (*_QUANTITIES, *map(quantity_of, criteria))},
        claims=tuple(map(_claim_record, line["claims"])),
        contexts=tuple(
            ContextRecord(_text(one.get("id")), one.get("relevant"), one.get("used"), _number(one.get("relevance")))
            for one in line["contexts"]
        ),
        missing=tuple(map(str, line["missing"])),
        reference={name: _number(reference[name]) for name in _REFERENCE_QUANTITIES if name in reference},
        read_by=JudgeRecord(
            kind=str(judge.get("kind", "")),
            version=str(judge.get("version", "")),
            seconds=_number(judge.get("seconds")),
            input_tokens=judge.get("input_tokens"),
            output_tokens=judge.get("output_tokens"),
            cost_usd=_number(judge.get("cost_usd")),
        ),
        citations=tuple(
            CitationRecord(int(one["context"]), int(one["start"]), int(one["end"]), one["supports"] is True)
            for one in line.get("citations") or ()
        ),
        instructions=tuple(map(str, line.get("instructions") or ())),
        criteria=tuple(
            CriterionReading(
                name,
                None if one.get("answer") is None else CriterionAnswer(one["answer"]),
                _text(one.get("quote")),
            )
            for name, one in criteria.items()
        ),
        statements=tuple(map(read_statement, reference.get("statements") or ())),
        **{name: _text(line.get(name)) for name in _TEXTS},
    )


def _claim_record(claim: Mapping[str, Any]) -> ClaimRecord:
    return ClaimRecord(
        text=claim["text"],
        start=claim["start"],
        end=claim["end"],
        verdict=ClaimVerdict(claim["verdict"]),
        support=_number(claim["support"]),
        contexts=tuple(claim["contexts"]),
        evidence=_text(claim.get("evidence")),
        said_by_user=bool(claim.get("said_by_user")),
        joint=claim.get("joint") is True,  # lines of older versions have none: their contexts support alone
        informed=tuple(claim.get("informed") or ()),
        facts=int(claim.get("facts", 1)),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    return value if isinstance(value, _NUMBERS) else None


def verdict_line(verdict: Verdict) -> VerdictLine:
    """Return a verdict as the object that `ragwatch judge` prints on one line."""
    judged = verdict if isinstance(verdict, Judged) else None
    evidence, reading = judged.evidence if judged else _UNREAD, verdict.reading
    scores = judged.scores if judged else dict.fromkeys(Quantity)
    columns = zip(verdict.draw.sample.contexts, evidence.contexts, evidence.used, strict=judged is not None)
    line: VerdictLine = {
        "id": verdict.draw.sample.id,
        "outcome": _JUDGED if judged else "unjudged",
        "reason": None if isinstance(verdict, Judged) else str(verdict.reason),
        "scores": {str(quantity): _rounded(score) for quantity, score in scores.items()},
        "expected": {},
        "stage": _optional_text(judged and judged.stage),
        "fault": _optional_text(judged and judged.fault),
        "claims": list(map(_claim, evidence.claims)),
        "contexts": [
            {"id": context.id, "relevant": column.relevant, "used": used, "relevance": _rounded(column.relevance)}
            for context, column, used in columns
        ],
        "missing": [need.text for need in evidence.needs or () if not need.answerable],
        "address": _optional_text(evidence.address),
        "reference": reference_line(evidence),
        "unread": _optional_text(evidence.unread),
        "judge": {
            "kind": reading.kind,
            "version": reading.version,
            "seconds": round(reading.seconds, _DIGITS),
            "input_tokens": reading.usage.input_tokens,
            "output_tokens": reading.usage.output_tokens,
            "cost_usd": reading.usage.cost_usd,
        },
    }
    if judged and judged.counted_as not in (None, judged.stage):
        line["counted_as"] = str(judged.counted_as)
    _add_rare_fields(line, evidence)
    return line


def _add_rare_fields(line: VerdictLine, evidence: Evidence) -> None:
    if evidence.language:
        line["language"] = evidence.language
    if evidence.citations:
        line["citations"] = [
            {"context": one.context, "start": one.start, "end": one.end, "supports": one.supports}
            for one in evidence.citations
        ]
    if evidence.instructions:
        line["instructions"] = list(evidence.instructions)
    if evidence.criteria:
        line["criteria"] = [
            {"name": one.name, "answer": _optional_text(one.answer), "quote": one.quote} for one in evidence.criteria
        ]


def _claim(claim: Claim) -> dict[str, Any]:
    line: dict[str, Any] = {
        "text": claim.text,
        "start": claim.start,
        "end": claim.end,
        "verdict": str(claim.verdict),
        "support": _rounded(claim.support),
        "contexts": list(claim.contexts),
        "joint": Cell.JOINTLY in claim.cells,
        "informed": list(claim.informed_by),
        "evidence": claim.evidence,
    }
    if claim.said_by_user:
        line["said_by_user"] = True
    if claim.facts > 1:
        line["facts"] = claim.facts
    return line


def _optional_text(value: object) -> str | None:
    return None if value is None else str(value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
