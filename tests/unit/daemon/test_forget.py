"""A person is erased, and a source continues from its place or is refused, while the daemon runs."""

import asyncio
import json
import threading
import time
from pathlib import Path

import httpx
import pytest
from support.callers import canned
from support.daemons import a_daemon, judged, log, running, until
from support.kit import an_admission
from support.patience import DEADLINE
from support.stores import readable

from ragwatch.config import load
from ragwatch.daemon import Daemon
from ragwatch.errors import ConfigError
from ragwatch.ports import Erased, Erasure


@pytest.mark.costly
async def test_a_person_is_erased_while_it_runs(tmp_path: Path) -> None:
    """No byte of hers remains in database and write-ahead log; answers of others go on being judged."""
    daemon = a_daemon(tmp_path)
    async with running(daemon) as address, httpx.AsyncClient(base_url=address, timeout=DEADLINE) as client:
        await until(lambda: len(judged(daemon)) == 2)
        body = {"metadata": [["user", "anna"]]}
        counted = (await client.post("/v1/forget", json=body | {"dry_run": True})).json()
        assert b"MARK-anna" in readable(tmp_path / "state")
        erased = (await client.post("/v1/forget", json=body)).json()
        assert (erased["answers"], erased["complete"]) == (1, True)
        assert erased == counted
        state = readable(tmp_path / "state")
        assert (b"anna" in state, b"MARK-bob" in state) == (False, True)
        log(tmp_path, "carl", "anna")  # her answer is delivered again: a duplicate
        await until(lambda: "request-carl" in judged(daemon))
        assert len(judged(daemon)) == 3
    assert b"anna" not in readable(tmp_path / "state")


@pytest.mark.costly
async def test_a_reading_under_way_is_not_written_again(tmp_path: Path) -> None:
    """A draw that a judge is reading when the request comes is read to its end, stored, and erased."""
    asked = threading.Event()

    def reply(_: object) -> object:
        asked.set()
        time.sleep(0.3)
        return {}

    with canned((400, {}, reply)) as (server, sent):
        judge = f"{{name: big, kind: openai, model: m, base_url: '{server}/v1', api_key: k, allow_unknown_price: true}}"
        daemon = a_daemon(tmp_path, f"judges: [{judge}]\n")
        async with running(daemon) as address, httpx.AsyncClient(base_url=address, timeout=DEADLINE) as client:
            await until(asked.is_set)
            assert daemon.store.pending() == {"big": 2}
            response = await client.post("/v1/forget", json={"ids": ["request-anna"]})
            assert response.json() | {"verdicts": 1, "pending": 0} == response.json() | {"answers": 1}
            assert b"anna" not in readable(tmp_path / "state")
            await until(lambda: not daemon.store.pending())
        assert "MARK-anna" in json.dumps(sent)
    assert b"anna" not in readable(tmp_path / "state")


async def test_the_loops_go_on_where_it_fails_or_nothing_matches(tmp_path: Path) -> None:
    """The error of the store is the response; what is logged afterwards is judged. Nobody is erased by a wrong id.

    A daemon that has stopped says so, and reloads nothing either.
    """
    daemon = a_daemon(tmp_path)
    nobody = Erasure(frozenset({"request-of-nobody"}))
    async with running(daemon) as address, httpx.AsyncClient(base_url=address, timeout=DEADLINE) as client:
        await until(lambda: len(judged(daemon)) == 2)
        assert [await daemon.forget(nobody, dry_run=dry_run) for dry_run in (True, False)] == [Erased()] * 2
        (tmp_path / "state" / "ragwatch.db").rename(tmp_path / "elsewhere")
        reply = await client.post("/v1/forget", json={"ids": ["request-anna"]})
        assert (reply.status_code, "was moved, deleted or replaced" in reply.text) == (503, True)
        (tmp_path / "elsewhere").rename(tmp_path / "state" / "ragwatch.db")
        log(tmp_path, "carl")
        await until(lambda: "request-carl" in judged(daemon))
    for refused in (daemon.forget(nobody, dry_run=False), daemon.reload()):
        with pytest.raises(ConfigError, match="stopping"):
            await asyncio.wait_for(refused, DEADLINE)


OTHER_KIND = "[{kind: nats, name: app, url: 'nats://127.0.0.1:9', stream: answers}]"


def change_source(folder: Path, source: str) -> None:
    """Write another source into the configuration of `a_daemon`."""
    path = folder / "ragwatch.yaml"
    lines = path.read_text().splitlines()
    path.write_text("".join(f"sources: {source}\n" if line.startswith("sources") else f"{line}\n" for line in lines))


@pytest.mark.costly
async def test_a_source_of_another_kind(tmp_path: Path) -> None:
    """A reload says which name to change, and the running configuration goes on reading; a start says so, too.

    What was stored by another kind is a wrong configuration, not a damaged state; the state stays as it is.
    """
    daemon = a_daemon(tmp_path)
    path = tmp_path / "ragwatch.yaml"
    good = path.read_text()
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
    with pytest.raises(
        ConfigError, match=r"^sources\[0\]\.name: app has .* kind nats .*; give the source another name"
    ):
        await Daemon(load(path)).run()
    path.write_text(good)
    again = Daemon(load(path), path=path)
    async with running(again) as address, httpx.AsyncClient(base_url=address, timeout=DEADLINE) as client:
        log(tmp_path, "dora")
        await until(lambda: "request-dora" in judged(again))
        change_source(tmp_path, OTHER_KIND.replace("name: app", "name: other"))
        assert (await client.post("/-/reload")).status_code == 200


@pytest.mark.parametrize("cursor", ["17", "not a cursor", "{}"])
async def test_a_damaged_place_is_told(tmp_path: Path, cursor: str) -> None:
    """Whatever a stored cursor is, it is told in one line with the source at fault."""
    daemon = a_daemon(tmp_path)
    daemon.store.admit(an_admission(cursor=cursor))
    with pytest.raises(ConfigError, match=r"^sources\[0\]\.name: app [^\n]* or restore a copy of the state$"):
        await daemon.run()
