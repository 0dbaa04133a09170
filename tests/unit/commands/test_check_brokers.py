"""`ragwatch check` of a source with a broker: it shows what there is, and takes nothing from the consumer group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import redis
from support.brokers import redis_server
from support.command_line import findings
from support.kit import a_line

from ragwatch.commands.finding import FAILED, OK, WARNING, Finding


def checked(folder: Path, port: int) -> Finding:
    """What `check` says of the source."""
    source = {"kind": "redis_streams", "name": "app", "url": f"redis://127.0.0.1:{port}/0", "stream": "rag"}
    found = findings(folder, routes=["search"], sources=[source])
    assert [subject for subject in found if subject.startswith("sources[0]")] == ["sources[0]"]
    return found["sources[0]"]


def test_a_stream_is_shown_and_not_read(tmp_path: Path) -> None:
    """Without a stream it warns and creates none; with one it reads records, and there is still no group."""
    server = redis_server(tmp_path)
    client: Any = redis.Redis(port=server.port)
    try:
        missing = checked(tmp_path, server.port)
        assert (missing.state, client.exists("rag")) == (WARNING, 0)
        assert "the stream rag does not exist; ragwatch creates it at its start" in missing.detail
        client.xadd("rag", {"data": a_line("a")})
        there = checked(tmp_path, server.port)
        assert (there.state, there.detail) == (OK, "1 of 1 records of redis stream rag are samples")
        assert client.xinfo_groups("rag") == []
    finally:
        client.close()
        server.kill()
    down = checked(tmp_path, server.port)
    assert (down.state, "cannot be reached" in down.detail) == (FAILED, True)
