"""Watchers: what looks for change over time: drift of scores and of traffic, and of the judge itself."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from ragwatch.config import Config
from ragwatch.config.drift import lowest_probability
from ragwatch.core.sample import OTHER
from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.snapshot import Gauges
from ragwatch.daemon.shared import Shared
from ragwatch.pipeline.drift.anchors import AnchorLoop
from ragwatch.pipeline.drift.bridge import VersionBridge
from ragwatch.pipeline.drift.scores import ScoreDriftLoop
from ragwatch.pipeline.drift.signals import Signal
from ragwatch.pipeline.drift.traffic import TrafficDriftLoop
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.ports import Judge


@dataclass(frozen=True, slots=True)
class Watchers:
    """The loops that look for change."""

    drift: ScoreDriftLoop
    traffic: TrafficDriftLoop
    bridge: VersionBridge
    anchors: AnchorLoop | None
    vocabularies: Vocabularies | None

    def resume(self) -> None:
        """Continue where an earlier process, or configuration, stopped. Those that are asked come first."""
        if self.anchors is not None:
            self.anchors.resume()
        if self.vocabularies is not None:
            self.vocabularies.resume()
        self.drift.resume()
        self.traffic.resume()
        self.bridge.resume()

    async def look(self) -> bool:
        """Take what came since the last time. True when there was something."""
        return any([await self.drift.step(), await self.traffic.step()])

    async def test_judge(self) -> bool:
        """Read anchors and bridges where they are due."""
        moved = await self.bridge.step()
        return (await self.anchors.step() if self.anchors is not None else False) or moved

    def gauges(self) -> Gauges:
        """What they show."""
        found = {**self.drift.gauges(), **self.traffic.gauges()}
        return found if self.anchors is None else {**found, **self.anchors.gauges()}


def watchers(config: Config, plan: SamplingPlan, readers: Iterable[Judge], shared: Shared) -> Watchers:
    """The watchers that a configuration describes."""
    settings, by_name = config.settings, {judge.name: judge for judge in readers}
    places = {each.place.name: each.place for each in config.judges}
    judge = by_name[settings.drift.judge or next(iter(by_name))]
    routes = (*settings.routes, OTHER)
    lowest = {route: lowest_probability(plan, route, places[judge.name].probability) for route in routes}
    traffic, vocabularies = settings.drift.traffic_rules(routes), None
    if Signal.QUESTION_WORDS in traffic.signals:
        vocabularies = Vocabularies(traffic.requests, routes, store=shared.store)
    anchors = None
    if settings.anchors is not None:
        anchors = AnchorLoop(
            settings.anchors.rules,
            config.anchors,
            judge=by_name[settings.anchors.judge or judge.name],
            store=shared.store,
            telemetry=shared.telemetry,
            holder=holder(),
            clock=shared.clock,
        )
    return Watchers(
        ScoreDriftLoop(
            settings.drift.rules(judge.name, judge.version, routes, lowest, settings.estimates.confidence),
            store=shared.store,
            telemetry=shared.telemetry,
            judge_moved=(lambda: False) if anchors is None else anchors.moved,
            clock=shared.clock,
        ),
        TrafficDriftLoop(
            traffic,
            tallies=shared.store.tallies,
            store=shared.store,
            telemetry=shared.telemetry,
            clock=shared.clock,
            vocabularies=vocabularies,
        ),
        VersionBridge(
            judge,
            settings.drift.bridge,
            timeout_seconds=settings.judging.timeout,
            store=shared.store,
            telemetry=shared.telemetry,
            clock=shared.clock,
        ),
        anchors,
        vocabularies,
    )


def holder() -> str:
    """Name of this process in a fleet."""
    return f"{socket.gethostname()}/{os.getpid()}"
