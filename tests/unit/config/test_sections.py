"""Sections of the configuration: what their keys become, and what they are by default."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ragwatch.commands.check_settings import setting_notes
from ragwatch.commands.rules import plan_of
from ragwatch.config import Config, parse
from ragwatch.config.drift import AnchorsOptions, DriftOptions, check_routes, read_anchors
from ragwatch.config.judge_options import JudgeOptions, LabelsOptions, second_of
from ragwatch.config.releases import GateOptions, rules_of
from ragwatch.errors import ConfigError
from ragwatch.model import signals
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
POLITE = {"name": "polite", "question": "Is the tone polite?"}
NAME = quantity_of("polite")
CLAUDE = {"name": "claude", "kind": "claude", "model": "claude-haiku-5-5", "api_key": "k"}
LEXICAL = {"name": "embedded", "kind": "lexical"}
ROUTES = ("search", "support", "other")


def parsed(**sections: Any) -> Config:
    """A configuration with these sections, in a file of /etc/rag."""
    return parse({"sources": [{"kind": "push", "name": "app"}], **sections}, folder=ETC)


def test_defaults_and_paths() -> None:
    """Both forms, all quantities and no explanation are sent; files lie beside the configuration."""
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
    otlp = {"endpoint": URL, "quantities": ["faithfulness", "contradiction"], "logs": False}
    options: Any = parsed(export={"otlp": otlp}).settings.export.otlp
    rules = options.rules({"a": None, "b": (Quantity.CONTRADICTION, Quantity.NEED_RECALL)}, {}, {})
    assert rules.of_judge("a") == (Quantity.FAITHFULNESS, Quantity.CONTRADICTION)
    assert rules.of_judge("b") == (Quantity.CONTRADICTION,)
    assert options.signals == (Signal.SPANS,)


def test_values_are_texts() -> None:
    """Compared as JSON writes them; `check` states the number of series, and too many are refused."""
    settings = parsed(segments={"release": ["v1", 2, True], "user.tier": ["free"]}).settings
    assert settings.segment_rules == Segments({"release": ("v1", "2", "true"), "user.tier": ("free",)})
    assert parsed(segments={}).settings.segment_rules == Segments()
    assert list(setting_notes(parsed(segments={}))) == []
    (note,) = setting_notes(parsed(segments={"tier": ["free", "paid"]}, routes=["search", "support"]))
    assert (note.subject, note.state) == ("segments", "ok")
    assert note.detail.startswith("exported as up to 1,722 series of at most 20,000 (3 values with `other`, 3 routes")
    values = [f"v{index}" for index in range(200)]
    with pytest.raises(ConfigError, match=r"^segments: would be exported as .* series .*; give fewer values"):
        parsed(segments={"release": values})


def test_tokens_are_masked_and_paths_belong_to_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token of the environment is not shown; a name other than localhost may be anything."""
    monkeypatch.setenv("CI_TOKEN", TOKEN)
    token = {"name": "ci", "token": "${CI_TOKEN}", "rights": ["write"]}
    web = parsed(web={"tokens": [token], "config_file": "web.yml", "hosts": ["RAG", "[::2]"]}).settings.web
    assert web.tokens[0].token.get_secret_value() == TOKEN
    assert TOKEN not in repr(web)
    assert web.config_file == ETC / "web.yml"
    assert web.hosts == ("rag", "::2")
    for hosts, local in (("127.0.0.1 127.8.0.1 localhost [::1]", True), ("0.0.0.0 [::] 10.0.0.1 rag.internal", False)):
        for host in hosts.split():
            assert parsed(web={"listen": f"{host}:1"}).settings.web.is_local is local, host


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


def test_a_rollout() -> None:
    """NDCG@10, 100 questions, 5 % of the traffic; a field for thumbs, or a scale for stars; a start in any usual form.

    Without an offset a time is UTC; YAML makes dates of some.
    """
    whole = rollout(offline={"a": "x", "b": "y"}, judged={}, live={"start": "2026-01-31T09:30:00Z"})
    assert (whole.offline.k, whole.judged.questions, whole.live.share, whole.live.start) == (10, 100, 0.05, START)
    assert rollout().live is None
    thumbs = rollout(live={"start": "2026-01-31", "feedback": "metadata.thumbs"}).live.feedback
    assert (thumbs.field, thumbs.worst) == ("metadata.thumbs", None)
    stars = {"field": "metadata.user.stars", "worst": 1, "best": 5}
    assert rollout(live={"start": "2026-01-31", "feedback": stars}).live.feedback.best == 5.0
    starts: dict[object, float] = {
        "2026-01-31 09:30": START,
        "2026-01-31T10:30:00+01:00": START,
        "2026-01-31": START - 34_200.0,
        datetime(2026, 1, 31, 9, 30, tzinfo=UTC): START,
        datetime(2026, 1, 31, 9, 30): START,  # noqa: DTZ001
        date(2026, 1, 31): START - 34_200.0,
    }
    assert {start: rollout(live={"start": start}).live.start for start in starts} == starts


def limits(thresholds: dict[Metric, float] | None = None, **metrics: Any) -> dict[str, tuple[float, str]]:
    """Threshold and severity by metric."""
    rules = rules_of(GateOptions(metrics=metrics), thresholds)
    return {str(limit.metric): (limit.threshold, str(limit.severity)) for limit in rules.limits}


def test_thresholds_of_a_gate() -> None:
    """Those of the texts, replaced by those of live traffic, and these by a number, a mapping or null of the gate."""
    assert limits() == {
        "faithfulness": (0.85, "block"),
        "answer_relevancy": (0.75, "block"),
        "context_recall": (0.80, "warn"),
        "context_precision": (0.70, "warn"),
    }
    rules = rules_of(GateOptions(), None, 0.9)
    assert (rules.minimum_samples, rules.coverage, rules.strict, rules.confidence) == (30, 0.9, False, 0.9)
    assert rules.tolerated_fall == 0.05
    recall = ReferenceQuantity.CONTEXT_RECALL
    merged = limits({Quantity.FAITHFULNESS: 0.9, Quantity.TOP_RANKED_IGNORED: 0.3, recall: 0.6})
    assert merged["faithfulness"] == (0.9, "block")
    assert merged["context_recall"] == (0.6, "warn")
    assert merged["top_ranked_ignored"] == (0.3, "warn")
    assert limits({}) == {}
    assert limits({}, **{"recall@5": 0.8}) == {"recall@5": (0.8, "block")}
    own: dict[str, Any] = {
        "faithfulness": {"severity": "warn"},
        "context_recall": {"threshold": 0.7, "severity": "block"},
    }
    merged = limits({Quantity.FAITHFULNESS: 0.9}, context_precision=0.6, answer_relevancy=None, correctness=0.5, **own)
    warn, block = {"faithfulness": 0.9, "context_precision": 0.6}, {"context_recall": 0.7, "correctness": 0.5}
    assert {name: value for name, (value, severity) in merged.items() if severity == "warn"} == warn
    assert {name: value for name, (value, severity) in merged.items() if severity == "block"} == block


def test_examples_and_the_booleans_of_yaml() -> None:
    """YAML reads yes and no as booleans, and they mean what they say."""
    texts, answers = ("Gladly!", "RTFM", "-"), (True, False, "does_not_apply")
    examples = [{"text": text, "answer": answer} for text, answer in zip(texts, answers, strict=True)]
    (criterion,) = parsed(criteria=[{**POLITE, "examples": examples}]).settings.criterion_rules
    answers = (CriterionAnswer.YES, CriterionAnswer.NO, CriterionAnswer.DOES_NOT_APPLY)
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


def test_check_says_who_reads_them() -> None:
    """Without a judge that can read them they stay unknown, and that is no silent fate."""
    told: list[tuple[list[dict[str, Any]], str, str]] = [
        ([LEXICAL], "warning", "no judge reads them, because the embedded judges cannot"),
        ([CLAUDE], "ok", "read by claude"),
        ([LEXICAL, CLAUDE], "ok", "Pages and alerts are about the judge embedded, which does not read them"),
        ([{**CLAUDE, "quantities": ["faithfulness"]}], "warning", "no judge reads polite; add them to `quantities` of"),
    ]
    for judges, state, text in told:
        (note,) = setting_notes(parsed(criteria=[POLITE], judges=judges))
        assert (note.subject, note.state, text in note.detail) == ("criteria", state, True), note.detail


def test_rules_record_and_alert_on_criteria() -> None:
    """Sums of a criterion are recorded, its threshold is a series, and drift alerts watch it."""
    thresholds = {"polite": 0.9, "routes": {"faq": {"polite": 0.8}}}
    sections: dict[str, Any] = {"routes": ["faq"], "thresholds": thresholds, "drift": {"quantities": ["polite"]}}
    plan = plan_of(parsed(criteria=[POLITE], **sections))
    assert plan.criteria == (NAME,)
    assert sorted(limit[1:] for limit in plan.limits_by_route) == [('route!~"faq"', 0.9), ('route="faq"', 0.8)]
    text = yaml_text(prometheus(plan)["ragwatch-recording.yaml"])
    assert "ragwatch_polite_weight_total" in text
    assert "quantity: polite" in text
    assert "ragwatch_drift_baseline_ratio" in yaml_text(prometheus(plan)["ragwatch-alerts.yaml"])


def test_the_budget_is_divided() -> None:
    """Four quantities on three routes share one false page in thirty days; a detector without a guarantee has none."""
    rules = DriftOptions().rules("embedded", "v1", ROUTES, {})
    assert (len(rules.cells), rules.alarm_at, rules.reference, rules.tolerance) == (12, 360.0, 2000, 0.02)
    fewer = DriftOptions(controls={"search": "support"}, false_alarm_every=86400).rules("embedded", "v1", ROUTES, {})
    assert (len(fewer.cells), fewer.alarm_at) == (8, 8.0)
    rules = DriftOptions(detector="cusum", threshold=2.5).rules("embedded", "v1", ROUTES, {"search": 0.1})
    assert rules.alarm_at == 2.5
    detector = rules.scheme(Quantity.FAITHFULNESS, "search").build(0.9)
    assert (detector.threshold, getattr(detector, "max_weight", None)) == (2.5, 10.0)


def test_traffic_has_a_budget_of_its_own() -> None:
    """Every signal on three routes, apart from scores; durations are written as everywhere."""
    options = DriftOptions.model_validate({"traffic": {"false_alarm_every": "7d", "reference": "12h"}})
    rules = options.traffic_rules(ROUTES)
    cells = 3 * len(signals.Signal)
    assert (len(rules.cells), rules.scheme(rules.signals[0]).threshold) == (cells, 7 * cells)
    assert rules.reference_seconds == 12 * 3600
    assert options.traffic.tolerance == rules.tolerance == 0.05


def test_controls_and_risks_of_drift(tmp_path: Path) -> None:
    """A control is a route; one reading a day and one false alarm in ninety are a ninetieth each."""
    check_routes(DriftOptions(controls={"search": "support"}), ROUTES)
    with pytest.raises(ConfigError, match=r"drift\.controls: 'canary' is no route; use one of: other, search, support"):
        check_routes(DriftOptions(controls={"search": "canary"}), ROUTES)
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


def test_wrong_anchors_are_named(tmp_path: Path) -> None:
    """With file and line."""
    path = tmp_path / "anchors.jsonl"
    no_flag = '{"question": "q", "contexts": [], "answer": "a", "good": "yes"}'
    for text, told in (
        (no_flag, "anchors.jsonl line 1: good: must be true"),
        ('{"question": 1}\n{', "anchors.jsonl line 2: "),
        ("\n", "holds 0 anchors"),
    ):
        path.write_text(text)
        with pytest.raises(ConfigError) as caught:
            read_anchors(path)
        assert told in str(caught.value)
    with pytest.raises(ConfigError, match=r"gone\.jsonl: cannot be read"):
        read_anchors(tmp_path / "gone.jsonl")
