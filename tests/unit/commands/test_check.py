"""`ragwatch check`: a good configuration passes, and each thing that will not work is named before it matters."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from click.testing import CliRunner, Result

from ragwatch.commands import cli
from ragwatch.commands.check import _content
from ragwatch.ports import Batch

WEIGHTS = Path(__file__).parents[2] / "data" / "local"
GOOD = {"question": "Where?", "contexts": ["By the river."], "answer": "By the river."}


def _check(folder: Path, *rows: object, listen: str = "127.0.0.1:0", path: str | None = None, more: str = "") -> Result:
    (folder / "rag.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = folder / "ragwatch.yaml"
    config.write_text(
        f"state: {folder}/state/deep\nweb: {{listen: '{listen}'}}\n"
        f"sources: [{{kind: tail, name: app, path: '{path or folder / 'rag.jsonl'}'}}]\n{more}"
    )
    return CliRunner().invoke(cli, ["check", "--config", str(config)], standalone_mode=False)


def _said(result: Result) -> str:
    """What stands in the table, its lines put together."""
    return " ".join(result.stdout.replace("│", " ").split())


def test_a_good_configuration_passes(tmp_path: Path) -> None:
    """Everything is tried and nothing is left behind: no state directory, no cursor."""
    result = _check(tmp_path, GOOD, GOOD)
    assert result.return_value == 0
    assert "2 of 2 records of" in _said(result)
    assert "lexical-" in result.stdout
    assert not (tmp_path / "state").exists()


def test_records_that_cannot_be_read_fail(tmp_path: Path) -> None:
    """A log of another shape fails with the first fault; a few bad lines are a warning."""
    assert _check(tmp_path, {"level": "info"}).return_value == 1
    result = _check(tmp_path, GOOD, {"question": "x", "answer": "y"})
    assert result.return_value == 0
    assert "warning" in result.stdout
    assert "missing_field" in result.stdout


def test_a_log_without_contexts_fails(tmp_path: Path) -> None:
    """Content must be captured: ids alone cannot be judged."""
    result = _check(tmp_path, {**GOOD, "contexts": []})
    assert result.return_value == 1
    assert "none holds the text of a context" in _said(result)


def test_nothing_to_read_yet_is_a_warning(tmp_path: Path) -> None:
    """A glob that matches nothing may match tomorrow."""
    result = _check(tmp_path, path=f"{tmp_path}/absent-*.jsonl")
    assert result.return_value == 0
    assert "nothing to read yet" in _said(result)


def test_a_judge_without_its_model_is_a_warning(tmp_path: Path) -> None:
    """Words alone read in its place, and the reason is told; with its model all is well."""
    for weights, state in (("absent", "warning"), (str(WEIGHTS), "ok")):
        judges = f"judges: [{{name: reader, kind: local, weights: '{weights}'}}]\n"
        result = _check(tmp_path, GOOD, more=judges)
        told = next(line for line in result.stdout.splitlines() if "judges[0]" in line)
        assert result.return_value == 0
        assert state in told
        assert ("words alone:" in _said(result)) == (weights == "absent")


def test_a_taken_address_fails(tmp_path: Path) -> None:
    """The port of another server is named."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = _check(tmp_path, GOOD, listen=f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.return_value == 1
    assert "web.listen" in result.stdout


def test_the_first_fault_is_shown_with_file_and_line() -> None:
    """A finding about content names the place."""
    batch = Batch("s", "a.jsonl", [b"{"], [0], [7], "")
    assert "a.jsonl:7: torn_json" in _content(object(), batch, "sources[0]").told


def test_what_is_told_is_told_whole(tmp_path: Path) -> None:
    """Brackets in what was found (an extra's name, a path) are no markup to be swallowed."""
    folder = tmp_path / "[red]logs"
    folder.mkdir()
    result = _check(folder, GOOD)
    assert result.return_value == 0
    assert "[red]logs" in "".join(letter for letter in result.stdout if letter not in "│ \n")
