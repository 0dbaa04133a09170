"""The part `gate` of a configuration, and the rules that follow from it."""

from __future__ import annotations

from typing import Any

from ragwatch.config.releases import GateOptions, rules_of
from ragwatch.model.quantities import Quantity
from ragwatch.model.references import ReferenceQuantity
from ragwatch.statistics.set_scores import Metric


def limits(thresholds: dict[Metric, float] | None = None, **metrics: Any) -> dict[str, tuple[float, str]]:
    """Threshold and severity by metric."""
    rules = rules_of(GateOptions(metrics=metrics), thresholds)
    return {str(limit.metric): (limit.threshold, str(limit.severity)) for limit in rules.limits}


def test_the_defaults_are_those_of_the_texts() -> None:
    """Faithfulness and relevancy block; recall and precision say where to look."""
    assert limits() == {
        "faithfulness": (0.85, "block"),
        "answer_relevancy": (0.75, "block"),
        "context_recall": (0.80, "warn"),
        "context_precision": (0.70, "warn"),
    }
    rules = rules_of(GateOptions(), None, 0.9)
    assert (rules.minimum_samples, rules.coverage, rules.strict, rules.confidence) == (30, 0.9, False, 0.9)
    assert rules.tolerated_fall == 0.05


def test_thresholds_of_live_traffic_are_taken_over() -> None:
    """They replace the default's number; what only they name does not block; without any, what the gate names stays."""
    recall = ReferenceQuantity.CONTEXT_RECALL
    merged = limits({Quantity.FAITHFULNESS: 0.9, Quantity.TOP_RANKED_IGNORED: 0.3, recall: 0.6})
    assert merged["faithfulness"] == (0.9, "block")
    assert merged["context_recall"] == (0.6, "warn")
    assert merged["top_ranked_ignored"] == (0.3, "warn")
    assert limits({}) == {}
    assert limits({}, **{"recall@5": 0.8}) == {"recall@5": (0.8, "block")}


def test_the_gate_has_the_last_word() -> None:
    """A number, a mapping, or null; without a severity a metric keeps its own, and one without any blocks."""
    merged = limits(
        {Quantity.FAITHFULNESS: 0.9},
        faithfulness={"severity": "warn"},
        context_recall={"threshold": 0.7, "severity": "block"},
        context_precision=0.6,
        answer_relevancy=None,
        correctness=0.5,
    )
    assert merged == {
        "faithfulness": (0.9, "warn"),
        "context_recall": (0.7, "block"),
        "context_precision": (0.6, "warn"),
        "correctness": (0.5, "block"),
    }
