"""Builds and connects all components of one configuration, and lets its sources continue from what is stored.

A reload builds a second runtime and replaces the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ragwatch import judges, sources
from ragwatch.config import Config, JudgeConfig
from ragwatch.config.judge_options import JudgeOptions
from ragwatch.config.model import Settings
from ragwatch.config.validation import KindConfig
from ragwatch.daemon.changes import RECENT_SECONDS, last_events
from ragwatch.daemon.components import (
    Watchers,
    build_watchers,
    canary_loop,
    digest_loop,
    export_loops,
    exporter_of,
    label_rules,
    labelling,
    retention_loop,
    sampling_control,
)
from ragwatch.daemon.process import SharedState, free_disk_bytes
from ragwatch.errors import ConfigError, SourceError
from ragwatch.exporter import Exporter
from ragwatch.model.sample import OTHER
from ragwatch.pipeline.batching import MAX_BATCH_SECONDS, BatchJudgingLoop, LeftBatchesLoop
from ragwatch.pipeline.canaries import CanaryLoop
from ragwatch.pipeline.digest import OVERDUE_SECONDS, DigestInputs, DigestLoop
from ragwatch.pipeline.feedback import FeedbackRules
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.pipeline.judging import Follower, JudgingLoop, JudgingRules, give_up
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.placing import NamedVersions
from ragwatch.pipeline.reading import JudgeSelfTests
from ragwatch.pipeline.retention import RetentionLoop
from ragwatch.pipeline.sampling_control import SamplingControl, StoredBudgetAccount
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.ports import Clock, Judge, JudgeContext, LoopContext, Part, Source, Store
from ragwatch.ports.capabilities import HasFallback, HasName, HoldsParts, ReceivesRequests, log_reader, uses_batches
from ragwatch.ports.judging import BatchJudge
from ragwatch.ports.sources import Handler
from ragwatch.statistics.canary.definition import CanaryMarks
from ragwatch.statistics.sampling import FollowRule, SamplingHash, SamplingPlan
from ragwatch.statistics.snapshot import Gauge

if TYPE_CHECKING:
    from ragwatch.pipeline.export.loop import ExportLoop


@dataclass(frozen=True, slots=True)
class Runtime:
    """The connected components of one configuration."""

    config: Config
    intakes: tuple[IntakeLoop, ...]
    judgings: tuple[JudgingLoop, ...]
    canaries: CanaryLoop
    watchers: Watchers
    digest: DigestLoop
    retention: RetentionLoop
    labelling: LabelTasks
    exporter: Exporter
    sampling: SamplingControl
    exports: tuple[ExportLoop, ...]

    @property
    def judges(self) -> tuple[Judge, ...]:
        """The judges in force."""
        return tuple(loop.judge for loop in self.judgings)

    def resume(self, store: Store, *, leads: bool = True) -> None:
        """Load the stored state: cursors of sources, canaries and, in the leader, drift detection.

        A source resumes once, so all is read before: if the store fails, this can be called again.

        Raises:
            ConfigError: A source cannot continue from its stored place.
        """
        places = [place_of(intake.source, store) for intake in self.intakes]
        if leads:
            self.resume_led()
        else:
            self.canaries.resume()
            self.watchers.resume_vocabularies()
        self.sampling.resume()
        for intake, place in zip(self.intakes, places, strict=True):
            resume_source(intake.source, place, self.config)

    def resume_led(self) -> None:
        """Load the state of what only the leader does."""
        self.canaries.resume()
        self.watchers.resume()
        self.retention.resume()
        for export in self.exports:
            export.resume()

    async def refresh(self) -> bool:
        """Load what other workers have stored meanwhile: vocabularies, and runs of canaries by people."""
        await asyncio.to_thread(self.watchers.resume_vocabularies)
        await asyncio.to_thread(self.canaries.resume)
        return False

    async def give_up(self, store: Store, clock: Clock) -> bool:
        """Mark draws of judges that are not configured any more as unjudged. Returns True if there were any."""
        names = [judging.judge.name for judging in self.judgings]
        return await asyncio.to_thread(give_up, store, names, now=clock()) > 0

    async def expire(self) -> bool:
        """Mark draws that have been pending for longer than `judging.max_age` as unjudged. True if there were any."""
        return any([await judging.expire() for judging in self.judgings])

    async def finish(self) -> None:
        """Wait for running calls of judges, and store their verdicts."""
        for judging in self.judgings:
            await judging.finish()

    def problems(self) -> tuple[str, ...]:
        """List why sources cannot be read, and what to do about it."""
        lags = ((intake.source.name, intake.lag) for intake in self.intakes)
        return tuple(f"source {name}: {why}" for name, lag in lags if lag is not None for why in lag.problems)

    async def report_skipped(self, serving: asyncio.Event, notify: Callable[[str], None]) -> None:
        """Report sources whose existing records are skipped, after the server has started and they were polled."""
        await serving.wait()
        for intake in self.intakes:
            await intake.polled.wait()
            if intake.skipped:
                notify(f"source {intake.source.name}: {intake.skipped}")

    def receivers(self) -> dict[str, dict[str, Handler]]:
        """Handlers of requests that bring records, by path and name of the source."""
        handlers: dict[str, dict[str, Handler]] = {}
        for intake in self.intakes:
            if isinstance(intake.source, ReceivesRequests):
                for path, handler in intake.source.handlers.items():
                    handlers.setdefault(path, {})[intake.source.name] = handler
        return handlers

    def refuse_requests(self) -> None:
        """Answer requests that wait to be stored: nothing will be any more, and their clients send them again."""
        for intake in self.intakes:
            if isinstance(intake.source, ReceivesRequests):
                intake.source.close()

    def fallbacks(self) -> dict[str, bool | None]:
        """By judge, whether the lexical judge reads because its model is missing; None if it needs no model."""
        active = [judging.judge for judging in self.judgings]
        return {judge.name: judge.fallback is not None if isinstance(judge, HasFallback) else None for judge in active}

    def inherit(self, old: Runtime) -> None:
        """Take over what a closed runtime has and the store has not.

        These are verdicts that could not be stored, which may have cost money, and what the budgets of judges that read
        as before are paced by: how many draws arrive, and what a reading costs.
        """
        predecessors = {judging.judge.name: judging for judging in old.judgings}
        for judging in self.judgings:
            if judging.judge.name in predecessors:
                judging.inherit(predecessors[judging.judge.name])
        versions = {judge.name: judge.version for judge in old.judges}
        self.sampling.inherit(
            old.sampling, [judge.name for judge in self.judges if versions.get(judge.name) == judge.version]
        )

    async def close(self) -> None:
        """Close files and clients."""
        for intake in self.intakes:
            intake.source.close()
        for judging in self.judgings:
            await judging.close()
        await self.canaries.close()
        for export in self.exports:
            await export.close()


def build(
    config: Config, shared: SharedState, problems: Callable[[], tuple[str, ...]], *, patience: float = OVERDUE_SECONDS
) -> Runtime:
    """Build and connect the components of a configuration. Reads nothing yet: see `Runtime.resume`.

    Raises:
        ConfigError: A kind cannot be built with these options.
    """
    plan = sampling_plan(config)
    built_judges = tuple(built_judge(judge, config.settings, shared.context) for judge in config.judges)
    shares = sampling_control(config, shared)
    canaries = canary_loop(config, built_judges, shared)
    watchers = build_watchers(config, plan, built_judges, shared)
    rules = partial(_intake_rules, config, plan, shares, secret=shared.secret)  # each intake has its own redactor
    intakes = tuple(_intake(source, rules(watchers.vocabularies), shared) for source in config.sources)
    inputs = DigestInputs(
        lags=lambda: {intake.source.name: intake.lag for intake in intakes if intake.lag is not None},
        probabilities=lambda: _probabilities(plan, intakes),
        problems=problems,
        gauges=lambda: {
            **canaries.gauges(),
            **watchers.gauges(),
            **last_events(shared.store.last_events(shared.clock() - RECENT_SECONDS)),
        },
        own_gauges=lambda: {
            **free_disk_bytes(config.settings.state),
            (Gauge.STATE_DAMAGED, ()): float(shared.store.damaged()),
        },
    )
    labels = label_rules(config, built_judges)
    pairs = zip(built_judges, config.judges, strict=True)
    return Runtime(
        config,
        intakes=intakes,
        judgings=tuple(_judging(judge, judge_config, config, shares, shared) for judge, judge_config in pairs),
        canaries=canaries,
        watchers=watchers,
        digest=digest_loop(
            config, shared, inputs, shares=shares, built_judges=built_judges, labels=labels, patience=patience
        ),
        retention=retention_loop(config, shared),
        labelling=labelling(labels, config, shared),
        exporter=exporter_of(config, intakes, built_judges, shared),
        sampling=shares,
        exports=export_loops(config, shared),
    )


def sampling_plan(config: Config) -> SamplingPlan:
    """Build the sampling plan of a configuration."""
    options = config.settings.sampling
    return SamplingPlan(
        options.probability, options.routes, options.stratum, options.strata, frozenset(config.settings.routes)
    )


def built_judge(judge: JudgeConfig, settings: Settings, loop: LoopContext) -> Judge:
    """Build a judge with its budget, which other processes may use too."""
    options = judge.place
    budget = StoredBudgetAccount(options.name, options.budget.caps, loop.store, loop.clock)
    quantities = frozenset(settings.quantities if options.quantities is None else options.quantities)
    redactor = settings.redaction.redactor()
    redact = str if redactor is None else redactor.redact
    context = JudgeContext(loop.telemetry, budget, loop.clock, quantities, settings.criterion_rules, redact=redact)
    return judges.KINDS[judge.kind].build(judge.options, name=options.name, context=context)


def _intake_rules(
    config: Config, plan: SamplingPlan, shares: SamplingControl, vocabularies: Vocabularies | None, *, secret: bytes
) -> IntakeRules:
    settings, redactor = config.settings, config.settings.redaction.redactor()
    return IntakeRules(
        plan=plan,
        judges={judge.place.name: judge.place.probability for judge in config.judges if judge.place.follows is None},
        redactor=redactor,
        max_pending=settings.judging.max_pending,
        shed_above=settings.judging.shed_above,
        share=shares.factor,
        vocabularies=vocabularies,
        sampling=SamplingHash(secret),
        marks=None if settings.sampling.trust_canary_mark else CanaryMarks(secret),
        feedback=FeedbackRules(settings.feedback.reader(), source_names(config)),
        versions=NamedVersions(settings.events.metadata, redactor) if settings.events.metadata else None,
    )


def source_names(config: Config) -> tuple[str, ...]:
    """Names of the configured sources."""
    return tuple(source.options.name for source in config.sources if isinstance(source.options, HasName))


def _intake(source: KindConfig, rules: IntakeRules, shared: SharedState) -> IntakeLoop:
    built_source: Source = sources.KINDS[source.kind].build(source.options)
    reader = log_reader(source.options)
    return IntakeLoop(built_source, reader, rules, shared.context)


def _judging(
    judge: Judge, judge_config: JudgeConfig, config: Config, shares: SamplingControl, shared: SharedState
) -> JudgingLoop:
    limits = config.settings.judging
    batched = uses_batches(judge_config.options)
    rules = JudgingRules(
        batch=limits.batch if batched else max(limits.batch, 2 * judge.concurrency),
        timeout_seconds=limits.timeout,
        lease_seconds=limits.lease_seconds,
        max_age_seconds=limits.max_age + MAX_BATCH_SECONDS * batched,  # the provider may take a day and fail
        followers={
            other.place.name: _follower(other.place, shares)
            for other in config.judges
            if other.place.follows == judge.name
        },
        sampling=SamplingHash(shared.secret),
        segments=config.settings.segment_rules,
    )
    loop: Callable[..., JudgingLoop] = JudgingLoop
    if isinstance(judge, BatchJudge):  # some batches may be left from when it was `relaxed`
        loop = partial(BatchJudgingLoop if batched else LeftBatchesLoop, led=shared.in_leader)
    self_tests = JudgeSelfTests(judge_config.place.repeat, judge_config.place.known_bad)
    return loop(judge, rules, shared.context, self_tests=self_tests)


def _follower(options: JudgeOptions, shares: SamplingControl) -> Follower:
    unsure = options.probability if options.unsure_probability is None else options.unsure_probability
    return Follower(FollowRule(options.probability, unsure), lambda: shares.factor(options.name))


def _probabilities(plan: SamplingPlan, intakes: tuple[IntakeLoop, ...]) -> dict[str, float]:
    """Compute the current inclusion probabilities by route: those of the plan, lowered under backpressure."""
    factor = min(intake.factor for intake in intakes)
    return {route: factor * plan.probability_of(route) for route in (*sorted(plan.known_routes), OTHER)}


StoredPlace = tuple[Mapping[str, str], tuple[Part, ...]]
"""Where a source continues: cursors by stream, and parts of samples that wait for the others."""


def place_of(source: Source, store: Store) -> StoredPlace:
    """Read where a source continues."""
    parts = tuple(store.parts(source.name)) if isinstance(source, HoldsParts) else ()
    return store.cursors(source.name), parts


def resume_source(source: Source, place: StoredPlace, config: Config, *, running: Config | None = None) -> None:
    """Let a source continue from its place, which the configuration that runs has stored, if that is known.

    Raises:
        ConfigError: It cannot, because the place is one of another kind of source, or is damaged.
    """
    try:
        cursors, parts = place
        source.resume(cursors)
        if isinstance(source, HoldsParts):
            source.restore(parts)
    except (SourceError, ValueError, KeyError, TypeError, AttributeError) as error:
        kinds = _kinds(config)
        kind, before = kinds[source.name], None if running is None else _kinds(running).get(source.name)
        reason = str(error).partition("\n")[0]
        where = f"sources[{list(kinds).index(source.name)}].name: {source.name} has a stored place"
        if before not in (None, kind):
            message = f"{where} of another kind of source ({before}); give the new source another name"
        else:
            message = (
                f"{where} that a source of kind {kind} cannot continue from: {reason}; give the source another name if "
                "it was of another kind before, or restore a copy of the state"
            )
        raise ConfigError(message) from error


def check_places(config: Config, store: Store, running: Config | None = None) -> None:
    """Check that each source of a configuration can continue from what is stored under its name.

    A source of its own is tried, and closed again: the one that is to run resumes once, from where it will be then.

    Raises:
        ConfigError: One cannot.
    """
    for source in config.sources:
        tried: Source = sources.KINDS[source.kind].build(source.options)
        try:
            resume_source(tried, place_of(tried, store), config, running=running)
        finally:
            tried.close()


def _kinds(config: Config) -> dict[str, str]:
    """Kinds of the sources by name, in their order."""
    return {source.options.name: source.kind for source in config.sources if isinstance(source.options, HasName)}
