"""`ragwatch run --once` says what to change where a log was read and hardly sampled."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import configured, log_of

from ragwatch.commands.run import run
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
