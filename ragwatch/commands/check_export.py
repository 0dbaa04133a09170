"""What `ragwatch check` says of `export.otlp`: whether the endpoint answers, and what is sent there."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from ragwatch.commands.event_loop import run_async
from ragwatch.config import Config
from ragwatch.config.export import OtlpExportOptions
from ragwatch.pipeline.export.rules import Signal

_FORMS = {Signal.LOGS: "gen_ai.evaluation.result events", Signal.SPANS: "OpenInference EVALUATOR spans"}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def export_test(options: OtlpExportOptions, config: Config) -> tuple[bool, bool, str]:
    """Test the endpoint of the export. Returns whether it accepts all, whether all is well, and a text for people.

    Raises:
        ConfigError: `ca_file` cannot be read.
    """
    from ragwatch.pipeline.export.trial import try_endpoint  # noqa: PLC0415 - heavy, and for this option only

    faults = run_async(try_endpoint(options.target, options.signals))
    quantities = "all quantities" if options.quantities is None else ", ".join(options.quantities)
    texts = "and texts of answers that explain them" if options.explanations else "and no text of users"
    parts = [f"{options.endpoint} gets scores of {quantities} {texts}"]
    for signal, fault in faults.items():
        advice = f"; set {signal}: false if the backend does not take them" if fault is not None else ""
        parts.append(f"{_FORMS[signal]}: {'accepted' if fault is None else fault}{advice}")
    warnings = list(_warnings(options, config))
    return not any(faults.values()), not warnings, "; ".join((*parts, *warnings))


def _warnings(options: OtlpExportOptions, config: Config) -> Iterator[str]:
    if options.spans and config.texts != "all":
        yield (
            f"store.texts is {config.texts}: where the metadata of an answer are deleted, its span id is unknown, and "
            "no span is sent (ragwatch_export_verdicts_skipped_total, no_span_id)"
        )
    parts = urlsplit(options.endpoint)
    if options.headers and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        yield "the headers travel unencrypted: write https"
