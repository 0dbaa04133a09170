"""What `ragwatch check` says of settings that need no test: how many series segments are."""

from __future__ import annotations

from collections.abc import Iterator

from ragwatch.config import Config


def setting_notes(config: Config) -> Iterator[tuple[str, bool, str]]:
    """Describe settings: each key, whether all is well, and a text for people."""
    if config.settings.segments:
        yield "segments", True, config.describe_segments()
