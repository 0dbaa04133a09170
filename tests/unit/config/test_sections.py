"""Sections of the configuration: what their keys become, and what they are by default."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from ragwatch.commands.check_settings import setting_notes
from ragwatch.commands.rules import plan_of
from ragwatch.config import Config, parse
from ragwatch.config.judge_options import JudgeOptions, LabelsOptions, second_of
from ragwatch.config.releases import GateOptions, rules_of
from ragwatch.errors import ConfigError
from ragwatch.model.evidence import CriterionAnswer
from ragwatch.model.quantities import Criterion, Example, Quantity, ReferenceQuantity, quantity_of
from ragwatch.pipeline.export.evaluation import Signal
from ragwatch.rules import prometheus, yaml_text
from ragwatch.statistics.segments import Segments
from ragwatch.statistics.set_scores import Metric

URL = "https://otel.example.org/api/public/otel/"
TOKEN = "0123456789abcdef"  # noqa: S105 - of a test
START = 1_769_851_800.0  # 2026-01-31T09:30:00Z
F = Quantity.FAITHFULNESS
ETC = Path("/etc/rag")


def parsed(**sections: Any) -> Config:
    """A configuration with these sections, in a file of /etc/rag."""
    return parse({"sources": [{"kind": "push", "name": "app"}], **sections}, folder=ETC)


def test_defaults_and_paths() -> None:
    """Both forms and all quantities are sent, no explanation; a slash at the end is left out, files are beside it."""
    otlp = {"endpoint": URL, "headers": {"Authorization": "Basic c2VjcmV0"}, "ca_file": "ca.pem"}
    options: Any = parsed(export={"otlp": otlp}).settings.export.otlp
    assert options.target.endpoint == URL.rstrip("/")
    assert options.target.headers == {"Authorization": "Basic c2VjcmV0"}
    assert options.target.ca_file == str(ETC / "ca.pem")
    assert options.signals == (Signal.LOGS, Signal.SPANS)
    assert "c2VjcmV0" not in repr(options) + str(options.model_dump()) + options.model_dump_json()
    rules = options.rules({"a": None, "b": (Quantity.CONTRADICTION,)}, {}, {})
    assert rules.of_judge("a") == rules.of_judge("gone") == tuple(Quantity)
    assert rules.of_judge("b") == (Quantity.CONTRADICTION,)
    assert rules.explanations is False


def test_quantities_that_a_judge_does_not_judge() -> None:
    """Of those wanted, a judge sends what it judges."""
    otlp = {"endpoint": URL, "quantities": ["faithfulness", "contradiction"], "logs": False}
    options: Any = parsed(export={"otlp": otlp}).settings.export.otlp
    rules = options.rules({"a": None, "b": (Quantity.CONTRADICTION, Quantity.NEED_RECALL)}, {}, {})
    assert rules.of_judge("a") == (Quantity.FAITHFULNESS, Quantity.CONTRADICTION)
    assert rules.of_judge("b") == (Quantity.CONTRADICTION,)
    assert options.signals == (Signal.SPANS,)


def test_values_are_texts() -> None:
    """Numbers and booleans are compared as JSON writes them; without the section nothing is split."""
    settings = parsed(segments={"release": ["v1", 2, True], "user.tier": ["free"]}).settings
    assert settings.segment_rules == Segments({"release": ("v1", "2", "true"), "user.tier": ("free",)})
    assert parsed(segments={}).settings.segment_rules == Segments()
    assert list(setting_notes(parsed(segments={}))) == []


def test_the_number_of_series_is_stated_and_limited() -> None:
    """`check` states it; too many are refused, with the number and what to change."""
    (note,) = setting_notes(parsed(segments={"tier": ["free", "paid"]}, routes=["search", "support"]))
    assert (note.subject, note.state) == ("segments", "ok")
    assert note.detail.startswith("exported as up to 1,722 series of at most 20,000 (3 values with `other`, 3 routes")
    values = [f"v{index}" for index in range(200)]
    with pytest.raises(ConfigError, match=r"^segments: would be exported as .* series .*; give fewer values"):
        parsed(segments={"release": values})


def test_only_loopback_is_local() -> None:
    """A name other than localhost may be anything, so it counts as reachable."""
    for hosts, local in (("127.0.0.1 127.8.0.1 localhost [::1]", True), ("0.0.0.0 [::] 10.0.0.1 rag.internal", False)):
        for host in hosts.split():
            assert parsed(web={"listen": f"{host}:1"}).settings.web.is_local is local, host


def test_tokens_are_masked_and_paths_belong_to_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token from the environment is not shown; `config_file` is relative to the configuration."""
    monkeypatch.setenv("CI_TOKEN", TOKEN)
    token = {"name": "ci", "token": "${CI_TOKEN}", "rights": ["write"]}
    web = parsed(web={"tokens": [token], "config_file": "web.yml", "hosts": ["RAG", "[::2]"]}).settings.web
    assert web.tokens[0].token.get_secret_value() == TOKEN
    assert TOKEN not in repr(web)
    assert web.config_file == ETC / "web.yml"
    assert web.hosts == ("rag", "::2")


def test_judges_that_people_correct() -> None:
    """The first; and a second that reads a known part of what the first has read, of its own quantities."""
    alone = LabelsOptions().rules([JudgeOptions(name="embedded")], {"embedded": "1"}, 0.9)
    assert (alone.chain, alone.judges, alone.confidence) == (("embedded",), {"embedded": "1"}, 0.9)
    places = [JudgeOptions(name="a", probability=0.5), JudgeOptions(name="b", follows="a", quantities=(F,))]
    rules = LabelsOptions().rules(places, {"a": "1", "b": "2"}, 0.95)
    assert (rules.readers(F), rules.readers(Quantity.CONTEXT_USE)) == (("a", "b"), ("a",))
    assert LabelsOptions().rules(places, {"a": "1"}, 0.95).chain == ("a",)
    draws = JudgeOptions(name="b", probability=0.1)
    assert second_of([JudgeOptions(name="a"), draws]) == draws
    assert second_of([JudgeOptions(name="a", probability=0.5), draws]) is None
    assert second_of([JudgeOptions(name="a"), JudgeOptions(name="b", follows="c")]) is None


def rollout(**section: Any) -> Any:
    """The section `rollout` with two variants and these keys."""
    return parsed(rollout={"a": "vector", "b": "hybrid"} | section).settings.rollout


def test_defaults_of_a_rollout() -> None:
    """NDCG@10, 100 questions, 5 % of the traffic."""
    whole = rollout(offline={"a": "x", "b": "y"}, judged={}, live={"start": "2026-01-31T09:30:00Z"})
    assert (whole.offline.k, whole.judged.questions, whole.live.share, whole.live.start) == (10, 100, 0.05, START)
    assert rollout().live is None


@pytest.mark.parametrize(
    ("start", "seconds"),
    [
        ("2026-01-31 09:30", START),
        ("2026-01-31T10:30:00+01:00", START),
        ("2026-01-31", START - 34_200.0),
        (datetime(2026, 1, 31, 9, 30, tzinfo=UTC), START),
        (datetime(2026, 1, 31, 9, 30), START),  # noqa: DTZ001
        (date(2026, 1, 31), START - 34_200.0),
    ],
)
def test_a_start_in_any_usual_form(start: object, seconds: float) -> None:
    """Without an offset it is UTC; YAML makes dates of some."""
    assert rollout(live={"start": start}).live.start == seconds


def test_feedback_in_short_and_in_full() -> None:
    """A field for thumbs; a scale for stars."""
    thumbs = rollout(live={"start": "2026-01-31", "feedback": "metadata.thumbs"}).live.feedback
    assert (thumbs.field, thumbs.worst) == ("metadata.thumbs", None)
    stars = {"field": "metadata.user.stars", "worst": 1, "best": 5}
    assert rollout(live={"start": "2026-01-31", "feedback": stars}).live.feedback.best == 5.0


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


POLITE = {"name": "polite", "question": "Is the tone polite?"}
NAME = quantity_of("polite")
CLAUDE = {"name": "claude", "kind": "claude", "model": "claude-haiku-5-5", "api_key": "k"}
LEXICAL = {"name": "embedded", "kind": "lexical"}


def test_examples_and_the_booleans_of_yaml() -> None:
    """YAML reads yes and no as booleans, and they mean what they say."""
    examples = [
        {"text": "Gladly!", "answer": True},
        {"text": "RTFM", "answer": False},
        {"text": "-", "answer": "does_not_apply"},
    ]
    (criterion,) = parsed(criteria=[{**POLITE, "examples": examples}]).settings.criterion_rules
    answers = (CriterionAnswer.YES, CriterionAnswer.NO, CriterionAnswer.DOES_NOT_APPLY)
    texts = ("Gladly!", "RTFM", "-")
    assert criterion == Criterion("polite", POLITE["question"], tuple(map(Example, texts, answers)))
    assert parsed(criteria=[]).settings.quantities == tuple(Quantity)


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
    assert parsed(criteria=[POLITE], **SECTIONS[path])
    for criteria in ([], [{**POLITE, "name": "kind"}]):
        with pytest.raises(ConfigError) as error:
            parsed(criteria=criteria, **SECTIONS[path])
        assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("judges", "well", "text"),
    [
        ([LEXICAL], False, "no judge reads them, because the embedded judges cannot"),
        ([CLAUDE], True, "read by claude"),
        ([LEXICAL, CLAUDE], True, "Pages and alerts are about the judge embedded, which does not read them"),
        ([{**CLAUDE, "quantities": ["faithfulness"]}], False, "no judge reads polite; add them to `quantities` of"),
    ],
)
def test_check_says_who_reads_them(judges: list[dict[str, Any]], well: bool, text: str) -> None:  # noqa: FBT001 - a case
    """Without a judge that can read them they stay unknown, and that is no silent fate."""
    (note,) = setting_notes(parsed(criteria=[POLITE], judges=judges))
    assert (note.subject, note.state) == ("criteria", "ok" if well else "warning")
    assert text in note.detail


def test_rules_record_and_alert_on_criteria() -> None:
    """Sums of a criterion are recorded, its threshold is a series, and drift alerts watch it."""
    route = {"polite": 0.8}
    config = parsed(
        criteria=[POLITE],
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
