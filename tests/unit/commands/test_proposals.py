"""`ragwatch rules --from-baseline`: thresholds from stored baselines, and what they would have paged."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.command_line import command, configured, refused
from support.kit import AT, JUDGE, Clock
from support.watched import faithful, settle

from ragwatch import stores
from ragwatch.commands.rules import Proposal, pages, plan_of, show_proposals
from ragwatch.config import load
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.drift.scores import ScoreDriftLoop
from ragwatch.ports import LoopContext, ScoreRow
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

HOUR = 3600.0


def rows(*hours: float, every: float = 60.0) -> list[ScoreRow]:
    """Answers of a route, one a minute; a share of each hour's has the score 1, the others 0, in turns."""
    found: list[ScoreRow] = []
    for hour, share in enumerate(hours):
        for number in range(int(HOUR / every)):
            score = float(int((number + 1) * share) > int(number * share))
            at = hour * HOUR + number * every
            scores = {Quantity.FAITHFULNESS: score}
            place = (len(found) + 1, f"{len(found)}", at, "search", JUDGE, "v", 1.0)
            found.append(ScoreRow(*place, scores=scores, reason=None, trace_id=None))
    return found


def a_config(folder: Path, **sections: Any) -> Path:
    """A configuration with its state in a folder."""
    judges = [{"kind": "lexical", "name": JUDGE}]
    return configured(folder, **{"routes": ["search"], "sampling": {"probability": 1.0}, "judges": judges, **sections})


def test_pages_are_counted_by_their_beginnings(tmp_path: Path) -> None:
    """Two breaks are two pages; a mean within its interval of the threshold is none; too few answers are none."""
    plan = plan_of(load(a_config(tmp_path)))
    broken = rows(0.95, 0.95, 0.4, 0.4, 0.95, 0.95, 0.95, 0.3, 0.95)
    begun = pages(broken, Quantity.FAITHFULNESS, 0.85, plan)
    assert len(begun) == 2
    assert 2 * HOUR < begun[0] <= 3 * HOUR
    assert 7 * HOUR < begun[1] <= 8 * HOUR
    assert pages(rows(0.85, 0.85, 0.9), Quantity.FAITHFULNESS, 0.85, plan) == ()
    assert pages(rows(0.0, every=150.0), Quantity.FAITHFULNESS, 0.85, plan) == ()
    assert pages([], Quantity.FAITHFULNESS, 0.85, plan) == ()
    assert len(pages(broken, Quantity.CONTRADICTION, 0.5, plan)) == 0


def asked(file: Path) -> Any:
    """What the command answers."""
    return command("rules", "--config", file, "--from-baseline")


async def test_a_baseline_becomes_a_threshold_of_its_route(tmp_path: Path) -> None:
    """The printed section is one of the configuration; comments say what it, and the present one, would have paged."""
    file = a_config(tmp_path, drift={"reference": 300, "reference_time": "1s"}, thresholds={"faithfulness": 0.99})
    config = load(file)
    store = stores.KINDS["sqlite"].build(config.store.options, config.settings.state)
    settle(store, faithful(400))
    rules = config.settings.drift.rules(JUDGE, "scripted-1", ["search", "other"], {})
    loop = ScoreDriftLoop(rules, LoopContext(store, Telemetry(), Clock(AT + 1e6)), judge_moved=lambda: False)
    loop.resume()
    await loop.step()
    store.close()
    shown = asked(file)
    assert shown.return_value == 0
    section = yaml.safe_load(shown.stdout)
    (route,) = section["thresholds"]["routes"]
    proposed = section["thresholds"]["routes"][route]["faithfulness"]
    assert route == "search"
    assert 0.7 < proposed < 0.9
    assert proposed == pytest.approx(round(proposed, 2))
    assert re.search(r"# last week: no page; now 0\.99: [1-9] pages?, (?:the first )?2023-11-1", shown.stdout)
    taken = load(a_config(tmp_path, **section))
    assert taken.settings.route_thresholds["search"][Quantity.FAITHFULNESS] == proposed


def test_what_would_have_paged_is_no_proposal(capsys: pytest.CaptureFixture[str]) -> None:
    """It is shown as a comment, so that the printed section can be taken as it is."""
    quiet = Proposal("search", Quantity.FAITHFULNESS, 0.8, (), None, ())
    loud = Proposal("search", Quantity.CONTEXT_PRECISION, 0.7, (AT, AT + HOUR), 0.9, (AT,))
    show_proposals([quiet, loud])
    shown = capsys.readouterr().out
    assert yaml.safe_load(shown) == {"thresholds": {"routes": {"search": {"faithfulness": 0.8}}}}
    assert "# not proposed unless those were incidents: context_precision: 0.7  # last week: 2 pages" in shown
    show_proposals([loud])
    assert yaml.safe_load(capsys.readouterr().out) is None


def test_baselines_that_are_no_thresholds(tmp_path: Path) -> None:
    """Those of a judge that reads higher would page for the other; without any it is exit code 3."""
    judges = [{"kind": "lexical", "name": name} for name in (JUDGE, "strict")]
    assert "write drift.judge: strict" in refused(asked(a_config(tmp_path, judges=judges, alerts={"judge": "strict"})))
    store = SqliteStore(tmp_path / "state")
    shown = asked(a_config(tmp_path))  # the daemon may be running
    store.close()
    assert shown.return_value == 3
    assert "no baseline is learned yet" in shown.stderr
