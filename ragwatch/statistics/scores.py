"""Scores computed from Evidence: one function per quantity, each in [0, 1] or None.

None means undefined or not read, never zero; `why_unknown` gives the reason that is counted. Sources: RAGAS (arXiv
2309.15217) for faithfulness and context precision without a reference, RAG-E (arXiv 2601.21803) for ignored documents.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ragwatch.model.evidence import Address, ClaimVerdict, CriterionAnswer, CriterionReading, Evidence
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.model.quantity_row import Need, UnknownReason
from ragwatch.model.stages import Fault

Score = Callable[[Evidence], float | None]
_FUNCTIONS: dict[Quantity, Score] = {}


def _score_of(quantity: Quantity) -> Callable[[Score], Score]:
    def register(function: Score) -> Score:
        _FUNCTIONS[quantity] = function
        return function

    return register


@_score_of(Quantity.FAITHFULNESS)
def faithfulness(evidence: Evidence) -> float | None:
    """Return supported claims / claims, each for its number of facts; None if the answer has no claims.

    Contradicted claims and claims that are not in the context both count as unsupported. Claims that only repeat what
    the user stated earlier in the conversation count as neither.
    """
    return _share_of_claims(evidence, ClaimVerdict.SUPPORTED)


@_score_of(Quantity.CONTRADICTION)
def contradiction(evidence: Evidence) -> float | None:
    """Return contradicted claims / claims; None without claims, or if the judge does not read contradiction."""
    return _share_of_claims(evidence, ClaimVerdict.CONTRADICTED) if evidence.reads_contradiction else None


def _share_of_claims(evidence: Evidence, verdict: ClaimVerdict) -> float | None:
    claims = evidence.counted
    total = sum(claim.facts for claim in claims)
    return sum(claim.facts for claim in claims if claim.verdict is verdict) / total if claims else None


def average_precision(relevant: Sequence[bool]) -> float | None:
    """Return rank-weighted precision, sum_k(precision@k * v_k) / sum_k(v_k); 0.0 if none is relevant, None if empty."""
    if not relevant:
        return None
    hits, total = 0, 0.0
    for rank, is_relevant in enumerate(relevant, start=1):
        if is_relevant:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


@_score_of(Quantity.CONTEXT_PRECISION)
def context_precision(evidence: Evidence) -> float | None:
    """Return the average precision of the contexts; None without contexts, or if the relevance of one is not read."""
    relevant = [reading.relevant for reading in evidence.contexts]
    decided = [value for value in relevant if value is not None]
    return average_precision(decided) if len(decided) == len(relevant) else None


@_score_of(Quantity.CONTEXT_SENTENCE_PRECISION)
def context_sentence_precision(evidence: Evidence) -> float | None:
    """Return relevant context sentences / context sentences; None if there are none, or they are not counted."""
    total = relevant = 0
    for reading in evidence.contexts:
        if reading.sentences is None or reading.relevant_sentences is None:
            return None
        total += reading.sentences
        relevant += reading.relevant_sentences
    return relevant / total if total else None


_ADDRESS_SCORE: Mapping[Address, float] = MappingProxyType(
    {Address.FULLY: 1.0, Address.PARTIALLY: 0.5, Address.NOT_AT_ALL: 0.0}
)


@_score_of(Quantity.ANSWER_RELEVANCY)
def answer_relevancy(evidence: Evidence) -> float | None:
    """Return 1 (fully), 0.5 (partially) or 0 (not at all); None for an abstention, or if not read."""
    return None if evidence.address is None else _ADDRESS_SCORE.get(evidence.address)


@_score_of(Quantity.NEED_RECALL)
def need_recall(evidence: Evidence) -> float | None:
    """Return sub-questions answerable from the contexts / sub-questions; None if there are none, or not read."""
    if not evidence.needs:
        return None
    return sum(need.answerable for need in evidence.needs) / len(evidence.needs)


@_score_of(Quantity.TOP_RANKED_IGNORED)
def top_ranked_ignored(evidence: Evidence) -> float | None:
    """Return 1.0 if no claim uses the first context; None without claims or contexts, or if abstained."""
    if not evidence.counted or not evidence.contexts or evidence.abstained:
        return None
    return 0.0 if evidence.used[0] else 1.0


def top_ranked_fault(evidence: Evidence) -> Fault | None:
    """Return why the top-ranked context was not used; None if it was used, or if its relevance is not read.

    `retriever`: it is not relevant and should not rank first. `redundant`: it is relevant, but other contexts support
    every claim. `generator`: it is relevant, and the answer has claims that no context supports.
    """
    if top_ranked_ignored(evidence) != 1.0 or evidence.contexts[0].relevant is None:
        return None
    if not evidence.contexts[0].relevant:
        return Fault.RETRIEVER
    if all(claim.contexts for claim in evidence.counted):
        return Fault.REDUNDANT
    return Fault.GENERATOR


@_score_of(Quantity.CONTEXT_USE)
def context_use(evidence: Evidence) -> float | None:
    """Return contexts that a claim uses / contexts; None without claims or contexts, or if abstained."""
    if not evidence.counted or not evidence.contexts or evidence.abstained:
        return None
    return sum(evidence.used) / len(evidence.used)


@_score_of(Quantity.CITATION_PRECISION)
def citation_precision(evidence: Evidence) -> float | None:
    """Return citations that are right / citations; None if nothing is cited, or if the answer abstains.

    `statistics.text.citations` says when one is right. The number of a context that the sample lacks supports nothing.
    """
    if not evidence.citations or evidence.abstained:
        return None
    return sum(citation.supports for citation in evidence.citations) / len(evidence.citations)


SCORES: Mapping[Quantity, Score] = MappingProxyType({quantity: _FUNCTIONS[quantity] for quantity in Quantity})


def criterion_score(reading: CriterionReading) -> float | None:
    """Return 1.0 for yes, 0.0 for no; None if the criterion does not apply, or is not read."""
    return {CriterionAnswer.YES: 1.0, CriterionAnswer.NO: 0.0}.get(reading.answer or CriterionAnswer.DOES_NOT_APPLY)


def score_all(evidence: Evidence) -> dict[Quantity, float | None]:
    """Return every quantity of one sample, in the order of a verdict line; criteria follow."""
    scores = {quantity: score(evidence) for quantity, score in SCORES.items()}
    return scores | {quantity_of(reading.name): criterion_score(reading) for reading in evidence.criteria}


_LACKS: Mapping[Need, Callable[[Evidence], UnknownReason | None]] = MappingProxyType(
    {
        Need.LANGUAGE: lambda read: UnknownReason[read.unread.upper()] if read.unread and not read.abstained else None,
        Need.CONTRADICTION: lambda read: None if read.reads_contradiction else UnknownReason.NOT_READ,
        Need.CLAIMS_READ: lambda read: None if read.reads_claims else UnknownReason.NOT_READ,
        Need.AN_ANSWER: lambda read: UnknownReason.ABSTAINED if read.abstained else None,
        Need.CLAIMS: lambda read: None if read.counted else UnknownReason.NO_CLAIMS,
        Need.CITATIONS: lambda read: None if read.citations else UnknownReason.NO_CITATIONS,
        Need.CONTEXTS: lambda read: None if read.contexts else UnknownReason.NO_CONTEXTS,
    }
)
"""By what a score needs, in the order in which a lack is told: the reason if it is not there."""


def why_unknown(evidence: Evidence, quantity: Quantity) -> UnknownReason | None:
    """Return why `quantity` is None for this evidence; None if it has a value."""
    if quantity.is_criterion:
        answer = next(
            (one.answer for one in evidence.criteria if one.name == quantity and one.answer is not None), None
        )
        if answer is None:
            return UnknownReason.NOT_READ
        return UnknownReason.DOES_NOT_APPLY if answer is CriterionAnswer.DOES_NOT_APPLY else None
    if SCORES[quantity](evidence) is not None:
        return None
    lacks = (lack(evidence) for need, lack in _LACKS.items() if need in quantity.row.needs)
    return next((reason for reason in lacks if reason is not None), UnknownReason.NOT_READ)
