"""`ragwatch run --once` says what to change where a log was read and hardly sampled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragwatch.commands.options.running import RunArguments
from ragwatch.commands.run import run

ANSWERS = 12


def test_few_sampled_answers_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sampled at a millionth, the key to change is named; where all of a small log are sampled, nothing is said."""
    row = {"question": "What do cats do?", "contexts": ["Cats purr."], "answer": "Cats purr."}
    lines = [json.dumps(row | {"id": f"r{number}"}) for number in range(ANSWERS)]
    (tmp_path / "app.jsonl").write_text("\n".join(lines) + "\n")
    source = f"sources: [{{kind: tail, name: app, path: {tmp_path}/app.jsonl}}]"
    config = tmp_path / "ragwatch.yaml"
    reports = []
    for probability in ("0.000001", "1.0"):
        config.write_text(f"state: {tmp_path}/state\n{source}\nsampling: {{probability: {probability}}}\n")
        assert run(RunArguments(path=config, once=True, state=None)) == 0
        reports.append(capsys.readouterr())
    assert "0 of 12 answers were sampled" in reports[0].err
    assert "sampling.probability: 1.0" in reports[0].err
    assert reports[1].err == ""
    assert 'ragwatch_samples_judged_total{judge="embedded",route="other"} 12.0' in reports[1].out
