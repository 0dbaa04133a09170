"""Puts the manual page that `make kit` has written, and documents, into the wheel: a hook of hatchling."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DOCUMENTS = {"docs/glossary.md": "glossary.md", "deploy/runbooks": "runbooks"}
"""What assistants may read: files of the repository by their name in `ragwatch/web/mcp`."""


class ManualPageHook(BuildHookInterface[Any]):
    """Adds the page as a shared file, and documents beside the code; a wheel that is built without them has none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface
        """Add the files before the build."""
        for place, name in DOCUMENTS.items():
            if (Path(self.root) / place).exists():
                build_data["force_include"][str(Path(self.root) / place)] = f"ragwatch/web/mcp/{name}"
        page = Path(self.root) / "dist" / "kit" / "ragwatch.1"
        if page.is_file():
            build_data["shared_data"][str(page)] = "share/man/man1/ragwatch.1"
