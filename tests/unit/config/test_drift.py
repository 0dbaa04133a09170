"""Drift in the configuration: defaults, what is refused, what becomes of it, and anchor files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from ragwatch.config.drift import AnchorsOptions, DriftOptions, check_routes, read_anchors
from ragwatch.errors import ConfigError
from ragwatch.model.quantities import Quantity
from ragwatch.model.signals import Signal

ROUTES = ("search", "support", "other")


def test_the_budget_is_divided() -> None:
    """Four quantities on three routes share one false page in thirty days; what is a control has no detector."""
    rules = DriftOptions().rules("embedded", "v1", ROUTES, {})
    assert (len(rules.cells), rules.alarm_at, rules.reference, rules.tolerance) == (12, 360.0, 2000, 0.02)
    fewer = DriftOptions(controls={"search": "support"}, false_alarm_every=86400).rules("embedded", "v1", ROUTES, {})
    assert (len(fewer.cells), fewer.alarm_at) == (8, 8.0)


def test_traffic_has_a_budget_of_its_own() -> None:
    """Every signal on three routes, apart from scores; durations are written as everywhere."""
    options = DriftOptions.model_validate({"traffic": {"false_alarm_every": "7d", "reference": "12h"}})
    rules = options.traffic_rules(ROUTES)
    assert (len(rules.cells), rules.scheme(rules.signals[0]).threshold) == (3 * len(Signal), 7 * 3 * len(Signal))
    assert rules.reference_seconds == 12 * 3600
    assert options.traffic.tolerance == rules.tolerance == 0.05


def test_a_detector_without_a_guarantee_needs_a_threshold() -> None:
    """And has it."""
    rules = DriftOptions(detector="cusum", threshold=2.5).rules("embedded", "v1", ROUTES, {"search": 0.1})
    assert rules.alarm_at == 2.5
    detector = rules.scheme(Quantity.FAITHFULNESS, "search").build(0.9)
    assert (detector.threshold, getattr(detector, "max_weight", None)) == (2.5, 10.0)


def test_controls_are_routes() -> None:
    """A control that nobody logs would never be compared with."""
    check_routes(DriftOptions(controls={"search": "support"}), ROUTES)
    with pytest.raises(ConfigError, match=r"drift\.controls: 'canary' is no route; use one of: other, search, support"):
        check_routes(DriftOptions(controls={"search": "canary"}), ROUTES)


def test_the_risk_of_a_reading_follows_from_the_time_between_false_alarms(tmp_path: Path) -> None:
    """One reading a day and one false alarm in ninety: a ninetieth each."""
    assert AnchorsOptions(file=tmp_path).rules.risk == pytest.approx(1 / 90)
    with pytest.raises(ValidationError, match="each reading would be an alarm"):
        AnchorsOptions(file=tmp_path, every=86400, false_alarm_every=86400)


def test_anchors_are_samples_with_a_word(tmp_path: Path) -> None:
    """Any known format; `good` is optional, and no part of the sample."""
    path = tmp_path / "anchors.jsonl"
    path.write_text(
        '{"question": "why?", "contexts": ["because"], "answer": "so", "good": true}\n\n'
        '{"user_input": "why?", "retrieved_contexts": ["because"], "response": "so"}\n'
    )
    one, two = read_anchors(path)
    assert (one.good, two.good, one.key) == (True, None, two.key)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"question": "q", "contexts": [], "answer": "a", "good": "yes"}', "anchors.jsonl line 1: good: must be true"),
        ('{"question": 1}\n{', "anchors.jsonl line 2: "),
        ("\n", "holds 0 anchors"),
    ],
)
def test_wrong_anchors_are_named(tmp_path: Path, text: str, told: str) -> None:
    """With file and line."""
    path = tmp_path / "anchors.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_anchors(path)
    assert told in str(caught.value)
    with pytest.raises(ConfigError, match=r"gone\.jsonl: cannot be read"):
        read_anchors(tmp_path / "gone.jsonl")
