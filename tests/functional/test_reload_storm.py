"""Many reloads at once: one is under way, one waits, and the others are told so at once."""

from __future__ import annotations

import signal
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from functional.daemon import RagwatchProcess, write_config
from support.patience import DEADLINE, wait_until


def reload(ragwatch: RagwatchProcess) -> tuple[int, str | None, str]:
    """Status, `Retry-After` and text of a request to reload."""
    request = urllib.request.Request(ragwatch.address + "/-/reload", method="POST")
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE) as reply:
            return reply.status, reply.headers["Retry-After"], reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Retry-After"], error.read().decode()


def test_sixty_requests_are_a_few_reloads(tmp_path: Path) -> None:
    """Of 60 at once most are refused with 429 and when to ask again; the last word on disk is in force afterwards."""
    config = write_config(tmp_path)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        with ThreadPoolExecutor(60) as clients:
            answers = list(clients.map(lambda _: reload(ragwatch), range(60)))
        assert {status for status, _, _ in answers} == {200, 429}
        assert all(again is not None for status, again, _ in answers if status == 429)
        assert sum(status == 200 for status, _, _ in answers) < 30
        write_config(tmp_path, routes="[search, billing]")
        assert reload(ragwatch)[0] == 200
        assert 'route="billing"' in ragwatch.get("/metrics")[1]
        assert ragwatch.get("/-/ready")[0] == 200


def test_a_storm_of_signals_is_a_few_reloads(tmp_path: Path) -> None:
    """Of 200 SIGHUP at once, those that come while one waits are the same reload; a request later is answered soon."""
    config = write_config(tmp_path)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        for _ in range(200):
            ragwatch.signal(signal.SIGHUP)
        write_config(tmp_path, routes="[search, billing]")
        ragwatch.signal(signal.SIGHUP)
        wait_until(lambda: 'route="billing"' in ragwatch.get("/metrics")[1], "the last signal is followed")
        ragwatch.signal(signal.SIGTERM)
        assert ragwatch.end() == 0
        assert len(ragwatch.events("configuration loaded")) < 50
