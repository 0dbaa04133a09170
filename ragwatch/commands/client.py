"""Clients for labels and verdicts: the HTTP API of a running daemon, or the state directory if none is running."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Any, Protocol

from ragwatch import stores
from ragwatch.commands.asking import query_of, reason_of
from ragwatch.commands.credentials import ADVICE, authorize, certificate_advice, read_token
from ragwatch.config import Config
from ragwatch.config.web_file import load_web_file
from ragwatch.core.labels.questions import LabelTask
from ragwatch.core.sampling import SamplingHash
from ragwatch.core.verdict_line import VerdictRecord, parse_verdict_line
from ragwatch.daemon.state_secret import state_secret
from ragwatch.errors import ConfigError, RagwatchError, StoreError
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.ports import Query, Store

DEFAULT_URL = "http://127.0.0.1:10477"
TIMEOUT_SECONDS = 30.0
FORGET_SECONDS = 1800.0
BAD_REQUEST, UNAUTHORIZED = 400, 401
_WILDCARD_HOSTS = ("0.0.0.0", "[::]", "::")  # noqa: S104 - nothing is bound


class LabelClient(Protocol):
    """Reads and stores labels as JSON values."""

    def tasks(self, annotator: str, count: int) -> Sequence[LabelTask]:
        """Samples for an annotator, in the order in which to show them."""
        ...

    def put(self, records: Iterable[Mapping[str, object]]) -> Mapping[str, int]:
        """Store labels. Returns how many are new, replaced and unmatched."""
        ...

    def revoke(self, key: str, annotator: str | None) -> int:
        """Take labels on a sample back, of one annotator or of all. Returns how many."""
        ...

    def labels(self) -> Sequence[Mapping[str, object]]:
        """All labels, oldest first."""
        ...

    def pruned_until(self) -> float | None:
        """Instant up to which retention has deleted a part of the answers; None where it has deleted none."""
        ...

    def verdicts(self, key: str) -> list[VerdictRecord]:
        """The verdicts on an answer."""
        ...

    def answer_chars(self, key: str) -> int | None:
        """Length of an answer in characters; None if its whole text is not available."""
        ...


class ApiClient:
    """Client of the HTTP API of a running ragwatch.

    Args:
        address: Its base URL.
        token: Bearer token; None for none.

    Raises:
        ConfigError: The address is not a URL.
    """

    def __init__(self, address: str, token: str | None = None) -> None:
        if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
            raise ConfigError(f"--url {address}: is not a URL; give one such as http://127.0.0.1:10477")
        self._address = address.rstrip("/")
        self._token = token

    def tasks(self, annotator: str, count: int) -> Sequence[LabelTask]:
        """See `LabelClient`."""
        body = {"annotator": annotator, "count": count}
        tasks: list[LabelTask] = self._request("/v1/labels/tasks", body)["tasks"]
        return tasks

    def put(self, records: Iterable[Mapping[str, object]]) -> Mapping[str, int]:
        """See `LabelClient`."""
        counts: Mapping[str, int] = self._request("/v1/labels", {"labels": list(records)})
        return counts

    def revoke(self, key: str, annotator: str | None) -> int:
        """See `LabelClient`."""
        body = {"key": key} | ({} if annotator is None else {"annotator": annotator})
        return int(self._request("/v1/labels/revoke", body)["revoked"])

    def labels(self) -> Sequence[Mapping[str, object]]:
        """See `LabelClient`."""
        labels: list[Mapping[str, object]] = []
        path: str | None = "/api/v1/labels"
        while path is not None:  # the size of a response is limited; it names the next page
            page = self._request(path)
            labels += page["labels"]
            path = page.get("next")
        return labels

    def pruned_until(self) -> float | None:
        """See `LabelClient`."""
        until: float | None = self._request("/api/v1/labels").get("picked_until")
        return until

    def verdicts(self, key: str) -> list[VerdictRecord]:
        """See `LabelClient`."""
        path = f"/api/v1/samples/{key}"
        sample = self._request(path, absent={"verdicts": []})
        try:
            return [parse_verdict_line(line) for line in sample["verdicts"]]
        except ValueError as error:
            raise RagwatchError(
                f"{self._address}{path}: the response is {error}; "
                "give the address of a ragwatch of this version with --url"
            ) from error

    def answer_chars(self, key: str) -> int | None:
        """See `LabelClient`."""
        reply = self._request(f"/api/v1/samples/{key}", absent={})
        return None if "sample" in reply.get("truncated", ()) else _chars(reply.get("sample"))

    def worst(self, parameters: Mapping[str, str]) -> Mapping[str, object] | None:
        """Return the verdict line of the first answer of a search, such as the worst one; None if there is none.

        Raises:
            ConfigError: It refuses a parameter.
            RagwatchError: It cannot be asked, or the response is not that of a ragwatch of this version.
        """
        path = f"/api/v1/samples?{query_of({**parameters, 'limit': '1'})}"
        try:
            rows = self._request(path)["samples"]
            return dict(rows[0]["verdict"]) if rows else None
        except (LookupError, TypeError, ValueError) as error:
            raise RagwatchError(
                f"{self._address}{path}: the response is not that of a ragwatch of this version; give its address with "
                "--url"
            ) from error

    def overview(self, window: str | None) -> Mapping[str, Any]:
        """Return the data of the overview page; None selects its default window."""
        return self._request(f"/api/v1/snapshot?{query_of({'window': window})}")

    def forget(self, body: Mapping[str, object]) -> Mapping[str, object]:
        """Erase a person, see `web.erasure`. Takes as long as readings under way, and as writing the database again."""
        return self._request("/v1/forget", body, seconds=FORGET_SECONDS)

    def rejudge(self, body: Mapping[str, object]) -> Mapping[str, object]:
        """Have a judge read stored answers, see `web.rejudging`. Takes as long as the readings."""
        return self._request("/v1/rejudge", body, seconds=FORGET_SECONDS)

    def _request(
        self,
        path: str,
        body: object = None,
        *,
        absent: Mapping[str, object] | None = None,
        seconds: float = TIMEOUT_SECONDS,
    ) -> Mapping[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
            self._address + path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        authorize(request, self._token)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as response:  # noqa: S310 - see above
                values: Mapping[str, Any] = json.load(response)
                return values
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404 and absent is not None:
                    return absent
                if error.code == BAD_REQUEST:
                    raise ConfigError(f"{self._address} refused: {_refusal(error)}") from error
                raise RagwatchError(f"{self._address}{path}: {error.code}: {_refusal(error)}") from error
        except (OSError, ValueError) as error:
            raise RagwatchError(
                f"{self._address}{path}: no response: {error}; give the address of the running ragwatch with --url"
                f"{certificate_advice(error)}"
            ) from error


class StateClient:
    """Client of the state directory, for use while no daemon is running.

    Args:
        store: Open, with its lock held.
        rules: Names the judges and their versions.
        refuse: See `LabelTasks`.
        secret: Secret of the state.
    """

    def __init__(
        self, store: Store, rules: LabelRules, refuse: Callable[[], None] = lambda: None, secret: bytes = b""
    ) -> None:
        self._store = store
        self._tasks = LabelTasks(
            rules,
            store=store,
            clock=time.time,
            uniform=SystemRandom().random,
            refuse=refuse,
            sampling=SamplingHash(secret),
        )

    def tasks(self, annotator: str, count: int) -> Sequence[LabelTask]:
        """See `LabelClient`."""
        return self._tasks.tasks(annotator, count)

    def put(self, records: Iterable[Mapping[str, object]]) -> Mapping[str, int]:
        """See `LabelClient`."""
        return self._tasks.put(records)

    def revoke(self, key: str, annotator: str | None) -> int:
        """See `LabelClient`."""
        return self._tasks.revoke(key, annotator)

    def labels(self) -> Sequence[Mapping[str, object]]:
        """See `LabelClient`."""
        return list(self._tasks.labels())

    def pruned_until(self) -> float | None:
        """See `LabelClient`."""
        return self._tasks.pruned_until()

    def verdicts(self, key: str) -> list[VerdictRecord]:
        """See `LabelClient`."""
        return [stored.verdict for stored in self._store.find(Query(key=key))]

    def answer_chars(self, key: str) -> int | None:
        """See `LabelClient`."""
        return next((_chars(stored.sample) for stored in self._store.find(Query(key=key, limit=1))), None)


@contextmanager
def label_client(config: Config, url: str | None, token_file: Path | None = None) -> Iterator[LabelClient]:
    """Open a client: for `url` if given, else for the state directory, else for the daemon that has locked it.

    Args:
        config: The configuration.
        url: Address of the running ragwatch.
        token_file: File of the bearer token, for a running ragwatch.

    Raises:
        RagwatchError: The state directory does not exist, or the default judge has no verdicts.
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
        yield StateClient(
            store,
            _label_rules(config, _judge_versions(config, store)),
            partial(config.require_texts, "labelling"),
            state_secret(config.settings.state, store),
        )
    finally:
        store.close()


def address_of(config: Config) -> str:
    """Address at which this host can reach the daemon of a configuration.

    Raises:
        ConfigError: `web.config_file` cannot be read.
    """
    web = config.settings.web
    host, _, port = web.listen.rpartition(":")
    has_tls = web.config_file is not None and load_web_file(web.config_file).tls_server_config.is_on
    scheme = "https" if has_tls else "http"
    return f"{scheme}://{'127.0.0.1' if host in _WILDCARD_HOSTS else host}:{port}"


def _label_rules(config: Config, versions: Mapping[str, str]) -> LabelRules:
    judges = [judge.place for judge in config.judges]
    settings = config.settings
    return settings.labels.rules(judges, versions, settings.estimates.confidence, settings.criterion_rules)


def _judge_versions(config: Config, store: Store) -> dict[str, str]:
    """Version of each judge in its newest verdict. No judge is built, because that may need API keys.

    Raises:
        StoreError: The default judge has none.
    """
    names = [judge.place.name for judge in config.judges]
    newest = {name: store.find(Query(judge=name, outcome="judged", limit=1)) for name in names}
    if not newest[names[0]]:
        raise StoreError(f"state: judge {names[0]} has read nothing yet; run ragwatch until it has judged some samples")
    return {name: rows[0].verdict.judge_version for name, rows in newest.items() if rows}


def _chars(sample: Mapping[str, object] | None) -> int | None:
    answer = None if sample is None else sample.get("answer")
    return len(answer) if isinstance(answer, str) else None


def _refusal(error: urllib.error.HTTPError) -> str:
    reason = reason_of(error.read())
    return f"{reason} {ADVICE}" if error.code == UNAUTHORIZED else reason
