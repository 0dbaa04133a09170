"""The quantities: one row for each, from which scores, series, prompts, rules, dashboards, labels and docs are derived.

To add one: a row here, its function in `statistics.scores`, and a test of it. CONTRIBUTING.md shows it as a diff.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ragwatch.model.enumerations import RowEnum
from ragwatch.model.evidence import CriterionAnswer, CriterionReading
from ragwatch.model.quantity_row import (
    Better,
    Board,
    Explanation,
    GateSeverity,
    LabelQuestionRow,
    Need,
    Part,
    QuantityRow,
    Reply,
)
from ragwatch.model.stages import Stage

_ALL_JUDGES: frozenset[str] = frozenset()
_OF_CLAIMS = frozenset({Need.LANGUAGE, Need.CLAIMS_READ, Need.AN_ANSWER, Need.CLAIMS})
_OF_CONTEXTS = frozenset({Need.LANGUAGE, Need.CONTEXTS})


class Quantity(RowEnum):
    """The quality metrics of an answer. The values are parts of series names.

    That of a configured criterion (`Criterion`) is a quantity too, which `quantity_of` returns: iteration and
    `Quantity(name)` know those of ragwatch only.
    """

    row: QuantityRow

    @property
    def is_criterion(self) -> bool:
        """Whether it is a criterion of the operator."""
        return self not in _OF_RAGWATCH

    FAITHFULNESS = QuantityRow(
        name="faithfulness",
        meaning="share of the claims in an answer that the contexts support",
        formula="supported claims / claims",
        better=Better.HIGH,
        stage=Stage.GENERATION,
        parts=frozenset({Part.CLAIMS}),
        needs=_OF_CLAIMS,
        unread_by=_ALL_JUDGES,
        threshold=0.85,
        severity=GateSeverity.BLOCK,
        drift=True,
        listed=True,
        headline=1,
        board=Board.GENERATION,
        question=LabelQuestionRow("do the contexts support it?", Reply.DEGREE, unless_claims=True),
        explanation=Explanation.UNSUPPORTED_CLAIMS,
    )
    CONTRADICTION = QuantityRow(
        name="contradiction",
        meaning="share of the claims in an answer that the contexts contradict; lower is better",
        formula="contradicted claims / claims",
        better=Better.LOW,
        stage=Stage.GENERATION,
        parts=frozenset({Part.CLAIMS}),
        needs=_OF_CLAIMS | {Need.CONTRADICTION},
        unread_by=frozenset({"lexical"}),
        board=Board.GENERATION,
        explanation=Explanation.CONTRADICTED_CLAIMS,
    )
    CONTEXT_PRECISION = QuantityRow(
        name="context_precision",
        meaning="rank-weighted precision of the contexts, high if relevant ones rank first",
        formula="sum over k of precision@k * relevant_k / relevant contexts; 0 if none is relevant",
        better=Better.HIGH,
        stage=Stage.RETRIEVAL,
        parts=frozenset({Part.CONTEXTS}),
        needs=_OF_CONTEXTS,
        unread_by=_ALL_JUDGES,
        threshold=0.70,
        severity=GateSeverity.WARN,
        drift=True,
        listed=True,
        headline=3,
        board=Board.RETRIEVAL,
        explanation=Explanation.RELEVANT_CONTEXTS,
    )
    CONTEXT_SENTENCE_PRECISION = QuantityRow(
        name="context_sentence_precision",
        meaning="share of the sentences in the retrieved contexts that are relevant",
        formula="relevant context sentences / context sentences",
        better=Better.NEITHER,
        stage=Stage.RETRIEVAL,
        parts=frozenset({Part.CONTEXTS}),
        needs=_OF_CONTEXTS,
        unread_by=_ALL_JUDGES,
    )
    ANSWER_RELEVANCY = QuantityRow(
        name="answer_relevancy",
        meaning="how completely an answer addresses its question; abstentions are excluded",
        formula="1 fully, 0.5 partially, 0 not at all",
        better=Better.HIGH,
        stage=Stage.GENERATION,
        parts=frozenset({Part.ADDRESS}),
        needs=frozenset({Need.LANGUAGE, Need.AN_ANSWER}),
        unread_by=_ALL_JUDGES,
        threshold=0.75,
        severity=GateSeverity.BLOCK,
        drift=True,
        listed=True,
        headline=2,
        board=Board.GENERATION,
        question=LabelQuestionRow("does it address the question?", Reply.DEGREE),
        explanation=Explanation.ADDRESS,
    )
    NEED_RECALL = QuantityRow(
        name="need_recall",
        meaning="share of the sub-questions of a question that the retrieved contexts can answer",
        formula="sub-questions answerable from the contexts / sub-questions",
        better=Better.HIGH,
        stage=Stage.RETRIEVAL,
        parts=frozenset({Part.NEEDS}),
        needs=frozenset(),
        unread_by=frozenset({"lexical", "local", "detector"}),
        board=Board.RETRIEVAL,
        explanation=Explanation.MISSING_INFORMATION,
    )
    TOP_RANKED_IGNORED = QuantityRow(
        name="top_ranked_ignored",
        meaning="share of answers that do not use the top-ranked context; lower is better",
        formula="1 if no claim uses the first context, else 0",
        better=Better.LOW,
        binary=True,
        stage=Stage.ALIGNMENT,
        # An ignored context means nothing when the answer abstains, and its fault needs its relevance.
        parts=frozenset({Part.CLAIMS, Part.CONTEXTS, Part.ADDRESS}),
        needs=_OF_CLAIMS | {Need.CONTEXTS},
        unread_by=_ALL_JUDGES,
        threshold=0.30,
        drift=True,
        tolerance=0.05,  # it moves by a few points without any fault
        own_alert=True,
        headline=4,
        board=Board.RETRIEVAL,
        question=LabelQuestionRow("does it make use of context 1?", Reply.YES, yes=0.0, about_contexts=True),
    )
    CONTEXT_USE = QuantityRow(
        name="context_use",
        meaning="share of the retrieved contexts that an answer uses",
        formula="contexts that a claim uses / contexts",
        better=Better.NEITHER,
        stage=Stage.ALIGNMENT,
        parts=frozenset({Part.CLAIMS, Part.ADDRESS}),
        needs=_OF_CLAIMS | {Need.CONTEXTS},
        unread_by=_ALL_JUDGES,
        board=Board.GENERATION,
    )
    CITATION_PRECISION = QuantityRow(
        name="citation_precision",
        meaning="share of the cited contexts that support the claims citing them; absent where answers cite nothing",
        formula="cited contexts that support the claim citing them / citations",
        better=Better.HIGH,
        stage=Stage.GENERATION,
        parts=frozenset({Part.CLAIMS}),
        needs=_OF_CLAIMS | {Need.CITATIONS},
        unread_by=_ALL_JUDGES,
        board=Board.GENERATION,
    )


_OF_RAGWATCH: frozenset[Quantity] = frozenset(Quantity)
LOW_IS_GOOD = frozenset(quantity for quantity in Quantity if quantity.row.better is Better.LOW)
"""Quantities for which lower is better: their threshold is an upper limit, that of the others a lower limit."""


def is_worse(quantity: Quantity, low: float, high: float, limit: float) -> bool:
    """Whether a whole interval is worse than a limit; of a score, `low` and `high` are the same."""
    return low > limit if quantity in LOW_IS_GOOD else high < limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRow:
    """All that depends on the quantity alone; the attributes are those of `QuantityRow`."""

    name: str
    stage: Stage
    threshold: float | None
    severity: GateSeverity | None


class ReferenceQuantity(RowEnum):
    """Quality metrics that need a reference, a known good answer: one row for each."""

    row: ReferenceRow

    CONTEXT_RECALL = ReferenceRow(
        name="context_recall", stage=Stage.RETRIEVAL, threshold=0.80, severity=GateSeverity.WARN
    )
    CORRECTNESS = ReferenceRow(name="correctness", stage=Stage.GENERATION, threshold=None, severity=None)
    CONTEXT_PRECISION_WITH_REFERENCE = ReferenceRow(
        name="context_precision_with_reference", stage=Stage.RETRIEVAL, threshold=None, severity=None
    )
    CONTEXT_F1 = ReferenceRow(name="context_f1", stage=Stage.RETRIEVAL, threshold=None, severity=None)


_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
MAX_NAME_CHARS = 40
RESERVED = frozenset(
    {
        *("correctness", "context_recall", "context_precision_with_reference", "context_f1"),  # with a reference
        *("recall", "precision", "f1", "ndcg", "mrr", "user_score"),  # other metrics
        *("expected", "segments", "criteria", "routes", "rejudged"),  # keys that stand beside names of quantities
    }
)
"""Names that no criterion can have, beside those of quantities."""


@lru_cache(256)
def quantity_of(name: str) -> Quantity:
    """Return the quantity of a name: one of ragwatch, or a criterion; ValueError if it can be neither."""
    if name in _OF_RAGWATCH:
        return Quantity[name.upper()]
    if not is_quantity_name(name):
        raise ValueError(
            f"{name!r:.60} is no name of a quantity; use lower-case words with underscores, such as polite_tone, of at "
            f"most {MAX_NAME_CHARS} characters, that ragwatch does not use itself"
        )
    criterion = str.__new__(Quantity, name)  # as `enum.Flag` makes its composite members
    criterion._name_, criterion._value_ = name.upper(), name
    criterion.row = _row_of_criterion(name)
    return criterion


def is_quantity_name(name: str) -> bool:
    """Return whether a name is that of a quantity, or may be that of a criterion."""
    return len(name) <= MAX_NAME_CHARS and _NAME.fullmatch(name) is not None and name not in RESERVED


def _row_of_criterion(name: str) -> QuantityRow:
    """The row that all criteria share; the configuration says what they mean."""
    return QuantityRow(
        name=name,
        meaning="share of answers with yes to the criterion",
        formula="1 for yes, 0 for no",
        better=Better.HIGH,
        binary=True,
        stage=Stage.GENERATION,
        parts=frozenset({Part.CRITERIA}),
        needs=frozenset(),
        unread_by=frozenset({"lexical", "local", "detector"}),
        explanation=Explanation.QUOTE,
    )


MAX_CRITERIA = 20
MAX_QUESTION_CHARS, MAX_EXAMPLE_CHARS, MAX_EXAMPLES = 500, 500, 5


@dataclass(frozen=True, slots=True)
class Example:
    """An answer of a service, or a part of one, for which the answer to a criterion is known."""

    text: str
    answer: CriterionAnswer


@dataclass(frozen=True, slots=True)
class Criterion:
    """A question of the operator about each answer, answered by an LLM judge with yes, no, or does not apply.

    It is a quantity like those of ragwatch: 1 for yes, which is good, 0 for no, unknown where it does not apply. Its
    name is in no other use, and its texts have one line each (else ValueError).
    """

    name: str  # name of the quantity; see `quantity_of` for its form
    question: str
    examples: tuple[Example, ...] = ()

    def __post_init__(self) -> None:
        if not quantity_of(self.name).is_criterion:
            raise ValueError(f"{self.name!r} is a quantity of ragwatch; use another name")
        _check_text("question", self.question, MAX_QUESTION_CHARS)
        if len(self.examples) > MAX_EXAMPLES:
            raise ValueError(f"examples: are {len(self.examples)}; give at most {MAX_EXAMPLES}")
        for example in self.examples:
            _check_text("examples", example.text, MAX_EXAMPLE_CHARS)

    @property
    def quantity(self) -> Quantity:
        """The quantity that it is scored as."""
        return quantity_of(self.name)


def _check_text(what: str, text: str, limit: int) -> None:
    if not text.strip() or len(text) > limit or not text.isprintable():
        raise ValueError(f"{what}: must be one line of 1 to {limit} characters")


def unread(names: Iterable[str]) -> tuple[CriterionReading, ...]:
    """Return the readings of a judge that does not read criteria."""
    return tuple(CriterionReading(name, None) for name in names)
