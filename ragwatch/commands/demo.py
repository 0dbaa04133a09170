"""`ragwatch demo`: a real small RAG service, and ragwatch beside it. No key, no configuration."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ragwatch.commands.live import table
from ragwatch.config import parse
from ragwatch.daemon import Daemon
from ragwatch.demo import Demo, askable
from ragwatch.errors import ConfigError
from ragwatch.telemetry import configure_logging

REFRESH_SECONDS = 1.0
EVENTS_SHOWN = 4
DEFAULT_PORT = 10477
KEYS = {"claude": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
DOLLARS_PER_HOUR = 1.0


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
@click.option("--judge", "kind", type=click.Choice(sorted(KEYS)), help="An LLM judge beside the embedded one.")
@click.option("--base-url", help="Where that judge's model answers; default: its provider.")
@click.option("--model", help="Which model; openai has no default.")
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
    """Watch a small RAG service over Python's own documentation strings; every answer is judged, without a key.

    With --degrade-after the service breaks in three ways, one after another: documents vanish from its index, it
    invents facts, it ignores the top-ranked passage. Each is announced, and named by stage in the figures.

    With --judge claude or openai a model reads a part of the answers too, most of those that the embedded judge is
    unsure of, for a dollar an hour at most. Its key is taken from ANTHROPIC_API_KEY or OPENAI_API_KEY.
    """
    configure_logging("warning")
    asked = [] if kind is None else [llm_judge(kind, base_url, model)]
    with tempfile.TemporaryDirectory(prefix="ragwatch-demo-") as folder:
        play = Play(
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


class Play:
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
        self._console = Console()
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
            "canaries": [self._service.suite()] if askable() else [],
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
        if not askable():
            self._console.print("canaries      none: they need httpx (the extra `probes`)", highlight=False)

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
