"""Rooms: everything that one configuration builds, joined. A reload builds a second set and swaps it in whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ragwatch import formats, judges, sources
from ragwatch.board import Board
from ragwatch.config import Config, KindConfig
from ragwatch.core.redact import Redactor
from ragwatch.core.sample import OTHER
from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.snapshot import Lag
from ragwatch.exporter import Exporter
from ragwatch.pipeline.digest import Digest
from ragwatch.pipeline.intake import Intake, IntakeRules
from ragwatch.pipeline.judging import Judging, JudgingRules, give_up
from ragwatch.pipeline.keeping import Keeping
from ragwatch.pipeline.windows import Windows
from ragwatch.ports import Judge, Retention, Source, Store
from ragwatch.telemetry import Telemetry

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Shared:
    """What outlives a reload: memory, the board, our own life, the clock."""

    store: Store
    board: Board
    telemetry: Telemetry
    clock: Clock


@dataclass(frozen=True, slots=True)
class Rooms:
    """The joined rooms of one configuration."""

    config: Config
    intakes: tuple[Intake, ...]
    judgings: tuple[Judging, ...]
    digest: Digest
    keeping: Keeping
    exporter: Exporter

    def resume(self, store: Store) -> None:
        """Continue every source where the store says."""
        for intake in self.intakes:
            intake.source.resume(store.cursors(intake.source.name))

    async def give_up(self, store: Store, clock: Clock) -> bool:
        """Settle as unjudged what waits for judges that this configuration lacks. True when there was some."""
        names = [judging.judge.name for judging in self.judgings]
        return await asyncio.to_thread(give_up, store, names, now=clock()) > 0

    async def close(self) -> None:
        """Release files and clients."""
        for intake in self.intakes:
            intake.source.close()
        for judging in self.judgings:
            await judging.judge.close()


def build(config: Config, shared: Shared, problems: Callable[[], tuple[str, ...]]) -> Rooms:
    """Build and join the rooms of a configuration. Nothing is read yet: see `Rooms.resume`.

    Raises:
        ConfigError: A kind cannot be built as configured.
    """
    settings = config.settings
    plan = sampling_plan(config)
    readers = tuple(judges.KINDS[each.kind].build(each.options, name=each.place.name) for each in config.judges)
    intakes = tuple(_intake(each, config, plan, shared) for each in config.sources)
    windows = Windows(
        settings.estimates.windows, {judge.name: judge.version for judge in readers}, settings.estimates.confidence
    )
    digest = Digest(
        windows,
        store=shared.store,
        board=shared.board,
        telemetry=shared.telemetry,
        lags=lambda: _lags(intakes),
        judges=readers,
        probabilities=lambda: _probabilities(plan, intakes),
        problems=problems,
        clock=shared.clock,
    )
    limits = JudgingRules(batch=settings.judging.batch, timeout_seconds=settings.judging.timeout)
    kept = settings.retention
    return Rooms(
        config,
        intakes,
        tuple(_judging(judge, limits, shared) for judge in readers),
        digest,
        Keeping(
            Retention(kept.days, kept.failing_days, kept.bytes),
            store=shared.store,
            telemetry=shared.telemetry,
            clock=shared.clock,
        ),
        _exporter(config, intakes, readers, shared),
    )


def sampling_plan(config: Config) -> SamplingPlan:
    """The plan that the configuration describes."""
    wanted = config.settings.sampling
    return SamplingPlan(
        wanted.probability, wanted.routes, wanted.stratum, wanted.strata, frozenset(config.settings.routes)
    )


def _intake(each: KindConfig, config: Config, plan: SamplingPlan, shared: Shared) -> Intake:
    settings = config.settings
    source: Source = sources.KINDS[each.kind].build(each.options)
    rules = IntakeRules(
        plan=plan,
        judges={judge.place.name: judge.place.probability for judge in config.judges},
        redactor=_redactor(config),
        max_pending=settings.judging.max_pending,
        shed_above=settings.judging.shed_above,
    )
    shape = formats.build(getattr(each.options, "format", "auto"), getattr(each.options, "mapping", None) or None)
    return Intake(source, shape.read, rules, store=shared.store, telemetry=shared.telemetry, clock=shared.clock)


def _redactor(config: Config) -> Redactor | None:
    wanted = config.settings.redaction
    if not wanted.enabled:
        return None
    return Redactor() if wanted.salt is None else Redactor(wanted.salt.get_secret_value().encode())


def _judging(judge: Judge, limits: JudgingRules, shared: Shared) -> Judging:
    return Judging(judge, limits, store=shared.store, telemetry=shared.telemetry, clock=shared.clock)


def _exporter(config: Config, intakes: tuple[Intake, ...], readers: tuple[Judge, ...], shared: Shared) -> Exporter:
    return Exporter(
        shared.board,
        shared.telemetry,
        sources=[intake.source.name for intake in intakes],
        routes=[*config.settings.routes, OTHER],
        judges=[judge.name for judge in readers],
    )


def _lags(intakes: tuple[Intake, ...]) -> dict[str, Lag]:
    return {intake.source.name: intake.lag for intake in intakes if intake.lag is not None}


def _probabilities(plan: SamplingPlan, intakes: tuple[Intake, ...]) -> dict[str, float]:
    """Inclusion probabilities in force: the plan's, lowered while draws pile up."""
    factor = min(intake.factor for intake in intakes)
    return {route: factor * plan.probability_of(route) for route in (*sorted(plan.known_routes), OTHER)}
