"""Builds what computes figures: the digest, label correction and label tasks, and the loops that send scores back."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING

from ragwatch.config import Config
from ragwatch.daemon.shared import SharedState
from ragwatch.judges.error_rates import rates
from ragwatch.pipeline.digest import DigestInputs, DigestLoop
from ragwatch.pipeline.export.evaluation import ExportRules
from ragwatch.pipeline.feedback import FeedbackWindows
from ragwatch.pipeline.labels.correction import LabelCorrection
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.pipeline.sampling_control import SamplingControl
from ragwatch.pipeline.shared_snapshot import SharedSnapshot
from ragwatch.pipeline.windows import SegmentWindows, SlidingWindows
from ragwatch.ports import Judge
from ragwatch.ports.capabilities import SharedStore
from ragwatch.statistics.sampling import SamplingHash

if TYPE_CHECKING:
    from ragwatch.config.export import OtlpExportOptions
    from ragwatch.pipeline.export.loop import ExportLoop


def export_loops(config: Config, shared: SharedState) -> tuple[ExportLoop, ...]:
    """Build a loop for each form in which scores are sent.

    Raises:
        ConfigError: `ca_file` cannot be read.
    """
    options = config.settings.export.otlp
    if options is None:
        return ()
    from ragwatch.pipeline.export.client import OtlpClient  # noqa: PLC0415 - heavy, and for this option only
    from ragwatch.pipeline.export.loop import ExportLoop  # noqa: PLC0415 - the same

    return tuple(
        ExportLoop(
            signal,
            _rules(options, config),
            client=OtlpClient(options.target, shared.clock),
            store=shared.led,
            telemetry=shared.telemetry,
            clock=shared.clock,
        )
        for signal in options.signals
    )


def _rules(options: OtlpExportOptions, config: Config) -> ExportRules:
    settings = config.settings
    judges = {judge.place.name: judge.place.quantities for judge in config.judges}
    return options.rules(judges, settings.live_thresholds, settings.route_thresholds, settings.quantities)


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
        shares=shares,
        store=shared.store,
        board=shared.board,
        telemetry=shared.telemetry,
        judges=built_judges,
        clock=shared.clock,
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
