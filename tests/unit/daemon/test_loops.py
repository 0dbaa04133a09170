"""Loops go on while there is work and outlive what they meet; reloads wait in turn; the process and its secret."""

import asyncio
import errno
import shutil
import stat
import threading
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import LogCapture
from support.patience import DEADLINE

from ragwatch.daemon.loops import (
    MAX_PAUSE_SECONDS,
    RETRY_SECONDS,
    Loop,
    ReloadQueue,
    StopSignal,
    StoreCheck,
    repeat,
    retry,
)
from ragwatch.daemon.process import (
    KEY_FILE,
    free_disk_bytes,
    log_library_warnings,
    readable_secret,
    state_secret,
    stored_secret,
)
from ragwatch.errors import ConfigError, SourceError, StoreError
from ragwatch.statistics.snapshot import Gauge
from ragwatch.telemetry import EventCount, Telemetry
from ragwatch.web import BusyError


class NotedHalt(StopSignal):
    """A halt whose pauses take no time and are written down; ends after so many."""

    def __init__(self, pauses: int) -> None:
        super().__init__()
        self.left, self.pauses = pauses, list[float]()

    async def pause(self, seconds: float, wake: asyncio.Event | None = None) -> None:
        """Note the pause instead of waiting."""
        self.pauses.append(seconds)
        if wake is not None:
            wake.clear()
        if len(self.pauses) == self.left:
            self.set()


def a_step(script: Iterable[bool | Exception]) -> Callable[[], Awaitable[bool]]:
    """A step that returns or raises what the script holds, then finds nothing for ever."""
    rest = iter(script)

    async def step() -> bool:
        outcome = next(rest, False)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return step


@pytest.mark.parametrize(
    ("script", "eager", "pauses", "told"),
    [
        ([True, True, False], True, [0.25] * 2, True),  # a pause comes after an idle step only
        ([False], True, [0.25], False),  # events are set after a step with work only
        ([True] * 3, False, [0.25] * 3, True),  # a loop that is not eager keeps its rhythm
    ],
)
async def test_works_until_nothing_is_left(
    telemetry: Telemetry, script: list[bool], pauses: list[float], *, eager: bool, told: bool
) -> None:
    """Pauses are those of the loop, and whoever waits for its work hears of it."""
    halt, news = NotedHalt(len(pauses)), asyncio.Event()
    await repeat(Loop("x", a_step(script), 0.25, eager=eager, notify=(news,)), halt, telemetry, {})
    assert (halt.pauses, news.is_set()) == (pauses, told)


async def test_failures_are_told_and_repeated_more_slowly(telemetry: Telemetry, log: LogCapture) -> None:
    """Each failure in a row doubles the pause; a good step clears the problem. Only errors of ours are quoted."""
    halt, problems = NotedHalt(4), dict[str, str]()
    seen = list[dict[str, str]]()
    inner = a_step([SourceError("gone"), SourceError("gone"), True, KeyError()])

    async def step() -> bool:
        seen.append(dict(problems))
        return await inner()

    await repeat(Loop("source app", step, 1.0), halt, telemetry, problems)
    assert halt.pauses == [2.0, 4.0, 2.0, 1.0]
    assert seen == [
        {},
        {"source app": "gone"},
        {"source app": "gone"},
        {},
        {"source app": "internal error (KeyError); see the log"},
    ]
    assert ([entry["loop"] for entry in log.entries], problems) == (["source app"] * 3, {})


async def test_failing_for_days_ends_nothing(telemetry: Telemetry) -> None:
    """Thousands of failures in a row pause no longer than the longest pause, and overflow nothing."""
    halt = NotedHalt(3000)
    await repeat(Loop("x", a_step([SourceError("gone")] * 3000), 0.25), halt, telemetry, {})
    assert (len(halt.pauses), max(halt.pauses)) == (3000, MAX_PAUSE_SECONDS)


async def test_halted_before_the_first_step(telemetry: Telemetry) -> None:
    """No step runs after the stop signal is set."""
    halt = StopSignal()
    halt.set()
    await repeat(Loop("x", a_step([ValueError()]), 1.0), halt, telemetry, {})
    assert telemetry.counts() == {(EventCount.STEP_FAILURES, ("x",)): 0}  # counted from zero, so that a first one shows


async def test_cancelling_ends_the_loop(telemetry: Telemetry) -> None:
    """Cancelling is not a failure that is repeated."""
    task = asyncio.create_task(repeat(Loop("x", a_step([]), 1e6), StopSignal(), telemetry, {}))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_pause_hears_halt_and_wake() -> None:
    """A pause of a year ends at once on either; the wake is used up, the halt is not. Without news it just ends."""
    halt, wake = StopSignal(), asyncio.Event()
    await halt.pause(0.0)
    wake.set()
    await halt.pause(3e7, wake)
    assert (wake.is_set(), bool(halt)) == (False, False)
    halt.set()
    await halt.pause(3e7)
    await halt.pause(3e7, wake)
    assert bool(halt)


async def test_an_action_is_retried_until_it_succeeds_once(telemetry: Telemetry) -> None:
    """With longer and longer pauses; meanwhile its error is among the problems. The stop ends it as well."""
    script: list[Exception] = [SourceError("away")] * 2
    problems: dict[str, str] = {}
    shown, halt = list[dict[str, str]](), NotedHalt(5)

    async def act() -> None:
        shown.append(dict(problems))
        if script:
            raise script.pop()

    assert await retry("x", act, halt, telemetry, problems) is True
    assert halt.pauses[:2] == [2 * RETRY_SECONDS, 4 * RETRY_SECONDS]
    assert (shown, problems) == ([{}, {"x": "away"}, {"x": "away"}], {})
    script = [SourceError("away")] * 9
    assert await retry("x", act, NotedHalt(3), telemetry, problems) is False


class Slow:
    """A reload that takes until it is let go; two at a time take turns."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun = 0
        self.go = asyncio.Event()
        self._lock = asyncio.Lock()
        self._error = error

    async def __call__(self) -> None:
        """Reload."""
        async with self._lock:
            self.begun += 1
            await self.go.wait()
            if self._error is not None:
                raise self._error


async def test_one_under_way_one_waiting() -> None:
    """The third is refused with a time to retry; when both have ended, two more are accepted."""
    slow = Slow()
    reloading = ReloadQueue(slow)
    for _ in range(2):
        asked = [asyncio.create_task(reloading.request()) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="another one waits") as refused:
            await reloading.request()
        assert refused.value.seconds > 0
        slow.go.set()
        await asyncio.wait_for(asyncio.gather(*asked), DEADLINE)
        slow.go.clear()
    assert slow.begun == 4


async def test_signals_are_one_reload() -> None:
    """Signals beyond the one that waits are the same reload, and a bad configuration breaks nothing."""
    slow = Slow(ConfigError("routes: wrong"))
    reloading = ReloadQueue(slow)
    for _ in range(50):
        reloading.signal()
    await asyncio.sleep(0)
    with pytest.raises(BusyError):
        await reloading.request()
    slow.go.set()
    await asyncio.sleep(0.1)
    assert slow.begun == 2
    with pytest.raises(ConfigError, match="routes: wrong"):
        await reloading.request()
    assert slow.begun == 3


class HangingStore:
    """A store that answers once it may."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.asked = 0

    def last_events(self, _: float) -> dict[str, float]:
        """Wait."""
        self.asked += 1
        assert self.may_answer.wait(DEADLINE)
        return {}


async def test_a_store_that_does_not_answer_fails_until_it_does() -> None:
    """It is asked once meanwhile, and again once it has answered."""
    store: Any = HangingStore()
    check = StoreCheck(store, lambda: 0.0, seconds=0.05)
    for _ in range(3):
        with pytest.raises(StoreError, match=r"^store: does not answer within 0\.05 s"):
            await check.step()
    assert store.asked == 1
    store.may_answer.set()
    patient = StoreCheck(store, lambda: 0.0, seconds=DEADLINE)
    assert await patient.step() is False
    assert store.asked == 2


def test_free_bytes_of_the_disk_are_what_others_say(tmp_path: Path) -> None:
    """Within what the rest of this machine writes in between; a disk that says nothing has no figure, and never 0."""
    disk = shutil.disk_usage(tmp_path)
    ((place, free),) = free_disk_bytes(tmp_path).items()
    assert place == (Gauge.STATE_FREE, ())
    assert abs(free - disk.free) <= (64 << 20) + disk.total / 100
    assert free_disk_bytes(tmp_path / "gone") == {}


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that remembers what it would have logged."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[dict[str, Any]] = []

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Remember it."""
        self.left.append(context)


def test_connections_that_cannot_be_accepted_are_counted_and_told_once(telemetry: Telemetry, log: LogCapture) -> None:
    """Only what asyncio says of a lack of descriptors or memory is taken from it; the rest it logs itself."""
    loop, handle = _Loop(), log_library_warnings(telemetry)
    others: list[dict[str, Any]] = [
        {"message": "m"},
        {"exception": OSError(errno.EIO, "x")},
        {"exception": ValueError()},
    ]
    try:
        for context in (*[{"exception": OSError(errno.EMFILE, "Too many open files")}] * 3, *others):
            handle(loop, context)
    finally:
        loop.close()
    assert loop.left == others
    assert telemetry.counts() == {(EventCount.ACCEPT_FAILURES, ()): 3}
    limit_reached = "connections cannot be accepted: the limit on open files is reached"
    assert [(entry["event"], "exc_info" in entry) for entry in log.entries] == [(limit_reached, False)]


def test_it_is_made_once_and_kept(tmp_path: Path) -> None:
    """Every later start has the same secret, which nobody else may read; what a killed process left is replaced."""
    assert stored_secret(tmp_path) is None
    (tmp_path / f"{KEY_FILE}.new").write_text("12")
    secret = state_secret(tmp_path)
    assert len(secret) == 32
    assert state_secret(tmp_path) == stored_secret(tmp_path) == readable_secret(tmp_path) == secret
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]
    (tmp_path / "other").mkdir()
    assert state_secret(tmp_path / "other") != secret


@pytest.mark.parametrize("text", ["", "12", "no hex", "ä" * 64])
def test_a_damaged_one_is_not_replaced(tmp_path: Path, text: str) -> None:
    """It is an error that says what to do; commands beside the daemon do without."""
    (tmp_path / KEY_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match=r"ragwatch\.secret is damaged.*restore it, or delete it"):
        state_secret(tmp_path)
    assert readable_secret(tmp_path) is None


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    """The error names the file."""
    (tmp_path / KEY_FILE).mkdir()
    with pytest.raises(StoreError, match=r"cannot read .*ragwatch\.secret"):
        state_secret(tmp_path)
    with pytest.raises(StoreError, match=r"cannot write .*ragwatch\.secret"):
        state_secret(tmp_path / "missing")
