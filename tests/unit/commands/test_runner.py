"""However a command ends: an exit code, and what is shown."""

from __future__ import annotations

import errno
import sys

import click
import pytest

from ragwatch.commands import cli, runner
from ragwatch.errors import AddressError, ConfigError, StoreError
from ragwatch.telemetry import configure_logging

FULL = OSError(errno.ENOSPC, "No space left on device")


def _closed() -> OSError:
    """Closing a file after writing it failed: the system names only the first error."""
    try:
        try:
            raise OSError(errno.ENOSPC, "No space left on device", "out.json")
        finally:
            raise OSError(errno.ENOSPC, "No space left on device")
    except OSError as error:
        return error


def _ended(raised: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    @click.command(name="failing")
    def failing() -> None:
        raise raised

    monkeypatch.setitem(cli.commands, "failing", failing)
    monkeypatch.setattr(sys, "argv", ["ragwatch", "failing"])
    return runner.run()


@pytest.mark.parametrize(
    ("raised", "code", "shown"),
    [
        (ConfigError("A: there are: \x1b[2J"), 2, "ragwatch: A: there are: \ufffd[2J\n"),
        (StoreError("state: is locked"), 1, "ragwatch: state: is locked\n"),
        (click.ClickException("no such option"), 1, "Error: no such option\n"),
        (click.UsageError("no such option"), 2, "Usage: "),
        (click.Abort(), 130, ""),
        (ExceptionGroup("", [ConfigError("a: b")]), 2, "ragwatch: a: b\n"),
        (ExceptionGroup("", [StoreError("x"), ExceptionGroup("", [StoreError("x"), StoreError("y")])]), 1, None),
        (ExceptionGroup("", [StoreError("x"), AddressError("y")]), 2, "ragwatch: x\nragwatch: web.listen: y\n"),
        (BaseExceptionGroup("", [KeyboardInterrupt(), StoreError("x")]), 130, ""),
        (SystemExit(3), 3, ""),
        (PermissionError(errno.EACCES, "Permission denied", "/a"), 1, "ragwatch: /a: Permission denied\n"),
        (FULL, 1, "ragwatch: No space left on device\n"),
        (OSError("odd"), 1, "ragwatch: odd\n"),
        (_closed(), 1, "ragwatch: out.json: No space left on device\n"),
        (
            ModuleNotFoundError("x", name="a.b"),
            2,
            "ragwatch: the Python module `a` is not installed: `make run` installs",
        ),
        (MemoryError(), 1, "ragwatch: out of memory: give this process more memory, or use smaller files; the"),
        (RecursionError(), 1, "ragwatch: the input is nested too deeply; flatten it\n"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, BaseException) else None,
)
def test_errors_of_the_user_are_one_line(
    raised: BaseException,
    code: int,
    shown: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Groups are shown as their distinct errors; errors of the system name their file."""
    monkeypatch.setattr(runner.output, "discard_output", lambda: None)  # standard output of pytest itself
    assert _ended(raised, monkeypatch) == code
    message = capfd.readouterr().err
    assert message.startswith("ragwatch: x\nragwatch: y\n" if shown is None else shown)
    assert "Traceback" not in message


def test_an_error_of_ours_is_loud(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A bug is shown with its traceback and asks to be reported, alone or among others."""
    ours = ModuleNotFoundError("bug", name="ragwatch.x")
    for raised in (KeyError("bug"), ExceptionGroup("", [StoreError("x"), KeyError("bug")]), ours):
        assert _ended(raised, monkeypatch) == 1
        message = capsys.readouterr().err
        assert "Traceback" in message
        assert "Error: " in message
        assert "bug" in message
        assert message.splitlines()[-1].endswith("please report it with the log above")


def test_an_error_of_ours_is_one_event_of_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where logs are JSON, the traceback is in one line of it."""
    configure_logging("info")
    assert _ended(KeyError("bug"), monkeypatch) == 1
    event, report = capsys.readouterr().err.splitlines()
    assert event.startswith("{")
    assert '"event": "internal error"' in event
    assert report.startswith("ragwatch ")
