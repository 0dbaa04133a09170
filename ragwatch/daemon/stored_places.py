"""Where sources continue after a restart or a reload, and whether they can continue from what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragwatch import sources
from ragwatch.config import Config
from ragwatch.errors import ConfigError, SourceError
from ragwatch.ports import Part, Source, Store
from ragwatch.ports.capabilities import HasName, HoldsParts


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """Where a source continues.

    Attributes:
        cursors: Cursors by stream.
        parts: Parts of samples that wait for the others.
    """

    cursors: Mapping[str, str]
    parts: tuple[Part, ...]


def place_of(source: Source, store: Store) -> StoredPlace:
    """Read where a source continues."""
    parts = tuple(store.parts(source.name)) if isinstance(source, HoldsParts) else ()
    return StoredPlace(store.cursors(source.name), parts)


def resume_source(source: Source, place: StoredPlace, config: Config, *, running: Config | None = None) -> None:
    """Let a source continue from its place, which the configuration that runs has stored, if that is known.

    Raises:
        ConfigError: It cannot, because the place is one of another kind of source, or is damaged.
    """
    try:
        source.resume(place.cursors)
        if isinstance(source, HoldsParts):
            source.restore(place.parts)
    except (SourceError, ValueError, KeyError, TypeError, AttributeError) as error:
        kinds = _kinds(config)
        kind, before = kinds[source.name], None if running is None else _kinds(running).get(source.name)
        reason = str(error).partition("\n")[0]
        where = f"sources[{list(kinds).index(source.name)}].name: {source.name} has a stored place"
        if before not in (None, kind):
            message = f"{where} of another kind of source ({before}); give the new source another name"
        else:
            message = (
                f"{where} that a source of kind {kind} cannot continue from: {reason}; give the source another name if "
                "it was of another kind before, or restore a copy of the state"
            )
        raise ConfigError(message) from error


def check_places(config: Config, store: Store, running: Config | None = None) -> None:
    """Check that each source of a configuration can continue from what is stored under its name.

    A source of its own is tried, and closed again: the one that is to run resumes once, from where it will be then.

    Raises:
        ConfigError: One cannot.
    """
    for source in config.sources:
        tried: Source = sources.KINDS[source.kind].build(source.options)
        try:
            resume_source(tried, place_of(tried, store), config, running=running)
        finally:
            tried.close()


def _kinds(config: Config) -> dict[str, str]:
    """Kinds of the sources by name, in their order."""
    return {source.options.name: source.kind for source in config.sources if isinstance(source.options, HasName)}
