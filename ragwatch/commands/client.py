"""Door: how commands reach labels and verdicts. Through the daemon, or at the state itself where none runs."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from random import SystemRandom
from typing import Any, Protocol

from ragwatch import stores
from ragwatch.config import Config
from ragwatch.config.labels import LabelsOptions
from ragwatch.errors import ConfigError, RagwatchError, StoreError
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.ports import Query, Store

TIMEOUT_SECONDS = 30.0
_EVERYWHERE = ("0.0.0.0", "[::]", "::")  # noqa: S104 - nothing is bound


class LabelClient(Protocol):
    """What commands about labels ask for, as JSON values."""

    def tasks(self, annotator: str, count: int) -> list[dict[str, Any]]:
        """Samples for a person, to be shown in this order."""
        ...

    def put(self, records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Keep words. Returns how many are new, replaced and unmatched."""
        ...

    def labels(self) -> list[dict[str, Any]]:
        """All words, oldest first."""
        ...

    def picked_until(self) -> float | None:
        """Instant up to which retention has taken some answers and left others; None where it took none."""
        ...

    def verdicts(self, key: str) -> list[dict[str, Any]]:
        """Verdict lines of an answer."""
        ...


class ApiClient:
    """The door of a running ragwatch.

    Args:
        address: Where it serves.
    """

    def __init__(self, address: str) -> None:
        if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
            raise ConfigError(f"--url {address}: is no address; write one such as http://127.0.0.1:10477")
        self._address = address.rstrip("/")

    def tasks(self, annotator: str, count: int) -> list[dict[str, Any]]:
        """See `LabelClient`."""
        found: list[dict[str, Any]] = self._ask("/v1/labels/tasks", {"annotator": annotator, "count": count})["tasks"]
        return found

    def put(self, records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """See `LabelClient`."""
        found: dict[str, int] = self._ask("/v1/labels", {"labels": list(records)})
        return found

    def labels(self) -> list[dict[str, Any]]:
        """See `LabelClient`."""
        found: list[dict[str, Any]] = []
        path: str | None = "/api/v1/labels"
        while path is not None:  # a response has a limit, and names the next one
            page = self._ask(path)
            found += page["labels"]
            path = page.get("next")
        return found

    def picked_until(self) -> float | None:
        """See `LabelClient`."""
        found: float | None = self._ask("/api/v1/labels").get("picked_until")
        return found

    def verdicts(self, key: str) -> list[dict[str, Any]]:
        """See `LabelClient`."""
        found: list[dict[str, Any]] = self._ask(f"/api/v1/samples/{key}", absent={"verdicts": []})["verdicts"]
        return found

    def _ask(self, path: str, body: object = None, *, absent: dict[str, Any] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
            self._address + path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:  # noqa: S310 - see above
                found: dict[str, Any] = json.load(reply)
                return found
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404 and absent is not None:
                    return absent
                raise RagwatchError(f"{self._address}{path}: {error.code}: {_reason(error.read())}") from error
        except (OSError, ValueError) as error:
            raise RagwatchError(
                f"{self._address}{path}: no answer: {error}; give the address of the running ragwatch with --url"
            ) from error


class StateClient:
    """The state directory, while no daemon has it.

    Args:
        store: Opened and locked.
        rules: Which judges are in force.
    """

    def __init__(self, store: Store, rules: LabelRules) -> None:
        self._store = store
        self._labelling = LabelTasks(rules, store=store, clock=time.time, uniform=SystemRandom().random)

    def tasks(self, annotator: str, count: int) -> list[dict[str, Any]]:
        """See `LabelClient`."""
        return self._labelling.tasks(annotator, count)

    def put(self, records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """See `LabelClient`."""
        return self._labelling.put(records)

    def labels(self) -> list[dict[str, Any]]:
        """See `LabelClient`."""
        return list(self._labelling.labels())

    def picked_until(self) -> float | None:
        """See `LabelClient`."""
        return self._labelling.picked_until()

    def verdicts(self, key: str) -> list[dict[str, Any]]:
        """See `LabelClient`."""
        return [dict(each.verdict) for each in self._store.find(Query(key=key))]


@contextmanager
def label_client(config: Config, url: str | None) -> Iterator[LabelClient]:
    """The way in: the address that is given, else the state, else the daemon that has locked it.

    Raises:
        RagwatchError: There is none.
    """
    if url is not None:
        yield ApiClient(url)
        return
    if not config.settings.state.is_dir():
        raise StoreError(f"state: {config.settings.state} is not there; nothing has been judged yet")
    try:
        store = stores.KINDS[config.store.kind].build(config.store.options, config.settings.state)
    except StoreError as error:
        if "is locked" not in str(error):
            raise
        yield ApiClient(address_of(config))
        return
    try:
        yield StateClient(store, rules_of(config, versions_of(config, store)))
    finally:
        store.close()


def address_of(config: Config) -> str:
    """Where the daemon of this configuration can be asked from this machine."""
    host, _, port = config.settings.web.listen.rpartition(":")
    return f"http://{'127.0.0.1' if host in _EVERYWHERE else host}:{port}"


def rules_of(config: Config, versions: Mapping[str, str]) -> LabelRules:
    """How labels are wanted."""
    options = options_of(config)
    return options.rules([each.place for each in config.judges], versions, config.settings.estimates.confidence)


def options_of(config: Config) -> LabelsOptions:
    """The section `labels`."""
    found: LabelsOptions = getattr(config.settings, "labels", LabelsOptions())
    return found


def versions_of(config: Config, store: Store) -> dict[str, str]:
    """Version of each judge: that of its newest verdict. No judge is built for it: that might need keys.

    Raises:
        StoreError: The default judge has none.
    """
    names = [each.place.name for each in config.judges]
    found = {name: store.find(Query(judge=name, outcome="judged", limit=1)) for name in names}
    if not found[names[0]]:
        raise StoreError(f"state: judge {names[0]} has read nothing yet; let ragwatch run for a while")
    return {name: newest[0].verdict["judge"]["version"] for name, newest in found.items() if newest}


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace").strip()[:200]
