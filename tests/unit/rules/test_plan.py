"""The plan of rules: which keys of a configuration reach it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from ragwatch.commands.rules import plan_of
from ragwatch.config import parse
from ragwatch.config.alerts import Alerts
from ragwatch.rules import Limits

MINIMAL = {"sources": [{"kind": "tail", "name": "app", "path": "/var/log/x"}]}


@pytest.mark.parametrize(
    ("alerts_judge", "drift_judge", "told"),
    [
        (None, None, ("a", "a")),
        ("b", None, ("b", "a")),
        (None, "b", ("a", "b")),
        ("b", "b", ("b", "b")),
    ],
)
def test_drift_is_of_the_judge_that_the_daemon_watches(
    alerts_judge: str | None, drift_judge: str | None, told: tuple[str, str]
) -> None:
    """Thresholds are compared with `alerts.judge`; drift is of `drift.judge` or the first judge, as in the daemon."""
    judges = [{"kind": "lexical", "name": name} for name in ("a", "b")]
    sections = {"alerts": {"judge": alerts_judge}, "drift": {"judge": drift_judge}}
    plan = plan_of(parse({**MINIMAL, "judges": judges, **sections}, folder=Path()))
    assert (plan.judge, plan.watcher) == told


def test_routes_with_a_control_are_known() -> None:
    """The route that is compared, not the control: of that there is no alarm."""
    plan = plan_of(parse({**MINIMAL, "routes": ["new", "old"], "drift": {"controls": {"new": "old"}}}, folder=Path()))
    assert plan.controlled == ("new",)


def test_every_limit_of_an_alert_can_be_configured() -> None:
    """Each key of `alerts` that is a limit of the plan reaches it."""
    shared = {each.name for each in fields(Limits)} & set(Alerts.model_fields)
    changed = dict.fromkeys(shared, 0.25) | {"samples": 40, "free": 1 << 30}
    given = {("minimum_samples" if name == "samples" else name): value for name, value in changed.items()}
    plan = plan_of(parse({**MINIMAL, "alerts": given}, folder=Path()))
    assert {name: getattr(plan.limits, name) for name in changed} == changed
