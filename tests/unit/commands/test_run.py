"""`ragwatch run --once` says what to change where a log was hardly sampled; the live table of the demo."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console
from support.command_line import configured, log_of

from ragwatch.commands.demo import snapshot_table
from ragwatch.commands.run import run
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.snapshot import EstimateRow, Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.terminal.options.administration import RunArguments


def test_few_sampled_answers_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sampled at a millionth, the key to change is named; where all of a small log are sampled, nothing is said."""
    row = {"question": "What do cats do?", "contexts": ["Cats purr."], "answer": "Cats purr."}
    log = log_of(tmp_path / "app.jsonl", *(row | {"id": f"r{number}"} for number in range(12)))
    sources = [{"kind": "tail", "name": "app", "path": str(log)}]
    reports = []
    for probability in (0.000001, 1.0):
        config = configured(tmp_path, sources=sources, sampling={"probability": probability})
        assert run(RunArguments(path=config, once=True, state=None)) == 0
        reports.append(capsys.readouterr())
    assert "0 of 12 answers were sampled" in reports[0].err
    assert "sampling.probability: 1.0" in reports[0].err
    assert reports[1].err == ""
    assert 'ragwatch_samples_judged_total{judge="embedded",route="other"} 12.0' in reports[1].out


def _shown(snapshot: Snapshot | None) -> str:
    console = Console(width=120, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(snapshot_table(snapshot))
    return captured.get()


def _row(quantity: Quantity, route: str, *scores: float) -> EstimateRow:
    found = hajek.estimate(Addends.of((score, 1.0) for score in scores))
    assert found is not None
    return EstimateRow(quantity, route, "embedded", "15m", found)


def test_nothing_known_shows_nothing() -> None:
    """Before the first digest, and before the first answer, there is no figure."""
    assert "0." not in _shown(None)
    assert "0." not in _shown(Snapshot(at=0.0))


def test_figures_stand_in_their_row_and_column() -> None:
    """Each route has its mean, its interval as a band and as numbers, and its count; an absent one stays blank."""
    rows = (
        _row(Quantity.FAITHFULNESS, "search", 1.0, 1.0, 0.0, 1.0),
        _row(Quantity.CONTEXT_USE, "search", 0.5, 0.25),
        _row(Quantity.TOP_RANKED_IGNORED, "support", 1.0, 1.0),
    )
    stages = Counter(
        {(Tally.STAGE, ("search", "embedded", "none")): 3, (Tally.STAGE, ("search", "embedded", "retrieval")): 1}
    )
    shown = _shown(Snapshot(at=0.0, estimates=rows, tallies=stages))
    faithful = next(line for line in shown.splitlines() if line.startswith("faithfulness"))
    assert "0.75" in faithful
    assert "●" in faithful
    assert faithful.count("0.75") == 1
    assert "none 75%" in shown
    assert "retrieval 25%" in shown
