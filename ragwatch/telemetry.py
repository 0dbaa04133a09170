"""Telemetry: our own life. One method per happening, each one log event and one count.

Counts of the daemon's own doings live in memory and restart with the process, as Prometheus counters may; what must
survive a kill (seen, drawn, judged ...) is a tally in the store instead. Logs are JSON lines on stderr and never
hold text of a sample.
"""

from __future__ import annotations

import logging
import sys
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from itertools import islice
from resource import RLIMIT_NOFILE, getrlimit
from time import monotonic
from typing import Any

import structlog

from ragwatch.errors import RagwatchError

REJECTIONS_A_MINUTE = 10
COMPLAINT_SECONDS = 600.0  # between two complaints about a limit that stays reached
NAMES_SHOWN = 5
CALL_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class EventCount(StrEnum):
    """What is counted in memory. The comment names the labels, in order."""

    JUDGE_CALLS = "judge_calls"  # judge, model
    JUDGE_FAILURES = "judge_failures"  # judge, model, reason
    JUDGE_SECONDS = "judge_seconds"  # judge, model, cell
    JUDGE_TOKENS = "judge_tokens"  # judge, model, direction
    JUDGE_COST = "judge_cost"  # judge, model
    JUDGE_RETRIES = "judge_retries"  # judge, model
    JUDGE_UNQUOTED = "judge_unquoted"  # judge
    JUDGE_LEFT_TO_WORDS = "judge_left_to_words"  # judge, reason
    INSTRUCTIONS = "instructions"  # judge, place
    STEP_FAILURES = "step_failures"  # loop
    VIOLATIONS = "violations"  # law
    ACCEPT_FAILURES = "accept_failures"


class GaugeLevel(StrEnum):
    """What is at some height at present. The comment names the labels, in order."""

    BREAKER_OPEN = "breaker_open"  # judge
    RATE_LIMIT_LEFT = "rate_limit_left"  # judge, limit
    JUDGE_FALLBACK = "judge_fallback"  # judge


class Telemetry:
    """Counts and logs what happens. Safe to use from several threads.

    Args:
        log: A structlog logger; by default JSON lines on stderr.
    """

    def __init__(self, log: Any = None) -> None:  # noqa: ANN401 - structlog's loggers share no type
        self._log = log or structlog.get_logger()
        self._lock = threading.Lock()
        self._counts: Counter[tuple[EventCount, tuple[str, ...]]] = Counter()
        self._levels: dict[tuple[GaugeLevel, tuple[str, ...]], float] = {}
        self._in_force: frozenset[str] = frozenset()
        self._minute = 0.0
        self._shown = 0
        self._complained: dict[str, float] = {}
        self.last_reload_ok: bool | None = None
        self.last_reload_at: float | None = None

    def counts(self) -> dict[tuple[EventCount, tuple[str, ...]], float]:
        """A copy of all counts."""
        with self._lock:
            return dict(self._counts)

    def levels(self) -> dict[tuple[GaugeLevel, tuple[str, ...]], float]:
        """A copy of all levels."""
        with self._lock:
            return dict(self._levels)

    def _add(self, count: EventCount, labels: tuple[str, ...], amount: float = 1) -> None:
        with self._lock:
            self._counts[count, labels] += amount  # type: ignore[assignment]  # Counter adds floats as well as ints

    def started(self, address: str, version: str) -> None:
        """The daemon serves."""
        self._log.info("started", address=address, version=version)

    def stopped(self, *, drained: bool) -> None:
        """The daemon has ended; `drained` when every step finished by itself."""
        self._log.info("stopped", drained=drained)

    def configured(self, at: float) -> None:
        """A configuration is in force."""
        self.last_reload_ok, self.last_reload_at = True, at
        self._log.info("configuration loaded")

    def misconfigured(self, why: str) -> None:
        """A new configuration was refused; the old one stays."""
        self.last_reload_ok = False
        self._log.error("configuration refused, the old one stays", why=why)

    def rejected(self, source: str, reason: str, **where: object) -> None:
        """A record was not read as a sample. Shown at most ten times a minute; always tallied by intake."""
        now = monotonic()
        with self._lock:
            if now - self._minute > 60.0:
                self._minute, self._shown = now, 0
            self._shown += 1
            shown = self._shown
        if shown <= REJECTIONS_A_MINUTE:
            self._log.warning("record rejected", source=source, reason=reason, **where)
        elif shown == REJECTIONS_A_MINUTE + 1:
            self._log.warning("more records rejected; see ragwatch_requests_rejected_total", source=source)

    def reset(self, source: str, file: str, reason: str) -> None:
        """A stream was started over (its file was truncated or replaced)."""
        self._log.info("stream started over", source=source, file=file, reason=reason)

    def unreadable(self, source: str, new: Mapping[str, str], total: int) -> None:
        """Files of a source cannot be read since now (`new`, with reasons; `total` counts those told before, too)."""
        first = dict(islice(new.items(), NAMES_SHOWN))
        self._log.warning("files cannot be read", source=source, new=len(new), total=total, first=first)

    def readable_again(self, source: str, names: Collection[str], left: int) -> None:
        """What could not be read has been read for a while, or is gone."""
        first = list(islice(names, NAMES_SHOWN))
        self._log.info("files no longer unreadable", source=source, files=len(names), left=left, first=first)

    def files_closed(self, source: str, closed: int) -> None:
        """Files of a source are closed between reads, for want of descriptors. Nothing is lost."""
        self._complain("log files are closed between reads: more match than may be open", source=source, closed=closed)

    def accept_failed(self, why: str) -> None:
        """A connection could not be accepted, for want of descriptors or memory."""
        self._add(EventCount.ACCEPT_FAILURES, ())
        self._complain("connections cannot be accepted: the limit on open files is reached", why=why)

    def skipped(self, source: str, how_much: str) -> None:
        """What a log held at the very first start is not read, and nothing was read of the source so far."""
        self._log.warning("existing records are not read", source=source, why=how_much)

    def _complain(self, event: str, **about: object) -> None:
        """Tell, at most once in ten minutes for each source, that the limit on open files is reached."""
        now, subject = monotonic(), f"{event} {about.get('source')}"
        with self._lock:
            if now < self._complained.get(subject, now):
                return
            self._complained[subject] = now + COMPLAINT_SECONDS
        self._log.warning(event, **about, limit=getrlimit(RLIMIT_NOFILE)[0], advice="raise LimitNOFILE (ulimit -n)")

    def judge_called(self, judge: str, model: str, seconds: float) -> None:
        """A call was made; it answered, or failed."""
        self._add(EventCount.JUDGE_CALLS, (judge, model))
        index = bisect_left(CALL_SECONDS, seconds)
        cell = repr(CALL_SECONDS[index]) if index < len(CALL_SECONDS) else "+Inf"
        self._add(EventCount.JUDGE_SECONDS, (judge, model, cell))
        self._add(EventCount.JUDGE_SECONDS, (judge, model, "sum"), seconds)

    def judge_spent(self, judge: str, model: str, tokens: Iterable[tuple[str, int]], cost_usd: float) -> None:
        """A call used tokens and money."""
        for direction, amount in tokens:
            self._add(EventCount.JUDGE_TOKENS, (judge, model, direction), amount)
        self._add(EventCount.JUDGE_COST, (judge, model), cost_usd)

    def call_failed(self, judge: str, model: str, reason: str, why: str) -> None:
        """A call gave no reading. It may be repeated."""
        self._add(EventCount.JUDGE_FAILURES, (judge, model, reason))
        self._log.warning("judge call failed", judge=judge, reason=reason, why=why)

    def call_repeated(self, judge: str, model: str) -> None:
        """A call that failed is made again at once."""
        self._add(EventCount.JUDGE_RETRIES, (judge, model))

    def breaker(self, judge: str, *, is_open: bool, why: str = "", seconds: float = 0.0) -> None:
        """A judge is left alone for a while because it failed too often or for good, or is asked again."""
        with self._lock:
            self._levels[GaugeLevel.BREAKER_OPEN, (judge,)] = float(is_open)
        if is_open:
            self._log.error("judge left alone", judge=judge, why=why, seconds=round(seconds, 1))
        else:
            self._log.info("judge asked again", judge=judge)

    def judges_in_force(self, fell_back: Mapping[str, bool | None]) -> None:
        """These judges read from now on, and none of them has been refused yet, whatever befell those before.

        Args:
            fell_back: By judge, whether words alone read for want of its model; None for one that needs none.
        """
        with self._lock:
            self._in_force = frozenset(fell_back)
            self._levels = {
                (GaugeLevel.JUDGE_FALLBACK, (judge,)): float(fell)
                for judge, fell in fell_back.items()
                if fell is not None
            }

    def rate_limit(self, judge: str, limit: str, left: float) -> None:
        """How much of a provider's rate limit is left, 0 to 1."""
        with self._lock:
            self._levels[GaugeLevel.RATE_LIMIT_LEFT, (judge, limit)] = left

    def unquoted(self, judge: str, cells: int) -> None:
        """A judge called claims supported without a quote that stands in the context; they count as not supported."""
        self._add(EventCount.JUDGE_UNQUOTED, (judge,), cells)

    def judge_fell_back(self, judge: str, version: str, why: str | None) -> None:
        """A judge with a model was made; where `why` is given it has none, and words alone read."""
        with self._lock:
            if judge not in self._in_force:  # else it may be one that never will be: see `judges_in_force`
                self._levels[GaugeLevel.JUDGE_FALLBACK, (judge,)] = float(why is not None)
        if why is not None:
            self._log.error("no model, words alone read", judge=judge, version=version, why=why)

    def left_to_words(self, judge: str, reason: str, readings: int) -> None:
        """Words decided what the judge's model could not read, or had no time for."""
        self._add(EventCount.JUDGE_LEFT_TO_WORDS, (judge, reason), readings)

    def instructions_seen(self, judge: str, place: str) -> None:
        """A text that was to be judged speaks to the judge."""
        self._add(EventCount.INSTRUCTIONS, (judge, place))

    def draw_failed(self, judge: str, reason: str, why: str) -> None:
        """A draw is settled as unjudged. Tallied by the store."""
        self._log.warning("draw not judged", judge=judge, reason=reason, why=why)

    def draw_put_back(self, judge: str, reason: str, why: str) -> None:
        """A draw could not be read at present and goes back to the queue."""
        self._log.info("draw put back", judge=judge, reason=reason, why=why)

    def repeating(self, loop: str) -> None:
        """A loop begins. No event: its failures are counted from zero, so that the first of them is an increase."""
        self._add(EventCount.STEP_FAILURES, (loop,), 0)

    def step_failed(self, loop: str, error: BaseException) -> None:
        """A step of a loop failed; it will be repeated. Foreign faults need no traceback, bugs do."""
        self._add(EventCount.STEP_FAILURES, (loop,))
        known = isinstance(error, RagwatchError)
        self._log.error("step failed, will be repeated", loop=loop, why=str(error), exc_info=None if known else error)

    def unbalanced(self, law: str, figures: str) -> None:
        """The books do not balance: a count of ours is wrong, and so may be every figure."""
        self._add(EventCount.VIOLATIONS, (law,))
        self._log.error("the books do not balance", law=law, figures=figures)

    def canaries_ran(self, suite: str, asked: int, degraded: int, failed: int) -> None:
        """A suite of canaries was run. Tallied by the store."""
        show = self._log.warning if degraded or failed else self._log.info
        show("canaries ran", suite=suite, asked=asked, degraded=degraded, failed=failed)

    def drift_alarmed(self, quantity: str, route: str, *, evidence: float, judge_moved: bool) -> None:
        """A quantity has drifted on a route; `judge_moved` when the judge has too, which may be all there is to it."""
        self._log.error("drift", quantity=quantity, route=route, evidence=round(evidence, 1), judge_moved=judge_moved)

    def traffic_shifted(self, signal: str, route: str, *, cut: str, direction: str) -> None:
        """A signal of all traffic is not what it was: values below and above `cut` are in another proportion."""
        self._log.warning("traffic has shifted", signal=signal, route=route, cut=cut, direction=direction)

    def anchors_read(self, judge: str, *, read: int, changed: int, moved: bool) -> None:
        """A judge has read the anchors again; `moved` when too many of its verdicts changed, and one way."""
        show = self._log.error if moved else self._log.info
        show("anchors read", judge=judge, read=read, changed=changed, moved=moved)

    def pruned(self, verdicts: int) -> None:
        """Retention took verdicts."""
        self._log.info("verdicts pruned", verdicts=verdicts)

    def announced(self, kind: str, detail: str) -> None:
        """Something happened to the service we watch (a deploy, a breakage in the demo)."""
        self._log.info("event", kind=kind, detail=detail)


def configure_logging(level: str = "info", *, human: bool = False) -> None:
    """Send logs to stderr: one JSON object a line, or (`human`) coloured text for a terminal.

    Libraries that log by themselves (uvicorn's tracebacks, APScheduler) are put into the same shape.
    """
    before: tuple[Any, ...] = (
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    )
    # The console shows tracebacks itself, and warns when they come formatted.
    renderers: tuple[Any, ...] = (structlog.processors.format_exc_info, structlog.processors.JSONRenderer())
    if human:
        # Plain: the prettier traceback shows the values of variables, a key or a sample among them.
        plain = structlog.dev.plain_traceback
        renderers = (structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain),)
    structlog.configure(
        processors=[*before, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    strip = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=before, processors=[strip, *renderers]))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
