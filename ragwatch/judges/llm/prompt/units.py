"""Units: a sample cut into what is asked about. The same cuts as the embedded judge's, so that rows mean the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ragwatch.core.sample import Sample
from ragwatch.judges.lexical.claims import AnswerClaims, ClaimText, claims_of
from ragwatch.judges.lexical.sentences import SentenceSpan, spans
from ragwatch.judges.llm.injection import is_prompt_injection
from ragwatch.judges.llm.prompt.parts import Part
from ragwatch.judges.llm.prompt.quotes import folded

Cut = tuple[int, int]
_GAP = " ¶ "  # no quote spans what was left out
_claims_of = lru_cache(maxsize=64)(claims_of)  # cutting an answer is most of what a reading costs us


@dataclass(frozen=True, slots=True)
class SampleUnits:
    """A sample, cut.

    Attributes:
        sample: The sample.
        question: What was asked; None when it is unknown or blank.
        claims: Where the answer's claims start and end.
        abstained: The answer says that it does not know, and claims nothing.
        sentences: Where the sentences of each context start and end.
        shown: Ranks of the contexts that hold any text; the others are of no use to anything.
        folded: Each context as quotes are compared.
        sober: The same without sentences that speak to a judge; the same object where there are none.
        reference: Where the claims of the reference start and end; None without one.
        instructions: Where instruction-like text stands: some of `question`, `context`, `answer`.
    """

    sample: Sample
    question: str | None
    claims: tuple[Cut, ...]
    abstained: bool
    sentences: tuple[tuple[Cut, ...], ...]
    shown: tuple[int, ...]
    folded: tuple[str, ...]
    sober: tuple[str, ...]
    reference: tuple[Cut, ...] | None
    instructions: tuple[str, ...]


def question_of(sample: Sample) -> str | None:
    """What was asked; None when it is unknown or blank."""
    return sample.question if sample.question and sample.question.strip() else None


def answer_of(sample: Sample) -> AnswerClaims:
    """What the answer claims: cut once for whoever looks at the sample next."""
    return _claims_of(sample.answer, question_of(sample))


def units_of(sample: Sample) -> SampleUnits:
    """The sample, cut."""
    question = question_of(sample)
    answer = answer_of(sample)
    reference = claims_of(sample.reference, question).claims if sample.reference is not None else None
    texts = [context.text for context in sample.contexts]
    sentences = tuple(_cuts(spans(text)) for text in texts)
    whole = tuple(map(folded, texts))
    spoken = [is_prompt_injection(text) for text in texts]
    rows = zip(texts, sentences, whole, spoken, strict=True)
    return SampleUnits(
        sample=sample,
        question=question,
        claims=_cuts(answer.claims),
        abstained=answer.abstained,
        sentences=sentences,
        shown=tuple(rank for rank, text in enumerate(texts) if text.strip()),
        folded=whole,
        sober=tuple(_sober(text, cuts) if speaks else fold for text, cuts, fold, speaks in rows),
        reference=None if reference is None else _cuts(reference),
        instructions=_places(question or "", sample.answer, in_context=any(spoken)),
    )


def _places(question: str, answer: str, *, in_context: bool) -> tuple[str, ...]:
    found = {"question": is_prompt_injection(question), "context": in_context, "answer": is_prompt_injection(answer)}
    return tuple(place for place, speaks in found.items() if speaks)


def _sober(text: str, cuts: Sequence[Cut]) -> str:
    """A context that speaks to a judge, folded without the sentences that do; empty when that is no single sentence."""
    kept = [text[start:end] for start, end in cuts if not is_prompt_injection(text[start:end])]
    return folded(_GAP.join(kept)) if len(kept) < len(cuts) else ""


def _cuts(found: Sequence[ClaimText | SentenceSpan]) -> tuple[Cut, ...]:
    return tuple((each.start, each.end) for each in found)


def asked(units: SampleUnits, wanted: frozenset[Part]) -> frozenset[Part]:
    """The wanted parts that are not known without asking.

    An answer without claims has nothing to support, and without contexts nothing supports it; without a question there
    is nothing to address or to need; a reference without claims has nothing to compare.
    """
    compared = Part.REFERENCE in wanted and bool(units.reference)
    known = {
        Part.CLAIMS: not units.claims or not (units.shown or compared),
        Part.CONTEXTS: not units.shown,
        Part.NEEDS: units.question is None,
        Part.ADDRESS: units.question is None,
        Part.REFERENCE: not compared,
    }
    return frozenset(part for part in wanted if not known[part])
