"""Kind `lexical`: the embedded judge. Pure Python, without a model, network or key; it takes milliseconds per answer.

It compares words, numbers and names. Its limits: it cannot tell a contradiction from an unsupported claim
(`reads_contradiction` is False), detect a small edit made of the context's own words, or split a question into
sub-questions. In twelve other languages than English it measures changes alone (`language`).

A bare "yes" or "no" makes a statement of its question. Words show whether the contexts are about it; that they say
the same is only read where the sentence that is closest to it is affirmative for "yes", or negative for "no". Otherwise
the support of the answer is unknown. Method, data and figures: `training/README.md`.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ragwatch.errors import JudgeError, RagwatchError
from ragwatch.judges.claims.atomic_facts import facts_of
from ragwatch.judges.claims.claims import AnswerClaims, ClaimText
from ragwatch.judges.claims.conversation import NEGATION
from ragwatch.judges.claims.limits import Check, Deadline, check_claims, check_size, checked, unlimited
from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.claims.words import terms
from ragwatch.judges.lexical.language import ENGLISH, LANGUAGES, Language, claims_in, language_of_sample, tables_in
from ragwatch.judges.lexical.reader import CrossEncoder, read
from ragwatch.judges.lexical.rows import Thresholds
from ragwatch.judges.lexical.statements import READING_VERSION, with_reference
from ragwatch.judges.lexical.tables import shipped
from ragwatch.model.evidence import Evidence, UnreadReason
from ragwatch.model.quantities import unread
from ragwatch.model.sample import Sample
from ragwatch.ports import JudgeContext
from ragwatch.statistics.verdict import NO_USAGE, Usage

_YES = re.compile(r"\W{0,3}(?:yes|yeah|yep|true|correct|sure|right)\b", re.IGNORECASE)
_NEGATING = re.compile(r"(?:un|in|im|ir|il|dis|non)(?=\w{3})")
_EVERY = re.compile(r"\b(?:every|all|each|any|always|everyone|anyone|everything|entire|whole)\b", re.IGNORECASE)
_RESTRICTED = re.compile(
    r"\b(?:only|above|over|under|below|between|except|unless|if|when|until|at least|at most|up to|more than|less than"
    r"|fewer than|starting|exclud\w+|selected|some|most|certain|eligible)\b",
    re.IGNORECASE,
)


def readable(
    answer: AnswerClaims, sample: Sample, check: Check = unlimited
) -> tuple[AnswerClaims, UnreadReason | None]:
    """The claims that can be read, and why there are none where that is not the answer's own doing.

    Of several bare answers none is read. `check` is called after each sentence that is compared.
    """
    if language_of_sample(sample) is not None:
        return AnswerClaims((), answer.abstained), UnreadReason.LANGUAGE
    short = [
        claim  # which has the words of the question
        for claim in answer.claims
        if claim.words == sample.question and not terms(sample.answer[claim.start : claim.end])
    ]
    undecided = {claim for claim in short if _is_undecided(claim, sample, check)} if len(short) == 1 else set(short)
    kept = tuple(claim for claim in answer.claims if claim not in undecided)
    reason = UnreadReason.SHORT_ANSWER if answer.claims and not kept else None
    return answer._replace(claims=kept), reason


def _is_undecided(claim: ClaimText, sample: Sample, check: Check) -> bool:
    """Whether no sentence of the contexts decides a bare yes or no."""
    text, question = sample.answer[claim.start : claim.end], claim.words
    sentence = _closest(question, [context.text for context in sample.contexts], check)
    if sentence is None:
        return False  # no sentence is about it: it is not in the contexts
    if NEGATION.search(question) or _is_narrower(sentence, question) or _is_opposite(sentence, question):
        return True
    return (NEGATION.search(sentence) is None) is not (_YES.match(text) is not None)


def _is_narrower(sentence: str, question: str) -> bool:
    """Whether a sentence is about some, where a question asks about all.

    >>> _is_narrower("Shipping is free for orders above 50 euros.", "Is shipping free for every order?")
    True
    """
    asked = _EVERY.search(question) is not None and _RESTRICTED.search(question) is None
    return asked and _EVERY.search(sentence) is None and _RESTRICTED.search(sentence) is not None


def _is_opposite(sentence: str, question: str) -> bool:
    """Whether one of the two has a word of the other with a negating prefix.

    >>> _is_opposite("It is available on all plans.", "Is it unavailable on the Free plan?")
    True
    """
    both = frozenset(terms(sentence)), frozenset(terms(question))
    return any(
        _NEGATING.sub("", name, count=1) in (one - other) for one, other in (both, both[::-1]) for name in other - one
    )


def _closest(question: str, contexts: Sequence[str], check: Check) -> str | None:
    """The sentence with the most words of a question; None without one."""
    asked = frozenset(terms(question))
    sentences = (text[span.start : span.end] for text in contexts for span in spans(text))
    shared = {one: len(asked.intersection(terms(one))) for one in checked(sentences, check)}
    best = max(shared, key=shared.__getitem__, default=None)
    return best if best is not None and shared[best] else None


Reason = TypeVar("Reason", bound=str)
_READ_BY = {"support", "contradiction", "relevance", "max_pairs"}  # as far as the kind has them
Probability = Annotated[float, Field(gt=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1)]


class Options(BaseModel):
    """Settings of the embedded judge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    support: Probability = Field(0.5, description="Probability at which a claim counts as supported.")
    relevance: Probability = Field(0.5, description="Probability at which a context counts as relevant.")
    max_contexts: Count = Field(1000, description="A sample with more contexts is left unjudged (`too_large`).")
    max_claims: Count = Field(500, description="An answer, or a reference, with more claims (facts) is left unjudged.")
    max_chars: Count = Field(
        1_000_000,
        description=(
            "Question, history, answer, reference and contexts with more characters together are left unjudged."
        ),
    )
    max_answer_chars: Count = Field(
        100_000, description="An answer, or a reference, with more characters is left unjudged."
    )
    max_question_chars: Count = Field(
        50_000, description="A sample whose question, or the history before it, has more characters is left unjudged."
    )
    max_seconds: Annotated[float, Field(gt=0.0, le=3600.0)] = Field(
        2.0, description="A sample that takes more CPU seconds to read is left unjudged."
    )
    languages: tuple[Language, ...] = Field(
        LANGUAGES, description="Languages besides English that are read for changes; the scores of others are unknown."
    )
    concurrency: Count = Field(
        1, description="Maximum number of samples read concurrently, each in a thread; more than one gains little."
    )


class LexicalJudge:
    """Reads samples by comparing words.

    Attributes:
        model: Version of the fitted tables.
        version: Changes with the fitted tables, with how references are read, and with the thresholds.
        cross_encoder: Rules on claims after the comparison of words; None in the lexical judge.
    """

    kind = "lexical"
    cross_encoder: CrossEncoder | None = None

    def __init__(self, options: Options, *, name: str, context: JudgeContext) -> None:
        self._options = options
        self._telemetry = context.telemetry
        self._criteria = tuple(criterion.name for criterion in context.criteria)  # which need an LLM judge
        self._tables = shipped()
        self._thresholds = Thresholds(options.support, options.relevance)
        self.name = name
        self.model = f"lexical-{self._tables.version}"
        self.version = f"{self.model}-r{READING_VERSION}{version_suffix(options)}"
        self.concurrency = options.concurrency

    def ready_in(self) -> float:
        """Always 0: it never has to wait."""
        return 0.0

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """Read one sample, in a thread so that the event loop is not blocked; a JudgeError if it is too large."""
        start = perf_counter()
        try:
            evidence = await asyncio.to_thread(self.evidence, sample)
            return replace(evidence, criteria=unread(self._criteria)) if self._criteria else evidence, NO_USAGE
        except JudgeError as error:
            self._telemetry.call_failed(self.name, self.model, error.reason, str(error))
            raise
        finally:
            self._telemetry.judge_called(self.name, self.model, perf_counter() - start)
            self._telemetry.judge_spent(self.name, self.model, NO_USAGE.by_direction(), 0.0)

    def evidence(self, sample: Sample) -> Evidence:
        """Read one sample in the calling thread; a JudgeError if it is larger than the options allow."""
        max_claims = self._options.max_claims
        self._check_size(sample)
        check = Deadline(self._options.max_seconds)
        language = language_of_sample(sample)
        if language in self._options.languages:
            return self._in_other_language(sample, language, check)
        answer = facts_of(sample.answer, sample.question, max_claims=max_claims, check=check)
        check_claims(len(answer.claims), max_claims)
        answer, unread = readable(answer, sample, check)
        cross_encoder = self._cross_encoder_within(sample, check)
        evidence = read(sample, answer, self._tables, self._thresholds, cross_encoder, unread=unread, check=check)
        return with_reference(
            evidence, sample, answer, self._tables, self._thresholds, max_claims=max_claims, check=check
        )

    def _in_other_language(self, sample: Sample, language: str, check: Deadline) -> Evidence:
        """Read by the words of another language. A reference is not read, and contradictions are not."""
        tables, max_claims = tables_in(language), self._options.max_claims
        answer = claims_in(sample, max_claims=max_claims, check=check)
        check_claims(len(answer.claims), max_claims)
        kept = tuple(claim for claim in answer.claims if tables.terms(claim.words))
        unread = UnreadReason.SHORT_ANSWER if answer.claims and not kept else None
        evidence = read(sample, answer._replace(claims=kept), tables, self._thresholds, unread=unread, check=check)
        return replace(evidence, language=language)

    def _cross_encoder_within(self, sample: Sample, deadline: Deadline) -> CrossEncoder | None:  # noqa: ARG002
        """The cross-encoder for one sample, for judges with a model."""
        return self.cross_encoder

    def _check_size(self, sample: Sample) -> None:
        """Reject a sample by its size, before anything is read."""
        options = self._options
        check_size(len(sample.contexts), options.max_contexts, "contexts")
        history, reference = sum(len(turn.text) for turn in sample.history), len(sample.reference or "")
        for name, size, limit in (
            ("question", len(sample.question or ""), options.max_question_chars),
            ("history", history, options.max_question_chars),
            ("answer", len(sample.answer), options.max_answer_chars),
            ("reference", reference, options.max_answer_chars),
        ):
            check_size(size, limit, f"characters of its {name}")
        check_size(sample.chars + reference, options.max_chars, "characters")

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""


class ModelJudge(LexicalJudge):
    """Reads samples by comparing words, and rules on claims with a model.

    Without its model it falls back to the lexical judge, with the version of that one, and logs an error.

    Attributes:
        version: Changes with the model, the lexical tables, the thresholds and `max_pairs`.
        fallback: Why it has fallen back to the lexical judge; None if it has a model.
    """

    fallback: str | None = None

    def _start(self, load: Callable[[], str], options: Options, reasons: Iterable[Reason]) -> None:
        """Load the model, whose version `load` returns, and count no claim yet for the reasons not to read one."""
        lexical_version = f"{self.model}-r{READING_VERSION}"
        try:
            self.model = load()
        except ImportError as error:
            package = (error.name or str(error)).replace("_", "-")
            extra = f"{self.kind}-torch" if package in ("torch", "transformers", "safetensors") else self.kind
            self.fallback = f"{package} is not installed; pip install 'ragwatch-exporter[{extra}]'"
        except RagwatchError as error:
            self.fallback = str(error)
        else:
            self.version = f"{self.model}-{lexical_version}{version_suffix(options)}"
            self._count_lexical_only(dict.fromkeys(reasons, 0))  # so that `increase` sees the first
        self._telemetry.judge_fell_back(self.name, self.version, self.fallback)

    def _count_lexical_only(self, counts: Mapping[Reason, int]) -> None:
        """Count what a model did not read, by reason."""
        for reason, count in counts.items():
            self._telemetry.lexical_fallback(self.name, reason, count)


def version_suffix(options: Options) -> str:
    """Options of an embedded judge or a detector that differ from the defaults: verdicts by them share no mean.

    >>> version_suffix(Options(relevance=0.4, languages=("fr", "de"))), version_suffix(Options())
    ('-relevance0.4-de+en+fr', '')
    """
    changed = options.model_dump(include=_READ_BY, exclude_defaults=True)
    languages = options.languages
    others = "" if set(languages) == set(LANGUAGES) else "-" + "+".join(sorted({ENGLISH, *languages}))
    return "".join(f"-{name}{value:g}" for name, value in changed.items()) + others


def build(options: Options, *, name: str, context: JudgeContext) -> LexicalJudge:
    """Build the judge, with the tables of the package."""
    return LexicalJudge(options, name=name, context=context)
