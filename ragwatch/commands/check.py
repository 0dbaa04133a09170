"""`ragwatch check`: validates a configuration, then tests everything that it refers to."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from pydantic import BaseModel
from rich.console import Console
from rich.table import Column, Table

from ragwatch import sources
from ragwatch.audit import verify
from ragwatch.commands.check_records import FAILED, OK, SUSPECT, WARNING, check_records, first_records
from ragwatch.commands.check_settings import check_state, export_test, setting_notes
from ragwatch.commands.check_web import NOBODY_SENDS, address_state, may_send, push_request, traces_so_far, web_state
from ragwatch.commands.event_loop import run_async
from ragwatch.commands.log_warnings import document_advice, incomplete_file, lock_owner, pieces_fault
from ragwatch.commands.options.running import CheckArguments
from ragwatch.commands.rules import link_warning
from ragwatch.commands.samples import build_judge
from ragwatch.commands.state_reader import has_started, state_reader
from ragwatch.commands.terminal import escape_line
from ragwatch.config import Config, JudgeConfig, load
from ragwatch.config.canaries import SuiteConfig
from ragwatch.config.model import Settings
from ragwatch.config.paging import FAILURES, Outcome, outcome_of, unpaged
from ragwatch.config.validation import KindConfig
from ragwatch.config.web import WebOptions
from ragwatch.core.criteria import Criterion
from ragwatch.core.sample import OTHER, Context, Sample
from ragwatch.core.scores import faithfulness
from ragwatch.core.snapshot import Lag
from ragwatch.daemon.state_secret import readable_secret
from ragwatch.daemon.suites import suite_of
from ragwatch.daemon.web_access import read_rules
from ragwatch.errors import RagwatchError
from ragwatch.ports import Batch, Source
from ragwatch.ports.capabilities import HasFallback, HasLogFiles, ReadsCriteria, SupportsPeek, SupportsProbe
from ragwatch.ports.receiving import GrpcListener
from ragwatch.sources.brokers.options import BrokerOptions
from ragwatch.sources.otlp import Options as OtlpOptions
from ragwatch.sources.push import Options as PushOptions
from ragwatch.sources.record_options import reads_existing
from ragwatch.stores import postgres
from ragwatch.stores.sqlite import Options as SqliteOptions
from ragwatch.telemetry import configure_logging
from ragwatch.web import Right, grpc_library

SUSPECT_CODE = 3  # exit code
MAX_UNUSUAL = 5  # canaries that a warning names
_COLOURS = {OK: "green", WARNING: "yellow", SUSPECT: "yellow", FAILED: "red"}
_TEST_SAMPLE = Sample(
    id="check",
    question="What colour is the door?",
    contexts=(Context("The door of the old mill is painted green."),),
    answer="The door of the old mill is green.",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one test.

    Attributes:
        subject: Key of the configuration that was tested.
        state: `ok`, `warning`, `suspect` (records are read, but probably wrongly) or `failed`.
        detail: What the test found, as text for people.
        shown: The first samples as they were read, below their records.
        dated: Whether any context of them has the date of its document.
    """

    subject: str
    state: str
    detail: str
    shown: tuple[str, ...] = ()
    dated: bool = False

    def warned(self, text: str) -> Finding:
        """Return this result with a warning."""
        return replace(self, state=WARNING if self.state == OK else self.state, detail=f"{self.detail}; {text}")


def check(given: CheckArguments) -> int:
    """Validate a configuration and test what it refers to: files, records, judges, canary endpoints, address."""
    configure_logging("error")
    findings = list(check_all(load(given.path)))
    table = Table("key", "state", Column("result", overflow="fold"))
    for finding in findings:
        state = f"[{_COLOURS[finding.state]}]{finding.state}[/]"
        table.add_row(escape_line(finding.subject), state, escape_line(finding.detail))
    Console(soft_wrap=True).print(table)
    for finding in findings:
        for line in (f"{finding.subject}: the first samples as they are read", *finding.shown) if finding.shown else ():
            click.echo(line)
    states = {finding.state for finding in findings}
    return 1 if FAILED in states else SUSPECT_CODE if SUSPECT in states else 0


def check_all(config: Config) -> Iterator[Finding]:
    """Test every part of a configuration."""
    yield Finding("configuration", OK, "every key is known and valid")
    of_sources = list(_sources(config))
    yield from _alerts(config, dated=any(finding.dated for finding in of_sources))
    yield from (Finding(subject, OK if well else WARNING, text) for subject, well, text in setting_notes(config))
    yield _run_test("state", lambda: _state(config))
    owner = lock_owner(config.settings.state)
    yield _run_test("web.listen", lambda: _address("web.listen", config.settings.web.listen, owner))
    yield _run_test("web", lambda: _web(config.settings.web, config.grpc_listeners))
    for listener in config.grpc_listeners:
        subject = f"sources.{listener.source}.grpc"
        yield _run_test(subject, lambda listener=listener: _listener(listener, owner))  # type: ignore[misc]  # bound now
    yield from _privacy(config)
    yield from of_sources
    criteria = config.settings.criterion_rules
    for index, judge in enumerate(config.judges):
        subject = f"judges[{index}]"
        yield _run_test(subject, lambda judge=judge, subject=subject: run_async(_judge(judge, subject, criteria)))  # type: ignore[misc]  # the same
    secret = readable_secret(config.settings.state)
    for index, suite in enumerate(config.canaries):
        subject = f"canaries[{index}]"
        yield _run_test(subject, lambda suite=suite, subject=subject: run_async(_suite(suite, subject, secret)))  # type: ignore[misc]  # the same
        yield from _unusual_canaries(suite, subject)
    if config.settings.export.otlp is not None:
        yield _run_test("export.otlp", lambda: _export(config))


def _export(config: Config) -> Finding:
    options = config.settings.export.otlp
    accepted, well, text = (True, True, "nothing is sent") if options is None else export_test(options, config)
    return Finding("export.otlp", FAILED if not accepted else OK if well else WARNING, text)


def _sources(config: Config) -> Iterator[Finding]:
    for index, source in enumerate(config.sources):
        subject = f"sources[{index}]"
        yield _run_test(subject, lambda source=source, subject=subject: _source(source, subject, config))  # type: ignore[misc]  # bound now
        if (skipped := _skipped_records(source, config)) is not None:
            yield Finding(f"{subject}.start", WARNING, skipped)


def _alerts(config: Config, *, dated: bool) -> Iterator[Finding]:
    """What cannot page, and links of alerts that nobody else can open; `dated` says whether a log dates documents."""
    routes = (*config.settings.routes, OTHER)
    paging = (
        failure
        for failure in FAILURES
        if all(outcome_of(config, failure, route)[0] is Outcome.PAGE for route in routes)
    )
    yield Finding("alerts", OK, f"pages on every route: {', '.join(paging) or 'nothing'}")
    yield from (Finding("alerts", OK, reason) for reason in unpaged(config, routes if dated else ()))
    warning = link_warning(config.settings.web.pages)
    if warning is not None:
        yield Finding("web.external_url", WARNING, warning.removeprefix("web.external_url "))


def _run_test(subject: str, test: Callable[[], Finding]) -> Finding:
    try:
        return test()
    except (RagwatchError, OSError) as error:
        return Finding(subject, FAILED, str(error))


def _state(config: Config) -> Finding:
    directory = config.settings.state
    owner = lock_owner(directory)
    if owner is not None:
        return Finding("state", WARNING, f"{directory} is in use by a running ragwatch (process {owner})")
    existing = directory if directory.exists() else next(parent for parent in directory.parents if parent.exists())
    with tempfile.TemporaryFile(dir=existing):
        check_state(config)
    return Finding("state", OK, f"{existing} can be written")


_CONSEQUENCES = {
    "all": "texts of judged answers are kept until retention deletes them",
    "failing": "texts of good answers, and metadata but those of the deployment, are deleted after judging: no"
    " labelling by people, `canary suggest`, live comparison or live rollout stage; pages show texts of failing answers"
    " only",
    "none": "texts, and metadata but those of the deployment, are deleted after judging: no labelling by people,"
    " `canary suggest`, live comparison, live rollout stage or bridge between judge versions; pages show scores only."
    " Anchors and canaries have files of their own and go on",
}


def _privacy(config: Config) -> Iterator[Finding]:
    """What the store keeps, whether its keys fit, and whether the audit log can be written."""
    yield Finding("store.texts", OK if config.texts == "all" else WARNING, _CONSEQUENCES[config.texts])
    options = config.store.options
    if isinstance(options, postgres.Options):
        yield _run_test("store.url", lambda: Finding("store.url", OK, postgres.describe(options)))
    if isinstance(options, SqliteOptions):
        yield _run_test("store.encryption", lambda: _encryption(options, config))
    if config.settings.audit.file is not None:
        yield _run_test("audit.file", lambda: _audit_log(config.settings.audit.file or Path()))


def _encryption(options: SqliteOptions, config: Config) -> Finding:
    """Test the keys on the state, if there is one."""
    cipher = options.cipher()
    if (config.settings.state / "ragwatch.db").is_file():
        with state_reader(config):  # checks that the keys of all encrypted texts are configured
            pass
    if cipher is None:
        return Finding("store.encryption", OK, "texts are stored as they are; file permissions protect them")
    others = len(cipher.ids) - 1
    detail = f"key {cipher.current.hex()} encrypts" + (f"; {others} older keys decrypt" if others else "")
    file = None if options.encryption is None else options.encryption.key_file
    if file is not None and file.stat().st_mode & 0o077:
        return Finding("store.encryption", WARNING, f"{detail}; others may read {file}: run chmod 600 on it")
    return Finding("store.encryption", OK, detail)


def _audit_log(file: Path) -> Finding:
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        return Finding("audit.file", FAILED, f"{file} cannot be written; nothing could be shown or changed")
    result = verify([file]) if file.exists() else None
    if result is not None and result.error is not None:
        return Finding("audit.file", WARNING, f"the chain is broken: {result.error}")
    return Finding("audit.file", OK, f"{file} can be written")


def _address(subject: str, listen: str, owner: str | None) -> Finding:
    free, text = address_state(listen, owner)
    return Finding(subject, OK if free else WARNING, text)


def _web(web: WebOptions, listeners: Sequence[GrpcListener] = ()) -> Finding:
    safe, text = web_state(web, listeners)
    return Finding("web", OK if safe else WARNING, text)


def _listener(listener: GrpcListener, owner: str | None) -> Finding:
    """Whether a source can receive calls over gRPC."""
    grpc_library(listener.source)
    return _address(f"sources.{listener.source}.grpc", listener.address, owner)


def _source(config: KindConfig, subject: str, whole: Config) -> Finding:
    options = config.options
    if isinstance(options, OtlpOptions):
        well, text = traces_so_far(options, whole)
        return Finding(subject, OK if well else WARNING, text)
    if isinstance(options, PushOptions):
        return _push(options, subject, whole)
    options = reads_existing(options)
    source: Source = sources.KINDS[config.kind].build(options)
    if isinstance(source, SupportsPeek):
        return _peek(source, options, subject, whole.settings)
    finding, lag = _read_content(source, options, subject, whole.settings)
    patterns = config.options.patterns if isinstance(config.options, HasLogFiles) else ()
    if not getattr(config.options, "documents", True) and (advice := document_advice(patterns)) is not None:
        finding = finding.warned(advice)
    if not lag.unreadable:
        return finding
    name, why = next(iter(lag.unreadable.items()))
    others = f" and {len(lag.unreadable) - 1} more" if len(lag.unreadable) > 1 else ""
    return finding.warned(f"cannot be read: {name}: {why}{others}")


def _read_content(source: Source, options: BaseModel, subject: str, settings: Settings) -> tuple[Finding, Lag]:
    """Test the first records of a source that is read without taking anything from others, and close it."""
    batch, lag, parts = first_records(source)
    if fault := "; ".join(lag.problems) or pieces_fault(parts):
        return Finding(subject, FAILED, fault), lag
    if batch is not None:
        return _content(options, batch, subject, settings), lag
    reason = incomplete_file(options.patterns) if isinstance(options, HasLogFiles) else None
    return Finding(subject, WARNING, f"nothing to read yet: {reason or 'no file matches, or all are empty'}"), lag


def _peek(source: Source, options: object, subject: str, settings: Settings) -> Finding:
    """Look at a stream that others may read as well, without taking anything from them."""
    try:
        detail, batch = source.peek() if isinstance(source, SupportsPeek) else ("", None)
    finally:
        source.close()
    if batch is None:
        return Finding(subject, WARNING, f"nothing to read yet: {detail}")
    return _content(options, batch, subject, settings)


def _push(options: PushOptions, subject: str, config: Config) -> Finding:
    """How to send a record to a source, and whether anybody may."""
    web = config.settings.web
    access = read_rules(web).access
    if not may_send(access):
        return Finding(subject, WARNING, NOBODY_SENDS)
    several = sum(isinstance(source.options, PushOptions) for source in config.sources) > 1
    request = push_request(web, options.name if several else None, token=Right.INGEST not in access.anonymous)
    return Finding(subject, OK, f"receives answers; send one with: {request}")


def _skipped_records(config: KindConfig, whole: Config) -> str | None:
    """How many existing records the first start will skip; None when it reads all, or is over."""
    if getattr(config.options, "start", None) != "end" or isinstance(config.options, BrokerOptions):
        return None
    source: Source = sources.KINDS[config.kind].build(config.options)
    try:
        if has_started(whole, source.name):
            return None
        source.resume({})
        source.read()
        skipped = source.lag().skipped
    except (RagwatchError, OSError):  # reported by the test of the source itself
        return None
    finally:
        source.close()
    return f"source {source.name}: {skipped}" if skipped else None


def _content(options: object, batch: Batch, subject: str, settings: Settings) -> Finding:
    """Test the records of a batch."""
    result = check_records(options, batch, settings)
    return Finding(subject, result.state, result.text, tuple(result.shown), result.dated)


async def _suite(config: SuiteConfig, subject: str, secret: bytes | None) -> Finding:
    """Send the first query of a suite. The reply is not scored here; `ragwatch canary` does that."""
    suite = suite_of(config, secret)
    try:
        report = await replace(suite, canaries=suite.canaries[:1]).ask(time.time)
    finally:
        await suite.probe.close()
    (first,) = report.reports
    if first.failure is not None:
        return Finding(subject, FAILED, f"{config.place.suite}: {first.failure}: {first.retrieved.detail}")
    return Finding(subject, OK, f"{config.place.suite}: the retriever returned {len(first.retrieved.hits)} passages")


def _unusual_canaries(config: SuiteConfig, subject: str) -> Iterator[Finding]:
    """Canaries whose number of expected contexts is unusual for their category."""
    unusual = [f"{canary.name} {reason}" for canary in config.canaries if (reason := canary.unusual_number)]
    if unusual:
        more = f" and {len(unusual) - MAX_UNUSUAL} more" if len(unusual) > MAX_UNUSUAL else ""
        detail = (
            f"{config.place.suite}: {len(unusual)} of {len(config.canaries)} canaries expect an unusual number of"
            f" contexts for their category: {'; '.join(unusual[:MAX_UNUSUAL])}{more}. Complete `expected`, or correct"
            " `category`"
        )
        yield Finding(f"{subject}.category", WARNING, detail)


async def _judge(config: JudgeConfig, subject: str, criteria: tuple[Criterion, ...]) -> Finding:
    judge = build_judge(config, criteria)
    try:
        detail = f"; {await judge.probe()}" if isinstance(judge, SupportsProbe) else ""
        cost = await judge.criteria_cost(_TEST_SAMPLE) if isinstance(judge, ReadsCriteria) else ""
        detail += f"; {cost}" if cost else ""
        evidence, _ = await judge.read(_TEST_SAMPLE)
    finally:
        await judge.close()
    if faithfulness(evidence) != 1.0:
        return Finding(subject, FAILED, f"{judge.version} does not support a claim that its context states{detail}")
    if isinstance(judge, HasFallback) and judge.fallback is not None:
        return Finding(subject, WARNING, f"{judge.version} falls back to the lexical judge: {judge.fallback}")
    return Finding(subject, OK, f"{judge.version} works{detail}")
