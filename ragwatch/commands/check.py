"""`ragwatch check`: validates a configuration, then tests everything that it refers to."""

import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from dataclasses import replace
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.table import Column, Table

from ragwatch import sources
from ragwatch.commands.api_client import lock_owner
from ragwatch.commands.check_records import check_records, document_advice, first_records, incomplete_file, pieces_fault
from ragwatch.commands.check_settings import (
    FAILED,
    OK,
    SUSPECT,
    WARNING,
    Finding,
    check_address,
    check_privacy,
    check_push,
    check_state,
    check_traces,
    check_web,
    setting_notes,
)
from ragwatch.commands.rules import link_warning
from ragwatch.config import Config, JudgeConfig, load
from ragwatch.config.canaries import SuiteConfig
from ragwatch.config.export import OtlpExportOptions
from ragwatch.config.paging import FAILURES, Outcome, outcome_of, unpaged, unpaged_failures
from ragwatch.config.validation import KindConfig
from ragwatch.daemon.components import suite_of
from ragwatch.daemon.process import readable_secret
from ragwatch.errors import RagwatchError
from ragwatch.model.quantities import Criterion
from ragwatch.model.sample import OTHER, Context, Sample
from ragwatch.offline.judge import build_judge
from ragwatch.offline.state_reader import has_started
from ragwatch.pipeline.export.evaluation import Signal
from ragwatch.ports import Source
from ragwatch.ports.capabilities import HasFallback, HasLogFiles, ReadsCriteria, SupportsPeek, SupportsProbe
from ragwatch.ports.sources import GrpcListener
from ragwatch.sources.brokers import BrokerOptions
from ragwatch.sources.otlp import Options as OtlpOptions
from ragwatch.sources.push import Options as PushOptions
from ragwatch.sources.record_options import reads_existing
from ragwatch.statistics.scores import faithfulness
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.options.administration import CheckArguments
from ragwatch.terminal.output import escape_line
from ragwatch.web import grpc_library

SUSPECT_CODE = 3  # exit code
MAX_UNUSUAL = 5  # canaries that a warning names
_COLOURS = {FAILED: "red", SUSPECT: "yellow", WARNING: "yellow", OK: "green"}
_ORDER = tuple(_COLOURS)  # of the findings: failures come first
_TEST_SAMPLE = Sample(
    id="check",
    question="What colour is the door?",
    contexts=(Context("The door of the old mill is painted green."),),
    answer="The door of the old mill is green.",
)


def check(given: CheckArguments) -> int:
    """Validate a configuration and test what it refers to: files, records, judges, canary endpoints, address."""
    findings = sorted(check_all(load(given.path), every=given.every), key=lambda finding: _ORDER.index(finding.state))
    table = Table("key", "state", Column("result", overflow="fold"))
    for finding in findings:
        state = f"[{_COLOURS[finding.state]}]{finding.state}[/]"
        table.add_row(escape_line(finding.subject), state, escape_line(finding.detail))
    Console(soft_wrap=True).print(table)
    for finding in findings:
        for line in (f"{finding.subject}: the first samples as they are read", *finding.shown) if finding.shown else ():
            click.echo(line)
    states = Counter(finding.state for finding in findings)
    click.echo(f"in all: {', '.join(f'{states[state]} {state}' for state in _ORDER)}")
    return 1 if FAILED in states else SUSPECT_CODE if SUSPECT in states else 0


def check_all(config: Config, *, every: bool = False) -> Iterator[Finding]:
    """Test every part of a configuration; `every` reason why a failure does not page has a finding of its own."""
    yield Finding(OK, "every key is known and valid", subject="configuration")
    of_sources = list(_sources(config))
    yield from _alerts(config, dated=any(finding.dated for finding in of_sources), every=every)
    yield from setting_notes(config)
    owner = lock_owner(config.settings.state)
    yield _tested("state", check_state, config, owner)
    yield _tested("web.listen", check_address, config.settings.web.listen, owner)
    yield _tested("web", check_web, config.settings.web, config.grpc_listeners)
    for listener in config.grpc_listeners:
        yield _tested(f"sources.{listener.source}.grpc", _listener, listener, owner)
    for subject, test in check_privacy(config):
        yield _tested(subject, test, config)
    yield from of_sources
    for index, judge in enumerate(config.judges):
        yield _tested(f"judges[{index}]", _judge, judge, config.settings.criterion_rules)
    secret = readable_secret(config.settings.state)
    for index, suite in enumerate(config.canaries):
        subject = f"canaries[{index}]"
        yield _tested(subject, _suite, suite, secret)
        yield from _unusual_canaries(suite, subject)
    if config.settings.export.otlp is not None:
        yield _tested("export.otlp", _export, config.settings.export.otlp, config)


def _tested(subject: str, test: Callable[..., Finding | Coroutine[object, object, Finding]], *of: object) -> Finding:
    """Call a test with what it is of; an error is its result, too."""
    try:
        result = test(*of)
        finding = result if isinstance(result, Finding) else run_async(result)
    except (RagwatchError, OSError) as error:
        finding = Finding(FAILED, str(error))
    return replace(finding, subject=subject)


def _sources(config: Config) -> Iterator[Finding]:
    for index, source in enumerate(config.sources):
        subject = f"sources[{index}]"
        yield _tested(subject, _source, source, config)
        if (skipped := _skipped_records(source, config)) is not None:
            yield Finding(WARNING, skipped, subject=f"{subject}.start")


def _alerts(config: Config, *, dated: bool, every: bool) -> Iterator[Finding]:
    """What cannot page, and links of alerts that nobody else can open; `dated` says whether a log dates documents."""
    routes = (*config.settings.routes, OTHER)
    by_date = routes if dated else ()
    paging = (
        failure
        for failure in FAILURES
        if all(outcome_of(config, failure, route)[0] is Outcome.PAGE for route in routes)
    )
    paged = f"pages on every route: {', '.join(paging) or 'nothing'}"
    reasons = unpaged(config, by_date)
    if reasons and not every:
        failures = (failure for failure, _ in unpaged_failures(config, by_date))
        paged += f". Otherwise: {', '.join(failures)}. `--all` gives {len(reasons)} limits with their keys"
    for detail in (paged, *(reasons if every else ())):
        yield Finding(OK, detail, subject="alerts")
    warning = link_warning(config.settings.web.pages)
    if warning is not None:
        yield Finding(WARNING, warning.removeprefix("web.external_url "), subject="web.external_url")


def _listener(listener: GrpcListener, owner: str | None) -> Finding:
    grpc_library(listener.source)
    return check_address(listener.address, owner)


def _source(config: KindConfig, whole: Config) -> Finding:
    options = config.options
    if isinstance(options, OtlpOptions):
        return check_traces(options, whole)
    if isinstance(options, PushOptions):
        return check_push(options, whole)
    options = reads_existing(options)
    source: Source = sources.KINDS[config.kind].build(options)
    if isinstance(source, SupportsPeek):  # others may read the stream as well: nothing is taken from them
        with closing(source):
            detail, batch = source.peek()
        if batch is None:
            return Finding(WARNING, f"nothing to read yet: {detail}")
        return check_records(options, batch, whole.settings)
    patterns = options.patterns if isinstance(options, HasLogFiles) else ()
    batch, lag, parts = first_records(source)
    if fault := "; ".join(lag.problems) or pieces_fault(parts):
        finding = Finding(FAILED, fault)
    elif batch is not None:
        finding = check_records(options, batch, whole.settings)
    else:
        nothing = incomplete_file(patterns) or f"no file matches {', '.join(patterns)}, or all are empty"
        finding = Finding(WARNING, f"nothing to read yet: {nothing}")
    if not getattr(config.options, "documents", True) and (advice := document_advice(patterns)) is not None:
        finding = finding.warned(advice)
    name, why = next(iter(lag.unreadable.items()), ("", ""))
    if why in finding.detail:
        return finding
    others = f" and {len(lag.unreadable) - 1} more" if len(lag.unreadable) > 1 else ""
    return finding.warned(f"cannot be read: {name}: {why}{others}")


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


async def _suite(config: SuiteConfig, secret: bytes | None) -> Finding:
    """Send the first query of a suite. The reply is not scored here; `ragwatch canary` does that."""
    suite = suite_of(config, secret)
    try:
        report = await replace(suite, canaries=suite.canaries[:1]).ask(time.time)
    finally:
        await suite.probe.close()
    (first,) = report.reports
    if first.failure is not None:
        return Finding(FAILED, f"{config.place.suite}: {first.failure}: {first.retrieved.detail}")
    return Finding(OK, f"{config.place.suite}: the retriever returned {len(first.retrieved.hits)} passages")


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
        yield Finding(WARNING, detail, subject=f"{subject}.category")


async def _judge(config: JudgeConfig, criteria: tuple[Criterion, ...]) -> Finding:
    judge = build_judge(config, criteria)
    try:
        detail = f"; {await judge.probe()}" if isinstance(judge, SupportsProbe) else ""
        cost = await judge.criteria_cost(_TEST_SAMPLE) if isinstance(judge, ReadsCriteria) else ""
        detail += f"; {cost}" if cost else ""
        evidence, _ = await judge.read(_TEST_SAMPLE)
    finally:
        await judge.close()
    if faithfulness(evidence) != 1.0:
        return Finding(FAILED, f"{judge.version} does not support a claim that its context states{detail}")
    if isinstance(judge, HasFallback) and judge.fallback is not None:
        return Finding(WARNING, f"{judge.version} falls back to the lexical judge: {judge.fallback}")
    return Finding(OK, f"{judge.version} works{detail}")


_FORMS = {Signal.LOGS: "gen_ai.evaluation.result events", Signal.SPANS: "OpenInference EVALUATOR spans"}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


async def _export(options: OtlpExportOptions, config: Config) -> Finding:
    """Whether the endpoint of the export accepts all that is sent."""
    from ragwatch.pipeline.export.loop import try_endpoint  # noqa: PLC0415 - heavy, and for this option only

    faults = await try_endpoint(options.target, options.signals)
    quantities = "all quantities" if options.quantities is None else ", ".join(options.quantities)
    texts = "and texts of answers that explain them" if options.explanations else "and no text of users"
    parts = [f"{options.endpoint} gets scores of {quantities} {texts}"]
    for signal, fault in faults.items():
        advice = f"; set {signal}: false if the backend does not take them" if fault is not None else ""
        parts.append(f"{_FORMS[signal]}: {'accepted' if fault is None else fault}{advice}")
    warnings = list(_export_warnings(options, config))
    state = FAILED if any(faults.values()) else WARNING if warnings else OK
    return Finding(state, "; ".join((*parts, *warnings)))


def _export_warnings(options: OtlpExportOptions, config: Config) -> Iterator[str]:
    if options.spans and config.texts != "all":
        yield (
            f"store.texts is {config.texts}: where the metadata of an answer are deleted, its span id is unknown, and "
            "no span is sent (ragwatch_export_verdicts_skipped_total, no_span_id)"
        )
    parts = urlsplit(options.endpoint)
    if options.headers and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        yield "the headers travel unencrypted: write https"
