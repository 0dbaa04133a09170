"""`ragwatch demo`: a real small RAG service, and ragwatch beside it. No key, no configuration."""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from pathlib import Path

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ragwatch.commands.live import table
from ragwatch.config import parse
from ragwatch.daemon import Daemon
from ragwatch.demo import Demo
from ragwatch.telemetry import configure_logging

REFRESH_SECONDS = 1.0
EVENTS_SHOWN = 4
DEFAULT_PORT = 10477


@click.command()
@click.option("--port", default=DEFAULT_PORT, show_default=True, help="Port of ragwatch itself; 0 for any free one.")
@click.option("--seconds", type=click.FloatRange(min=1), help="End after so many seconds; default: on Ctrl-C.")
@click.option(
    "--degrade-after", type=click.FloatRange(min=1), help="After so many healthy seconds, break the service on purpose."
)
@click.option(
    "--breakage-seconds", default=20.0, show_default=True, type=click.FloatRange(min=1), help="How long each."
)
@click.option(
    "--rate", default=8.0, show_default=True, type=click.FloatRange(min=0.1, max=200), help="Questions a second."
)
def demo(port: int, seconds: float | None, degrade_after: float | None, breakage_seconds: float, rate: float) -> None:
    """Watch a small RAG service over Python's own documentation strings; every answer is judged, without a key.

    With --degrade-after the service breaks in three ways, one after another: documents vanish from its index, it
    invents facts, it ignores the top-ranked passage. Each is announced, and named by stage in the figures.
    """
    configure_logging("warning")
    with tempfile.TemporaryDirectory(prefix="ragwatch-demo-") as folder:
        play = Play(Path(folder), port=port, degrade_after=degrade_after, breakage_seconds=breakage_seconds, rate=rate)
        asyncio.run(play.run(seconds))


class Play:
    """The service, ragwatch, and a table on the terminal, until told to stop."""

    def __init__(
        self, folder: Path, *, port: int, degrade_after: float | None, breakage_seconds: float, rate: float
    ) -> None:
        self._console = Console()
        self._events: deque[str] = deque(maxlen=EVENTS_SHOWN)
        data = {
            "state": str(folder / "state"),
            "web": {"listen": f"127.0.0.1:{port}"},
            "routes": list(Demo.routes),
            "sources": [{"kind": "tail", "name": "demo", "path": f"{folder}/rag.jsonl", "start": "beginning"}],
            "sampling": {"probability": 1.0},
            "store": {"kind": "sqlite", "min_free": 0},
            "estimates": {"windows": ["1m", "15m", "1h"], "every": "1s"},
            "thresholds": {
                "faithfulness": 0.85,
                "answer_relevancy": 0.75,
                "context_precision": 0.7,
                "top_ranked_ignored": 0.3,
            },
        }
        self.daemon = Daemon(parse(data, folder=folder))
        self._service = Demo(
            folder / "rag.jsonl",
            rate=rate,
            degrade_after=degrade_after,
            breakage_seconds=breakage_seconds,
            on_event=self._announce,
        )

    def _announce(self, text: str) -> None:
        self._events.append(text)
        self._console.print(f"[bold yellow]{text}[/]", highlight=False)
        self.daemon.record("release", text)

    async def run(self, seconds: float | None) -> None:
        """Run for so many seconds, or until a signal."""
        self.daemon.listen_to_signals()
        self._service.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch(seconds))
                await self.daemon.run(self._print_addresses)
        finally:
            await asyncio.to_thread(self._service.stop)

    def _print_addresses(self, address: str) -> None:
        self._console.print(f"RAG service   {self._service.address}/search?q=textwrap.dedent", highlight=False)
        self._console.print(f"overview      {address}/", highlight=False)
        self._console.print(f"series        {address}/metrics", highlight=False)

    async def _watch(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        end = None if seconds is None else loop.time() + seconds
        with Live(console=self._console, auto_refresh=False, transient=not self._console.is_terminal) as live:
            while not self.daemon.stopping and (end is None or loop.time() < end):
                if self._console.is_terminal:
                    live.update(self._screen(), refresh=True)
                await self.daemon.pause(REFRESH_SECONDS if end is None else min(REFRESH_SECONDS, end - loop.time()))
        self.daemon.stop()
        if not self._console.is_terminal:
            self._console.print(self._screen())

    def _screen(self) -> Group:
        broken = self._service.breakage
        state = (
            Text(f"broken: {broken.announcement}", "bold red") if broken else Text("the service is healthy", "green")
        )
        counts = Text(f"{self._service.asked} questions asked")
        return Group(table(self.daemon.board.look()), state, counts)
