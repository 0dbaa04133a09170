"""The loopback server as a process: its options, and its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from loopback.process import LoopbackProcess, environment
from support.patience import DEADLINE


@pytest.mark.costly
def test_it_ends_with_who_started_it() -> None:
    """A server whose parent was killed does not stay behind."""
    server = LoopbackProcess(None)
    assert httpx.get(f"{server.address}/record").status_code == 200
    server.orphan()
    assert server.wait() == 0


@pytest.mark.costly
def test_it_can_begin_with_a_script(tmp_path: Path) -> None:
    """A script in a file is played from the first call on, and a wrong one is refused."""
    script = tmp_path / "script.json"
    script.write_text('{"models": ["tiny"]}')
    with LoopbackProcess(None, "--control", str(script)) as server:
        assert httpx.get(f"{server.address}/v1/models").json()["first_id"] == "tiny"
    script.write_text('{"modells": []}')
    command = [sys.executable, "-m", "loopback.server", "--control", str(script)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode != 0
    assert "modells" in done.stderr


@pytest.mark.costly
def test_without_a_key_any_will_do() -> None:
    """The record tells whether there was one."""
    with LoopbackProcess(None) as server:
        httpx.get(f"{server.address}/v1/models")
        httpx.get(f"{server.address}/v1/models", headers={"x-api-key": "any"})
        assert [entry["authorized"] for entry in server.requests("/v1/models")] == [False, True]
