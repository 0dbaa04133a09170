"""What `ragwatch check` says of the state, its texts and keys, the audit log, exports, and other settings."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from ragwatch.audit import verify
from ragwatch.commands.checking.finding import FAILED, OK, WARNING, Finding, noted
from ragwatch.config import Config
from ragwatch.config.export import OtlpExportOptions
from ragwatch.daemon.state_secret import stored_secret
from ragwatch.errors import StoreError
from ragwatch.judges.llm.calls.options import is_llm
from ragwatch.offline.state_reader import refuse_newer, state_reader
from ragwatch.pipeline.export.evaluation import Signal
from ragwatch.stores import postgres
from ragwatch.stores.sqlite import Options
from ragwatch.stores.sqlite.disk import FAILURES, advice, reason, refuse_network
from ragwatch.stores.sqlite.opening import MARKER, check_content, refuse_missing, version_of
from ragwatch.terminal.event_loop import run_async


def check_state(subject: str, config: Config, owner: str | None) -> Finding:
    """Make the checks that the daemon makes of its state before it changes anything; `owner` is who has locked it."""
    directory = config.settings.state
    if owner is not None:
        return Finding(subject, WARNING, f"{directory} is in use by a running ragwatch (process {owner})")
    existing = directory if directory.exists() else next(parent for parent in directory.parents if parent.exists())
    with tempfile.TemporaryFile(dir=existing):
        if isinstance(config.store.options, Options):
            refuse_network(directory)
            _check_database(directory / "ragwatch.db")
        stored_secret(directory)
    return Finding(subject, OK, f"{existing} can be written")


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


_CONSEQUENCES = {
    "all": "texts of judged answers are kept until retention deletes them",
    "failing": "texts of good answers, and metadata but those of the deployment, are deleted after judging: no"
    " labelling by people, `canary suggest`, live comparison or live rollout stage; pages show texts of failing answers"
    " only",
    "none": "texts, and metadata but those of the deployment, are deleted after judging: no labelling by people,"
    " `canary suggest`, live comparison, live rollout stage or bridge between judge versions; pages show scores only."
    " Anchors and canaries have files of their own and go on",
}


def check_privacy(config: Config) -> Iterator[tuple[str, Callable[[str, Config], Finding]]]:
    """Tests of what the store keeps, whether its keys fit, and whether the audit log can be written, by key."""
    yield "store.texts", lambda key, _: noted(key, _CONSEQUENCES[config.texts], well=config.texts == "all")
    options = config.store.options
    if isinstance(options, postgres.Options):
        yield "store.url", lambda key, _: Finding(key, OK, postgres.describe(options))
    if isinstance(options, Options):
        yield "store.encryption", _encryption
    if config.settings.audit.file is not None:
        yield "audit.file", _audit_log


def _encryption(subject: str, config: Config) -> Finding:
    """Test the keys on the state, if there is one."""
    options = config.store.options
    assert isinstance(options, Options)  # noqa: S101 - for the type checker
    cipher = options.cipher()
    if (config.settings.state / "ragwatch.db").is_file():
        with state_reader(config):  # checks that the keys of all encrypted texts are configured
            pass
    if cipher is None:
        return Finding(subject, OK, "texts are stored as they are; file permissions protect them")
    others = len(cipher.ids) - 1
    detail = f"key {cipher.current.hex()} encrypts" + (f"; {others} older keys decrypt" if others else "")
    file = None if options.encryption is None else options.encryption.key_file
    if file is not None and file.stat().st_mode & 0o077:
        return Finding(subject, WARNING, f"{detail}; others may read {file}: run chmod 600 on it")
    return Finding(subject, OK, detail)


def _audit_log(subject: str, config: Config) -> Finding:
    file = config.settings.audit.file or Path()
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        return Finding(subject, FAILED, f"{file} cannot be written; nothing could be shown or changed")
    result = verify([file]) if file.exists() else None
    if result is not None and result.error is not None:
        return Finding(subject, WARNING, f"the chain is broken: {result.error}")
    return Finding(subject, OK, f"{file} can be written")


_FORMS = {Signal.LOGS: "gen_ai.evaluation.result events", Signal.SPANS: "OpenInference EVALUATOR spans"}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def check_export(subject: str, options: OtlpExportOptions, config: Config) -> Finding:
    """Test whether the endpoint of the export accepts all that is sent."""
    from ragwatch.pipeline.export.loop import try_endpoint  # noqa: PLC0415 - heavy, and for this option only

    faults = run_async(try_endpoint(options.target, options.signals))
    quantities = "all quantities" if options.quantities is None else ", ".join(options.quantities)
    texts = "and texts of answers that explain them" if options.explanations else "and no text of users"
    parts = [f"{options.endpoint} gets scores of {quantities} {texts}"]
    for signal, fault in faults.items():
        advice = f"; set {signal}: false if the backend does not take them" if fault is not None else ""
        parts.append(f"{_FORMS[signal]}: {'accepted' if fault is None else fault}{advice}")
    warnings = list(_warnings(options, config))
    state = FAILED if any(faults.values()) else WARNING if warnings else OK
    return Finding(subject, state, "; ".join((*parts, *warnings)))


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


def setting_notes(config: Config) -> Iterator[Finding]:
    """Describe settings that need no test."""
    if config.settings.segments:
        yield Finding("segments", OK, config.describe_segments())
    if config.settings.criteria:
        well, text = _criteria(config)
        yield noted("criteria", text, well=well)
    days = config.settings.retention.days
    long = [name for name, seconds in config.settings.estimates.windows.items() if seconds > days * DAY]
    if long:
        text = (
            f"retention.days deletes verdicts after {days:g} days: after a restart, estimates over {', '.join(long)} "
            "contain only these days; set retention.days to the longest window, or give shorter windows"
        )
        yield Finding("estimates.windows", WARNING, text)


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
