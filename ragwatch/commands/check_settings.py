"""What `ragwatch check` says of the state, of the endpoint of exports, and of settings that need no test."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from ragwatch.commands.event_loop import run_async
from ragwatch.commands.state_reader import refuse_newer
from ragwatch.config import Config
from ragwatch.config.export import OtlpExportOptions
from ragwatch.daemon.state_secret import stored_secret
from ragwatch.errors import StoreError
from ragwatch.judges.llm.calls.options import is_llm
from ragwatch.pipeline.export.evaluation import Signal
from ragwatch.stores.sqlite import Options
from ragwatch.stores.sqlite.disk import FAILURES, advice, reason, refuse_network
from ragwatch.stores.sqlite.opening import MARKER, check_content, refuse_missing
from ragwatch.stores.sqlite.schema import version_of


def check_state(config: Config) -> None:
    """Make the checks that the daemon makes of its state before it changes anything.

    Raises:
        StoreError: The daemon would not start.
    """
    directory = config.settings.state
    if isinstance(config.store.options, Options):
        refuse_network(directory)
        _check_database(directory / "ragwatch.db")
    stored_secret(directory)


def _check_database(path: Path) -> None:
    marker = path.with_name(MARKER)
    try:
        refuse_missing(path, marker)
        if not path.exists():
            return
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))  # whether it could be written
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as reader:
            check_content(reader, path, marker)
            refuse_newer(version_of(reader))
    except FAILURES as error:
        raise StoreError(f"state: cannot open {path}: {reason(error)}; {advice(error)}") from error
    except OSError as error:
        raise StoreError(
            f"state: cannot open {path}: {error.strerror}; it must be a file on a writable disk with free space"
        ) from error


_FORMS = {Signal.LOGS: "gen_ai.evaluation.result events", Signal.SPANS: "OpenInference EVALUATOR spans"}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def export_test(options: OtlpExportOptions, config: Config) -> tuple[bool, bool, str]:
    """Test the endpoint of the export. Returns whether it accepts all, whether all is well, and a text for people.

    Raises:
        ConfigError: `ca_file` cannot be read.
    """
    from ragwatch.pipeline.export.loop import try_endpoint  # noqa: PLC0415 - heavy, and for this option only

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


DAY = 86400.0


def setting_notes(config: Config) -> Iterator[tuple[str, bool, str]]:
    """Describe settings: each key, whether all is well, and a text for people."""
    if config.settings.segments:
        yield "segments", True, config.describe_segments()
    if config.settings.criteria:
        yield "criteria", *_criteria(config)
    if (text := _long_windows(config)) is not None:
        yield "estimates.windows", False, text


def _long_windows(config: Config) -> str | None:
    """Which windows are longer than verdicts are kept."""
    days = config.settings.retention.days
    names = [name for name, seconds in config.settings.estimates.windows.items() if seconds > days * DAY]
    if not names:
        return None
    return (
        f"retention.days deletes verdicts after {days:g} days: after a restart, estimates over {', '.join(names)} "
        "contain only these days; set retention.days to the longest window, or give shorter windows"
    )


def _criteria(config: Config) -> tuple[bool, str]:
    """Which judges read the criteria."""
    names = {criterion.name for criterion in config.settings.criteria}
    quantities = {judge.place.name: judge.place.quantities for judge in config.judges if is_llm(judge.options)}
    unread = sorted(names - {name for own in quantities.values() for name in (names if own is None else own)})
    readers = ", ".join(quantities)
    if not readers:
        return False, (
            "no judge reads them, because the embedded judges cannot: their scores stay unknown, with reason not_read; "
            "add a judge of kind claude or openai"
        )
    if unread:
        return False, f"no judge reads {', '.join(unread)}; add them to `quantities` of one of: {readers}"
    default = config.judges[0].place.name
    if default not in quantities:
        return True, (
            f"read by {readers}. Pages and alerts are about the judge {default}, which does not read them; see "
            "`alerts.judge` and `drift.judge`"
        )
    return True, f"read by {readers}"
