"""A source continues from what is stored under its name, or the configuration is refused before anything is closed."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from support.kit import an_admission
from support.patience import DEADLINE
from unit.daemon.test_forget import a_daemon, judged, log, until
from unit.daemon.test_reload import running

from ragwatch.config import load
from ragwatch.daemon import Daemon
from ragwatch.errors import ConfigError

OTHER_KIND = "[{kind: nats, name: app, url: 'nats://127.0.0.1:9', stream: answers}]"


def change_source(folder: Path, source: str) -> Path:
    """Write another source into the configuration of `a_daemon`."""
    path = folder / "ragwatch.yaml"
    lines = path.read_text().splitlines()
    path.write_text("".join(f"sources: {source}\n" if line.startswith("sources") else f"{line}\n" for line in lines))
    return path


@pytest.mark.costly
async def test_a_source_of_another_kind_is_refused_while_the_old_one_runs(tmp_path: Path) -> None:
    """A reload says which name to change, and the running configuration goes on reading."""
    daemon = a_daemon(tmp_path)
    async with running(daemon) as address, httpx.AsyncClient(base_url=address, timeout=DEADLINE) as client:
        await until(lambda: len(judged(daemon)) == 2)
        before = daemon.runtime
        change_source(tmp_path, OTHER_KIND)
        reply = await client.post("/-/reload")
        assert (reply.status_code, daemon.runtime is before) == (500, True)
        assert reply.text.startswith("sources[0].name: app has a stored place of another kind of source (tail); give")
        assert daemon.telemetry.last_reload_ok is False
        log(tmp_path, "carl")
        await until(lambda: "request-carl" in judged(daemon))
        change_source(tmp_path, OTHER_KIND.replace("name: app", "name: other"))
        assert (await client.post("/-/reload")).status_code == 200


@pytest.mark.costly
async def test_a_start_with_a_source_of_another_kind(tmp_path: Path) -> None:
    """What was stored by another kind is a wrong configuration, not a damaged state; the state stays as it is."""
    daemon = a_daemon(tmp_path)
    async with running(daemon):
        await until(lambda: len(judged(daemon)) == 2)
    path = tmp_path / "ragwatch.yaml"
    good = path.read_text()
    with pytest.raises(
        ConfigError, match=r"^sources\[0\]\.name: app has .* kind nats .*; give the source another name"
    ):
        await Daemon(load(change_source(tmp_path, OTHER_KIND))).run()
    path.write_text(good)
    again = Daemon(load(path))
    async with running(again):
        log(tmp_path, "carl")
        await until(lambda: "request-carl" in judged(again))


@pytest.mark.parametrize("cursor", ["17", "not a cursor", "{}"])
async def test_a_damaged_place_is_told(tmp_path: Path, cursor: str) -> None:
    """Whatever a stored cursor is, it is told in one line with the source at fault."""
    daemon = a_daemon(tmp_path)
    daemon.store.admit(an_admission(cursor=cursor))
    with pytest.raises(ConfigError, match=r"^sources\[0\]\.name: app [^\n]* or restore a copy of the state$"):
        await daemon.run()
