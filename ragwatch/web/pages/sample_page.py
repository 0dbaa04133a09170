"""Reads an answer for the sample page: its verdicts and texts as they are stored, and where claims stand in it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import TypedDict

from ragwatch.errors import StoreError
from ragwatch.model.evidence import Cell, ClaimVerdict
from ragwatch.model.sample import ContextFields, SampleRecord
from ragwatch.model.stages import Fault, Stage
from ragwatch.ports import PackedVerdict, Query, Store, StoredText
from ragwatch.statistics.verdict_line import ClaimRecord, ContextRecord, VerdictRecord, parse_verdict_line
from ragwatch.web.pages.pages import ANSWER_CHARS
from ragwatch.web.scope import PageScope

MAX_CLAIMS, MAX_CONTEXTS, MAX_JUDGES, MAX_LABELS = 200, 50, 12, 50
LINE_BYTES, TEXT_BYTES = 2 << 20, 8 << 20  # limits on stored JSON that is read for a page
_BY_SEVERITY: Sequence[str] = (ClaimVerdict.SUPPORTED, ClaimVerdict.NOT_IN_CONTEXT, ClaimVerdict.CONTRADICTED)
_UNREAD = ContextRecord(None, None, None, None)

_STAGE_UNKNOWN = "The judge read too little to determine the stage at fault."
_UNJUDGED = "This answer could not be judged. It is counted, and widens the worst case of every figure."

MarkedClaim = tuple[int | None, int | None, str]
"""Start and end of a claim in the answer, both None if it is not a verbatim part; and its verdict."""


class Segment(TypedDict):
    """A part of an answer with its worst verdict, and the numbers of the claims that cover it and that end with it.

    `other` is the kind of a sentence that is no claim.
    """

    text: str
    verdict: str | None
    claims: list[int]
    ends: list[int]
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
    order = {name: place for place, name in enumerate(scope.judges)}
    verdicts.sort(key=lambda verdict: order.get(verdict.judge, len(order)))
    chosen = next((verdict for verdict in verdicts if verdict.judge == judge), verdicts[0])
    stage = _STAGE_UNKNOWN if chosen.stage is None else Stage[chosen.stage.upper()].text
    claims = chosen.claims[:MAX_CLAIMS]
    texts = [] if kept is None else kept.get("contexts", [])
    return {
        "verdict": chosen,
        "verdicts": verdicts,
        "meaning": stage if chosen.judged else _UNJUDGED,
        "fault_meaning": Fault[chosen.fault.upper()].text if chosen.judged and chosen.fault is not None else None,
        "trace_url": scope.trace_link(chosen.trace_id),
        "claims": claims,
        "max_claims": MAX_CLAIMS,
        "contexts": list(_contexts(chosen, texts[:MAX_CONTEXTS], claims)),
        "contexts_left_out": max(0, len(texts) - MAX_CONTEXTS, len(chosen.contexts) - MAX_CONTEXTS),
        "citations_out_of_range": sum(one.context >= len(chosen.contexts) for one in chosen.citations),
        "text": kept,
        "answer": [] if kept is None else list(_answer(chosen, kept.get("answer", ""), scope)),
        "texts_kept": scope.texts,
        "labels": store.labels_of(key, MAX_LABELS),
        "feedback": store.feedback_of(key),
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
    cut = f"The texts are larger than {TEXT_BYTES >> 20} MiB; only their beginning is shown."
    return fields, None if whole else cut


def segments(
    answer: str, claims: Iterable[MarkedClaim], others: Iterable[tuple[int, int, str]] = ()
) -> Iterator[Segment]:
    """Splits an answer at the edges of claims, which are numbered from 1.

    Sentences that are no claims (`others`: start, end, kind) are parts of their own.

    >>> [(part["text"], part["verdict"], part["ends"]) for part in segments("Cats purr.", [(0, 4, "supported")])]
    [('Cats', 'supported', [1]), (' purr.', None, [])]
    """
    placed = [
        (number, first, last, verdict)
        for number, (first, last, verdict) in enumerate(claims, start=1)
        if first is not None and last is not None and first < len(answer)
    ]
    ends = (min(last, len(answer)) for _, _, last, _ in placed)
    kinds = {start: (end, kind) for start, end, kind in others if end <= len(answer)}
    edges = {0, len(answer), *(first for _, first, _, _ in placed), *ends, *kinds, *(end for end, _ in kinds.values())}
    for start, end in pairwise(sorted(edges)):
        covering = {number: verdict for number, first, last, verdict in placed if first <= start and end <= last}
        yield {
            "text": answer[start:end],
            "verdict": max(covering.values(), key=_BY_SEVERITY.index, default=None),
            "claims": list(covering),
            "ends": [number for number, _, last, _ in placed if last == end],
            "other": kinds[start][1] if start in kinds and not covering else None,
        }


def _answer(verdict: VerdictRecord, answer: str, scope: PageScope) -> Iterator[Segment]:
    """The parts of the answer; where the judge could not read it, no sentence is known to be no claim."""
    shown = answer[:ANSWER_CHARS]
    places = [(claim.start, claim.end) for claim in verdict.claims if claim.start is not None and claim.end is not None]
    others = scope.other_sentences(shown, places) if verdict.judged and verdict.unread is None else ()
    return segments(shown, [(claim.start, claim.end, claim.verdict) for claim in verdict.claims[:MAX_CLAIMS]], others)


def _contexts(
    verdict: VerdictRecord, texts: Sequence[ContextFields], claims: Sequence[ClaimRecord]
) -> Iterator[dict[str, object]]:
    """Contexts in the order of the retriever, with the readings of the judge and the numbers of the claims."""
    cited = Counter(citation.context for citation in verdict.citations)
    cited_rightly = Counter(citation.context for citation in verdict.citations if citation.supports)
    for rank, (text, reading) in enumerate(zip_longest(texts, verdict.contexts[:MAX_CONTEXTS])):
        cells = [(number, claim.cell(rank)) for number, claim in enumerate(claims, start=1)]
        yield {
            "text": text or {},
            "reading": reading or _UNREAD,
            "claims": [(number, cell is Cell.JOINTLY) for number, cell in cells if cell in (Cell.ALONE, Cell.JOINTLY)],
            "informed": [number for number, cell in cells if cell is Cell.INFORMED],
            "cited": cited[rank],
            "cited_rightly": cited_rightly[rank],
        }
