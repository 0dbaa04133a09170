"""The real daemon behind a real broker: records are counted once, whatever is killed, and it says when it is down."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
import redis
from functional.daemon import RagwatchProcess, record, write_config
from support.brokers import redis_server, wait_until

SEEN = 'ragwatch_requests_seen_total{source="app"}'
DRAWN = 'ragwatch_samples_drawn_total{route="search"}'
JUDGED = 'ragwatch_samples_judged_total{judge="embedded",route="search"}'
COUNTS = [pytest.param(500, 3, marks=pytest.mark.costly), pytest.param(20_000, 40, marks=pytest.mark.slow)]


def kill_often(config: Path, kills: int) -> None:
    """Start the daemon and kill it after a moment, several times."""
    rng = random.Random(kills)
    for _ in range(kills):
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            time.sleep(rng.uniform(0.0, 0.3))
            ragwatch.kill()


def redis_config(folder: Path, port: int, **options: Any) -> Path:
    """A configuration that reads a Redis stream."""
    source = {"kind": "redis_streams", "name": "app", "url": f"redis://127.0.0.1:{port}/0", "stream": "rag"}
    rest = {"start": "beginning", "batch_records": 50, "timeout_seconds": 0.5}
    return write_config(folder, sources=json.dumps([source | rest | options]))


@pytest.mark.parametrize(("count", "kills"), COUNTS)
def test_redis_with_a_daemon_that_is_killed(tmp_path: Path, count: int, kills: int) -> None:
    """Every entry is stored once and acknowledged; so it is after the server was killed as well."""
    server = redis_server(tmp_path)
    client: Any = redis.Redis(port=server.port)
    config = redis_config(tmp_path, server.port)
    try:
        for number in range(count):
            client.xadd("rag", {"data": record(number)})
        kill_often(config, kills)
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            ragwatch.wait_for(SEEN, count)
            server.kill()
            wait_until(lambda: ragwatch.get("/-/ready")[0] == 503, "it says that the broker is down")
            assert "cannot be reached" in ragwatch.get("/-/ready")[1]
            assert ragwatch.get("/-/healthy")[0] == 200
            server.start()
            client.xadd("rag", {"data": record(count)})
            series = ragwatch.wait_for(JUDGED, count + 1)
            ragwatch.wait_for('ragwatch_source_lag_records{source="app"}', 0)
            wait_until(lambda: ragwatch.get("/-/ready")[0] == 200, "it is ready again")
        assert (series[SEEN], series[DRAWN]) == (count + 1, count + 1)
        assert client.xpending("rag", "ragwatch")["pending"] == 0
    finally:
        client.close()
        server.kill()
