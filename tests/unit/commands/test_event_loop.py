"""Commands that run an event loop end cleanly by a signal, whenever it arrives."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.patience import DEADLINE

from ragwatch.terminal.event_loop import run_async


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
