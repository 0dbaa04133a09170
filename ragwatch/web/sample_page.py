"""Sample page: one answer with its claims marked, its contexts, and every judge's word on it, as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from types import MappingProxyType
from typing import Any

from ragwatch.core.evidence import ClaimVerdict
from ragwatch.core.labels.label import Label
from ragwatch.core.scores import LOW_IS_GOOD, Fault, Quantity
from ragwatch.core.stage import Stage
from ragwatch.errors import StoreError
from ragwatch.ports import PackedVerdict, Query, Store, StoredText, StoredVerdict
from ragwatch.web.scope import PageScope

ANSWER_CHARS, CONTEXT_CHARS, QUESTION_CHARS, QUOTE_CHARS = 20_000, 6_000, 4_000, 1_000
MOST_CLAIMS, MOST_CONTEXTS, MOST_METADATA, MOST_JUDGES, MOST_LABELS = 200, 50, 30, 12, 50
LINE_BYTES, TEXT_BYTES = 2 << 20, 8 << 20  # of JSON that is read for a page
_WORST = (ClaimVerdict.SUPPORTED, ClaimVerdict.NOT_IN_CONTEXT, ClaimVerdict.CONTRADICTED)
_NOTHING: Mapping[str, Any] = MappingProxyType({})

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        Stage.NONE: "As far as the judge can tell, nothing is wrong with this answer.",
        Stage.RETRIEVAL: (
            "The contexts do not hold what the question needs. Look at the retriever first: index, embedding, "
            "chunking, number of contexts, reranker. A generator cannot repair what it was never given."
        ),
        Stage.GENERATION: (
            "The contexts would do, but the answer goes beyond them, against them, or around the question. "
            "Look at the generator: prompt, model, temperature."
        ),
        Stage.ALIGNMENT: (
            "Retrieval and generation are fine each by itself, but the answer passes over the best context. "
            "Look at what joins them: order and number of contexts, chunk size, how they stand in the prompt."
        ),
    }
)
FAULTS: Mapping[str, str] = MappingProxyType(
    {
        Fault.RETRIEVER: "The first context went unused because it is not relevant: it ought not to be first.",
        Fault.GENERATOR: "The first context is relevant and went unused, while claims stand on no context at all.",
        Fault.REDUNDANT: "The first context is relevant and went unused; other contexts support every claim.",
    }
)
_UNTOLD = "Too little was read to tell which stage is at fault."
_UNJUDGED = "No judge could read this answer. It is counted, and widens the worst-case bounds of every figure."


def sample(store: Store, key: str, scope: PageScope, *, judge: str | None) -> dict[str, Any] | None:
    """Everything that is kept of one sample; None for nothing.

    Args:
        store: Where it is kept.
        key: Its identity in the store.
        scope: Says which judge goes first.
        judge: Whose verdict marks the answer; the default judge's where there is none of that name.

    Raises:
        StoreError: The store cannot be read.
    """
    found: list[StoredVerdict] = []
    text: StoredText | None = None
    for entry in store.entries(Query(key=key, limit=MOST_JUDGES)):  # each brings the text along: one is enough
        text = text or entry.sample
        found.append(_line_of(entry))
    if not found:
        return None
    found[0] = _with_text(found[0], text)
    return view(found, store.labels_of(key, MOST_LABELS), scope, judge)


def _line_of(entry: PackedVerdict) -> StoredVerdict:
    """A verdict as far as a page shows it; one that is damaged is what its figures tell."""
    try:
        fields, whole = entry.line.beginning(LINE_BYTES)
    except StoreError as error:
        return StoredVerdict(entry.bare, None, str(error))
    if not whole:  # the last of a list may be cut short
        fields |= {name: fields.get(name, [])[:-1] for name in ("claims", "contexts")}
    return StoredVerdict({**entry.bare, **fields, **entry.place}, None)


def _with_text(found: StoredVerdict, text: StoredText | None) -> StoredVerdict:
    if text is None:
        return found
    try:
        fields, whole = text.beginning(TEXT_BYTES)
    except StoreError as error:
        return replace(found, damage=found.damage or str(error))
    note = None if whole else f"Its texts are larger than {TEXT_BYTES >> 20} MiB, and only their beginning is shown."
    return replace(found, sample={"contexts": [], "answer": "", **fields}, damage=found.damage or note)


def view(
    found: Sequence[StoredVerdict], labels: Sequence[Label], scope: PageScope, judge: str | None
) -> dict[str, Any]:
    """Verdicts on one sample, at least one, as a page shows them."""
    order = {name: place for place, name in enumerate(scope.judges)}
    verdicts = sorted((each.verdict for each in found), key=lambda each: order.get(each["judge_name"], len(order)))
    chosen = next((each for each in verdicts if each["judge_name"] == judge), verdicts[0])
    kept = next((each.sample for each in found if each.sample is not None), None)
    claims = [_claim(number, each) for number, each in enumerate(chosen["claims"][:MOST_CLAIMS], start=1)]
    return {
        "key": chosen["key"],
        "at": chosen["at"],
        "id": cut(str(chosen["id"]), QUOTE_CHARS)["text"],
        "route": chosen["route"],
        "trace_id": chosen["trace_id"],
        "verdict": {**_judge(chosen), **_meaning(chosen), "missing": _cuts(chosen["missing"])},
        "judges": [_judge(each) for each in verdicts],
        "quantities": [{"quantity": str(each), "low_is_good": each in LOW_IS_GOOD} for each in Quantity],
        "claims": claims,
        "claims_left_out": max(0, len(chosen["claims"]) - MOST_CLAIMS),
        "contexts": _contexts(chosen, kept, claims),
        "contexts_left_out": max(0, _wide(chosen, kept) - MOST_CONTEXTS),
        "text": None if kept is None else _text(kept, claims),
        "labels": [_label(each) for each in labels[-MOST_LABELS:]],
        "damage": next((each.damage for each in found if each.damage is not None), None),
    }


def cut(text: str, limit: int) -> dict[str, Any]:
    """The beginning of a text; `of` is its length where that is not all.

    >>> cut("abcdef", 4), cut("abc", 4)
    ({'text': 'abc…', 'of': 6}, {'text': 'abc', 'of': None})
    """
    return {"text": text, "of": None} if len(text) <= limit else {"text": f"{text[: limit - 1]}…", "of": len(text)}


def segments(answer: str, claims: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The answer in parts, each with the worst verdict of the claims that cover it and the claims that end with it.

    >>> claim = {"number": 1, "start": 0, "end": 4, "verdict": "supported"}
    >>> [(each["text"], each["verdict"], len(each["ends"])) for each in segments("Cats purr.", [claim])]
    [('Cats', 'supported', 1), (' purr.', None, 0)]
    """
    placed = [each for each in claims if each["start"] is not None and each["start"] < len(answer)]
    edges = {0, len(answer), *(each["start"] for each in placed), *(min(each["end"], len(answer)) for each in placed)}
    for start, end in pairwise(sorted(edges)):
        over = [each["verdict"] for each in placed if each["start"] <= start and end <= each["end"]]
        yield {
            "text": answer[start:end],
            "verdict": max(over, key=_badness, default=None),
            "ends": [each for each in placed if each["end"] == end],
        }


def _badness(verdict: str) -> int:
    return _WORST.index(ClaimVerdict(verdict))


def _judge(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """What one judge said."""
    names = ("outcome", "reason", "stage", "fault", "address", "scores", "probability")
    counts = Counter(claim["verdict"] for claim in verdict["claims"])
    return {
        "judge": verdict["judge_name"],
        **{name: verdict.get(name) for name in names},
        **verdict["judge"],
        "counts": {str(each): counts[each] for each in ClaimVerdict},
    }


def _meaning(verdict: Mapping[str, Any]) -> dict[str, str | None]:
    if verdict["outcome"] == "unjudged":
        return {"meaning": _UNJUDGED, "fault_meaning": None}
    return {"meaning": MEANINGS.get(verdict["stage"], _UNTOLD), "fault_meaning": FAULTS.get(verdict["fault"])}


def _claim(number: int, claim: Mapping[str, Any]) -> dict[str, Any]:
    quote = claim.get("evidence")
    return {
        "number": number,
        "text": cut(claim["text"], QUOTE_CHARS)["text"],
        "start": claim["start"],
        "end": claim["end"],
        "verdict": claim["verdict"],
        "support": claim["support"],
        "contexts": [place + 1 for place in claim["contexts"]],
        "evidence": None if quote is None else cut(quote, QUOTE_CHARS)["text"],
    }


def _wide(verdict: Mapping[str, Any], kept: Mapping[str, Any] | None) -> int:
    return max(len(verdict["contexts"]), 0 if kept is None else len(kept["contexts"]))


def _contexts(
    verdict: Mapping[str, Any], kept: Mapping[str, Any] | None, claims: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """In the retriever's order, each with what was read of it."""
    texts = [] if kept is None else kept["contexts"][:MOST_CONTEXTS]
    read = verdict["contexts"][:MOST_CONTEXTS]
    shown = []
    for rank, (text, reading) in enumerate(zip_longest(texts, read, fillvalue=_NOTHING), start=1):
        name = text.get("id") or reading.get("id")
        shown.append(
            {
                "rank": rank,
                "id": None if name is None else cut(str(name), QUOTE_CHARS)["text"],
                "score": text.get("score"),
                "body": cut(text["text"], CONTEXT_CHARS) if "text" in text else None,
                "relevant": reading.get("relevant"),
                "relevance": reading.get("relevance"),
                "used": reading.get("used"),
                "claims": [each["number"] for each in claims if rank in each["contexts"]],
            }
        )
    return shown


def _text(kept: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    answer, question, reference = kept["answer"], kept.get("question"), kept.get("reference")
    metadata = list((kept.get("metadata") or {}).items())
    return {
        "question": None if question is None else cut(question, QUESTION_CHARS),
        "answer": list(segments(answer[:ANSWER_CHARS], claims)),
        "answer_of": len(answer) if len(answer) > ANSWER_CHARS else None,
        "reference": None if reference is None else cut(reference, QUESTION_CHARS),
        "metadata": [(name, cut(str(value), QUOTE_CHARS)["text"]) for name, value in metadata[:MOST_METADATA]],
        "metadata_left_out": max(0, len(metadata) - MOST_METADATA),
    }


def _cuts(texts: Sequence[str]) -> list[str]:
    return [cut(each, QUOTE_CHARS)["text"] for each in texts[:MOST_CLAIMS]]


def _label(label: Label) -> dict[str, Any]:
    return {
        "annotator": label.annotator,
        "at": label.at,
        "scores": {str(quantity): score for quantity, score in label.scores.items()},
        "claims": [None if each is None else str(each) for each in label.claims[:MOST_CLAIMS]],
        "note": cut(label.note, QUOTE_CHARS)["text"],
    }
