"""Builds the data of the sample page: an answer with marked claims, its contexts, verdicts and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import TypedDict

from ragwatch.errors import StoreError
from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.model.sample import SampleRecord
from ragwatch.model.stages import Fault, Stage
from ragwatch.ports import PackedVerdict, Query, Store, StoredText
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.reference import StatementLine
from ragwatch.statistics.verdict_line import ClaimRecord, ContextRecord, VerdictRecord, parse_verdict_line
from ragwatch.web.samples import shortened
from ragwatch.web.scope import PageScope

ANSWER_CHARS, CONTEXT_CHARS, QUESTION_CHARS, QUOTE_CHARS = 20_000, 6_000, 4_000, 1_000
MAX_CLAIMS, MAX_CONTEXTS, MAX_METADATA, MAX_JUDGES, MAX_LABELS, MAX_TURNS = 200, 50, 30, 12, 50, 20
LINE_BYTES, TEXT_BYTES = 2 << 20, 8 << 20  # limits on stored JSON that is read for a page
_BY_SEVERITY: Sequence[str] = (ClaimVerdict.SUPPORTED, ClaimVerdict.NOT_IN_CONTEXT, ClaimVerdict.CONTRADICTED)
_UNREAD = ContextRecord(None, None, None, None)

_STAGE_UNKNOWN = "The judge read too little to determine the stage at fault."
_UNJUDGED = "This answer could not be judged. It is counted, and widens the worst case of every figure."


class Cut(TypedDict):
    """A text, and its length if it was longer."""

    text: str
    of: int | None


class MarkedClaim(TypedDict):
    """A claim, and where it stands in the answer; both ends are None if it is not a verbatim part."""

    number: int
    start: int | None
    end: int | None
    verdict: str


class ClaimView(MarkedClaim):
    """A claim with what the judge says about it."""

    text: str
    support: float | None
    contexts: list[int]
    joint: bool
    informed: list[int]
    evidence: str | None
    said_by_user: bool
    facts: int


class Segment(TypedDict):
    """A part of an answer with its worst verdict and the claims that end with it.

    `other` is the kind of a sentence that is no claim.
    """

    text: str
    verdict: str | None
    ends: list[MarkedClaim]
    other: str | None


def sample(store: Store, key: str, scope: PageScope, *, judge: str | None) -> dict[str, object] | None:
    """Reads everything that is stored of a sample; None if there is nothing.

    Raises StoreError: the store cannot be read.
    """
    verdicts: list[VerdictRecord] = []
    damages: list[str | None] = []
    text: StoredText | None = None
    for entry in store.entries(Query(key=key, limit=MAX_JUDGES)):  # each has the text: keep one
        text = text or entry.sample
        verdict, damage = _verdict(entry)
        verdicts.append(verdict)
        damages.append(damage)
    if not verdicts:
        return None
    kept, damage = _kept(text)
    damages.insert(1, damage)
    rated = store.feedback_of(key)
    return {
        **_view(verdicts, kept, scope, judge),
        "labels": [_label(label) for label in store.labels_of(key, MAX_LABELS)],
        "feedback": None if rated is None else {"user_score": rated[0], "at": rated[1]},
        "damage": next(filter(None, damages), None),
    }


def _verdict(entry: PackedVerdict) -> tuple[VerdictRecord, str | None]:
    """Reads a verdict, up to `LINE_BYTES`; a damaged one is reduced to its figures, with what is wrong."""
    try:
        fields, whole = entry.line.beginning(LINE_BYTES)
        if not whole:  # the last item of a list may be truncated
            fields |= {name: fields.get(name, [])[:-1] for name in ("claims", "contexts", "citations")}
        return parse_verdict_line({**entry.bare, **fields, **entry.place}), None
    except (StoreError, ValueError) as error:
        return entry.verdict, str(error)


def _kept(text: StoredText | None) -> tuple[SampleRecord | None, str | None]:
    """Reads the texts of a sample, up to `TEXT_BYTES`, and what is wrong with them."""
    try:
        fields, whole = (None, True) if text is None else text.beginning(TEXT_BYTES)
    except StoreError as error:
        return None, str(error)
    return (
        fields,
        None if whole else f"The texts are larger than {TEXT_BYTES >> 20} MiB; only their beginning is shown.",
    )


def _view(
    read: Sequence[VerdictRecord], kept: SampleRecord | None, scope: PageScope, judge: str | None
) -> dict[str, object]:
    """The data of the page from the verdicts on a sample, at least one, and its texts."""
    order = {name: place for place, name in enumerate(scope.judges)}
    verdicts = sorted(read, key=lambda verdict: order.get(verdict.judge, len(order)))
    chosen = next((verdict for verdict in verdicts if verdict.judge == judge), verdicts[0])
    missing = [shortened(text, QUOTE_CHARS) for text in chosen.missing[:MAX_CLAIMS]]
    count = max(len(chosen.contexts), 0 if kept is None else len(kept.get("contexts", ())))
    claims = [_claim(number, claim) for number, claim in enumerate(chosen.claims[:MAX_CLAIMS], start=1)]
    return {
        "key": chosen.key,
        "at": chosen.at,
        "id": shortened(chosen.id, QUOTE_CHARS),
        "route": chosen.route,
        "trace_id": chosen.trace_id,
        "trace_url": scope.trace_link(chosen.trace_id),
        "verdict": {**_judge(chosen), **_meaning(chosen), "missing": missing},
        "judges": [_judge(verdict) for verdict in verdicts],
        "quantities": [
            {"quantity": str(quantity), "low_is_good": quantity in LOW_IS_GOOD} for quantity in chosen.scores
        ],
        "criteria": [
            {"name": one.name, "answer": one.answer, "quote": one.quote}
            for one in chosen.criteria
            if one.answer is not None
        ],
        "claims": claims,
        "statements": [_statement(one) for one in chosen.statements[:MAX_CLAIMS]],
        "claims_left_out": max(0, len(chosen.claims) - MAX_CLAIMS),
        "contexts": _contexts(chosen, kept, claims),
        "citations_out_of_range": sum(one.context >= len(chosen.contexts) for one in chosen.citations),
        "contexts_left_out": max(0, count - MAX_CONTEXTS),
        "text": None if kept is None else _text(chosen, kept, claims, scope),
        "texts_kept": scope.texts,
    }


def cut(text: str, limit: int) -> Cut:
    """Truncates a text; `of` is its length if it was longer."""
    return {"text": shortened(text, limit), "of": None if len(text) <= limit else len(text)}


def segments(
    answer: str, claims: Iterable[MarkedClaim], others: Iterable[tuple[int, int, str]] = ()
) -> Iterator[Segment]:
    """Splits an answer at the edges of claims; yields each part with its worst verdict and the claims that end with it.

    Sentences that are no claims (`others`: start, end, kind) are parts of their own.

    >>> claim = {"number": 1, "start": 0, "end": 4, "verdict": "supported"}
    >>> [(part["text"], part["verdict"], len(part["ends"])) for part in segments("Cats purr.", [claim])]
    [('Cats', 'supported', 1), (' purr.', None, 0)]
    """
    places = ((claim["start"], claim["end"], claim) for claim in claims)
    placed = [
        (first, last, claim)
        for first, last, claim in places
        if first is not None and last is not None and first < len(answer)
    ]
    ends = (min(last, len(answer)) for _, last, _ in placed)
    kinds = {start: (end, kind) for start, end, kind in others if end <= len(answer)}
    edges = {0, len(answer), *(first for first, _, _ in placed), *ends, *kinds, *(end for end, _ in kinds.values())}
    for start, end in pairwise(sorted(edges)):
        covering = [claim["verdict"] for first, last, claim in placed if first <= start and end <= last]
        yield {
            "text": answer[start:end],
            "verdict": max(covering, key=_BY_SEVERITY.index, default=None),
            "ends": [claim for _, last, claim in placed if last == end],
            "other": kinds[start][1] if start in kinds and not covering else None,
        }


def _judge(verdict: VerdictRecord) -> dict[str, object]:
    """Verdict of one judge."""
    counts = Counter(claim.verdict for claim in verdict.claims)
    return {
        "judge": verdict.judge,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "unread": verdict.unread,
        "language": verdict.language,
        "stage": verdict.stage,
        "fault": verdict.fault,
        "address": verdict.address,
        "scores": verdict.scores,
        "probability": verdict.probability,
        **verdict.read_by._asdict(),
        "counts": {str(outcome): counts[outcome] for outcome in ClaimVerdict},
    }


def _meaning(verdict: VerdictRecord) -> dict[str, str | None]:
    if verdict.outcome == "unjudged":
        return {"meaning": _UNJUDGED, "fault_meaning": None}
    return {
        "meaning": _STAGE_UNKNOWN if verdict.stage is None else Stage[verdict.stage.upper()].text,
        "fault_meaning": None if verdict.fault is None else Fault[verdict.fault.upper()].text,
    }


def _claim(number: int, claim: ClaimRecord) -> ClaimView:
    return {
        "number": number,
        "text": shortened(claim.text, QUOTE_CHARS),
        "start": claim.start,
        "end": claim.end,
        "verdict": str(claim.verdict),
        "support": claim.support,
        "contexts": [place + 1 for place in claim.contexts],
        "joint": claim.joint,
        "informed": [place + 1 for place in claim.informed],
        "evidence": None if claim.evidence is None else shortened(claim.evidence, QUOTE_CHARS),
        "said_by_user": claim.said_by_user,
        "facts": claim.facts,
    }


def _statement(one: StatementLine) -> dict[str, object]:
    """A claim of the reference: which contexts support it, by which words, and what no context has."""
    quotes = [None if quote is None else shortened(quote, QUOTE_CHARS) for quote in one["quotes"]]
    contexts = [
        {"rank": rank + 1, "quote": quote} for rank, quote in zip_longest(one["contexts"], quotes) if rank is not None
    ]
    return {
        "text": shortened(one["text"], QUOTE_CHARS),
        "supported": one["supported"],
        "contexts": contexts,
        "missing": [shortened(part, QUOTE_CHARS) for part in one["missing"]],
    }


def _contexts(
    verdict: VerdictRecord, kept: SampleRecord | None, claims: Sequence[ClaimView]
) -> list[dict[str, object]]:
    """Contexts in the order of the retriever, with the readings of the judge."""
    texts = [] if kept is None else kept.get("contexts", [])[:MAX_CONTEXTS]
    cited = Counter(citation.context + 1 for citation in verdict.citations)
    cited_rightly = Counter(citation.context + 1 for citation in verdict.citations if citation.supports)
    contexts = []
    pairs = zip_longest(texts, verdict.contexts[:MAX_CONTEXTS])
    for rank, (stored_text, stored_reading) in enumerate(pairs, start=1):
        text: Mapping[str, object] = stored_text or {}
        reading = stored_reading or _UNREAD
        name = text.get("id") or reading.id
        contexts.append(
            {
                "rank": rank,
                "id": None if name is None else shortened(str(name), QUOTE_CHARS),
                "score": text.get("score"),
                "updated_at": text.get("updated_at"),
                "step": shortened(str(text["step"]), QUOTE_CHARS) if "step" in text else None,
                "body": cut(str(text["text"]), CONTEXT_CHARS) if "text" in text else None,
                "relevant": reading.relevant,
                "relevance": reading.relevance,
                "used": reading.used,
                "claims": [
                    {"number": claim["number"], "joint": claim["joint"]}
                    for claim in claims
                    if rank in claim["contexts"]
                ],
                "informed": [claim["number"] for claim in claims if rank in claim["informed"]],
                "cited": cited[rank],
                "cited_rightly": cited_rightly[rank],
            }
        )
    return contexts


def asked(kept: SampleRecord) -> dict[str, object]:
    """What was asked: the newest turns before, the question, and how long the answer is if it is cut."""
    question, history, length = kept.get("question"), kept.get("history") or [], len(kept.get("answer", ""))
    return {
        "history": [
            {"role": str(turn.get("role")), "body": cut(turn.get("text") or "", QUESTION_CHARS)}
            for turn in history[-MAX_TURNS:]
        ],
        "history_left_out": max(0, len(history) - MAX_TURNS),
        "question": None if question is None else cut(question, QUESTION_CHARS),
        "answer_of": length if length > ANSWER_CHARS else None,
    }


def _text(
    verdict: VerdictRecord, kept: SampleRecord, claims: Sequence[ClaimView], scope: PageScope
) -> dict[str, object]:
    answer, reference = kept.get("answer", "")[:ANSWER_CHARS], kept.get("reference")
    metadata = list((kept.get("metadata") or {}).items())
    places = [(claim.start, claim.end) for claim in verdict.claims if claim.start is not None and claim.end is not None]
    is_read = verdict.judged and verdict.unread is None  # else no sentence is known to be no claim
    return {
        **asked(kept),
        "answer": list(segments(answer, claims, scope.other_sentences(answer, places) if is_read else ())),
        "reference": None if reference is None else cut(reference, QUESTION_CHARS),
        "metadata": [(name, shortened(str(value), QUOTE_CHARS)) for name, value in metadata[:MAX_METADATA]],
        "metadata_left_out": max(0, len(metadata) - MAX_METADATA),
    }


def _label(label: Label) -> dict[str, object]:
    return {
        "annotator": label.annotator,
        "at": label.at,
        "scores": {str(quantity): score for quantity, score in label.scores.items()},
        "claims": [None if verdict is None else str(verdict) for verdict in label.claims[:MAX_CLAIMS]],
        "note": shortened(label.note, QUOTE_CHARS),
        "revoked": label.revoked,
    }
