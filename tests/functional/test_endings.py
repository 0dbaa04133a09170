"""Every command ends well where its streams do not: a documented exit code, a few lines, never a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from functional.endings import COMMANDS, Stage, ends_well

from ragwatch.commands import cli

LOUD = {
    "once",
    "judge",
    "gate",
    "compare",
    "diagnose",
    "causes",
    "rollout",
    "backtest",
    "estimate",
    "stored",
    "plan",
    "export",
    "parquet",
    "calibrate",
    "check",
    "map",
    "rules",
}
"""Commands that have something to say on standard output here."""


def now_and_then(names: Iterable[str], first: int) -> list[Any]:
    """Names as parameters, two of three for `make slow` only: streams are handled in one place for all commands."""
    rarely = pytest.mark.slow
    return [name if number % 3 == first else pytest.param(name, marks=rarely) for number, name in enumerate(names)]


def test_every_command_is_driven() -> None:
    """A new verb has to take part; `map` is a former name of `init --print`."""
    assert {words.split()[0] for words in COMMANDS.values()} == set(cli.commands) - {"map"}


@pytest.mark.parametrize("name", now_and_then(COMMANDS, 2))
def test_a_reader_that_is_gone(stage: Stage, name: str) -> None:
    """As with `| head`: the command ends without a word about it, and not as if all were well."""
    ended = stage.drive(name, stdout="gone")
    ends_well(ended)
    wrong_here = {"acknowledge", "copy", "fetch", "incident", "kept", "live", "open", "rejudge", "status", "views"}
    assert "ragwatch:" not in ended.err or name in wrong_here, ended.told
    assert ended.code == 1 or name not in LOUD, ended.told


@pytest.mark.parametrize("name", now_and_then(COMMANDS, 0))
def test_an_output_on_a_full_disk(stage: Stage, name: str) -> None:
    """What could not be written is told, once, and is no success."""
    ended = stage.drive(name, stdout="/dev/full")
    ends_well(ended)
    if name in LOUD:
        assert (ended.code, ended.err.count("ragwatch: standard output: No space left on device")) == (1, 1), ended.told


@pytest.mark.parametrize("name", now_and_then(COMMANDS, 1))
def test_streams_that_are_closed(stage: Stage, name: str) -> None:
    """Closed from the start (`<&- >&- 2>&-`): what is said is lost, files are not written into, the code is right."""
    ended = stage.drive(name, stdin="closed", stdout="closed", stderr="closed")
    ends_well(ended)
    if name in {"judge", "rules", "map", "plan", "once", "run"}:
        assert ended.code == 0, ended.told


@pytest.mark.parametrize("how", ["gone", "/dev/full"])
@pytest.mark.parametrize("name", ["run", "judge", *now_and_then(["once", "check", "acknowledge"], 3)])
def test_a_log_that_takes_nothing(stage: Stage, name: str, how: str) -> None:
    """What cannot be written to standard error is lost, and nothing else: a daemon goes on."""
    ended = stage.drive(name, stderr=how)
    ends_well(ended)
    assert ended.code == {"check": 1, "acknowledge": 1}.get(name, 0), ended.told
