"""What is sent where: the rules of one export, and what is sent of one verdict, or why nothing is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b

from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.quantities import Quantity, is_worse
from ragwatch.model.quantity_row import Explanation
from ragwatch.ports import ScoreRow, StoredVerdict
from ragwatch.statistics.verdict_line import VerdictRecord


class Signal(StrEnum):
    """A form in which scores are sent. The values are label values."""

    LOGS = "logs"
    SPANS = "spans"

    @property
    def path(self) -> str:
        """Path of the OTLP service, below the endpoint."""
        return "/v1/logs" if self is Signal.LOGS else "/v1/traces"


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """An OTLP endpoint."""

    endpoint: str  # its URL, without the path of a service
    # headers of every request; their values are secrets
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float = 10.0  # timeout of one request
    ca_file: str | None = None  # certificates to trust instead of the usual ones


@dataclass(frozen=True, slots=True)
class ExportRules:
    """What is sent."""

    # quantities that are sent, by judge; a judge that is not named sends `default`
    quantities: Mapping[str, tuple[Quantity, ...]] = field(default_factory=dict)
    default: tuple[Quantity, ...] = tuple(Quantity)  # quantities of other judges
    # thresholds of all routes: a score has the label `pass` or `fail` where there is one
    thresholds: Mapping[Quantity, float] = field(default_factory=dict)
    # those of single routes, which take precedence; None for none
    route_thresholds: Mapping[str, Mapping[Quantity, float | None]] = field(default_factory=dict)
    explanations: bool = False  # whether texts of the answer are sent that explain a score
    resource: Mapping[str, str] = field(default_factory=dict)
    # whether a span is a child of the request that was judged; else it is in a trace of its own
    same_trace: bool = True
    max_age_seconds: float = 86400.0  # age of an answer from which its scores are no longer sent
    batch: int = 200  # most verdicts in one request

    def of_judge(self, judge: str) -> tuple[Quantity, ...]:
        """Quantities of a judge that are sent."""
        return self.quantities.get(judge, self.default)

    def threshold(self, quantity: Quantity, route: str) -> float | None:
        """Threshold of a quantity on a route; None if it has none."""
        own = self.route_thresholds.get(route, {})
        return own[quantity] if quantity in own else self.thresholds.get(quantity)


MAX_EXPLANATION_CHARS = 1000
_TRACE_ID, _SPAN_ID = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")
_MODELS = frozenset({"claude", "openai"})  # kinds of judges that are language models


class Skipped(StrEnum):
    """Why nothing is sent of a verdict. The values are label values.

    NO_TRACE_ID: its answer came without one; INVALID_TRACE_ID: it is not 32 hexadecimal digits; NO_SPAN_ID: spans link
    to a span, and none is known; NO_SCORES: no quantity that is sent has a score; TOO_OLD: older than `max_age`;
    DELETED: by retention, before it was sent.
    """

    NO_TRACE_ID = "no_trace_id"
    INVALID_TRACE_ID = "invalid_trace_id"
    NO_SPAN_ID = "no_span_id"
    NO_SCORES = "no_scores"
    TOO_OLD = "too_old"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Result:
    """One evaluation of an answer: the score of a quantity, or an error."""

    name: str
    score: float | None = None
    label: str | None = None
    explanation: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of one verdict, and the answer that they are about."""

    verdict: VerdictRecord
    trace_id: str  # of the trace of the answer, in hex
    span_id: str  # first span of the request; empty if it is not known
    answer_span_id: str  # span of the call of a model that answered; empty if it is not known
    response_id: str  # the provider's id of the answer; empty if it is not known
    results: tuple[Result, ...]  # the results; not empty

    @property
    def error(self) -> str | None:
        """Why the answer could not be judged; None if it was."""
        return None if self.verdict.judged else self.verdict.reason

    @property
    def annotator(self) -> str:
        """What kind of judge it was: `LLM` or `CODE`."""
        return "LLM" if self.verdict.read_by.kind in _MODELS else "CODE"

    @property
    def identity(self) -> bytes:
        """24 bytes of the verdict's identity: whenever it is sent, its own trace and span have the same ids."""
        text = f"{self.verdict.key} {self.verdict.judge} {self.verdict.judge_version}"
        return blake2b(text.encode("utf-8", "replace"), digest_size=24).digest()


def trace_id_of(logged: str) -> str | None:
    """Return a trace id as 32 hexadecimal digits; None if it is not one.

    >>> trace_id_of("96C2AD67-9293-535B-E6FA-2EE8FED05C91"), trace_id_of("0" * 32), trace_id_of("request 7")
    ('96c2ad679293535be6fa2ee8fed05c91', None, None)
    """
    plain = logged.strip().replace("-", "").lower()
    return plain if _TRACE_ID.fullmatch(plain) and plain.strip("0") else None


def span_id_of(logged: object) -> str:
    """Return a span id as 16 hexadecimal digits; empty if it is not one."""
    plain = logged.strip().lower() if isinstance(logged, str) else ""
    return plain if _SPAN_ID.fullmatch(plain) and plain.strip("0") else ""


def skipped(row: ScoreRow, oldest: float) -> Skipped | None:
    """Why nothing is sent of a verdict, as far as its score row shows; None if something may be."""
    if row.trace_id is None:
        return Skipped.NO_TRACE_ID
    if trace_id_of(row.trace_id) is None:
        return Skipped.INVALID_TRACE_ID
    return Skipped.TOO_OLD if row.at < oldest else None


def evaluation_of(stored: StoredVerdict, signal: Signal, rules: ExportRules) -> Evaluation | Skipped:
    """Return what is sent of a verdict with a trace id, or why nothing is."""
    verdict = stored.verdict
    metadata = None if stored.sample is None else stored.sample.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    span_id = span_id_of(metadata.get("span_id"))
    if signal is Signal.SPANS and not span_id:
        return Skipped.NO_SPAN_ID
    results = _results(verdict, rules)
    if not results:
        return Skipped.NO_SCORES
    response_id = metadata.get("response_id")
    return Evaluation(
        verdict,
        trace_id=trace_id_of(verdict.trace_id or "") or "",
        span_id=span_id,
        answer_span_id=span_id_of(metadata.get("answer_span_id")),
        response_id=response_id if isinstance(response_id, str) else "",
        results=results,
    )


def _results(verdict: VerdictRecord, rules: ExportRules) -> tuple[Result, ...]:
    wanted = rules.of_judge(verdict.judge)
    if not verdict.judged:
        return tuple(Result(str(quantity), error=verdict.reason) for quantity in wanted)
    scores = ((quantity, verdict.scores.get(quantity)) for quantity in wanted)
    return tuple(
        Result(
            str(quantity),
            score,
            _label(quantity, score, rules.threshold(quantity, verdict.route)),
            _explanation(quantity, verdict) if rules.explanations else None,
        )
        for quantity, score in scores
        if score is not None
    )


def _label(quantity: Quantity, score: float, threshold: float | None) -> str | None:
    if threshold is None:
        return None
    return "fail" if is_worse(quantity, score, score, threshold) else "pass"


def _explanation(quantity: Quantity, verdict: VerdictRecord) -> str | None:
    """What a score rests on, with texts of the answer; None where there is nothing to say."""
    match quantity.row.explanation:
        case Explanation.UNSUPPORTED_CLAIMS:
            text = _claims("without support", verdict, {ClaimVerdict.NOT_IN_CONTEXT, ClaimVerdict.CONTRADICTED})
        case Explanation.CONTRADICTED_CLAIMS:
            text = _claims("contradicted", verdict, {ClaimVerdict.CONTRADICTED})
        case Explanation.MISSING_INFORMATION:
            text = "; ".join(verdict.missing) and f"not in the contexts: {'; '.join(verdict.missing)}"
        case Explanation.RELEVANT_CONTEXTS:
            relevant = sum(context.relevant is True for context in verdict.contexts)
            text = f"{relevant} of {len(verdict.contexts)} contexts are relevant"
        case Explanation.ADDRESS:
            text = f"the answer addresses the question: {verdict.address}" if verdict.address else ""
        case Explanation.QUOTE:
            text = next((f'"{one.quote}"' for one in verdict.criteria if one.name == quantity and one.quote), "")
        case None:
            text = ""
    return text[:MAX_EXPLANATION_CHARS] or None


def _claims(what: str, verdict: VerdictRecord, verdicts: set[ClaimVerdict]) -> str:
    claims = [claim for claim in verdict.claims if not claim.said_by_user]
    texts = [claim.text for claim in claims if claim.verdict in verdicts]
    quoted = "".join(f'; "{text}"' for text in texts if text)
    return f"{len(texts)} of {len(claims)} claims {what}{quoted}"
