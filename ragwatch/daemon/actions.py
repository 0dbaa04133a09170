"""Actions of the daemon behind POST endpoints: reload, canaries, alarms, events, rejudging, prompts."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from ragwatch.config.paging import unpaged
from ragwatch.daemon.changes import REPORTED
from ragwatch.daemon.components import Watchers
from ragwatch.daemon.runtime import Runtime
from ragwatch.errors import JudgeError
from ragwatch.judges.claims.claims import other_sentences
from ragwatch.model.sample import Sample, SampleRecord
from ragwatch.pipeline.drift.loop import Cell
from ragwatch.pipeline.reading import RejudgeRequest, Rejudging
from ragwatch.ports import Judge, Store
from ragwatch.ports.capabilities import ShowsPrompts
from ragwatch.statistics.canary.answer import answers_line
from ragwatch.statistics.canary.report import SuiteReport
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.stores.rows import sample_of
from ragwatch.telemetry import Telemetry
from ragwatch.web import Action, PageScope, ParameterError, RebuiltPrompts, Rejudge, RejudgeFields


def rejudge_with(
    in_force: Callable[[], AbstractAsyncContextManager[Runtime]], store: Store, telemetry: Telemetry
) -> Rejudge:
    """Build the handler. It reads with the budget and the circuit breaker of the judge in force."""

    async def rejudge(fields: RejudgeFields) -> Mapping[str, object]:
        async with in_force() as runtime:
            config, judges = runtime.config, {judging.judge.name: judging.judge for judging in runtime.judgings}
        config.require_texts("rejudging")
        if fields["judge"] not in judges:
            raise ParameterError(f"judge: {fields['judge']!r} is not configured; use one of: {', '.join(judges)}")
        rejudging = Rejudging(
            judges[fields["judge"]], store=store, timeout_seconds=config.settings.judging.timeout, telemetry=telemetry
        )
        request = RejudgeRequest(fields["of"], fields["share"], fields["keys"], fields["charted_before"])
        return (await rejudging.read(request)).to_dict()

    return rejudge


def rebuilt_prompts(judges: Iterable[Judge], name: str, record: SampleRecord) -> RebuiltPrompts | None:
    """Return the version in force and the first prompts of a judge; None if it asks no model or is not configured."""
    for judge in judges:
        if judge.name == name and isinstance(judge, ShowsPrompts):
            prompts, error = _prompts(judge, sample_of(record))
            return {"version": judge.version, "prompts": prompts, "error": error}
    return None


def _prompts(judge: ShowsPrompts, sample: Sample) -> tuple[Sequence[Mapping[str, str]], str | None]:
    """The prompts of a judge, or why there are none. The id as seed gives the same ones each time."""
    try:
        prompts = judge.first_prompts(sample, sample.id)
    except JudgeError as error:
        return [], str(error)
    return [{"system": system, "user": user} for system, user in prompts], None


def page_scope(runtime: Runtime, latest: Snapshot | None = None) -> PageScope:
    """The names in the configuration of a runtime, and what cannot page with the answers up to a snapshot."""
    config, tallies = runtime.config, {} if latest is None else latest.tallies
    dated = {labels[0] for tally, labels in tallies if tally is Tally.DOCUMENT_AGE}
    return PageScope(
        sources=tuple(intake.source.name for intake in runtime.intakes),
        routes=config.settings.routes,
        judges=tuple(judge.place.name for judge in config.judges),
        suites=tuple(suite.place.suite for suite in config.canaries),
        windows=tuple(config.settings.estimates.windows),
        thresholds={str(quantity): value for quantity, value in config.settings.live_thresholds.items()},
        route_thresholds={
            route: {str(quantity): value for quantity, value in limits.items()}
            for route, limits in config.settings.route_thresholds.items()
        },
        unpaged=unpaged(config, dated),
        texts=config.texts,
        confidence=config.settings.estimates.confidence,
        segments=config.settings.segments,
        criteria=tuple(criterion.name for criterion in config.settings.criteria),
        trace_url=config.settings.web.trace_url,
        fingerprint=config.fingerprint,
        other_sentences=other_sentences,
    )


MAX_DETAIL_CHARS = 500


def actions(
    reload: Callable[[], Awaitable[None]],
    in_force: Callable[[], AbstractAsyncContextManager[Runtime]],
    record: Callable[[str, str], None],
    leading: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> Mapping[str, Action]:
    """Build the actions, by path.

    Args:
        reload: Reloads the configuration.
        in_force: Context manager that holds the active runtime: no reload replaces it meanwhile.
        record: Stores an event of the monitored service, from its kind and detail.
        leading: Context manager within which this worker leads, in place of another one.
    """

    async def reload_configuration(_: Mapping[str, str]) -> str:
        await reload()
        return "configuration loaded"

    async def run_canaries(parameters: Mapping[str, str]) -> str:
        """Run one suite or all of them."""
        if unknown := set(parameters) - {"suite"}:
            raise ParameterError(f"{min(unknown)}: is not known; use suite, or nothing for all of them")
        async with in_force() as runtime:
            canaries = runtime.canaries
        name = parameters.get("suite")
        if name is not None and name not in canaries.suites:
            suites = ", ".join(sorted(canaries.suites)) or "none is configured"
            raise ParameterError(f"suite: {name!r} is not known; use one of: {suites}")
        reports = await canaries.run_all() if name is None else {name: await canaries.run(name)}
        lines = [f"{suite}: {_summary(report)}" for suite, report in reports.items()]
        return "\n".join(lines) or "no canaries are configured"

    async def acknowledge(parameters: Mapping[str, str]) -> str:
        """End alarms; `renew=true` also learns the baseline again."""
        async with in_force() as runtime, leading():  # a runtime that starts now would not see the change
            return await _acknowledge(runtime.watchers, parameters)

    async def report(parameters: Mapping[str, str]) -> str:
        """Store an event of the monitored service, which the drift page lists and dashboards mark."""
        kind, detail = _event_of(parameters)
        await asyncio.to_thread(record, kind, detail)
        return f"{kind} recorded"

    return {
        "/-/reload": reload_configuration,
        "/-/canaries/run": run_canaries,
        "/-/drift/acknowledge": acknowledge,
        "/-/events": report,
    }


def _event_of(parameters: Mapping[str, str]) -> tuple[str, str]:
    if unknown := set(parameters) - {"kind", "detail"}:
        raise ParameterError(f"{min(unknown)}: is not known; use kind, detail")
    kind, detail = parameters.get("kind", ""), parameters.get("detail", "")
    if kind not in set(REPORTED):
        raise ParameterError(f"kind: {kind!r} is not known; use one of: {', '.join(REPORTED)}")
    if len(detail) > MAX_DETAIL_CHARS:
        raise ParameterError(f"detail: {len(detail)} characters, at most {MAX_DETAIL_CHARS} are stored")
    return kind, detail


def _summary(report: SuiteReport | None) -> str:
    if report is None:
        return "is running already, in this process or another one"
    failed = sum(report.failures.values())
    answers = answers_line(report.answers)
    verdict = "".join(f"; {line}" for line in answers["verdict"]) if answers else ""
    return f"{len(report.reports)} asked, {len(report.degraded)} degraded, {failed} failed{verdict}"


async def _acknowledge(watchers: Watchers, parameters: Mapping[str, str]) -> str:
    if unknown := set(parameters) - {"quantity", "route", "judge", "renew"}:
        raise ParameterError(f"{min(unknown)}: is not known; use quantity, route, judge, renew")
    if parameters.get("renew", "false") not in ("true", "false"):
        raise ParameterError(f"renew: {parameters['renew']!r} is neither true nor false")
    judge = parameters.get("judge")
    if judge is not None:
        if watchers.anchors is None or watchers.anchors.name != judge:
            raise ParameterError(f"judge: {judge!r} reads no anchors; see `anchors` in the configuration")
        return f"judge {judge}: {'baseline renewed' if await watchers.anchors.renew() else 'nothing to renew'}"
    quantity, route, renew = parameters.get("quantity"), parameters.get("route"), parameters.get("renew") == "true"
    cells = {*watchers.drift.rules.cells, *watchers.traffic.rules.cells}
    if not any(quantity in (None, str(name)) and route in (None, cell_route) for name, cell_route in cells):
        filters = {"quantity": quantity, "route": route}
        text = " with ".join(f"{key} {value!r}" for key, value in filters.items() if value is not None)
        raise ParameterError(f"there is no drift detector for {text}; /drift lists all")
    ended = [
        *await watchers.drift.acknowledge(quantity, route, renew=renew),
        *await watchers.traffic.acknowledge(quantity, route, renew=renew),
    ]
    return "\n".join(map(_words_of, ended)) or "no alarm is active"


def _words_of(cell: Cell) -> str:
    name, route, *segment = cell
    return f"{name} on {route}" + (f", {' '.join(segment)}" if segment else "")
