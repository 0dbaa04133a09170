"""What `ragwatch check` says of settings that are valid and may still surprise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragwatch.commands.check_settings import setting_notes
from ragwatch.config import parse


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, []),
        ({"estimates": {"windows": ["1h", "30d"]}}, []),
        ({"estimates": {"windows": ["1h", "45d", "90d"]}}, ["45d, 90d"]),
        ({"retention": {"days": 0.5}}, ["1d"]),
        ({"estimates": {"windows": ["90d"]}, "retention": {"days": 90}}, []),
    ],
)
def test_a_window_longer_than_retention_is_named(settings: dict[str, Any], names: list[str]) -> None:
    """Estimates of such a window contain less than their name says after a restart; the warning says what to do."""
    config = parse({"sources": [{"kind": "push", "name": "app"}], **settings}, folder=Path())
    notes = [note.detail for note in setting_notes(config) if note.subject == "estimates.windows"]
    assert len(notes) == len(names)
    assert all(
        f"over {some} contain" in text and "retention.days" in text for some, text in zip(names, notes, strict=True)
    )
