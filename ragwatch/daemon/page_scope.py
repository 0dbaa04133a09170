"""The names in a configuration that pages show and search for."""

from __future__ import annotations

from ragwatch.config.paging import unpaged
from ragwatch.daemon.runtime import Runtime
from ragwatch.judges.lexical.claims import other_sentences
from ragwatch.web import PageScope


def page_scope(runtime: Runtime) -> PageScope:
    """The names in the configuration of a runtime."""
    config = runtime.config
    return PageScope(
        sources=tuple(intake.source.name for intake in runtime.intakes),
        routes=config.settings.routes,
        judges=tuple(judge.place.name for judge in config.judges),
        suites=tuple(suite.place.suite for suite in config.canaries),
        windows=tuple(config.settings.estimates.windows),
        thresholds={str(quantity): value for quantity, value in config.settings.live_thresholds.items()},
        route_thresholds={
            route: {str(quantity): value for quantity, value in limits.items()}
            for route, limits in config.settings.route_thresholds.items()
        },
        unpaged=unpaged(config),
        texts=config.texts,
        confidence=config.settings.estimates.confidence,
        segments=config.settings.segments,
        criteria=tuple(criterion.name for criterion in config.settings.criteria),
        trace_url=config.settings.web.trace_url,
        other_sentences=other_sentences,
    )
