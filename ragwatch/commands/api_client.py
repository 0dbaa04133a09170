"""Clients of a running ragwatch over HTTP, and of the state directory where none runs.

They have the address of a ragwatch, the token that commands send, and who has locked a state directory.
"""

import fcntl
import json
import os
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from http.client import HTTPException, IncompleteRead
from pathlib import Path
from random import SystemRandom
from threading import Thread
from typing import Any, TypeVar, cast

from ragwatch import stores
from ragwatch.config import Config
from ragwatch.config.web_file import load_web_file
from ragwatch.daemon.process import state_secret
from ragwatch.errors import ConfigError, ExternalError, RagwatchError, StoreError
from ragwatch.outgoing.addresses import url_parts
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.ports import Query
from ragwatch.statistics.labels.label import LabelTask
from ragwatch.statistics.sampling import SamplingHash
from ragwatch.statistics.verdict_line import VerdictRecord, parse_verdict_line
from ragwatch.web.pages.figure_replies import Snapshot

Reply = Mapping[str, Any]
T = TypeVar("T")
DEFAULT_URL = "http://127.0.0.1:10477"
TIMEOUT_SECONDS = 30.0
OPERATION_SECONDS = 1800.0
BAD_REQUEST, UNAUTHORIZED, NOT_FOUND = 400, 401, 404
MAX_BYTES = 16 << 20  # of a response; those of ragwatch have at most 8 MiB
_ACKNOWLEDGED = re.compile(r"no alarm is active|judge .+: .+|\w+ on .+")  # a line of the response
_WILDCARD_HOSTS = ("0.0.0.0", "[::]", "::")  # noqa: S104 - nothing is bound
TOKEN, TOKEN_FILE = "RAGWATCH_TOKEN", "RAGWATCH_TOKEN_FILE"
ADVICE = f"give a token with --token-file, {TOKEN_FILE} or {TOKEN}"


def read_token(file: Path | None) -> str | None:
    """Read the token; None if there is none. `ConfigError` if its file cannot be read, or it cannot be sent."""
    variable = os.environ.get(TOKEN_FILE)
    where, path = ("--token-file", file) if file is not None else (TOKEN_FILE, Path(variable) if variable else None)
    if path is None:
        where, token = TOKEN, os.environ.get(TOKEN, "").strip()
    else:
        try:
            token = path.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "is not text"
            raise ConfigError(f"{where}: {path} cannot be read: {reason}; write the path of a readable file") from error
        if not token:
            raise ConfigError(f"{where}: {path} is empty; write the token into it")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(f"{where}: holds more than a token; write the token alone, on one line")
    return token or None


def _reason(error: Exception) -> str:
    """Why there is no response, and what to do about it, for people."""
    reason = getattr(error, "reason", error)
    said = getattr(reason, "strerror", None) or str(reason)
    start = "start `ragwatch run`, or " if isinstance(reason, ConnectionRefusedError) else ""
    advice = f"{start}give the address of the running ragwatch with --url"
    if isinstance(reason, ssl.SSLCertVerificationError):
        advice += (
            "; if its certificate is of an authority of your own, name the file of that authority in SSL_CERT_FILE"
        )
    elif isinstance(reason, ssl.SSLError) and reason.reason == "WRONG_VERSION_NUMBER":
        said, advice = "it does not speak TLS", "give its address with --url http://..."
    elif isinstance(reason, HTTPException):
        said = "it does not speak HTTP, or its response ends too early"
    return f"no response: {said}; {advice}"


def _fetch(request: urllib.request.Request, seconds: float) -> tuple[int, bytes]:
    """Status and body of the response to a request; the body is whole and bounded."""
    try:
        response = urllib.request.urlopen(request, timeout=seconds)  # noqa: S310 - the scheme was checked
    except urllib.error.HTTPError as error:
        response = error
    with response:
        body = response.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise OSError(f"more than {MAX_BYTES >> 20} MiB")
        if getattr(response, "length", None):
            raise IncompleteRead(body)
        return response.status, body


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Return what a function returns; `TimeoutError` after a time, also while bytes of a response still come."""

    def run() -> None:
        try:
            outcome.set_result(call())
        except Exception as error:  # noqa: BLE001 - it is raised below
            outcome.set_exception(error)

    outcome: Future[T] = Future()
    Thread(target=run, daemon=True).start()
    try:
        return outcome.result(seconds)
    except TimeoutError:
        raise TimeoutError(f"not the whole of it within {seconds:.0f} s") from None


class _AbsentError(ExternalError):
    """The place does not exist."""


@contextmanager
def reply_of_this_version(where: str) -> Iterator[None]:
    """Turn what reading a reply of another shape raises into an error that names the address."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _other_version(where) from error


def _other_version(where: str) -> RagwatchError:
    return RagwatchError(
        f"{where}: the response is not that of a ragwatch of this version; give its address with --url"
    )


def query_of(options: Mapping[str, str | None]) -> str:
    """Return options of the command line, by name, as the end of an address; None leaves one out.

    >>> query_of({"route": "a b", "judge": None}), query_of({"judge": None})
    ('?route=a+b', '')
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        require_utf8(f"--{name}", value)
    return f"?{urllib.parse.urlencode(given)}" if given else ""


def require_utf8(option: str, value: str) -> None:
    """Refuse a value of the command line that is not UTF-8, with `ConfigError`."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{option} {value}: is not UTF-8; type it on a terminal with a UTF-8 locale") from error


def reason_of(body: bytes) -> str:
    """Return the reason in the body of a refusal.

    >>> reason_of(b'{"error": "quantity: is not known"}'), reason_of(b"no JSON")
    ('quantity: is not known', 'no JSON')
    >>> reason_of(b"<!doctype html>")
    'a web page, and no reply of ragwatch: is the address right?'
    """
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        text = body.decode("utf-8", "replace").strip()[:200]
        return "a web page, and no reply of ragwatch: is the address right?" if text.startswith("<") else text


def address_of(config: Config) -> str:
    """Address at which this host can reach the daemon of a configuration."""
    web = config.settings.web
    host, _, port = web.listen.rpartition(":")
    has_tls = web.config_file is not None and load_web_file(web.config_file).tls_server_config.is_on
    scheme = "https" if has_tls else "http"
    return f"{scheme}://{'127.0.0.1' if host in _WILDCARD_HOSTS else host}:{port}"


def answer_chars_of(sample: Mapping[str, object] | None) -> int | None:
    """Return the length of the answer of a sample in characters; None if it has none."""
    answer = None if sample is None else sample.get("answer")
    return len(answer) if isinstance(answer, str) else None


class ApiClient:
    """Client of the HTTP API of a running ragwatch at an address. Each request may raise what `_send` says."""

    def __init__(self, address: str, token: str | None = None, seconds: float = TIMEOUT_SECONDS) -> None:
        parts = url_parts(address)
        shown = address + ("" if parts is None else urllib.parse.unquote(parts.netloc))
        if parts is None or " " in shown or not shown.isprintable():
            raise ConfigError(f"--url {address!r}: is not a URL; give one such as http://127.0.0.1:10477")
        if "@" in parts.netloc:
            raise ConfigError(f"--url: holds a user or a password, which would be shown; {ADVICE}")
        self.address = address.rstrip("/")
        self._token, self._seconds = token, seconds

    def tasks(self, annotator: str, count: int) -> Sequence[LabelTask]:
        """Return samples for an annotator, in the order in which to show them."""
        body = {"annotator": annotator, "count": count}
        return self._request("/v1/labels/tasks", lambda reply: list(reply["tasks"]), body)

    def put(self, records: Iterable[Mapping[str, object]]) -> Mapping[str, int]:
        """Store labels. Returns how many are new, replaced and unmatched."""
        names = ("new", "replaced", "unmatched")
        body = {"labels": list(records)}
        return self._request("/v1/labels", lambda reply: {name: int(reply[name]) for name in names}, body)

    def revoke(self, key: str, annotator: str | None) -> int:
        """Take labels on a sample back, of one annotator or of all. Returns how many."""
        body = {"key": key} | ({} if annotator is None else {"annotator": annotator})
        return self._request("/v1/labels/revoke", lambda reply: int(reply["revoked"]), body)

    def labels(self) -> Sequence[Mapping[str, object]]:
        """Return all labels, oldest first."""
        labels: list[Mapping[str, object]] = []
        path: str | None = "/api/v1/labels"
        while path is not None:  # the size of a response is limited; it names the next page
            page, path = self._request(path, lambda reply: (list(reply["labels"]), reply.get("next")))
            labels += page
        return labels

    def pruned_until(self) -> float | None:
        """Instant up to which retention has deleted a part of the answers; None where it has deleted none."""
        until: float | None = self._request("/api/v1/labels", lambda reply: reply.get("picked_until"))
        return until

    def answer(self, key: str) -> tuple[list[VerdictRecord], int | None]:
        """Return the verdicts on an answer, and its length; None if its whole text is not available."""

        def read(reply: Reply) -> tuple[list[VerdictRecord], int | None]:
            chars = None if "sample" in reply.get("truncated", ()) else answer_chars_of(reply.get("sample"))
            return [parse_verdict_line(line) for line in reply["verdicts"]], chars

        return self._request(f"/api/v1/samples/{key}", read, absent={"verdicts": []})

    def worst(self, parameters: Mapping[str, str]) -> Mapping[str, object] | None:
        """Return the verdict line of the first answer of a search, such as the worst one; None if there is none."""
        path = f"/api/v1/samples{query_of({**parameters, 'limit': '1'})}"
        return self._request(path, lambda reply: dict(reply["samples"][0]["verdict"]) if reply["samples"] else None)

    def read(self, path: str, query: Mapping[str, str | None]) -> Reply:
        """Return the reply at a path below `/api/v1`; an empty one where there is none of this name."""
        return self._request(f"/api/v1{path}{query_of(query)}", dict, absent={})

    def overview(self, window: str | None) -> Snapshot:
        """Return the data of the overview page; None selects its default window."""
        return cast("Snapshot", self._request(f"/api/v1/snapshot{query_of({'window': window})}", dict))

    def incident(self, options: Mapping[str, str | None]) -> str:
        """Return what the pages say of a time, as Markdown."""
        text = self._send(f"/incident.md{query_of(options)}", None).decode("utf-8", "replace")
        if not text.startswith("# Incident"):
            raise _other_version(self.address)
        return text

    def operate(self, operation: str, body: Mapping[str, object]) -> Mapping[str, object]:
        """Erase a person (`forget`), or have a judge read stored answers (`rejudge`), however long that takes."""
        return self._request(f"/v1/{operation}", dict, body, seconds=OPERATION_SECONDS)

    def acknowledge(self, options: Mapping[str, str | None]) -> str:
        """Acknowledge drift alarms; returns what was acknowledged, for people."""
        text = self._send(f"/-/drift/acknowledge{query_of(options)}", b"").decode("utf-8", "replace")
        if not all(map(_ACKNOWLEDGED.fullmatch, text.splitlines() or [""])):
            raise _other_version(self.address)
        return text

    def _request(
        self,
        path: str,
        read: Callable[[Any], T],
        body: object = None,
        *,
        absent: Reply | None = None,
        seconds: float | None = None,
    ) -> T:
        """Return what a function reads from the JSON of a response, or from `absent` where the place does not exist."""
        try:
            text = self._send(path, None if body is None else json.dumps(body).encode(), seconds)
        except _AbsentError:
            if absent is None:
                raise
            return read(absent)
        with reply_of_this_version(self.address):
            return read(json.loads(text))

    def _send(self, path: str, body: bytes | None, seconds: float | None = None) -> bytes:
        """Return the response to GET, or to POST with a body; `ConfigError` for a refusal, else `ExternalError`."""
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
            self.address + path, body, {"Content-Type": "application/json"}
        )
        if self._token is not None:  # it is not sent to another address if the server redirects
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        limit = seconds or self._seconds
        place = self.address + path.partition("?")[0]
        try:
            status, text = _within(limit, partial(_fetch, request, limit))
        except (OSError, HTTPException) as error:
            raise ExternalError(f"{place}: {_reason(error)}") from error
        if status < BAD_REQUEST:
            return text
        reason = reason_of(text) + (f" {ADVICE}" if status == UNAUTHORIZED else "")
        if status == BAD_REQUEST:
            raise ConfigError(f"{self.address} refused: {reason}")
        raise (_AbsentError if status == NOT_FOUND else ExternalError)(f"{place}: {status}: {reason}")


def lock_owner(directory: Path) -> str | None:
    """Process id in the lock file of a state directory, as text; None when the directory is not locked."""
    try:
        lock = os.open(directory / "ragwatch.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(lock)
    return None


class StateClient(LabelTasks):
    """What `ApiClient` says of labels, from an open store whose lock is held."""

    def answer(self, key: str) -> tuple[list[VerdictRecord], int | None]:
        """Return the verdicts on an answer, and its length; None if its whole text is not available."""
        rows = self._store.find(Query(key=key))
        return [stored.verdict for stored in rows], answer_chars_of(rows[0].sample) if rows else None


LabelClient = ApiClient | StateClient


@contextmanager
def label_client(config: Config, url: str | None, token_file: Path | None = None) -> Iterator[LabelClient]:
    """Open a client: for `url` if given, else for the state directory, else for the daemon that has locked it.

    `RagwatchError` if there is no state directory, or no verdict of the default judge.
    """
    if url is not None:
        yield ApiClient(url, read_token(token_file))
        return
    if not config.settings.state.is_dir():
        raise StoreError(f"state: {config.settings.state} does not exist; nothing has been judged yet")
    try:
        store = stores.KINDS[config.store.kind].build(config.store.options, config.settings.state)
    except StoreError as error:
        if "is locked" not in str(error):
            raise
        yield ApiClient(address_of(config), read_token(token_file))
        return
    try:
        settings, judges = config.settings, [judge.place for judge in config.judges]
        newest = {judge.name: store.find(Query(judge=judge.name, outcome="judged", limit=1)) for judge in judges}
        if not newest[judges[0].name]:
            why = f"judge {judges[0].name} has read nothing yet; run ragwatch until it has judged some samples"
            raise StoreError(f"state: {why}")
        # From the verdicts, because building a judge may need API keys.
        versions = {name: rows[0].verdict.judge_version for name, rows in newest.items() if rows}
        yield StateClient(
            settings.labels.rules(judges, versions, settings.estimates.confidence, settings.criterion_rules),
            store=store,
            clock=time.time,
            uniform=SystemRandom().random,
            refuse=partial(config.require_texts, "labelling"),
            sampling=SamplingHash(state_secret(settings.state, store)),
        )
    finally:
        store.close()
