"""Renders a scrape from memory, in the format that the scraper accepts."""

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder

from ragwatch.board import Board
from ragwatch.exporter import families
from ragwatch.exporter.catalogue import with_criteria
from ragwatch.exporter.families import AllowedLabels
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.telemetry import Telemetry

_OPENMETRICS = "application/openmetrics-text"
_PLAIN = "text/plain"


class Exporter:
    """Exports the latest Snapshot and the process's own counters, in a registry of its own.

    Values are collected, not instrumented directly, so there are no `_created` series. Thread-safe.
    """

    def __init__(self, board: Board, telemetry: Telemetry, labels: AllowedLabels) -> None:
        self._board, self._telemetry, self._labels = board, telemetry, labels
        self._cached: tuple[Snapshot, list[Metric]] | None = None
        self._registry = CollectorRegistry(auto_describe=True)  # so that `name[]` also selects series of the process
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def describe(self) -> Iterator[Metric]:
        """Yields every family of the catalogue, empty. prometheus_client selects collectors by it."""
        return map(families.family, with_criteria(self._labels.criteria))

    def collect(self) -> Iterator[Metric]:
        """Yields the families that have samples. Called by prometheus_client."""
        snapshot = self._board.latest()
        if snapshot is not None:
            cached = self._cached  # until there is another, because Snapshots are immutable
            if cached is None or cached[0] is not snapshot:
                cached = self._cached = (snapshot, families.of_snapshot(snapshot, self._labels))
            yield from cached[1]
        yield from families.of_telemetry(self._telemetry, self._labels)

    def render(self, accept: str, names: Sequence[str] = ()) -> tuple[bytes, str]:
        """Renders one scrape, of all series if no names are given. Returns the body and its content type."""
        encode, content_type = choose_encoder(negotiated(accept))
        registry = self._registry.restricted_registry(names) if names else self._registry
        return encode(registry), content_type

    def text(self) -> str:
        """Renders all series in the text format, for a terminal."""
        return self.render("")[0].decode()


def negotiated(accept: str) -> str:
    """Negotiates the format: OpenMetrics 1.0 if its quality is at least that of text, else text 0.0.4.

    Other versions are never announced: the library would answer any version with the bytes of this one.
    """
    openmetrics, plain = 0.0, 0.0
    for media_range in accept.split(","):
        media, _, parameters = media_range.partition(";")
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
