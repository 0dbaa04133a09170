"""Log events and counters of ragwatch itself: one method per event.

The counters live in memory and restart at 0 with the process, as Prometheus allows; counts that must survive a restart
(records seen, draws, verdicts) are tallies in the store. Logs are JSON lines on stderr and contain no text of samples.
"""

import logging
import sys
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from resource import RLIMIT_NOFILE, getrlimit
from time import monotonic

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from ragwatch.errors import RagwatchError
from ragwatch.model.enumerations import Labelled
from ragwatch.statistics.tally import Rejections

MAX_REJECTIONS_PER_MINUTE = 10
LIMIT_WARNING_SECONDS = 600.0  # between two warnings about the same limit
MAX_NAMES_SHOWN = 5
_REFUSALS = {
    "credentials": "requests without valid credentials are refused",
    "right": "requests of users without the right are refused",
    "rate": "requests beyond the rate limit are refused",
    "labels": "labels beyond the hourly limit of an annotator are refused",
}
CALL_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class EventCount(Labelled):
    """Counters in memory, with their labels in order."""

    JUDGE_CALLS = "judge_calls", "judge", "model"
    JUDGE_FAILURES = "judge_call_failures", "judge", "model", "reason"
    JUDGE_SECONDS = "judge_call_duration_seconds", "judge", "model", "bucket"
    JUDGE_TOKENS = "judge_tokens", "judge", "model", "direction"
    JUDGE_COST = "judge_cost_dollars", "judge", "model"
    JUDGE_RETRIES = "judge_retries", "judge", "model"
    JUDGE_CHECKED = "judge_checked_readings", "judge"
    JUDGE_UNQUOTED = "judge_unquoted_cells", "judge"
    JUDGE_LEFT_TO_WORDS = "judge_left_to_words", "judge", "reason"
    INSTRUCTIONS = "judge_instructions", "judge", "place"
    READ_AGAIN = "judge_second_readings", "judge", "outcome"
    STEP_FAILURES = "step_failures", "loop"
    VIOLATIONS = "invariant_violations", "law"
    ACCEPT_FAILURES = "web_accept_failures"
    WEB_REFUSALS = "web_refused_requests", "reason"
    WEB_FILE_FAILURES = "web_config_failures"
    EXPORT_RECORDS = "export_records", "signal", "outcome"
    EXPORT_SKIPPED = "export_verdicts_skipped", "signal", "reason"
    EXPORT_FAILURES = "export_failures", "signal", "reason"


class GaugeLevel(Labelled):
    """Gauges in memory, with their labels in order."""

    BREAKER_OPEN = "judge_breaker_open", "judge"
    RATE_LIMIT_LEFT = "judge_rate_limit_remaining_ratio", "judge", "limit"
    JUDGE_FALLBACK = "judge_fallback", "judge"
    EXPORT_WAITING = "export_waiting_seconds", "signal"


class Telemetry:
    """Counts and logs events, by default as JSON lines on stderr. Thread-safe."""

    def __init__(self, log: FilteringBoundLogger | None = None) -> None:
        self._log: FilteringBoundLogger = log or structlog.get_logger()
        self._lock = threading.Lock()
        self._counts: Counter[tuple[EventCount, tuple[str, ...]]] = Counter()
        self._levels: dict[tuple[GaugeLevel, tuple[str, ...]], float] = {}
        self._in_force: frozenset[str] = frozenset()
        self._minute, self._shown, self.rejections = 0.0, 0, Rejections()
        self._next_warning: dict[str, float] = {}
        self.last_reload_ok: bool | None = None
        self.last_reload_at: float | None = None
        self.pages: str | None = None
        self.leader: bool | None = None

    def counts(self) -> dict[tuple[EventCount, tuple[str, ...]], float]:
        """Copy all counters."""
        with self._lock:
            return dict(self._counts)

    def levels(self) -> dict[tuple[GaugeLevel, tuple[str, ...]], float]:
        """Copy all gauges."""
        with self._lock:
            return dict(self._levels)

    def _add(self, count: EventCount, labels: tuple[str, ...], amount: float = 1) -> None:
        with self._lock:
            self._counts[count, labels] += amount  # type: ignore[assignment]  # Counter adds floats as well as ints

    def started(self, address: str, version: str) -> None:
        """The HTTP server accepts connections."""
        self._log.info("started", address=address, version=version)

    def receives_calls(self, source: str, address: str) -> None:
        """A source receives calls over gRPC."""
        self._log.info("receives calls over gRPC", source=source, address=address)

    def stopped(self, *, drained: bool) -> None:
        """The daemon has stopped; `drained` if no step had to be cancelled."""
        self._log.info("stopped", drained=drained)

    def configured(self, at: float, pages: str | None = None) -> None:
        """A configuration was loaded; `pages` is the address of the pages that others can open, None for none."""
        self.last_reload_ok, self.last_reload_at, self.pages = True, at, pages
        self._log.info("configuration loaded")

    def misconfigured(self, why: str) -> None:
        """A new configuration was rejected; the previous one stays active."""
        self.last_reload_ok = False
        self._log.error("configuration refused, the old one stays", why=why)

    def rejected(self, source: str, reason: str, event: str = "record rejected", **where: object) -> None:
        """A record or a field is not valid. Logs at most 10 events per minute; intake counts all in the store."""
        now = monotonic()
        with self._lock:
            if now - self._minute > 60.0:
                self._minute, self._shown = now, 0
            self._shown = shown = self._shown + 1
            if "file" in where:
                self.rejections.add(source, reason, f"{where.get('field', '')}", "{file}:{line}".format(**where), now)
        if shown <= MAX_REJECTIONS_PER_MINUTE:
            self._log.warning(event, source=source, reason=reason, **where)
        elif shown == MAX_REJECTIONS_PER_MINUTE + 1:
            self._log.warning("more records rejected; see ragwatch_requests_rejected_total", source=source)

    def reset(self, source: str, file: str, reason: str) -> None:
        """A stream is read from its start again, because its file was truncated or replaced."""
        self._log.info("stream started over", source=source, file=file, reason=reason)

    def unreadable(self, source: str, new: Mapping[str, str], total: int) -> None:
        """Files of a source have become unreadable: `new` with reasons; `total` includes those of earlier events."""
        first = dict(islice(new.items(), MAX_NAMES_SHOWN))
        self._log.warning("files cannot be read", source=source, new=len(new), total=total, first=first)

    def readable_again(self, source: str, names: Collection[str], left: int) -> None:
        """Files that were unreadable have been readable for a while, or no longer exist."""
        first = list(islice(names, MAX_NAMES_SHOWN))
        self._log.info("files no longer unreadable", source=source, files=len(names), left=left, first=first)

    def files_closed(self, source: str, closed: int) -> None:
        """Files of a source are closed between reads, to save file descriptors. No record is lost."""
        self._log_limit("log files are closed between reads: more match than may be open", source=source, closed=closed)

    def accept_failed(self, why: str) -> None:
        """A connection could not be accepted, because file descriptors or memory are exhausted."""
        self._add(EventCount.ACCEPT_FAILURES, ())
        self._log_limit("connections cannot be accepted: the limit on open files is reached", why=why)

    def request_refused(self, reason: str) -> None:
        """A request was refused, for a reason in `_REFUSALS`. Logs each reason at most every 10 minutes."""
        self._add(EventCount.WEB_REFUSALS, (reason,))
        if self._is_due(_REFUSALS[reason]):
            self._log.warning(_REFUSALS[reason], advice="see docs/security.md")

    def web_file_read(self) -> None:
        """Users, certificates or headers have changed and are in force."""
        self._log.info("web configuration loaded")

    def web_file_refused(self, why: str) -> None:
        """A changed web configuration or certificate was rejected; the previous one stays active."""
        self._add(EventCount.WEB_FILE_FAILURES, ())
        self._log.error("web configuration refused, the old one stays", why=why)

    def skipped(self, source: str, how_much: str) -> None:
        """A source was started for the first time with `start: end`, which skips existing records."""
        self._log.warning("existing records are not read", source=source, why=how_much)

    def odd_records(self, source: str, event: str, advice: str) -> None:
        """Records of a source can be read, but something is wrong with them: logged every 10 minutes."""
        if self._is_due(f"{source} {event} {advice}"):
            self._log.warning(event, source=source, advice=advice)

    def _log_limit(self, event: str, **fields: object) -> None:
        """Log at most every 10 minutes for each source that the limit on open files is reached."""
        if self._is_due(f"{event} {fields.get('source')}"):
            limit = getrlimit(RLIMIT_NOFILE)[0]
            self._log.warning(event, **fields, limit=limit, advice="raise LimitNOFILE (ulimit -n)")

    def _is_due(self, warning: str) -> bool:
        """Whether a warning that may be frequent is logged now: every 10 minutes."""
        now = monotonic()
        with self._lock:
            if due := now >= self._next_warning.get(warning, now):
                self._next_warning[warning] = now + LIMIT_WARNING_SECONDS
        return due

    def judge_called(self, judge: str, model: str, seconds: float) -> None:
        """A call to a judge returned or failed after so many seconds."""
        self._add(EventCount.JUDGE_CALLS, (judge, model))
        cell = (*map(repr, CALL_SECONDS), "+Inf")[bisect_left(CALL_SECONDS, seconds)]
        self._add(EventCount.JUDGE_SECONDS, (judge, model, cell))
        self._add(EventCount.JUDGE_SECONDS, (judge, model, "sum"), seconds)

    def judge_spent(self, judge: str, model: str, tokens: Iterable[tuple[str, int]], cost_usd: float) -> None:
        """A call to a judge used tokens and money."""
        for direction, amount in tokens:
            self._add(EventCount.JUDGE_TOKENS, (judge, model, direction), amount)
        self._add(EventCount.JUDGE_COST, (judge, model), cost_usd)

    def call_failed(self, judge: str, model: str, reason: str, why: str) -> None:
        """A call to a judge failed. It may be retried."""
        self._add(EventCount.JUDGE_FAILURES, (judge, model, reason))
        self._log.warning("judge call failed", judge=judge, reason=reason, why=why)

    def call_repeated(self, judge: str, model: str) -> None:
        """A call that failed is retried at once."""
        self._add(EventCount.JUDGE_RETRIES, (judge, model))

    def breaker(self, judge: str, *, is_open: bool, why: str = "", seconds: float = 0.0) -> None:
        """The circuit breaker of a judge opened, after too many failures or a permanent one; or it closed."""
        with self._lock:
            self._levels[GaugeLevel.BREAKER_OPEN, (judge,)] = float(is_open)
        if is_open:
            self._log.error("circuit breaker opened", judge=judge, why=why, seconds=round(seconds, 1))
        else:
            self._log.info("circuit breaker closed", judge=judge)

    def judges_in_force(self, fell_back: Mapping[str, bool | None]) -> None:
        """New judges are active: reset the gauges of their predecessors.

        `fell_back` says by judge whether the lexical judge reads because its model is missing; None without a model.
        """
        with self._lock:
            self._in_force = frozenset(fell_back)
            levels = ((judge, float(fell)) for judge, fell in fell_back.items() if fell is not None)
            self._levels = {(GaugeLevel.JUDGE_FALLBACK, (judge,)): level for judge, level in levels}

    def rate_limit(self, judge: str, limit: str, left: float) -> None:
        """The remaining share of a provider's rate limit changed, 0 to 1."""
        with self._lock:
            self._levels[GaugeLevel.RATE_LIMIT_LEFT, (judge, limit)] = left

    def quotes_checked(self, judge: str, unquoted: int) -> None:
        """The quotes of a reading were checked; `unquoted` claims called supported lack one, so they are not."""
        self._add(EventCount.JUDGE_CHECKED, (judge,))
        self._add(EventCount.JUDGE_UNQUOTED, (judge,), unquoted)

    def judge_fell_back(self, judge: str, version: str, why: str | None) -> None:
        """A judge was built; `why` says why the lexical judge reads instead, None if its model is loaded."""
        with self._lock:
            if judge not in self._in_force:  # else the reload may still fail: `judges_in_force` sets the gauge
                self._levels[GaugeLevel.JUDGE_FALLBACK, (judge,)] = float(why is not None)
        if why is not None:
            self._log.error("model not loaded, the lexical judge reads instead", judge=judge, version=version, why=why)

    def lexical_fallback(self, judge: str, reason: str, readings: int) -> None:
        """The lexical judge decided what the cross-encoder could not read, or had no time for."""
        self._add(EventCount.JUDGE_LEFT_TO_WORDS, (judge, reason), readings)

    def instructions_seen(self, judge: str, place: str) -> None:
        """A text to be judged contains instructions to the judge (prompt injection)."""
        self._add(EventCount.INSTRUCTIONS, (judge, place))

    def read_again(self, judge: str, *, same: bool) -> None:
        """A sample with a suspected prompt injection was read again without it."""
        self._add(EventCount.READ_AGAIN, (judge, "same" if same else "different"))

    def draw_failed(self, judge: str, reason: str, why: str) -> None:
        """A draw became unjudged. The store counts it."""
        self._log.warning("draw not judged", judge=judge, reason=reason, why=why)

    def draw_deferred(self, judge: str, reason: str, why: str) -> None:
        """A draw could not be judged at present and returns to the queue."""
        self._log.info("draw deferred", judge=judge, reason=reason, why=why)

    def repeating(self, loop: str) -> None:
        """A loop starts: its failures count from 0, so that `increase()` sees the first one. Logs nothing."""
        self._add(EventCount.STEP_FAILURES, (loop,), 0)

    def step_failed(self, loop: str, error: BaseException) -> None:
        """A step of a loop failed and will be retried. Logs a traceback unless the error is a `RagwatchError`."""
        self._add(EventCount.STEP_FAILURES, (loop,))
        unexpected = None if isinstance(error, RagwatchError) else error
        self._log.error("step failed, will be repeated", loop=loop, why=str(error), exc_info=unexpected)

    def invariant_violated(self, invariant: str, figures: str) -> None:
        """An invariant between counters is violated, so figures may be wrong."""
        self._add(EventCount.VIOLATIONS, (invariant,))
        self._log.error("invariant violated", law=invariant, figures=figures)

    def canaries_ran(self, suite: str, asked: int, degraded: int, failed: int) -> None:
        """A canary suite was run. The store counts it."""
        log = self._log.warning if degraded or failed else self._log.info
        log("canaries ran", suite=suite, asked=asked, degraded=degraded, failed=failed)

    def drift_alarmed(
        self, quantity: str, route: str, *, evidence: float, judge_moved: bool, stage: str | None = None
    ) -> None:
        """A quantity has drifted on a route; `judge_moved` if the judge has drifted too, which may be the cause.

        `stage` is the stage at fault that has become more frequent; None if that is not known.
        """
        figures = {"evidence": round(evidence, 1), "judge_moved": judge_moved, "stage": stage}
        self._log.error("drift", quantity=quantity, route=route, **figures)

    def learning_paused(self, kind: str, routes: Mapping[str, str]) -> None:
        """No baseline is learnt on these routes, each with the reason: during an alert, bad answers would become it."""
        self._log.warning("baseline is not learnt during an alert", kind=kind, routes=dict(routes))

    def learning_resumed(self, kind: str, routes: Iterable[str]) -> None:
        """No alert stands on these routes any more, or no baseline remains to be learnt."""
        self._log.info("baseline is learnt again", kind=kind, routes=list(routes))

    def traffic_shifted(self, signal: str, route: str, *, cut: str, direction: str) -> None:
        """A traffic signal has drifted: the share of values above `cut` has changed."""
        self._log.warning("traffic has shifted", signal=signal, route=route, cut=cut, direction=direction)

    def anchors_read(self, judge: str, *, read: int, changed: int, moved: bool) -> None:
        """A judge has read the anchors; `moved` if too many of its verdicts changed in one direction."""
        log = self._log.error if moved else self._log.info
        log("anchors read", judge=judge, read=read, changed=changed, moved=moved)

    def export_begins(self, signal: str, reasons: Iterable[str]) -> None:
        """Scores are sent: records and failures count from 0, so that `increase()` sees the first one. Logs nothing."""
        for outcome in ("sent", "rejected", "dropped"):
            self._add(EventCount.EXPORT_RECORDS, (signal, outcome), 0)
        for reason in reasons:
            self._add(EventCount.EXPORT_FAILURES, (signal, reason), 0)

    def exported(self, signal: str, outcome: str, records: int, why: str = "") -> None:
        """The endpoint of `export` accepted, rejected or refused records: `sent`, `rejected` or `dropped`."""
        self._add(EventCount.EXPORT_RECORDS, (signal, outcome), records)
        if outcome != "sent" and records and self._is_due(f"{outcome} {signal}"):
            self._log.error(
                "scores are lost: the endpoint does not accept them", signal=signal, records=records, why=why
            )

    def export_skipped(self, signal: str, reason: str, verdicts: int) -> None:
        """Nothing is sent of so many verdicts."""
        self._add(EventCount.EXPORT_SKIPPED, (signal, reason), verdicts)

    def export_failed(self, signal: str, reason: str, why: str) -> None:
        """A request to the endpoint of `export` failed. Logged every 10 minutes for each reason."""
        self._add(EventCount.EXPORT_FAILURES, (signal, reason))
        if self._is_due(f"export {signal} {reason}"):
            self._log.warning("scores cannot be sent", signal=signal, reason=reason, why=why)

    def export_waiting(self, signal: str, seconds: float) -> None:
        """Scores have been waiting for so long to be sent; 0 if none wait."""
        with self._lock:
            self._levels[GaugeLevel.EXPORT_WAITING, (signal,)] = seconds

    def leads(self, *, leads: bool) -> None:
        """This worker leads from now on, or does not any more. At the start, that is not logged."""
        if self.leader is not None:
            self._log.info("leader of the workers" if leads else "no longer leader of the workers")
        self.leader = leads

    def pruned(self, verdicts: int) -> None:
        """Retention deleted verdicts."""
        self._log.info("verdicts pruned", verdicts=verdicts)

    def erased(self, answers: int) -> None:
        """The answers of a person were erased on request."""
        self._log.info("answers erased", answers=answers)

    def announced(self, kind: str, detail: str) -> None:
        """An event of the monitored service was recorded, such as a deployment."""
        self._log.info("event", kind=kind, detail=detail)


def _quoted(_: object, __: str, event: EventDict) -> EventDict:
    """Quote texts with control characters, such as escape sequences of a terminal in the name of a file."""
    return {name: repr(one) if isinstance(one, str) and not one.isprintable() else one for name, one in event.items()}


def configure_logging(level: str = "info", *, human: bool = False) -> None:
    """Configure logging to stderr: one JSON object per line, or coloured text if `human`.

    Logs of libraries (uvicorn, APScheduler) have the same format.
    """
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    first: tuple[Processor, ...] = (structlog.processors.add_log_level, stamp)
    # ConsoleRenderer formats tracebacks itself, and warns about those that are formatted already.
    renderers: tuple[Processor, ...] = (structlog.processors.format_exc_info, structlog.processors.JSONRenderer())
    if human:
        # Plain tracebacks: the default shows values of variables, which may be API keys or samples.
        plain = structlog.dev.plain_traceback
        renderers = (_quoted, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain))
    structlog.configure(
        processors=[*first, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    strip = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=first, processors=[strip, *renderers]))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
