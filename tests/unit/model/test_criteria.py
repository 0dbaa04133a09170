"""Criteria: what their names and texts may be, what they are scored as, and where their quantities stand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_draw, a_record, a_sample, a_verdict, an_evidence

from ragwatch.model.evidence import CriterionAnswer, CriterionReading
from ragwatch.model.quantities import (
    MAX_EXAMPLES,
    MAX_NAME_CHARS,
    MAX_QUESTION_CHARS,
    RESERVED,
    Criterion,
    Example,
    Quantity,
    quantity_of,
    unread,
)
from ragwatch.model.quantity_row import UnknownReason
from ragwatch.model.stages import Stage
from ragwatch.offline.gate_line import stage_of
from ragwatch.statistics.compare_line import answer_of, compare_verdicts
from ragwatch.statistics.labels.label import Label, from_record
from ragwatch.statistics.labels.selection import JudgeScores, unsure
from ragwatch.statistics.scores import score_all, why_unknown
from ragwatch.statistics.set_scores import metric_of, score_of
from ragwatch.statistics.verdict import Judged
from ragwatch.statistics.verdict_line import parse_verdict_line, verdict_line

POLITE = quantity_of("polite")
YES, NO, DOES_NOT_APPLY = CriterionAnswer
_names = st.from_regex(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", fullmatch=True).filter(lambda name: len(name) <= MAX_NAME_CHARS)


def judged(name: str = "a", answer: CriterionAnswer | None = YES, **parts: Any) -> Judged:
    """A verdict with an answer to a criterion."""
    draw = a_draw(name, **parts)
    verdict = a_verdict(draw, an_evidence((1, 0), criteria=(CriterionReading("polite", answer, "purr"),)))
    assert isinstance(verdict, Judged)
    return verdict


@given(_names)
def test_a_name_is_a_quantity_like_those_of_ragwatch(name: str) -> None:
    """It is the text itself, equal and hashed alike, but no member that iteration knows."""
    if name in RESERVED or name in set(Quantity):
        return
    quantity = quantity_of(name)
    assert isinstance(quantity, Quantity)
    assert quantity.is_criterion
    assert (str(quantity), f"{quantity}", quantity.value, {quantity: 1}[name]) == (name, name, name, 1)  # type: ignore[index]
    assert quantity == quantity_of(name)
    assert quantity not in tuple(Quantity)
    with pytest.raises(ValueError, match=name):
        Quantity(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Polite",
        "a__b",
        "_a",
        "1a",
        "a-b",
        "a b",
        "a\n",
        "é",
        "a" * 41,
        *sorted({*RESERVED, "expected", "rejudged"}),
    ],
)
def test_other_names_are_refused(name: str) -> None:
    """With the form that a name must have."""
    with pytest.raises(ValueError, match="use lower-case words with underscores"):
        quantity_of(name)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"name": "faithfulness"}, "'faithfulness' is a quantity of ragwatch"),
        ({"question": " "}, "question: must be one line"),
        ({"question": "a\u2028b"}, "question: must be one line"),
        ({"question": "a" * (MAX_QUESTION_CHARS + 1)}, "question: must be one line of 1 to 500"),
        ({"examples": (Example("a", YES),) * (MAX_EXAMPLES + 1)}, "examples: are 6; give at most 5"),
        ({"examples": (Example("a\tb", YES),)}, "examples: must be one line"),
    ],
)
def test_texts_are_limited(parts: dict[str, Any], message: str) -> None:
    """One line each, so that a rubric keeps its shape."""
    with pytest.raises(ValueError, match=message):
        Criterion(**({"name": "polite", "question": "Is it polite?"} | parts))


@pytest.mark.parametrize(
    ("answer", "score", "reason"),
    [(YES, 1.0, None), (NO, 0.0, None), (DOES_NOT_APPLY, None, "does_not_apply"), (None, None, "not_read")],
)
def test_scores_and_reasons(answer: CriterionAnswer | None, score: float | None, reason: str | None) -> None:
    """Yes is 1, no is 0; everything else is unknown with its reason, and so is a criterion that nobody read."""
    evidence = an_evidence((1, 0), criteria=(CriterionReading("kind", YES), CriterionReading("polite", answer)))
    assert score_all(evidence)[POLITE] == score
    assert why_unknown(evidence, POLITE) == reason
    assert why_unknown(an_evidence((1, 0), criteria=unread(["polite"])), POLITE) is UnknownReason.NOT_READ
    assert why_unknown(an_evidence((1, 0)), POLITE) is UnknownReason.NOT_READ


def test_a_verdict_line_says_what_was_answered() -> None:
    """It has the score among the others, and answer and quote; and it is read back as it was."""
    verdict = judged(answer=NO)
    line = verdict_line(verdict)
    assert list(line["scores"]) == [*map(str, Quantity), "polite"]
    assert line["criteria"] == [{"name": "polite", "answer": "no", "quote": "purr"}]
    record = a_record(verdict)
    assert record.scores == verdict.scores
    assert record.criteria == (CriterionReading("polite", NO, "purr"),)
    with pytest.raises(ValueError, match="not a verdict line"):
        parse_verdict_line({**line, "criteria": [{"name": "polite", "answer": "maybe"}]})


def test_comparisons_and_the_gate_take_them() -> None:
    """A criterion is compared where both sides have it, is a metric by its name, and points at generation."""
    sides = [
        [judged(f"{side}{index}", answer, question=f"Why {index}?") for index in range(8)]
        for side, answer in (("a", YES), ("b", NO))
    ]
    rows = {row.metric: row.overall for row in compare_verdicts(*sides).rows}
    assert (rows["polite"].a, rows["polite"].b) == (1.0, 0.0)
    assert answer_of(a_record(judged()), a_sample().to_record()).scores["polite"] == 1.0
    metric = metric_of("polite", criteria=True)
    assert metric == POLITE
    assert score_of(judged(), POLITE) == 1.0
    assert stage_of(metric) is Stage.GENERATION
    with pytest.raises(ValueError, match="polite"):
        metric_of("polite")


def test_labels_and_uncertainty() -> None:
    """People answer them too; where judges answer differently, a label is worth more."""
    label = Label("k", "ann", 1.0, {POLITE: 0.0})
    assert label.to_record()["criteria"] == ["polite"]
    assert from_record(label.to_record()) == label
    assert "criteria" not in Label("k", "ann", 1.0, {}).to_record()
    assert unsure([JudgeScores({POLITE: 1.0}, []), JudgeScores({POLITE: 0.0}, [])]) == 1.0
