"""Puts the manual page that `make kit` has written into the wheel: a hook of hatchling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualPageHook(BuildHookInterface[Any]):
    """Adds the page as a shared file; a wheel that is built without `make kit` has none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface
        """Add the page before the build."""
        page = Path(self.root) / "dist" / "kit" / "ragwatch.1"
        if page.is_file():
            build_data["shared_data"][str(page)] = "share/man/man1/ragwatch.1"
