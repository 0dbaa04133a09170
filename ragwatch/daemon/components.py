"""Builds the components of a configuration: what computes figures, what detects drift, and the canary suites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import SystemRandom
from time import time
from typing import TYPE_CHECKING

from ragwatch import probes
from ragwatch.config import Config
from ragwatch.config.canaries import SuiteConfig, SuitePlace
from ragwatch.config.drift import lowest_probability
from ragwatch.daemon.process import SharedState, holder
from ragwatch.exporter import AllowedLabels, Exporter
from ragwatch.judges.error_rates import rates
from ragwatch.model.sample import OTHER
from ragwatch.model.signals import Signal
from ragwatch.pipeline.canaries import AnswerJudging, CanaryLoop, CanarySuite
from ragwatch.pipeline.digest import DigestInputs, DigestLoop, SharedSnapshot
from ragwatch.pipeline.drift.judge_drift import AnchorLoop, VersionBridge
from ragwatch.pipeline.drift.loop import StandingAlerts
from ragwatch.pipeline.drift.scores import ScoreDriftLoop
from ragwatch.pipeline.drift.traffic import SilenceLoop, TrafficDriftLoop
from ragwatch.pipeline.feedback import FeedbackWindows
from ragwatch.pipeline.intake import IntakeLoop
from ragwatch.pipeline.labels.correction import LabelCorrection
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.pipeline.retention import RetentionLoop
from ragwatch.pipeline.sampling_control import JudgePlan, SamplingControl
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.pipeline.windows import SegmentWindows, SlidingWindows
from ragwatch.ports import Clock, Judge, Retention
from ragwatch.ports.capabilities import SharedStore
from ragwatch.probes.similarity import similarity
from ragwatch.statistics.canary.definition import CanaryMarks
from ragwatch.statistics.sampling import SamplingHash, SamplingPlan
from ragwatch.statistics.snapshot import Gauges

if TYPE_CHECKING:
    from ragwatch.pipeline.export.loop import ExportLoop


def export_loops(config: Config, shared: SharedState) -> tuple[ExportLoop, ...]:
    """Build a loop for each form in which scores are sent. Raises `ConfigError` if `ca_file` cannot be read."""
    options = config.settings.export.otlp
    if options is None:
        return ()
    from ragwatch.pipeline.export import loop, otlp  # noqa: PLC0415 - heavy, and for this option only

    settings, judges = config.settings, {judge.place.name: judge.place.quantities for judge in config.judges}
    rules = options.rules(judges, settings.live_thresholds, settings.route_thresholds, settings.quantities)
    return tuple(
        loop.ExportLoop(signal, rules, shared.led_context, client=otlp.OtlpClient(options.target, shared.clock))
        for signal in options.signals
    )


def digest_loop(
    config: Config,
    shared: SharedState,
    inputs: DigestInputs,
    *,
    shares: SamplingControl,
    built_judges: tuple[Judge, ...],
    labels: LabelRules,
    patience: float,
) -> DigestLoop:
    """Build the loop that computes the figures, or shows those of the leader."""
    options = config.settings.estimates
    versions = {judge.name: judge.version for judge in built_judges}
    return DigestLoop(
        SlidingWindows(options.windows, versions, options.confidence),
        inputs,
        shared.context,
        shares=shares,
        board=shared.board,
        judges=built_judges,
        labels=LabelCorrection(labels, options.windows, store=shared.store),
        feedback=FeedbackWindows(options.windows, versions, options.confidence, store=shared.store),
        segments=SegmentWindows(config.settings.segment_rules, options.windows, versions, options.confidence),
        patience=patience,
        shared=_shared_snapshot(shared),
    )


def _shared_snapshot(shared: SharedState) -> SharedSnapshot | None:
    leadership, store = shared.leadership, shared.store
    if leadership is None or not isinstance(store, SharedStore):
        return None
    return SharedSnapshot(leadership.store, lambda: leadership.leads, store.own_tallies)


def label_rules(config: Config, built_judges: tuple[Judge, ...]) -> LabelRules:
    """Build the rules of labels by people."""
    options = [judge.place for judge in config.judges]
    versions = {judge.name: judge.version for judge in built_judges}
    settings = config.settings
    rules = settings.labels.rules(options, versions, settings.estimates.confidence, settings.criterion_rules)
    families = {
        (judge.name, quantity): measured
        for judge in built_judges
        for quantity, measured in rates(judge.kind, judge.version).items()
    }
    return replace(rules, families=families)


def labelling(rules: LabelRules, config: Config, shared: SharedState) -> LabelTasks:
    """Build what offers answers to people to label."""
    return LabelTasks(
        rules,
        store=shared.store,
        clock=shared.clock,
        uniform=SystemRandom().random,
        refuse=partial(config.require_texts, "labelling"),
        sampling=SamplingHash(shared.secret),
    )


@dataclass(frozen=True, slots=True)
class Watchers:
    """The loops that detect drift."""

    drift: ScoreDriftLoop
    traffic: TrafficDriftLoop
    silence: SilenceLoop
    bridge: VersionBridge
    anchors: AnchorLoop | None
    vocabularies: Vocabularies | None

    def resume(self) -> None:
        """Load the state that an earlier process or configuration saved. Loops that others depend on come first."""
        if self.anchors is not None:
            self.anchors.resume()
        self.resume_vocabularies()
        self.drift.resume()
        self.traffic.resume()
        self.silence.resume()
        self.bridge.resume()

    def resume_vocabularies(self) -> None:
        """Load the vocabularies, which all workers use and learn."""
        if self.vocabularies is not None:
            self.vocabularies.resume()

    async def detect(self) -> bool:
        """Test new scores and requests for drift, and routes for silence. Returns True if there was anything new."""
        return any([await self.drift.step(), await self.traffic.step(), await self.silence.step()])

    async def test_judge(self) -> bool:
        """Judge the anchors and the samples of the version bridge that are due. Returns True if there were any."""
        bridged = await self.bridge.step()
        return (await self.anchors.step() if self.anchors is not None else False) or bridged

    def gauges(self) -> Gauges:
        """Collect the gauges of all loops."""
        gauges = {**self.drift.gauges(), **self.traffic.gauges(), **self.silence.gauges()}
        return gauges if self.anchors is None else {**gauges, **self.anchors.gauges()}


def build_watchers(config: Config, plan: SamplingPlan, judges: Iterable[Judge], shared: SharedState) -> Watchers:
    """Build the drift detection of a configuration."""
    settings, by_name = config.settings, {judge.name: judge for judge in judges}
    probabilities = {judge.place.name: judge.place.probability for judge in config.judges}
    judge = by_name[settings.drift.judge or next(iter(by_name))]
    routes = (*settings.routes, OTHER)
    lowest = {route: lowest_probability(plan, route, probabilities[judge.name]) for route in routes}
    traffic, vocabularies = settings.drift.traffic_rules(routes), None
    if Signal.QUESTION_WORDS in traffic.signals:
        vocabularies = Vocabularies(traffic.requests, routes, store=shared.store)  # all workers learn
    anchors = _anchors(config, by_name, judge, shared)
    standing = StandingAlerts(shared.board, judge.name, settings.stated_thresholds)
    drift = ScoreDriftLoop(
        settings.drift.rules(
            judge.name, judge.version, routes, lowest, settings.estimates.confidence, segments=settings.segment_rules
        ),
        shared.led_context,
        judge_moved=(lambda: False) if anchors is None else anchors.moved,
        standing=standing.reason,
    )
    return Watchers(
        drift=drift,
        traffic=TrafficDriftLoop(traffic, shared.led_context, vocabularies=vocabularies, standing=drift.paused),
        silence=SilenceLoop(routes, traffic.false_alarm_days, store=shared.led, clock=shared.clock),
        bridge=VersionBridge(
            judge, settings.drift.bridge, shared.led_context, timeout_seconds=settings.judging.timeout
        ),
        anchors=anchors,
        vocabularies=vocabularies,
    )


def _anchors(config: Config, by_name: Mapping[str, Judge], judge: Judge, shared: SharedState) -> AnchorLoop | None:
    options = config.settings.anchors
    if options is None:
        return None
    return AnchorLoop(
        options.rules, config.anchors, shared.led_context, judge=by_name[options.judge or judge.name], holder=holder()
    )


def suite_of(
    suite: SuiteConfig, secret: bytes | None = None, answers: AnswerJudging | None = None, *, clock: Clock = time
) -> CanarySuite:
    """Build a canary suite with its probe, and optionally the judging of its answers.

    Requests are marked with the secret of the state; without one they are not.

    Raises:
        ConfigError: The probe cannot be built with these options.
    """
    options, marks = suite.place, CanaryMarks(secret or b"")
    by_text = any(not expected.id for canary in suite.canaries for expected in canary.expected)
    return CanarySuite(
        options.suite,
        suite.canaries,
        tuple(sorted(set(options.k))),
        probes.KINDS[suite.kind].build(
            suite.options, name=options.suite, mark=lambda: marks.mark(options.suite, clock())
        ),
        similar=similarity(options.similarity) if by_text else None,
        tau=options.tau,
        answers=answers,
    )


def answers_of(
    config: Config, suite: SuitePlace, judge_of: Callable[[str], Judge], *, clock: Clock = time
) -> AnswerJudging | None:
    """Build the judging of a suite's answers; None if the suite has no `judge`."""
    if suite.judge is None:
        return None
    timeout = config.settings.judging.timeout
    return AnswerJudging(judge_of(suite.judge), oracle=suite.oracle, clock=clock, timeout_seconds=timeout)


def canary_loop(config: Config, judges: Iterable[Judge], shared: SharedState) -> CanaryLoop:
    """Build the loop that runs the canary suites of a configuration."""
    by_name = {judge.name: judge for judge in judges}
    return CanaryLoop(
        tuple(
            suite_of(
                suite,
                shared.secret,
                answers_of(config, suite.place, by_name.__getitem__, clock=shared.clock),
                clock=shared.clock,
            )
            for suite in config.canaries
        ),
        shared.context,
        holder=holder(),
    )


def retention_loop(config: Config, shared: SharedState) -> RetentionLoop:
    """Build the loop that prunes the store."""
    options = config.settings.retention
    return RetentionLoop(
        Retention(options.days, options.failing_days, options.bytes, options.trend_days), shared.led_context
    )


def sampling_control(config: Config, shared: SharedState) -> SamplingControl:
    """Build the loop that sets the probabilities of the judges."""
    options = [judge.place for judge in config.judges]
    default = next(judge.name for judge in options if judge.follows is None)  # sources wait for it (backpressure)
    plans = {
        judge.name: JudgePlan(judge.probability, judge.budget.caps, waits=judge.name == default) for judge in options
    }
    return SamplingControl(plans, shared.store, config.settings.judging.max_pending, shared.clock)


def exporter_of(
    config: Config, intakes: tuple[IntakeLoop, ...], built_judges: tuple[Judge, ...], shared: SharedState
) -> Exporter:
    """Build what renders the series, with the labels that a configuration allows."""
    labels = AllowedLabels(
        sources=[intake.source.name for intake in intakes],
        routes=config.settings.routes,
        judges=[judge.name for judge in built_judges],
        suites=[suite.place.suite for suite in config.canaries],
        segments=config.settings.segment_rules,
        criteria=config.settings.criterion_rules,
    )
    return Exporter(shared.board, shared.telemetry, labels)
