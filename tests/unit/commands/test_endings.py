"""However a command ends: exit code, what is shown, standard streams, and signals."""

import asyncio
import errno
import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import FrameType

import click
import pytest
from support.patience import DEADLINE

from ragwatch.commands import cli, runner
from ragwatch.errors import AddressError, ConfigError, StoreError
from ragwatch.telemetry import configure_logging
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.output import _ErrorOutput, _Output, is_output_error, is_reader_gone

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
        (ModuleNotFoundError("x", name="a.b"), 2, "ragwatch: the Python module `a` is not installed: `make run` "),
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
    """A bug is shown with its traceback and asks to be reported; where logs are JSON, in one line of it."""
    ours = ModuleNotFoundError("bug", name="ragwatch.x")
    for raised in (KeyError("bug"), ExceptionGroup("", [StoreError("x"), KeyError("bug")]), ours):
        assert _ended(raised, monkeypatch) == 1
        message = capsys.readouterr().err
        assert "Traceback" in message
        assert "Error: " in message
        assert "bug" in message
        assert message.splitlines()[-1].endswith("please report it with the log above")
    configure_logging("info")
    assert _ended(KeyError("bug"), monkeypatch) == 1
    event, report = capsys.readouterr().err.splitlines()
    assert event.startswith("{")
    assert '"event": "internal error"' in event
    assert report.startswith("ragwatch ")


SAID = "print(chr(0xd800)); print(chr(0xd800), file=sys.stderr)"


def test_an_output_that_cannot_be_written() -> None:
    """The system does not say which file it could not write; what a log cannot take is lost."""
    with _Output("/dev/full", "w") as output, pytest.raises(OSError, match="No space left") as caught:
        output.write(b"x")
    assert (is_output_error(caught.value), is_reader_gone(caught.value)) == (True, False)
    with _ErrorOutput("/dev/full", "w") as full:
        assert full.write(b"abc") == 3
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with _ErrorOutput(writer, "w") as slow:
        assert [slow.write(bytes(65536)) for _ in range(3)] == [65536] * 3
    os.close(reader)


def test_text_that_no_encoding_knows_is_shown() -> None:
    """Half a surrogate pair of a torn log is no reason to end."""
    code = f"import sys; from ragwatch.terminal import output; output.prepare(); {SAID}; output.finish()"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert (done.stdout, done.stderr, done.returncode) == ("\\ud800\n", "\\ud800\n", 0)


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, as while a command runs."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


def test_result_and_error_pass_and_handlers_stay() -> None:
    """Without a signal it is `asyncio.run`."""

    async def main() -> int:
        await asyncio.sleep(0)
        return 7

    async def wrong() -> None:
        raise ValueError("of its own")

    assert run_async(main()) == 7
    with pytest.raises(ValueError, match="of its own"):
        run_async(wrong())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_cancels_the_coroutine_and_is_raised_after_the_loop_is_closed() -> None:
    """Its `finally` runs in the loop; KeyboardInterrupt follows."""
    steps = []

    async def main() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        run_async(main())
    assert steps == ["cleaned up"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_before_the_coroutine_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the loop is set up nothing is raised, and the coroutine does not start."""
    steps = []
    new_event_loop = asyncio.new_event_loop

    def interrupted_new_event_loop() -> asyncio.AbstractEventLoop:
        signal.raise_signal(signal.SIGINT)
        return new_event_loop()

    async def main() -> None:
        steps.append("started")

    monkeypatch.setattr("asyncio.events.new_event_loop", interrupted_new_event_loop)
    with pytest.raises(KeyboardInterrupt):
        run_async(main())
    assert steps == []


def test_a_signal_before_there_is_a_loop() -> None:
    """The exception of its handler passes, and the coroutine is closed: it was never awaited."""

    def interrupt(frame: FrameType, _event: str, _argument: object) -> None:
        if frame.f_code is signal.getsignal.__code__:
            sys.setprofile(None)
            raise SystemExit(143)

    main = asyncio.sleep(0)
    sys.setprofile(interrupt)
    try:
        with pytest.raises(SystemExit):
            run_async(main)
    finally:
        sys.setprofile(None)
    assert inspect.getcoroutinestate(main) == inspect.CORO_CLOSED


def test_a_signal_while_the_loop_closes() -> None:
    """What is left over is finished first."""

    class Closing:
        async def values(self) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                signal.raise_signal(signal.SIGINT)

    async def main() -> str:
        task = asyncio.create_task(Closing().values())
        await asyncio.sleep(0)
        return "done" if not task.done() else "too early"

    with pytest.raises(KeyboardInterrupt):
        run_async(main())


def test_sigterm_with_a_handler_of_its_own() -> None:
    """`run --once` has SIGTERM raise SystemExit: that is what follows."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    async def main() -> None:
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(60)

    handler = signal.signal(signal.SIGTERM, leave)
    try:
        with pytest.raises(SystemExit) as error:
            run_async(main())
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert error.value.code == 143


STUCK = """
import asyncio, signal, time
from ragwatch.terminal import event_loop
event_loop.GRACE_SECONDS = 0.05
async def main():
    signal.raise_signal(signal.SIGINT)
    time.sleep(0.1)
    signal.raise_signal(signal.SIGINT)
    time.sleep(600)
event_loop.run_async(main())
"""


def test_a_second_signal_ends_what_does_not_end_by_itself() -> None:
    """At once, with the exit code of an interrupt."""
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
