"""The entry point: every kind of error becomes its exit code and one line, never a traceback."""

from __future__ import annotations

import sys

import click
import pytest

from ragwatch import __main__
from ragwatch.commands import cli
from ragwatch.errors import ConfigError, StoreError


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (ConfigError("web.listen: is wrong"), 2, "ragwatch: web.listen: is wrong"),
        (StoreError("state: is locked"), 1, "ragwatch: state: is locked"),
        (ConfigError("A: there are: \x1b[2J"), 2, "ragwatch: A: there are: \ufffd[2J"),
        (click.UsageError("no such option"), 2, "no such option"),
        (click.Abort(), 130, ""),
    ],
)
def test_errors_become_exit_codes(
    raised: Exception, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Usage and configuration are 2, what failed is 1, an interrupt 130."""

    @click.command(name="failing")
    def failing() -> None:
        raise raised

    cli.add_command(failing)
    monkeypatch.setattr(sys, "argv", ["ragwatch", "failing"])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    del cli.commands["failing"]
    assert ended.value.code == code
    assert message in capsys.readouterr().err


def test_help_names_every_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`--help` is complete."""
    monkeypatch.setattr(sys, "argv", ["ragwatch", "--help"])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code in {0, None}
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in ("run", "demo", "judge", "check", "status"))
