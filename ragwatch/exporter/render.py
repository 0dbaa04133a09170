"""Render: the bytes of a scrape, from memory alone, in the format that the scraper asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder

from ragwatch.board import Board
from ragwatch.core.snapshot import Snapshot
from ragwatch.exporter import families
from ragwatch.exporter.catalogue import CATALOGUE
from ragwatch.exporter.known import KnownLabels
from ragwatch.telemetry import Telemetry

_OPENMETRICS = "application/openmetrics-text"
_PLAIN = "text/plain"


class Exporter:
    """Shows the Board and our own counts as series, in a registry of its own.

    Nothing here is instrumented directly, so no `_created` series arise. Safe to call from several threads.

    Args:
        board: Where the latest Snapshot hangs.
        telemetry: Counts of our own life.
        sources: Names of the configured sources.
        routes: Configured routes; `other` is added.
        judges: Names of the configured judges, the default one first.
        suites: Names of the configured suites of canaries.
    """

    def __init__(
        self,
        board: Board,
        telemetry: Telemetry,
        *,
        sources: Iterable[str],
        routes: Iterable[str],
        judges: Iterable[str],
        suites: Iterable[str] = (),
    ) -> None:
        self._board = board
        self._telemetry = telemetry
        self._known = KnownLabels.of(sources=sources, routes=routes, judges=judges, suites=suites)
        self._drawn: tuple[Snapshot, list[Metric]] | None = None
        self._registry = CollectorRegistry(auto_describe=True)  # so that `name[]` finds the process's own series too
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def describe(self) -> Iterator[Metric]:
        """Every family of the catalogue, empty. For prometheus_client, which finds collectors by it."""
        return map(families.family, CATALOGUE)

    def collect(self) -> Iterator[Metric]:
        """Families with something to say. For prometheus_client."""
        snapshot = self._board.look()
        if snapshot is not None:
            yield from self._of(snapshot)
        yield from families.of_telemetry(self._telemetry, self._known)

    def _of(self, snapshot: Snapshot) -> list[Metric]:
        """Families of a Snapshot, kept until the next one hangs: Snapshots never change, and scrapes are many."""
        drawn = self._drawn
        if drawn is None or drawn[0] is not snapshot:
            drawn = self._drawn = (snapshot, families.of_snapshot(snapshot, self._known))
        return drawn[1]

    def render(self, accept: str, names: Sequence[str] = ()) -> tuple[bytes, str]:
        """One scrape.

        Args:
            accept: The request's Accept header, empty for none.
            names: Names of samples to show; all when empty.

        Returns:
            The body, and its content type.
        """
        encode, content_type = choose_encoder(negotiated(accept))
        registry = self._registry.restricted_registry(names) if names else self._registry
        return encode(registry), content_type

    def text(self) -> str:
        """Everything in the text format, for a terminal."""
        return self.render("")[0].decode()


def negotiated(accept: str) -> str:
    """The one format to answer with: OpenMetrics 1.0 where it is wanted at least as much as text, else text 0.0.4.

    Other versions are never promised: the library would answer any version with the bytes of this one.

    >>> negotiated("text/html,*/*;q=0.8")
    'text/plain; version=0.0.4'
    >>> negotiated("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1")
    'application/openmetrics-text'
    """
    openmetrics, plain = 0.0, 0.0
    for wanted in accept.split(","):
        media, _, parameters = wanted.partition(";")
        match media.strip().lower():
            case "application/openmetrics-text":
                openmetrics = max(openmetrics, _quality(parameters))
            case "text/plain" | "text/*":
                plain = max(plain, _quality(parameters))
    return _OPENMETRICS if openmetrics > 0.0 and openmetrics >= plain else f"{_PLAIN}; version=0.0.4"


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
