"""Sections of the configuration: what their keys become, and what they are by default."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from ragwatch.commands.check_settings import setting_notes
from ragwatch.config import Config, parse
from ragwatch.config.judge_options import JudgeOptions, LabelsOptions, second_of
from ragwatch.errors import ConfigError
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.export.evaluation import Signal
from ragwatch.statistics.segments import Segments

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
