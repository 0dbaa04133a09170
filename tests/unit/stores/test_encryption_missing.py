"""Without the extra `encryption`, a configured key is an error that says what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ragwatch.errors import ConfigError
from ragwatch.stores.encryption import EncryptionOptions
from ragwatch.stores.sqlite.store import Options, build


def test_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No state is opened, and nothing is stored in clear instead."""
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)  # as where it is not installed
    options = Options(encryption=EncryptionOptions(key="ab" * 32))
    with pytest.raises(ConfigError, match=r"^store\.encryption: needs the extra `encryption`; run pip install"):
        build(options, tmp_path / "state")
    assert not (tmp_path / "state").exists()
    build(Options(), tmp_path / "state").close()
