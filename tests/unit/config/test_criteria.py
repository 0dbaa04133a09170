"""The section `criteria`: what is valid, what is refused and how, and where criteria may be named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragwatch.commands.check_settings import setting_notes
from ragwatch.commands.rules import plan_of
from ragwatch.config import Config, parse
from ragwatch.errors import ConfigError
from ragwatch.model.criteria import Criterion, Example
from ragwatch.model.evidence import CriterionAnswer
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.rules import prometheus, yaml_text

POLITE = {"name": "polite", "question": "Is the tone polite?"}
NAME = quantity_of("polite")
CLAUDE = {"name": "claude", "kind": "claude", "model": "claude-haiku-5-5", "api_key": "k"}
LEXICAL = {"name": "embedded", "kind": "lexical"}


def parsed(criteria: object, **sections: Any) -> Config:
    """A configuration with these criteria."""
    return parse({"sources": [{"kind": "push", "name": "app"}], "criteria": criteria, **sections}, folder=Path())


def test_examples_and_the_booleans_of_yaml() -> None:
    """YAML reads yes and no as booleans, and they mean what they say."""
    examples = [
        {"text": "Gladly!", "answer": True},
        {"text": "RTFM", "answer": False},
        {"text": "-", "answer": "does_not_apply"},
    ]
    (criterion,) = parsed([{**POLITE, "examples": examples}]).settings.criterion_rules
    answers = (CriterionAnswer.YES, CriterionAnswer.NO, CriterionAnswer.DOES_NOT_APPLY)
    texts = ("Gladly!", "RTFM", "-")
    assert criterion == Criterion("polite", POLITE["question"], tuple(map(Example, texts, answers)))
    assert parsed([]).settings.quantities == tuple(Quantity)


SECTIONS: dict[str, dict[str, Any]] = {
    "thresholds.polite": {"thresholds": {"polite": 0.9}},
    "thresholds.routes.faq.polite": {"thresholds": {"routes": {"faq": {"polite": 0.9}}}, "routes": ["faq"]},
    "gate.metrics.polite": {"gate": {"metrics": {"polite": 0.9}}},
    "drift.quantities[0]": {"drift": {"quantities": ["polite"]}},
    "drift.tolerances.polite": {"drift": {"tolerances": {"polite": 0.1}}},
    "alerts.slos.polite": {"alerts": {"slos": {"polite": {"objective": 0.99}}}},
    "judges[0].quantities[0]": {"judges": [{**CLAUDE, "quantities": ["polite"]}]},
    "export.otlp.quantities[0]": {"export": {"otlp": {"endpoint": "http://localhost:1", "quantities": ["polite"]}}},
}


@pytest.mark.parametrize("path", SECTIONS)
def test_criteria_are_named_where_quantities_are(path: str) -> None:
    """A configured criterion is accepted; a name that is not configured is refused with its path."""
    assert parsed([POLITE], **SECTIONS[path])
    for criteria in ([], [{**POLITE, "name": "kind"}]):
        with pytest.raises(ConfigError) as error:
            parsed(criteria, **SECTIONS[path])
        assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("judges", "well", "text"),
    [
        ([LEXICAL], False, "no judge reads them, because the embedded judges cannot"),
        ([CLAUDE], True, "read by claude"),
        ([LEXICAL, CLAUDE], True, "Pages and alerts are about the judge embedded, which does not read them"),
        (
            [{**CLAUDE, "quantities": ["faithfulness"]}],
            False,
            "no judge reads polite; add them to `quantities` of one of",
        ),
    ],
)
def test_check_says_who_reads_them(judges: list[dict[str, Any]], well: bool, text: str) -> None:  # noqa: FBT001 - a case
    """Without a judge that can read them they stay unknown, and that is no silent fate."""
    (note,) = setting_notes(parsed([POLITE], judges=judges))
    assert (note.subject, note.state) == ("criteria", "ok" if well else "warning")
    assert text in note.detail


def test_rules_record_and_alert_on_criteria() -> None:
    """Sums of a criterion are recorded, its threshold is a series, and drift alerts watch it."""
    route = {"polite": 0.8}
    config = parsed(
        [POLITE],
        routes=["faq"],
        thresholds={"polite": 0.9, "routes": {"faq": route}},
        drift={"quantities": ["polite"]},
    )
    plan = plan_of(config)
    assert plan.criteria == (NAME,)
    assert sorted(limit[1:] for limit in plan.limits_by_route) == [('route!~"faq"', 0.9), ('route="faq"', 0.8)]
    text = yaml_text(prometheus(plan)["ragwatch-recording.yaml"])
    assert "ragwatch_polite_weight_total" in text
    assert "quantity: polite" in text
    assert "ragwatch_drift_baseline_ratio" in yaml_text(prometheus(plan)["ragwatch-alerts.yaml"])
