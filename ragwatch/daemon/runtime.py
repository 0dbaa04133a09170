"""Rooms: everything that one configuration builds, joined. A reload builds a second set and swaps it in whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import SystemRandom

from ragwatch import formats, judges, sources
from ragwatch.config import Config, JudgeConfig, KindConfig
from ragwatch.config.judge_options import JudgeOptions
from ragwatch.core.cascade import FollowRule
from ragwatch.core.sample import OTHER
from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.scores import Quantity
from ragwatch.core.snapshot import Gauge, Gauges, Lag
from ragwatch.daemon.process import free_disk_bytes
from ragwatch.daemon.shared import Clock, Shared
from ragwatch.daemon.suites import canaries
from ragwatch.daemon.watchers import Watchers, watchers
from ragwatch.errors import StoreError
from ragwatch.exporter import Exporter
from ragwatch.formats.record import parse, parse_behind_text
from ragwatch.pipeline.batching import A_DAY, BatchJudgingLoop
from ragwatch.pipeline.budget_account import StoredBudgetAccount
from ragwatch.pipeline.canaries.loop import CanaryLoop
from ragwatch.pipeline.digest import OVERDUE_SECONDS, DigestInputs, DigestLoop
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.pipeline.judging import Follower, JudgingLoop, JudgingRules, give_up
from ragwatch.pipeline.labels.correction import LabelCorrection
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.pipeline.retention import RetentionLoop
from ragwatch.pipeline.sampling_control import JudgePlan, SamplingControl
from ragwatch.pipeline.self_tests import JudgeSelfTests
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.pipeline.windows import SlidingWindows
from ragwatch.ports import Judge, JudgeContext, Retention, Source, Store


@dataclass(frozen=True, slots=True)
class Runtime:
    """The joined rooms of one configuration."""

    config: Config
    intakes: tuple[IntakeLoop, ...]
    judgings: tuple[JudgingLoop, ...]
    canaries: CanaryLoop
    watchers: Watchers
    digest: DigestLoop
    keeping: RetentionLoop
    labelling: LabelTasks
    exporter: Exporter

    def resume(self, store: Store) -> None:
        """Continue every source where the store says.

        Raises:
            StoreError: What is stored is no place in a source.
        """
        for intake in self.intakes:
            cursors = store.cursors(intake.source.name)
            try:
                intake.source.resume(cursors)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise StoreError(
                    f"state: the stored place in source {intake.source.name} is damaged: {error}; "
                    "restore a copy of the state, or move ragwatch.* away to start anew on purpose"
                ) from error
        self.canaries.resume()
        self.watchers.resume()

    async def give_up(self, store: Store, clock: Clock) -> bool:
        """Settle as unjudged what waits for judges that this configuration lacks. True when there was some."""
        names = [judging.judge.name for judging in self.judgings]
        return await asyncio.to_thread(give_up, store, names, now=clock()) > 0

    async def expire(self) -> bool:
        """Settle as unjudged what has been pending for too long. True when there was some."""
        return any([await judging.expire() for judging in self.judgings])

    async def finish(self) -> None:
        """Wait for the readings under way, and settle them."""
        for judging in self.judgings:
            await judging.finish()

    def problems(self) -> tuple[str, ...]:
        """What keeps sources from being read as configured, and what to do."""
        lags = ((intake.source.name, intake.lag) for intake in self.intakes)
        return tuple(f"source {name}: {why}" for name, lag in lags if lag is not None for why in lag.problems)

    async def tell_skipped(self, served: asyncio.Event, notice: Callable[[str], None]) -> None:
        """Say of which sources existing records are passed over, once we serve and each was looked at."""
        await served.wait()
        for intake in self.intakes:
            await intake.looked.wait()
            if intake.skipped:
                notice(f"source {intake.source.name}: {intake.skipped}")

    def fallbacks(self) -> dict[str, bool | None]:
        """By judge, whether words alone read for want of its model; None for one that needs none."""
        readers = [judging.judge for judging in self.judgings]
        return {each.name: each.fallback is not None if hasattr(each, "fallback") else None for each in readers}

    def inherit(self, old: Runtime) -> None:
        """Take over the readings that the closed rooms before could not write: they may have cost money."""
        before = {judging.judge.name: judging for judging in old.judgings}
        for judging in self.judgings:
            if judging.judge.name in before:
                judging.inherit(before[judging.judge.name])

    async def close(self) -> None:
        """Release files and clients."""
        for intake in self.intakes:
            intake.source.close()
        for judging in self.judgings:
            await judging.close()
        await self.canaries.close()


def build(
    config: Config, shared: Shared, problems: Callable[[], tuple[str, ...]], *, patience: float = OVERDUE_SECONDS
) -> Runtime:
    """Build and join the rooms of a configuration. Nothing is read yet: see `Rooms.resume`.

    Raises:
        ConfigError: A kind cannot be built as configured.
    """
    plan = sampling_plan(config)
    readers = tuple(_reader(each, shared) for each in config.judges)
    shares = _shares(config, shared)
    asked = canaries(config, readers, shared)
    watching = watchers(config, plan, readers, shared)
    intakes = tuple(_intake(each, config, plan, shares, shared, watching.vocabularies) for each in config.sources)
    around = DigestInputs(
        lags=lambda: _lags(intakes),
        probabilities=lambda: _probabilities(plan, intakes),
        problems=problems,
        gauges=lambda: {
            **asked.gauges(),
            **watching.gauges(),
            **free_disk_bytes(config.settings.state),
            **_damaged(shared),
        },
    )
    labels = _label_rules(config, readers)
    pairs = zip(readers, config.judges, strict=True)
    return Runtime(
        config,
        intakes,
        tuple(_judging(judge, each, config, shares, shared) for judge, each in pairs),
        asked,
        watching,
        _digest(config, readers, labels, around, shares, shared, patience),
        _keeping(config, shared),
        LabelTasks(labels, store=shared.store, clock=shared.clock, uniform=SystemRandom().random),
        _exporter(config, intakes, readers, shared),
    )


def _digest(  # noqa: PLR0917 - everything meets here
    config: Config,
    readers: tuple[Judge, ...],
    labels: LabelRules,
    around: DigestInputs,
    shares: SamplingControl,
    shared: Shared,
    patience: float,
) -> DigestLoop:
    wanted = config.settings.estimates
    return DigestLoop(
        SlidingWindows(wanted.windows, {judge.name: judge.version for judge in readers}, wanted.confidence),
        around,
        shares=shares,
        store=shared.store,
        board=shared.board,
        telemetry=shared.telemetry,
        judges=readers,
        clock=shared.clock,
        people=LabelCorrection(labels, wanted.windows, store=shared.store),
        patience=patience,
    )


def _label_rules(config: Config, readers: tuple[Judge, ...]) -> LabelRules:
    places = [each.place for each in config.judges]
    versions = {judge.name: judge.version for judge in readers}
    return config.settings.labels.rules(places, versions, config.settings.estimates.confidence)


def _keeping(config: Config, shared: Shared) -> RetentionLoop:
    kept = config.settings.retention
    return RetentionLoop(
        Retention(kept.days, kept.failing_days, kept.bytes),
        store=shared.store,
        telemetry=shared.telemetry,
        clock=shared.clock,
    )


def sampling_plan(config: Config) -> SamplingPlan:
    """The plan that the configuration describes."""
    wanted = config.settings.sampling
    return SamplingPlan(
        wanted.probability, wanted.routes, wanted.stratum, wanted.strata, frozenset(config.settings.routes)
    )


def _reader(each: JudgeConfig, shared: Shared) -> Judge:
    place = each.place
    purse = StoredBudgetAccount(place.name, place.budget.caps, shared.store, shared.clock)
    wanted = frozenset(Quantity if place.quantities is None else place.quantities)
    return judges.KINDS[each.kind].build(
        each.options, name=place.name, desk=JudgeContext(shared.telemetry, purse, shared.clock, wanted)
    )


def _shares(config: Config, shared: Shared) -> SamplingControl:
    waited_for = next(each.place.name for each in config.judges if each.place.follows is None)
    plans = {
        each.place.name: JudgePlan(each.place.probability, each.place.budget.caps, waits=each.place.name == waited_for)
        for each in config.judges
    }
    return SamplingControl(plans, shared.store, config.settings.judging.max_pending)


def _intake(  # noqa: PLR0917 - as above
    each: KindConfig,
    config: Config,
    plan: SamplingPlan,
    shares: SamplingControl,
    shared: Shared,
    vocabularies: Vocabularies | None,
) -> IntakeLoop:
    settings = config.settings
    source: Source = sources.KINDS[each.kind].build(each.options)
    rules = IntakeRules(
        plan=plan,
        judges={judge.place.name: judge.place.probability for judge in config.judges if judge.place.follows is None},
        redactor=settings.redaction.redactor(),
        max_pending=settings.judging.max_pending,
        shed_above=settings.judging.shed_above,
        share=shares.factor,
        vocabularies=vocabularies,
    )
    shape = formats.build(getattr(each.options, "format", "auto"), getattr(each.options, "mapping", None) or None)
    return IntakeLoop(
        source,
        shape.read,
        rules,
        store=shared.store,
        telemetry=shared.telemetry,
        clock=shared.clock,
        parse=parse_behind_text if getattr(each.options, "skip_prefix", False) else parse,
    )


def _judging(judge: Judge, each: JudgeConfig, config: Config, shares: SamplingControl, shared: Shared) -> JudgingLoop:
    limits = config.settings.judging
    relaxed = getattr(each.options, "urgency", "normal") == "relaxed"
    rules = JudgingRules(
        batch=limits.batch if relaxed else max(limits.batch, 2 * judge.concurrency),
        timeout_seconds=limits.timeout,
        max_age_seconds=limits.max_age + A_DAY * relaxed,  # the provider may take a day and give the draw back
        followers={
            other.place.name: _follower(other.place, shares)
            for other in config.judges
            if other.place.follows == judge.name
        },
    )
    trials = JudgeSelfTests(each.place.repeat, each.place.known_bad)
    loop: type[JudgingLoop] = BatchJudgingLoop if relaxed else JudgingLoop
    return loop(judge, rules, store=shared.store, telemetry=shared.telemetry, clock=shared.clock, trials=trials)


def _follower(place: JudgeOptions, shares: SamplingControl) -> Follower:
    unsure = place.probability if place.unsure_probability is None else place.unsure_probability
    return Follower(FollowRule(place.probability, unsure), lambda: shares.factor(place.name))


def _exporter(config: Config, intakes: tuple[IntakeLoop, ...], readers: tuple[Judge, ...], shared: Shared) -> Exporter:
    return Exporter(
        shared.board,
        shared.telemetry,
        sources=[intake.source.name for intake in intakes],
        routes=[*config.settings.routes, OTHER],
        judges=[judge.name for judge in readers],
        suites=[each.place.suite for each in config.canaries],
    )


def _damaged(shared: Shared) -> Gauges:
    return {(Gauge.STATE_DAMAGED, ()): float(shared.store.damaged())}


def _lags(intakes: tuple[IntakeLoop, ...]) -> dict[str, Lag]:
    return {intake.source.name: intake.lag for intake in intakes if intake.lag is not None}


def _probabilities(plan: SamplingPlan, intakes: tuple[IntakeLoop, ...]) -> dict[str, float]:
    """Inclusion probabilities in force: the plan's, lowered while draws pile up."""
    factor = min(intake.factor for intake in intakes)
    return {route: factor * plan.probability_of(route) for route in (*sorted(plan.known_routes), OTHER)}
