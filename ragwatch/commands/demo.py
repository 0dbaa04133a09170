"""`ragwatch demo`: a real small RAG service, and ragwatch beside it. No key, no configuration."""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from ragwatch.commands.live import table
from ragwatch.commands.streams import OUTPUT
from ragwatch.config import parse
from ragwatch.daemon import Daemon
from ragwatch.demo import Demo, canaries_available
from ragwatch.errors import AddressError, ConfigError
from ragwatch.telemetry import configure_logging

REFRESH_SECONDS = 1.0
EVENTS_SHOWN = 4
KEYS = {"claude": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
DOLLARS_PER_HOUR = 1.0


def demo(
    *,
    port: int,
    seconds: float | None,
    degrade_after: float | None,
    breakage_seconds: float,
    rate: float,
    kind: str | None,
    base_url: str | None,
    model: str | None,
) -> None:
    """Watch a small RAG service over Python's own documentation strings; every answer is judged, without a key."""
    configure_logging("warning")
    asked = [] if kind is None else [llm_judge(kind, base_url, model)]
    with tempfile.TemporaryDirectory(prefix="ragwatch-demo-") as folder:
        play = DemoRun(
            Path(folder),
            port=port,
            degrade_after=degrade_after,
            breakage_seconds=breakage_seconds,
            rate=rate,
            judges=asked,
        )
        asyncio.run(play.run(seconds))


def llm_judge(kind: str, base_url: str | None, model: str | None) -> dict[str, Any]:
    """A judge that reads behind the embedded one, as it would stand in a configuration.

    Raises:
        ConfigError: The key is missing.
    """
    key = os.environ.get(KEYS[kind])
    if key is None and (kind == "claude" or base_url is None):
        raise ConfigError(f"--judge {kind}: needs a key; put it into the environment as {KEYS[kind]}")
    given = {"base_url": base_url, "model": model, "api_key": key}
    return {
        "name": kind,
        "kind": kind,
        "follows": "embedded",
        "probability": 0.25,
        "unsure_probability": 1.0,
        "budget": {"usd_per_hour": DOLLARS_PER_HOUR},
        "allow_unknown_price": base_url is not None,
        **{name: value for name, value in given.items() if value is not None},
    }


class _Screen(Console):
    """A console that raises where its reader is gone, instead of ending the thread that it is in."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, "the reader is gone", OUTPUT)


class DemoRun:
    """The service, ragwatch, and a table on the terminal, until told to stop."""

    def __init__(
        self,
        folder: Path,
        *,
        port: int,
        degrade_after: float | None,
        breakage_seconds: float,
        rate: float,
        judges: Sequence[dict[str, Any]] = (),
    ) -> None:
        self._console = _Screen()
        self._lost: OSError | None = None  # why nothing more can be shown
        self._events: deque[str] = deque(maxlen=EVENTS_SHOWN)
        self._service = Demo(
            folder / "rag.jsonl",
            rate=rate,
            degrade_after=degrade_after,
            breakage_seconds=breakage_seconds,
            on_event=self._announce,
        )
        data = {
            "state": str(folder / "state"),
            "web": {"listen": f"127.0.0.1:{port}"},
            "routes": list(Demo.routes),
            "sources": [{"kind": "tail", "name": "demo", "path": f"{folder}/rag.jsonl", "start": "beginning"}],
            "sampling": {"probability": 1.0},
            "judges": [{"name": "embedded", "kind": "lexical"}, *judges],
            "canaries": [self._service.suite()] if canaries_available() else [],
            "store": {"kind": "sqlite", "min_free": 0},
            "estimates": {"windows": ["1m", "15m", "1h"], "every": "1s"},
            "drift": {"reference": 500, "reference_time": "1m", "traffic": {"requests": 1000, "reference": "1m"}},
            "thresholds": {
                "faithfulness": 0.85,
                "answer_relevancy": 0.75,
                "context_precision": 0.7,
                "top_ranked_ignored": 0.3,
            },
        }
        self.daemon = Daemon(parse(data, folder=folder))

    def _announce(self, text: str) -> None:
        self._events.append(text)
        self._show(f"[bold yellow]{text}[/]")
        self.daemon.record("release", text)

    def _show(self, text: RenderableType) -> None:
        """Print; where that cannot be done the demo ends, in whichever thread this is."""
        try:
            self._console.print(text, highlight=False)
        except OSError as error:
            self._lost = error
            self._loop.call_soon_threadsafe(self.daemon.stop)

    async def run(self, seconds: float | None) -> None:
        """Run for so many seconds, or until a signal.

        Raises:
            ConfigError: The port is not free.
            OSError: Standard output takes nothing any more.
        """
        self._loop = asyncio.get_running_loop()
        self.daemon.listen_to_signals()
        self._service.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch(seconds))
                await self.daemon.run(self._print_addresses)
        except* AddressError as refused:
            raise ConfigError(f"--port: {_why(refused)}") from refused
        finally:
            await asyncio.to_thread(self._service.stop)
        if self._lost is not None:
            raise self._lost

    def _print_addresses(self, address: str) -> None:
        if self.daemon.stopping:
            return
        self._show(f"RAG service   {self._service.address}/search?q=textwrap.dedent")
        self._show(f"overview      {address}/")
        self._show(f"series        {address}/metrics")
        if not canaries_available():
            self._show("canaries      none: they need httpx (the extra `probes`)")

    async def _watch(self, seconds: float | None) -> None:
        try:
            await self._watch_until(seconds)
        except OSError as error:
            self._lost = error
        self.daemon.stop()
        if not self._console.is_terminal:
            self._show(self._screen())

    async def _watch_until(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        end = None if seconds is None else loop.time() + seconds
        with Live(console=self._console, auto_refresh=False, transient=not self._console.is_terminal) as live:
            while not self.daemon.stopping and (end is None or loop.time() < end):
                if self._console.is_terminal:
                    live.update(self._screen(), refresh=True)
                await self.daemon.pause(REFRESH_SECONDS if end is None else min(REFRESH_SECONDS, end - loop.time()))

    def _screen(self) -> Group:
        broken = self._service.breakage
        state = (
            Text(f"broken: {broken.announcement}", "bold red") if broken else Text("the service is healthy", "green")
        )
        counts = Text(f"{self._service.asked} questions asked")
        snapshot = self.daemon.board.look()
        if snapshot is None or not snapshot.estimates:  # a table without rows is a torn header
            return Group(Text("no figures yet: the first answers are being judged", "dim"), state, counts)
        return Group(table(snapshot), state, counts)


def _why(refused: ExceptionGroup[AddressError]) -> str:
    return next(each.why for each in refused.exceptions if isinstance(each, AddressError))
