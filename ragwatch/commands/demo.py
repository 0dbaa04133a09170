"""`ragwatch demo`: runs a small RAG service and monitors it. Needs no API key and no configuration."""

import asyncio
import errno
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ragwatch.config import parse
from ragwatch.config.drift import DriftOptions
from ragwatch.config.releases import LIVE_DEFAULTS
from ragwatch.daemon import Daemon
from ragwatch.demo import Demo
from ragwatch.demo.service import HEALTHY_RELEASE, RECOVERED, Breakage
from ragwatch.errors import AddressError, ConfigError, StoreError
from ragwatch.model.estimate import Estimate
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.model.quantity_row import Better
from ragwatch.model.stages import Stage
from ragwatch.pipeline.labels.tasks import MAX_TASKS, LabelTasks
from ragwatch.statistics.estimators.level import CALIBRATED_LABELS, calibration_status
from ragwatch.statistics.snapshot import EstimateRow, Gauge, Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.telemetry import configure_logging
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.options.administration import DemoArguments
from ragwatch.terminal.output import OUTPUT

REFRESH_SECONDS = 1.0
REFERENCE = 80  # scores: few, so that the demo is short; its faults are large
KEYS = {"claude": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
DOLLARS_PER_HOUR = 1.0
INTERVAL_WIDTH = 5  # characters
LABELLER = "demo"
LABEL_FROM = 240  # answers, of which those to be labelled are selected
_WATCHED = DriftOptions().quantities


def demo(given: DemoArguments) -> None:
    """Monitor a small RAG service over the docstrings of the Python library; judges every answer."""
    configure_logging("warning")
    judges = [] if given.kind is None else [llm_judge(given.kind, given.base_url, given.model)]

    async def run() -> None:  # everything that must be closed is created here, where a signal is no exception
        with tempfile.TemporaryDirectory(prefix="ragwatch-demo-") as folder:
            await DemoRun(Path(folder), given, judges).run(given.seconds)

    run_async(run())


def llm_judge(kind: str, base_url: str | None, model: str | None) -> dict[str, object]:
    """Configuration of an LLM judge that follows the embedded one in a cascade; `ConfigError` without an API key."""
    key = os.environ.get(KEYS[kind])
    if key is None and (kind == "claude" or base_url is None):
        raise ConfigError(f"--judge {kind}: needs an API key; set the environment variable {KEYS[kind]}")
    optional = {"base_url": base_url, "model": model, "api_key": key}
    return {
        "name": kind,
        "kind": kind,
        "follows": "embedded",
        "probability": 0.25,
        "unsure_probability": 1.0,
        "budget": {"usd_per_hour": DOLLARS_PER_HOUR},
        "allow_unknown_price": base_url is not None,
        **{name: value for name, value in optional.items() if value is not None},
    }


class _Console(Console):
    """A console that raises BrokenPipeError when its reader is gone, instead of SystemExit in the current thread."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, "the reader is gone", OUTPUT)


class DemoRun:
    """Runs the RAG service and ragwatch in a folder, and shows the estimates as a table on the terminal.

    `judges` are configured besides the embedded one.
    """

    def __init__(self, folder: Path, given: DemoArguments, judges: Sequence[dict[str, object]]) -> None:
        self._console = _Console()
        self._output_error: OSError | None = None  # why nothing more can be printed
        self._degrades = given.degrade_after is not None
        self._learnt = False
        self._labelled = False
        self._calibrated: set[tuple[str, str]] = set()  # levels, by quantity and route
        self._alarms: frozenset[tuple[str, ...]] = frozenset()
        self._service = Demo(
            folder / "rag.jsonl",
            rate=given.rate,
            degrade_after=given.degrade_after,
            breakage_seconds=given.breakage_seconds,
            chunk_words=given.chunk_words,
            may_break=lambda: self._learnt,
            on_event=self._announce,
        )
        data = {
            "state": str(folder / "state"),
            "web": {"listen": f"127.0.0.1:{given.port}"},
            "routes": list(Demo.routes),
            "sources": [{"kind": "tail", "name": "demo", "path": f"{folder}/rag.jsonl", "start": "beginning"}],
            "sampling": {"probability": 1.0},
            "judges": [{"name": "embedded", "kind": "lexical"}, *judges],
            "canaries": [self._service.suite()],
            "store": {"kind": "sqlite", "min_free": 0},
            "estimates": {"windows": ["1m", "15m", "1h"], "every": "1s"},
            "segments": {"release": [HEALTHY_RELEASE, *(breakage.release for breakage in Breakage)]},
            "drift": {
                "segments": False,  # a release has too few answers to learn from before it is replaced
                "reference": REFERENCE,
                "reference_time": "10s",
                "traffic": {"requests": 1000, "reference": "1m"},
            },
            "thresholds": dict(LIVE_DEFAULTS),
            "labels": {"trusted": [LABELLER]},  # it knows what it has made
        }
        self.daemon = Daemon(parse(data, folder=folder))

    def _announce(self, text: str) -> None:
        self._print(f"[bold yellow]{text}[/]")
        self.daemon.record("release", text)
        if text == RECOVERED:  # as people on call would do, so that the next fault raises an alarm
            asyncio.run_coroutine_threadsafe(self._acknowledge(), self._loop)

    async def _acknowledge(self) -> None:
        async with self.daemon.in_force() as runtime:
            await runtime.watchers.drift.acknowledge()

    def _follow_drift(self, gauges: Mapping[tuple[Gauge, tuple[str, ...]], float]) -> None:
        """Print when the baselines are learnt, and every new drift alarm."""
        if not self._learnt:
            watched = {labels for gauge, labels in gauges if gauge is Gauge.DRIFT_EVIDENCE}
            if all((str(quantity), route) in watched for quantity in _WATCHED for route in Demo.routes):
                self._learnt = True
                self._print(f"[green]drift detection has learned its baselines: {len(watched)} detectors watch[/]")
        alarms = frozenset(labels for (gauge, labels), value in gauges.items() if gauge is Gauge.DRIFT_ALARM and value)
        for quantity, route in sorted(alarms - self._alarms):
            self._print(f"[bold red]drift alarm: {quantity} on route {route} is worse than its baseline[/]")
        self._alarms = alarms

    async def _label(self, snapshot: Snapshot) -> None:
        """Label answers of one route, once there are enough, and none of the other."""
        judged = sum(amount for (tally, _), amount in snapshot.tallies.items() if tally is Tally.JUDGED)
        if self._labelled or judged < LABEL_FROM:
            return
        async with self.daemon.in_force() as runtime:
            labelling = runtime.labelling
        with suppress(StoreError):  # it is being closed
            self._labelled = await asyncio.to_thread(self._put_labels, labelling)

    def _put_labels(self, labelling: LabelTasks) -> bool:
        """Label the samples that are given out, those of the other route with nothing; False if they are too few."""
        records: list[dict[str, object]] = []
        left = CALIBRATED_LABELS
        for task in labelling.tasks(LABELLER, MAX_TASKS):
            truth = self._service.service.truth(task["sample"]["id"]) if task["route"] == Demo.routes[0] else None
            scores = {}
            if truth is not None:  # what a person would say of the answer
                scores = {"faithfulness": truth.faithful, "top_ranked_ignored": float(not truth.uses_first)}
                left -= 1
            records.append({"key": task["key"], "annotator": LABELLER, "at": time.time(), "scores": scores})
            if not left:
                break
        if left:
            return False
        labelling.put(records)
        self._print(f"[green]{CALIBRATED_LABELS} answers of route {Demo.routes[0]} are labelled[/]")
        return True

    def _print(self, text: RenderableType) -> None:
        """Print from any thread; if that fails, stop the demo."""
        try:
            self._console.print(text, highlight=False)
        except OSError as error:
            self._output_error = error
            self._loop.call_soon_threadsafe(self.daemon.stop)

    async def run(self, seconds: float | None) -> None:
        """Run for this many seconds, or until a signal; `OSError` if standard output cannot be written."""
        self._loop = asyncio.get_running_loop()
        self.daemon.listen_to_signals()
        self._service.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._show_until_stopped(seconds))
                await self.daemon.run(self._print_addresses)
        except* AddressError as errors:
            detail = next(error.detail for error in errors.exceptions if isinstance(error, AddressError))
            raise ConfigError(f"--port: {detail}") from errors
        finally:
            await asyncio.to_thread(self._service.stop)
        if self._output_error is not None:
            raise self._output_error

    def _print_addresses(self, address: str) -> None:
        if self.daemon.stopping:
            return
        self._print(f"RAG service   {self._service.address}/search?q=textwrap.dedent")
        self._print(f"overview      {address}/")
        self._print(f"series        {address}/metrics")
        until = "; the service stays healthy until then" if self._degrades else ""
        self._print(f"drift         {address}/drift: learning baselines from {REFERENCE} scores per route{until}")

    async def _show_until_stopped(self, seconds: float | None) -> None:
        try:
            await self._show_live(seconds)
        except OSError as error:
            self._output_error = error
        self.daemon.stop()
        if not self._console.is_terminal:
            self._print(self._screen())

    async def _show_live(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        end = None if seconds is None else loop.time() + seconds
        with Live(console=self._console, auto_refresh=False, transient=not self._console.is_terminal) as live:
            while not self.daemon.stopping and (end is None or loop.time() < end):
                if (snapshot := self.daemon.board.latest()) is not None:
                    self._follow_drift(snapshot.gauges)
                    for line in level_news(snapshot, self._calibrated):
                        self._print(line)
                    await self._label(snapshot)
                if self._console.is_terminal:
                    live.update(self._screen(), refresh=True)
                await self.daemon.pause(REFRESH_SECONDS if end is None else min(REFRESH_SECONDS, end - loop.time()))

    def _screen(self) -> Group:
        fault = self._service.breakage
        state = Text(f"broken: {fault.announcement}", "bold red") if fault else Text("the service is healthy", "green")
        counts = Text(f"{self._service.asked} questions asked")
        snapshot = self.daemon.board.latest()
        if snapshot is None or not snapshot.estimates:  # a table without rows is only a header
            return Group(Text("no estimates yet: the first answers are being judged", "dim"), state, counts)
        return Group(snapshot_table(snapshot), state, counts)


def level_news(snapshot: Snapshot, calibrated: set[tuple[str, str]]) -> Iterator[str]:
    """Which levels labels have calibrated since the last call, and which a release has made uncertain again."""
    for row in snapshot.corrected:
        level = (str(row.quantity), row.route)
        if row.calibrated == (level in calibrated):
            continue
        calibrated ^= {level}
        said = (
            "[green]calibrated[/]"
            if row.calibrated
            else f"[yellow]{calibration_status(row.labels, row.labels_given)}[/]"
        )
        yield f"the level of {row.quantity} on route {row.route} is {said}"


def snapshot_table(snapshot: Snapshot | None) -> Table:
    """The estimates of the shortest window by quantity and route, and the stages at fault since the start."""
    estimates = snapshot.estimates if snapshot else ()
    window = estimates[0].window if estimates else ""
    rows = [row for row in estimates if row.window == window]
    routes = sorted({row.route for row in rows})
    title = f"the last {window}: mean, interval, answers" if window else None
    table = Table(title=title, show_edge=False, pad_edge=False)
    table.add_column("quantity", no_wrap=True)
    for route in routes:
        table.add_column(route, no_wrap=True)
    for quantity in Quantity:
        if any(row.quantity is quantity for row in rows):
            table.add_row(quantity, *(_cell(rows, quantity, route) for route in routes))
    table.caption = _stages(snapshot) if snapshot else None
    return table


def _cell(rows: list[EstimateRow], quantity: Quantity, route: str) -> str:
    for row in rows:
        if row.quantity is quantity and row.route == route:
            estimate = row.estimate
            mean = f"[{_colour(quantity, estimate.value)}]{estimate.value:.2f}[/]"
            return f"{mean} {_interval(estimate)} {estimate.low:.2f}-{estimate.high:.2f} {estimate.n:>3}"
    return ""


def _colour(quantity: Quantity, value: float) -> str:
    if quantity.row.better is Better.NEITHER:
        return "default"
    good = 1.0 - value if quantity in LOW_IS_GOOD else value
    return "green" if good >= 0.8 else "yellow" if good >= 0.6 else "bold red"


def _interval(estimate: Estimate) -> str:
    """The interval as characters on a scale from 0 to 1."""
    low, mean, high = (
        min(INTERVAL_WIDTH - 1, int(value * INTERVAL_WIDTH)) for value in (estimate.low, estimate.value, estimate.high)
    )
    cells = ["━" if low <= index <= high else "·" for index in range(INTERVAL_WIDTH)]
    cells[mean] = "●"
    return "".join(cells)


def _stages(snapshot: Snapshot) -> str:
    counts: Counter[str] = Counter()
    for (tally, labels), amount in snapshot.tallies.items():
        if tally is Tally.STAGE and labels[1] == next(iter(snapshot.judges), labels[1]):
            counts[labels[2]] += int(amount)
    total = sum(counts.values())
    shares = [f"[{stage.colour}]{stage} {counts[stage] / total:.0%}[/]" for stage in Stage if counts[stage]]
    return "stage at fault, since the start: " + "  ".join(shares) if shares else ""
