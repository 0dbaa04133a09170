"""`ragwatch status` and the usual configuration files: what they say where nothing or something else is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from support.answering import Asked, Reply, answering
from support.command_line import command, refused

from ragwatch.commands import cli
from ragwatch.errors import ConfigError, RagwatchError
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.terminal import options
from ragwatch.web.pages.overview import overview
from ragwatch.web.scope import PageScope

EMPTY = overview(None, PageScope(routes=("search", "support"), windows=("1h", "1d")), now=0.0)
ROWS = [
    (EMPTY, [], 3, "No data yet"),
    ({**EMPTY, "state": "bad", "headline": "Quality is worse"}, ["--route", "search"], 1, "route search"),
    ({**EMPTY, "state": "unsure"}, ["--json"], 0, '"state": "unsure"'),
    (overview(Snapshot(at=0.0, problems=("disk is full",)), PageScope(), now=0.0), [], 3, "not ready: disk is full"),
    (EMPTY, ["--route", "none"], ConfigError, "use one of: search, support"),
    (EMPTY, ["--window", "2h"], ConfigError, "use one of: 1h, 1d"),
    ({"state": "good"}, [], RagwatchError, "not that of a ragwatch of this version"),
]


@pytest.mark.parametrize(("view", "arguments", "code", "text"), ROWS)
def test_code_and_text(view: object, arguments: list[str], code: int | type[Exception], text: str) -> None:
    """The code says how quality is; an unknown route or window, and another server, are errors."""
    with answering(lambda _: (200, view, {})) as (url, _):
        done = command("status", "--url", url, *arguments)
    if isinstance(code, int):
        assert (done.return_value, text in done.output) == (code, True)
    else:
        assert isinstance(done.exception, code)
        assert text in str(done.exception)


def test_another_server_writes_no_incident(tmp_path: Path) -> None:
    """What is no incident is an error, and no file is written."""

    def reply(asked: Asked) -> Reply:
        return 200, b"# Incident on all routes" if asked.query["since"] == "14:00" else b"<html>", {}

    out = tmp_path / "incident.md"
    with answering(reply) as (url, _):
        assert refused(command("incident", "--url", url, "--out", out, "--since", "1h"), RagwatchError)
        assert not out.exists()
        assert refused(command("incident", "--url", url, "--out", tmp_path / "no" / "such", "--since", "14:00"))
        assert command("incident", "--url", url, "--out", out, "--since", "14:00").return_value == 0
    assert out.read_text() == "# Incident on all routes"


def test_the_configuration_is_looked_for_here_and_in_etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --config the file in the folder counts, then the one of the system; else the error says what to do."""
    monkeypatch.chdir(tmp_path)
    system = tmp_path / "etc.yaml"
    monkeypatch.setattr(options, "CONFIG_FILES", (Path("ragwatch.yaml"), system))
    missing = CliRunner().invoke(cli, ["causes"])
    assert (missing.exit_code, "write one with `ragwatch init`" in missing.output) == (2, True)
    for file in (system, tmp_path / "ragwatch.yaml"):
        file.write_text("nonsense: 1\n")
        error = CliRunner().invoke(cli, ["causes"], standalone_mode=False).exception
        assert f"{file.name}: nonsense" in str(error) or "nonsense" in str(error)
