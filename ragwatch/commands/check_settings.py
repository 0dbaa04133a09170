"""What `ragwatch check` says of the state, its keys, the audit log, exports, addresses, rights, and other settings."""

from __future__ import annotations

import errno
import os
import shlex
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from ragwatch.audit import verify
from ragwatch.config import Config
from ragwatch.config.web import WebOptions
from ragwatch.daemon.process import stored_secret
from ragwatch.daemon.web_access import read_rules
from ragwatch.errors import AddressError, StoreError
from ragwatch.formats.traces.assemble import SWITCHES
from ragwatch.judges.llm.options import is_llm
from ragwatch.offline.state_reader import refuse_newer, state_reader, stored_tallies
from ragwatch.ports.sources import GrpcListener, host_of, is_loopback
from ragwatch.sources.otlp import Options as OtlpOptions
from ragwatch.sources.push import Options as PushOptions
from ragwatch.statistics.tally import Tally
from ragwatch.stores import postgres
from ragwatch.stores.sqlite import Options as SqliteOptions
from ragwatch.stores.sqlite.opening import (
    MARKER,
    check_content,
    refuse_missing,
    refuse_network,
    store_errors,
    version_of,
)
from ragwatch.web import Access, Right
from ragwatch.web.server.serve import listen

OK, WARNING, SUSPECT, FAILED = "ok", "warning", "suspect", "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one test."""

    state: str  # `ok`, `warning`, `suspect` (records are read, but probably wrongly) or `failed`
    detail: str  # what the test found, as text for people
    shown: tuple[str, ...] = ()  # the first samples as they were read, below their records
    dated: bool = False  # whether any context of them has the date of its document
    subject: str = ""  # key of the configuration that was tested

    def warned(self, text: str) -> Finding:
        """Return this result with a warning."""
        return replace(self, state=WARNING if self.state == OK else self.state, detail=f"{self.detail}; {text}")


def noted(detail: str, *, well: bool, subject: str = "") -> Finding:
    """Return a result that is a warning where not all is well."""
    return Finding(OK if well else WARNING, detail, subject=subject)


def check_state(config: Config, owner: str | None) -> Finding:
    """Make the checks that the daemon makes of its state before it changes anything; `owner` is who has locked it."""
    directory = config.settings.state
    if owner is not None:
        return Finding(WARNING, f"{directory} is in use by a running ragwatch (process {owner})")
    existing = directory if directory.exists() else next(parent for parent in directory.parents if parent.exists())
    with tempfile.TemporaryFile(dir=existing):
        if isinstance(config.store.options, SqliteOptions):
            refuse_network(directory)
            _check_database(directory / "ragwatch.db")
        stored_secret(directory)
    return Finding(OK, f"{directory} can be {'written' if directory.exists() else 'created'}")


def _check_database(path: Path) -> None:
    marker = path.with_name(MARKER)
    try:
        refuse_missing(path, marker)
        if not path.exists():
            return
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))  # whether it could be written
        address = f"{path.absolute().as_uri()}?mode=ro"
        with store_errors(f"cannot open {path}"), closing(sqlite3.connect(address, uri=True)) as reader:
            check_content(reader, path, marker)
            refuse_newer(version_of(reader))
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


def check_privacy(config: Config) -> Iterator[tuple[str, Callable[[Config], Finding]]]:
    """Tests of what the store keeps, whether its keys fit, and whether the audit log can be written, by key."""
    yield "store.texts", lambda _: noted(_CONSEQUENCES[config.texts], well=config.texts == "all")
    options = config.store.options
    if isinstance(options, postgres.Options):
        yield "store.url", lambda _: Finding(OK, postgres.database(options).describe())
    if isinstance(options, SqliteOptions):
        yield "store.encryption", _encryption
    if config.settings.audit.file is not None:
        yield "audit.file", _audit_log


def _encryption(config: Config) -> Finding:
    """Test the keys on the state, if there is one."""
    options = config.store.options
    assert isinstance(options, SqliteOptions)  # noqa: S101 - for the type checker
    cipher = options.cipher()
    if (config.settings.state / "ragwatch.db").is_file():
        with state_reader(config):  # checks that the keys of all encrypted texts are configured
            pass
    if cipher is None:
        return Finding(OK, "texts are stored as they are; file permissions protect them")
    others = len(cipher.ids) - 1
    detail = f"key {cipher.current.hex()} encrypts" + (f"; {others} older keys decrypt" if others else "")
    file = None if options.encryption is None else options.encryption.key_file
    if file is not None and file.stat().st_mode & 0o077:
        return Finding(WARNING, f"{detail}; others may read {file}: run chmod 600 on it")
    return Finding(OK, detail)


def _audit_log(config: Config) -> Finding:
    file = config.settings.audit.file or Path()
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        return Finding(FAILED, f"{file} cannot be written; nothing could be shown or changed")
    result = verify([file]) if file.exists() else None
    if result is not None and result.error is not None:
        return Finding(WARNING, f"the chain is broken: {result.error}")
    return Finding(OK, f"{file} can be written")


DAY = 86400.0


def setting_notes(config: Config) -> Iterator[Finding]:
    """Describe settings that need no test."""
    if config.settings.segments:
        yield Finding(OK, config.describe_segments(), subject="segments")
    if config.settings.criteria:
        well, text = _criteria(config)
        yield noted(text, well=well, subject="criteria")
    days = config.settings.retention.days
    long = [name for name, seconds in config.settings.estimates.windows.items() if seconds > days * DAY]
    if long:
        text = (
            f"retention.days deletes verdicts after {days:g} days: after a restart, estimates over {', '.join(long)} "
            "contain only these days; set retention.days to the longest window, or give shorter windows"
        )
        yield Finding(WARNING, text, subject="estimates.windows")


def _criteria(config: Config) -> tuple[bool, str]:
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


def check_traces(options: OtlpOptions, config: Config) -> Finding:
    """What is known about the traces of a source so far."""
    if not _may_send(read_rules(config.settings.web).access):
        return Finding(WARNING, NOBODY_SENDS)
    name = options.name
    outcomes = {labels[1]: count for labels, count in stored_tallies(config, Tally.TRACES).items() if labels[0] == name}
    if not outcomes:
        grpc = "" if options.grpc is None else f" and calls over gRPC at {options.grpc.listen}"
        return Finding(OK, f"receives POST /v1/traces{grpc}; no request in a trace is complete yet")
    counts = ", ".join(f"{count:,.0f} {outcome}" for outcome, count in sorted(outcomes.items()))
    text = f"requests in traces: {counts}"
    silent = {labels[1]: count for labels, count in stored_tallies(config, Tally.SILENT).items() if labels[0] == name}
    advice = [
        f"{count:,.0f} hold no texts, because content capture is off: {SWITCHES[kind]}"
        for kind, count in sorted(silent.items())
        if kind in SWITCHES
    ]
    return noted("; ".join((text, *advice)), well=not advice and bool(outcomes.get("assembled")))


EXAMPLE = '{"id": "1", "question": "Who wrote Faust?", "contexts": ["Faust is by Goethe."], "answer": "Goethe."}'
_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 - nothing is bound


def check_push(options: PushOptions, config: Config) -> Finding:
    """How to send a record to a source, and whether anybody may."""
    web = config.settings.web
    access = read_rules(web).access
    if not _may_send(access):
        return Finding(WARNING, NOBODY_SENDS)
    port = web.listen.rpartition(":")[2]
    host = "localhost" if web.host in _WILDCARDS else f"[{web.host}]" if ":" in web.host else web.host
    address = (web.external_url or f"http://{host}:{port}").rstrip("/") + "/v1/samples"
    if sum(isinstance(source.options, PushOptions) for source in config.sources) > 1:
        address += f"?source={options.name}"
    headers = "" if Right.INGEST in access.anonymous else '-H "Authorization: Bearer $TOKEN" '
    headers += "-H 'Content-Type: application/json'"
    request = f"curl {headers} -d {shlex.quote(EXAMPLE)} {shlex.quote(address)}"
    return Finding(OK, f"receives answers; send one with: {request}")


NOBODY_SENDS = "nobody has the right ingest: give it to a token, as `web.tokens: [{name, token, rights: [ingest]}]`"


def check_address(address: str, owner: str | None) -> Finding:
    """Whether an address is free; `owner` is the process that has the state. `AddressError` says why it is not."""
    try:
        listen(host_of(address), int(address.rpartition(":")[2])).close()
    except AddressError as error:
        if owner is None or not isinstance(error.__cause__, OSError) or error.__cause__.errno != errno.EADDRINUSE:
            raise
        return Finding(WARNING, f"{address} is in use, as it is while ragwatch runs (process {owner})")
    return Finding(OK, f"{address} is free")


def check_web(web: WebOptions, listeners: Sequence[GrpcListener]) -> Finding:
    """Whether credentials are safe on their way, and who may do what."""
    rules = read_rules(web, listeners)
    access = rules.access
    transport = "HTTP" if rules.tls is None else "TLS"
    if not access.has_credentials:
        return Finding(OK, f"{transport}; nobody is asked for a password: {_rights(access.anonymous)}")
    who = [
        f"{len(access.users)} users" if access.users else "",
        f"{len(access.tokens)} tokens" if access.tokens else "",
    ]
    who += ["client certificates"] if access.certificates and not access.users else []
    text = f"{transport}; {', '.join(filter(None, who))}; without them: {_rights(access.anonymous) or 'nothing'}"
    addresses = (web.listen, *(listener.address for listener in listeners))
    if rules.tls is None and not all(map(is_loopback, addresses)):
        text += "; passwords and tokens travel unencrypted: use TLS, here or in a proxy"
        return Finding(WARNING, text)
    return Finding(OK, text)


def _may_send(access: Access) -> bool:
    granted = [*(token.rights for token in access.tokens), *access.grants.values()]
    return Right.INGEST in access.anonymous.union(*granted, access.unlisted if access.users else ())


def _rights(rights: Iterable[Right]) -> str:
    return ", ".join(sorted(rights))
