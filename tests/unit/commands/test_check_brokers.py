"""`ragwatch check` of a source with a broker: it shows what there is, and takes nothing from the consumer group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import redis
from support.brokers import redis_server
from support.kit import a_line
from support.ports import free_port

from ragwatch.commands.check import check_all
from ragwatch.commands.finding import FAILED, OK, WARNING, Finding
from ragwatch.config import parse


def findings(folder: Path, port: int) -> list[Finding]:
    """What `check` says of the source."""
    source = {"kind": "redis_streams", "name": "app", "url": f"redis://127.0.0.1:{port}/0", "stream": "rag"}
    raw = {
        "state": str(folder / "state"),
        "web": {"listen": f"127.0.0.1:{free_port()}"},
        "routes": ["search"],
        "sources": [source],
        "judges": [{"name": "embedded", "kind": "lexical"}],
    }
    return [one for one in check_all(parse(raw, folder=folder)) if one.subject.startswith("sources[0]")]


def test_a_stream_is_shown_and_not_read(tmp_path: Path) -> None:
    """Without a stream it warns and creates none; with one it reads records, and there is still no group."""
    server = redis_server(tmp_path)
    client: Any = redis.Redis(port=server.port)
    try:
        (missing,) = findings(tmp_path, server.port)
        assert (missing.state, client.exists("rag")) == (WARNING, 0)
        assert "the stream rag does not exist; ragwatch creates it at its start" in missing.detail
        client.xadd("rag", {"data": a_line("a")})
        (there,) = findings(tmp_path, server.port)
        assert (there.state, there.detail) == (OK, "1 of 1 records of redis stream rag are samples")
        assert client.xinfo_groups("rag") == []
    finally:
        client.close()
        server.kill()
    (down,) = findings(tmp_path, server.port)
    assert (down.state, "cannot be reached" in down.detail) == (FAILED, True)
