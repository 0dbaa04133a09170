"""Builds the loops that send scores back, if the configuration has an `export`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwatch.config import Config
from ragwatch.daemon.shared import SharedState
from ragwatch.pipeline.export.rules import ExportRules

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
