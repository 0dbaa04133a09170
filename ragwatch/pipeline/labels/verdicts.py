"""Verdicts of the judges in force on one answer, and the answers that have labels by people beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from types import MappingProxyType

from ragwatch.model.criteria import Criterion
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import SampleRecord
from ragwatch.ports import Query, Store
from ragwatch.statistics.estimators.level import Rates
from ragwatch.statistics.labels.calibration import LabelledScore
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.verdict_line import VerdictRecord

MAX_JUDGES = 50
DAY = 86400.0
Scores = Mapping[Quantity, float | None]


@dataclass(frozen=True, slots=True)
class LabelRules:
    """Which judges labels are compared with, and how."""

    judges: Mapping[str, str]  # version in force of each judge, by name
    chain: tuple[str, ...]  # the judge that reads every draw, and the next one of its cascade, if any
    second: frozenset[Quantity] = frozenset(Quantity)  # quantities of the second judge
    # whether the second judge corrects the first one, for an estimate in the terms of the second
    reference: bool = False
    fresh: float = 30 * DAY  # seconds for which a label counts
    minimum: int = 30  # labels below which nothing is estimated
    # share of the samples for people that is selected by how unsure the judges are, in [0, 1)
    share_unsure: float = 0.5
    double: float = 0.1  # share of these samples that a second person labels, too
    confidence: float = 0.95  # two-sided level of the intervals
    leave_out: frozenset[str] = frozenset()  # annotators whose labels do not count
    trusted: frozenset[str] = frozenset()  # annotators because of whom no interval is widened
    per_hour: int = 200  # labels that an authenticated annotator may send per hour
    criteria: tuple[Criterion, ...] = ()  # the configured criteria, which people can answer too
    # what is known of the error of a judge, by its name and quantity: its rates on labelled families
    families: Mapping[tuple[str, Quantity], tuple[Rates, ...]] = field(default_factory=dict)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """All quantities: those of ragwatch, and the criteria."""
        return (*Quantity, *(criterion.quantity for criterion in self.criteria))

    def counts(self, label: Label) -> bool:
        """Whether a label counts: it is not taken back, and its annotator is not left out."""
        return label.revoked is None and label.annotator not in self.leave_out

    def readers(self, quantity: Quantity) -> tuple[str, ...]:
        """Judges of a quantity, each of which reads a part of what the one before it has read."""
        return self.chain if quantity in self.second else self.chain[:1]


@dataclass(frozen=True, slots=True)
class AnswerVerdicts:
    """One answer, with the verdicts of the judges in force."""

    key: str  # identity in the store
    route: str
    at: float  # when it was answered, in seconds since the epoch
    records: Mapping[str, VerdictRecord]  # verdict by judge in force that has judged it
    scores: Mapping[str, Scores]  # scores by judge
    probabilities: Mapping[str, float]  # inclusion probability by judge
    sample: SampleRecord | None = None  # the sample; None once retention has deleted it


def answer_verdicts(store: Store, judges: Mapping[str, str], key: str, *, texts: bool = True) -> AnswerVerdicts | None:
    """Read the verdicts on an answer, and its texts; None where no judge (by name: its version) has judged it."""
    stored = [
        row
        for row in store.find(Query(key=key, limit=MAX_JUDGES, texts=texts))
        if row.verdict.judged and judges.get(row.verdict.judge) == row.verdict.judge_version
    ]
    if not stored:
        return None
    records = {row.verdict.judge: row.verdict for row in stored}
    first = stored[0].verdict
    return AnswerVerdicts(
        key=key,
        route=first.route,
        at=first.at,
        records=MappingProxyType(records),
        scores={name: record.scores for name, record in records.items()},
        probabilities={name: record.probability for name, record in records.items()},
        sample=stored[0].sample,
    )


@dataclass(frozen=True, slots=True)
class AnswerLabel:
    """The labels on one answer: mean scores, and the probability with which it was selected for labelling."""

    verdicts: AnswerVerdicts
    scores: Mapping[Quantity, float]
    probability: float | None
    labels: tuple[Label, ...] = ()

    def without(self, annotator: str) -> AnswerLabel:
        """The labels of the others, as if this annotator had labelled nothing."""
        others = [
            replace(label, probability=label.without.get(annotator, label.probability))
            for label in self.labels
            if annotator not in (label.annotator, label.owner)
        ]
        return answer_label(self.verdicts, others)


def answer_label(verdicts: AnswerVerdicts, labels: Sequence[Label]) -> AnswerLabel:
    """Combine the labels on one answer: mean scores over the people to whom it was given, or else who labelled it."""
    known = [label for label in labels if label.probability is not None]
    counted = known or labels
    quantities = {quantity for label in counted for quantity in label.scores}
    scores = {
        quantity: fmean(label.scores[quantity] for label in counted if quantity in label.scores)
        for quantity in quantities
    }
    return AnswerLabel(verdicts, scores, known[-1].probability if known else None, tuple(counted))


def annotators_of(answers: Iterable[AnswerLabel], quantity: Quantity) -> dict[str, list[AnswerLabel]]:
    """The answers that each annotator has scored, by annotator, most answers first."""
    by_annotator: dict[str, list[AnswerLabel]] = {}
    for answer in answers:
        for label in answer.labels:
            if quantity in label.scores:
                by_annotator.setdefault(label.annotator, []).append(answer)
    return dict(sorted(by_annotator.items(), key=lambda item: (-len(item[1]), item[0])))


def pairs_of(answers: Sequence[AnswerLabel], judge: str, quantity: Quantity) -> list[LabelledScore]:
    """Answers that both a judge and people have scored."""
    pairs = []
    for answer in answers:
        score = answer.verdicts.scores.get(judge, {}).get(quantity)
        if score is not None and quantity in answer.scores:
            pairs.append(LabelledScore(answer.verdicts.key, score, answer.scores[quantity], answer.probability))
    return pairs
