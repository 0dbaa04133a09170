"""Splits a sample into claims and sentences, in the same way as the lexical judge."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from ragwatch.judges.claims.atomic_facts import split
from ragwatch.judges.claims.claims import AnswerClaims, ClaimText, claims_of
from ragwatch.judges.claims.conversation import Statement, repeats, statements_of
from ragwatch.judges.claims.sentences import SentenceSpan, spans
from ragwatch.judges.lexical.language import ENGLISH, language_of
from ragwatch.judges.llm.injection import is_prompt_injection
from ragwatch.judges.llm.quotes import GAP, folded
from ragwatch.model.quantity_row import Part
from ragwatch.model.sample import Role, Sample, Turn
from ragwatch.statistics.self_tests import SELF_TEST_KEY
from ragwatch.statistics.text.alphabet import visible_text

Cut = tuple[int, int]
_claims_of = lru_cache(maxsize=64)(claims_of)  # splitting an answer takes most of the CPU time of a reading


@dataclass(frozen=True, slots=True)
class SampleUnits:
    """A sample in claims and sentences."""

    sample: Sample
    question: str | None  # the question; None when it is unknown or blank
    claims: tuple[Cut, ...]  # (start, end) of the claims of the answer
    abstained: bool
    sentences: tuple[tuple[Cut, ...], ...]  # (start, end) of the sentences of each context
    shown: tuple[int, ...]  # ranks of the contexts that are not blank
    folded: tuple[str, ...]  # each context, normalized for the comparison of quotes
    # the same without sentences that are prompt injections; the same object if there are none
    without_injections: tuple[str, ...]
    reference: tuple[Cut, ...] | None  # (start, end) of the claims of the reference; None without one
    foreign: frozenset[int]  # ranks of the contexts that are in another language than the answer
    # where prompt injections were found: some of `question`, `context`, `answer`, `history`
    instructions: tuple[str, ...]
    history: tuple[Turn, ...]  # the turns before the question that are not blank; empty if the question is unknown
    stated: tuple[Statement, ...]  # what the user stated in these turns
    # number of facts that the embedded judges find in each claim of the answer, by where it stands
    facts: Mapping[Cut, int]
    reference_facts: Mapping[Cut, int]  # the same of the claims of the reference

    @property
    def suspected(self) -> bool:
        """Whether the sample may address the judge. Self-tests do, and are read like any other sample."""
        return bool(self.instructions) and SELF_TEST_KEY not in self.sample.metadata

    def line_of(self, cut: Cut) -> Cut | None:
        """Offsets of the claim that a fact is a part of; None if it is a whole one."""
        line = self.claims[max(0, bisect_right(self.claims, cut[0], key=itemgetter(0)) - 1)]
        return None if line == cut else line

    def repeats_user(self, cut: Cut) -> bool:
        """Whether a claim of the answer, or a fact of one, repeats what the user stated."""
        words = next((claim.words for claim in answer_of(self.sample).claims if (claim.start, claim.end) == cut), None)
        return repeats(self.sample.answer[slice(*cut)] if words is None else words, self.stated)


def question_of(sample: Sample) -> str | None:
    """The question; None when it is unknown or blank."""
    return sample.question if sample.question and sample.question.strip() else None


def answer_of(sample: Sample) -> AnswerClaims:
    """Claims of the answer, from a cache."""
    return _claims_of(sample.answer, question_of(sample))


def units_of(sample: Sample) -> SampleUnits:
    """Split a sample into claims and sentences."""
    question = question_of(sample)
    answer = answer_of(sample)
    reference = claims_of(sample.reference, question).claims if sample.reference is not None else None
    texts = [context.text for context in sample.contexts]
    sentences = tuple(_cuts(spans(text)) for text in texts)
    normalized = tuple(map(folded, texts))
    injected = [is_prompt_injection(text) for text in texts]
    history = tuple(turn for turn in sample.history if turn.text.strip()) if question is not None else ()
    stated = statements_of([turn.text for turn in history if turn.role is Role.USER])
    places = {
        "question": is_prompt_injection(question or ""),
        "context": any(injected),
        "answer": is_prompt_injection(sample.answer),
        "history": any(is_prompt_injection(turn.text) for turn in history),
    }
    language = language_of(sample.answer) or ENGLISH
    rows = zip(texts, sentences, normalized, injected, strict=True)
    return SampleUnits(
        sample=sample,
        question=question,
        claims=_cuts(answer.claims),
        abstained=answer.abstained,
        sentences=sentences,
        shown=tuple(rank for rank, text in enumerate(texts) if text.strip()),
        folded=normalized,
        without_injections=tuple(
            _without_injections(text, cuts) if is_injection else whole for text, cuts, whole, is_injection in rows
        ),
        reference=None if reference is None else _cuts(reference),
        foreign=frozenset(rank for rank, text in enumerate(texts) if (language_of(text) or ENGLISH) != language),
        instructions=tuple(place for place, is_injected in places.items() if is_injected),
        history=history,
        stated=tuple(stated),
        facts=_facts(answer.claims, sample.answer),
        reference_facts=_facts(reference or (), sample.reference or ""),
    )


def _facts(claims: Sequence[ClaimText], text: str) -> dict[Cut, int]:
    text = visible_text(text)
    return {(claim.start, claim.end): len(split(claim, text)) for claim in claims}


def _without_injections(text: str, cuts: Sequence[Cut]) -> str:
    """Normalize a context without the sentences that are prompt injections; empty if no single sentence is one."""
    kept = [text[start:end] for start, end in cuts if not is_prompt_injection(text[start:end])]
    return GAP.join(map(folded, kept)) if len(kept) < len(cuts) else ""


def _cuts(parts: Iterable[ClaimText | SentenceSpan]) -> tuple[Cut, ...]:
    return tuple((part.start, part.end) for part in parts)


def parts_to_ask(units: SampleUnits, requested: frozenset[Part]) -> frozenset[Part]:
    """The requested parts that need a call.

    Claims need none if the answer has no claims or the sample no contexts; address and sub-questions need none without
    a question; the reference needs none if it has no claims.
    """
    compared = Part.REFERENCE in requested and bool(units.reference)
    needs_no_call = {
        Part.CLAIMS: not units.claims or not (units.shown or compared),
        Part.CONTEXTS: not units.shown,
        Part.NEEDS: units.question is None,
        Part.ADDRESS: units.question is None,
        Part.REFERENCE: not compared,
        Part.CRITERIA: False,
    }
    return frozenset(part for part in requested if not needs_no_call[part])
