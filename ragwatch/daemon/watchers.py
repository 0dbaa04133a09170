"""Builds the loops that detect drift: in scores, in traffic and of the judge itself."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ragwatch.config import Config
from ragwatch.config.drift import lowest_probability
from ragwatch.daemon.shared import SharedState
from ragwatch.model.sample import OTHER
from ragwatch.model.signals import Signal
from ragwatch.pipeline.drift.anchors import AnchorLoop
from ragwatch.pipeline.drift.bridge import VersionBridge
from ragwatch.pipeline.drift.loop import StandingAlerts
from ragwatch.pipeline.drift.scores import ScoreDriftLoop
from ragwatch.pipeline.drift.silence import SilenceLoop
from ragwatch.pipeline.drift.traffic import TrafficDriftLoop
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.ports import Judge
from ragwatch.statistics.sampling import SamplingPlan
from ragwatch.statistics.snapshot import Gauges


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
        store=shared.led,
        telemetry=shared.telemetry,
        judge_moved=(lambda: False) if anchors is None else anchors.moved,
        clock=shared.clock,
        standing=standing.reason,
    )
    return Watchers(
        drift=drift,
        traffic=TrafficDriftLoop(
            traffic,
            tallies=shared.store.tallies,
            store=shared.led,
            telemetry=shared.telemetry,
            clock=shared.clock,
            vocabularies=vocabularies,
            standing=drift.paused,
        ),
        silence=SilenceLoop(
            routes, traffic.false_alarm_days, tallies=shared.store.tallies, store=shared.led, clock=shared.clock
        ),
        bridge=VersionBridge(
            judge,
            settings.drift.bridge,
            timeout_seconds=settings.judging.timeout,
            store=shared.led,
            telemetry=shared.telemetry,
            clock=shared.clock,
        ),
        anchors=anchors,
        vocabularies=vocabularies,
    )


def _anchors(config: Config, by_name: Mapping[str, Judge], judge: Judge, shared: SharedState) -> AnchorLoop | None:
    options = config.settings.anchors
    if options is None:
        return None
    return AnchorLoop(
        options.rules,
        config.anchors,
        judge=by_name[options.judge or judge.name],
        store=shared.led,
        telemetry=shared.telemetry,
        holder=holder(),
        clock=shared.clock,
    )


def holder() -> str:
    """Name this process: host and process id, unique among all that share a store."""
    return f"{socket.gethostname()}/{os.getpid()}"
