"""Answers with the labels on them, beside the verdicts of the judges in force."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ragwatch.core.labels.calibration import LabelledScore
from ragwatch.core.labels.label import Label
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels.verdicts import AnswerVerdicts


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
