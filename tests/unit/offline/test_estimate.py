"""`ragwatch estimate`: the arithmetic from verdict lines and labels to means and levels, and what it refuses."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.command_line import command, log_of, refused

VERSION = "lexical-00000000-r1"
run = partial(command, "estimate")


def verdict(name: str, version: str = VERSION, kind: str = "lexical", **scores: float | None) -> str:
    """A line of `ragwatch judge`, as far as it matters."""
    return json.dumps({"id": name, "scores": scores, "judge": {"kind": kind, "version": version}})


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal on which no cell of the table is folded."""
    monkeypatch.setenv("COLUMNS", "160")


def estimated(*arguments: object) -> Any:
    """What it prints as JSON."""
    result = run("--json", *arguments)
    assert result.return_value == 0, result.exception
    return json.loads(result.stdout)


def bounds(found: Any) -> tuple[float, float, float]:
    """The level of a quantity."""
    return found["level"]["low"], found["level"]["value"], found["level"]["high"]


def test_means_and_levels(tmp_path: Path) -> None:
    """Labels leave the mean alone, and make the level narrow and calibrated; a share has none without labels."""
    lines = [verdict(f"a{i}", faithfulness=0.5 if i % 10 == 0 else 1.0, contradiction=None) for i in range(400)]
    verdicts = log_of(tmp_path / "verdicts.jsonl", *lines)
    rows = [{"id": f"a{i}", "faithfulness": float(i % 20 != 0), "probability": 0.25} for i in range(100)]
    labels = log_of(tmp_path / "labels.jsonl", *rows)
    before, after = estimated(verdicts)["faithfulness"], estimated(verdicts, "--labels", labels)["faithfulness"]
    assert before["mean"] == after["mean"] == pytest.approx(0.95)
    assert before["n"] == 400
    wide, narrow = bounds(before), bounds(after)
    assert wide[2] - wide[0] > 2 * (narrow[2] - narrow[0])
    assert narrow[0] < 0.95 < narrow[2]
    assert [(one["level"]["labels"], one["level"]["calibrated"]) for one in (before, after)] == [
        (0, False),
        (100, True),
    ]
    assert "contradiction" not in estimated(verdicts)
    lines = [verdict(f"a{i}", top_ranked_ignored=float(i % 5 == 0)) for i in range(500)]
    rows = [{"id": f"a{i}", "top_ranked_ignored": int(i % 5 == 0 or i % 10 == 1)} for i in range(200)]
    verdicts, labels = log_of(tmp_path / "verdicts.jsonl", *lines), log_of(tmp_path / "labels.jsonl", *rows)
    assert estimated(verdicts)["top_ranked_ignored"]["level"] is None
    low, value, high = bounds(estimated(verdicts, "--labels", labels)["top_ranked_ignored"])
    assert low < 0.3 < high
    assert value == pytest.approx(0.3, abs=0.05)


def test_the_table_for_people(tmp_path: Path) -> None:
    """What is unknown and why, and how many labels are missing; labels without a verdict are named."""
    lines = [json.dumps({**json.loads(verdict(f"a{i}", faithfulness=1.0)), "language": "de"}) for i in range(50)]
    verdicts = log_of(tmp_path / "verdicts.jsonl", *lines)
    assert estimated(verdicts)["faithfulness"]["level"] is None
    assert estimated(verdicts)["faithfulness"]["mean"] == 1.0
    assert "unknown: not measured in de" in run(verdicts).output
    unmeasured = log_of(tmp_path / "other.jsonl", verdict("a", kind="claude", faithfulness=1.0))
    assert estimated(unmeasured)["faithfulness"]["level"] is None
    assert run(log_of(tmp_path / "none.jsonl", verdict("a", faithfulness=None))).return_value == 3
    verdicts = log_of(tmp_path / "verdicts.jsonl", *(verdict(f"a{i}", faithfulness=1.0) for i in range(50)))
    rows = ({"id": "a1", "faithfulness": 1}, {"id": "other", "faithfulness": 0})
    labels = log_of(tmp_path / "labels.jsonl", *rows)
    result = run(verdicts, "--labels", labels)
    assert result.return_value == 0
    assert "1 of 50, not calibrated" in result.stdout
    assert "1 labels of answers without a verdict, such as other" in result.stderr


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_empty_file_is_refused(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Nothing was judged: that is a wrong file, not a figure of none."""
    error = refused(run(log_of(tmp_path / "empty.jsonl"), *options))
    assert "no verdict was read; give what `ragwatch judge` prints" in error


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        ("verdicts", "{", "is not JSON"),
        ("verdicts", "[1]", "is not a JSON object"),
        ("verdicts", '{"id": "a"}', "is no verdict; give what `ragwatch judge` prints"),
        ("verdicts", verdict("a", faithfulness=2.0), "faithfulness: must be a number from 0 to 1"),
        ("verdicts", verdict("b", "l-0-r2", faithfulness=1.0), f"judge.version: is l-0-r2, before {VERSION}"),
        (
            "verdicts",
            f'{{"scores": {{}}, "judge": {{"kind": "lexical", "version": "{VERSION}"}}}}',
            "id: is missing; add it",
        ),
        ("labels", '{"id": "a", "faithfulness": true}', "faithfulness: must be a number from 0 to 1"),
        ("labels", '{"id": "a", "faithfulness": 1, "probability": 0}', "probability: must be at least 1e-06"),
        ("labels", '{"id": 1, "faithfulness": 1}', "id: must be a text"),
        ("labels", '{"key": "ab12", "scores": {"faithfulness": 1}}', "without the id of the answer; add it"),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path: Path, kind: str, line: str, message: str) -> None:
    """Wrong lines stop it: a figure over a part of the answers would look right."""
    lines: dict[str, list[object]] = {
        "verdicts": [verdict("z", faithfulness=1.0)],
        "labels": [{"id": "z", "faithfulness": 1}],
    }
    lines[kind].append(line)
    verdicts, labels = (log_of(tmp_path / f"{name}.jsonl", *some) for name, some in lines.items())
    error = refused(run(verdicts, "--labels", labels))
    assert f"{kind}.jsonl line 2: " in error
    assert message in error
    good = log_of(tmp_path / "good.jsonl", verdict("z", faithfulness=1.0))
    assert "cannot be read" in refused(run(good, "--labels", tmp_path / "none"))
