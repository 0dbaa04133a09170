"""The secret of a state: made once, ours alone, kept, and never guessed at where it is damaged."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ragwatch.daemon.state_secret import NAME, readable_secret, state_secret, stored_secret
from ragwatch.errors import StoreError


def test_it_is_made_once_and_kept(tmp_path: Path) -> None:
    """Every later start has the same secret, which nobody else may read; two states differ."""
    assert stored_secret(tmp_path) is None
    secret = state_secret(tmp_path)
    assert len(secret) == 32
    assert state_secret(tmp_path) == stored_secret(tmp_path) == readable_secret(tmp_path) == secret
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    (tmp_path / "other").mkdir()
    assert state_secret(tmp_path / "other") != secret


def test_an_interrupted_start_leaves_no_half_of_it(tmp_path: Path) -> None:
    """What a killed process left behind is replaced."""
    (tmp_path / f"{NAME}.new").write_text("12")
    secret = state_secret(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert stored_secret(tmp_path) == secret


@pytest.mark.parametrize("text", ["", "12", "no hex", "ä" * 64])
def test_a_damaged_one_is_not_replaced(tmp_path: Path, text: str) -> None:
    """It is an error that says what to do; commands beside the daemon do without."""
    (tmp_path / NAME).write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match=r"ragwatch\.secret is damaged.*restore it, or delete it"):
        state_secret(tmp_path)
    assert readable_secret(tmp_path) is None


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    """The error names the file."""
    (tmp_path / NAME).mkdir()
    with pytest.raises(StoreError, match=r"cannot read .*ragwatch\.secret"):
        state_secret(tmp_path)
    with pytest.raises(StoreError, match=r"cannot write .*ragwatch\.secret"):
        state_secret(tmp_path / "missing")
