"""A real Prometheus scrapes the real server: series, OpenMetrics and exemplars arrive; promtool finds no fault."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic, time
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from functional.daemon import parse_series
from support.asked import application, serving
from support.oncall_stage import running
from support.patience import DEADLINE
from support.programs import free_port, installed, promtool
from support.snapshots import JUDGE, KEY, TRACE, an_exporter, small

from ragwatch.statistics.snapshot import Snapshot
from ragwatch.statistics.tally import Tally, observe
from ragwatch.telemetry import Telemetry

CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: ragwatch
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def lived() -> Telemetry:
    """Telemetry in which something of every kind has happened."""
    telemetry = Telemetry()
    telemetry.configured(time())
    telemetry.judge_called(JUDGE, "lexical", 0.004)
    telemetry.call_failed(JUDGE, "lexical", "timeout", "too slow")
    telemetry.judge_spent(JUDGE, "lexical", [("input", 3), ("output", 1)], 0.01)
    telemetry.step_failed("judging", RuntimeError("once"))
    return telemetry


def with_negative_scores(at: float) -> Snapshot:
    """A Snapshot of a retriever whose scores have a negative sum."""
    snapshot = small(at=at)
    for score in (-0.75, 0.25):
        observe(snapshot.tallies, Tally.TOP_SCORE, ("search",), score)
    return snapshot


def test_promtool_finds_no_fault() -> None:
    """`promtool check metrics` accepts the text format, lint included."""
    text = an_exporter(with_negative_scores(time()), telemetry=lived()).text()
    assert promtool("check", "metrics", given=text) == (0, "")


def prometheus(folder: Path, port: int, config: str) -> AbstractContextManager[None]:
    """A Prometheus with this configuration, and its log in `folder`."""
    (folder / "prometheus.yml").write_text(config)
    return running(
        folder / "log",
        installed("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=exemplar-storage",
    )


async def until(client: httpx.AsyncClient, path: str, ready: Callable[[Any], bool], **query: str) -> Any:
    """The data of an answer once it is as wanted; the last answer of all when time is up."""
    end, last = monotonic() + DEADLINE, "nothing"
    while monotonic() < end:
        try:
            last = (await client.get(path, params=query)).text
            data = json.loads(last)["data"]
            if ready(data):
                return data
        except (httpx.TransportError, ValueError, LookupError):
            pass  # it is still starting
        await asyncio.sleep(0.2)  # another process, another clock: there is nothing to wait on
    return pytest.fail(f"{path} {query}: not as wanted within {DEADLINE} s: {last[:2000]}")


async def value(client: httpx.AsyncClient, expression: str) -> tuple[dict[str, str], float]:
    """Labels and value of the only series that an expression finds."""
    found = await until(client, "/api/v1/query", lambda data: len(data["result"]) == 1, query=expression)
    labels = found["result"][0]["metric"]
    return {name: labels[name] for name in labels if name not in ("__name__", "instance", "job")}, float(
        found["result"][0]["value"][1]
    )


async def exemplars(client: httpx.AsyncClient, now: float) -> Any:
    """Exemplars of faithfulness, once there are some."""
    times = {"start": str(now - 600), "end": str(now + 600)}
    return await until(client, "/api/v1/query_exemplars", bool, query="ragwatch_faithfulness_score_bucket", **times)


async def test_prometheus_stores_what_we_show(tmp_path: Path) -> None:
    """Gauges, counters, histograms and exemplars are in Prometheus after a scrape, negotiated as OpenMetrics."""
    now = time()
    shown, answered = an_exporter(with_negative_scores(now), telemetry=lived()), set[str]()

    def render(accept: str, names: Any) -> tuple[bytes, str]:
        body, content_type = shown.render(accept, names)
        answered.add(content_type)
        return body, content_type

    async with serving(application(render=render)) as scraped:
        port = free_port()
        with prometheus(tmp_path, port, CONFIG.format(port=scraped)):
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
                place = {"route": "search", "judge": JUDGE, "corrected": "no"}
                assert await value(client, "up") == ({}, 1.0)
                assert await value(client, "ragwatch_faithfulness_ratio") == ({**place, "window": "1h"}, 0.6)
                assert (await value(client, 'ragwatch_faithfulness_weight_total{route="search"}'))[1] == 6.0
                assert (await value(client, 'ragwatch_faithfulness_score_bucket{le="0.8"}'))[1] == 2.0
                assert (await value(client, 'ragwatch_requests_rejected_total{reason="torn_json"}'))[1] == 2.0
                assert (await value(client, "ragwatch_judge_info"))[0]["version"] == "lexical-1"
                assert (await value(client, 'ragwatch_traffic_top_context_score_bucket{le="0.0"}'))[1] == 1.0
                assert (await value(client, 'ragwatch_traffic_top_context_score_bucket{le="+Inf"}'))[1] == 2.0
                for name in ("ragwatch_need_recall_ratio", "ragwatch_traffic_top_context_score_sum"):
                    absent = await client.get("/api/v1/query", params={"query": name})
                    assert absent.json()["data"]["result"] == []
                (stored,) = await exemplars(client, now)
                metadata = await until(client, "/api/v1/metadata", lambda data: "ragwatch_faithfulness_score" in data)
    assert stored["seriesLabels"]["le"] == "0.1"
    (exemplar,) = stored["exemplars"]
    assert exemplar["labels"] == {"trace_id": TRACE, "sample_id": KEY}
    assert (float(exemplar["value"]), exemplar["timestamp"]) == (0.05, pytest.approx(now - 90.0, abs=0.01))
    assert metadata["ragwatch_faithfulness_score"][0]["type"] == "histogram"
    assert answered == {"application/openmetrics-text; version=1.0.0; charset=utf-8"}


@contextmanager
def demo() -> Iterator[str]:
    """The demo as a process; the address of its series."""
    command = [sys.executable, "-W", "error", "-m", "ragwatch", "demo", "--port", "0", "--rate", "40"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield next(line.split()[1] for line in process.stdout or () if line.startswith("series"))
        finally:
            process.terminate()
            process.wait(DEADLINE)


async def test_the_demo_from_end_to_end(tmp_path: Path) -> None:
    """Answers of the real service become gauges with intervals, counts and exemplars in a real Prometheus.

    It labels answers of one route as a person would: the interval of its level is narrower, and holds the truth.
    """
    port = free_port()
    with demo() as address, prometheus(tmp_path, port, CONFIG.format(port=urlsplit(address).port)):
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            stored, text, series = await figures_of_demo(client, address)
    assert all(len(each["labels"]["trace_id"]) == 32 for each in stored[0]["exemplars"])
    assert promtool("check", "metrics", given=text) == (0, "")
    level = 'ragwatch_faithfulness_ratio_{}{{corrected="yes",judge="embedded",route="{}",window="1h"}}'
    low, high = (
        {route: series[level.format(end, route)] for route in ("search", "support")} for end in ("low", "high")
    )
    assert high["search"] - low["search"] < (high["support"] - low["support"]) / 1.5
    assert high["search"] >= 0.99  # the service is healthy: it quotes


async def figures_of_demo(client: httpx.AsyncClient, address: str) -> tuple[Any, str, dict[str, float]]:
    """What Prometheus has of the demo: exemplars; and what the demo shows once all labels are taken."""
    for quantity in ("faithfulness", "context_precision", "top_ranked_ignored"):
        ratio = f"ragwatch_{quantity}_ratio"
        chosen = '{route="search",window="1m",corrected="no"}'
        expression = f"{ratio}_low{chosen} <= {ratio}{chosen} <= {ratio}_high{chosen}"
        found = await until(client, "/api/v1/query", lambda data: data["result"], query=expression)
        assert len(found["result"]) == 1
        assert (await value(client, f"ragwatch_{quantity}_samples{chosen}"))[1] > 0
    stored = await exemplars(client, time())
    await until(
        client,
        "/api/v1/query",
        lambda data: data["result"][0]["value"][1] == "50",
        query='ragwatch_judge_labels{quantity="faithfulness"}',
    )
    text = (await client.get(address)).text
    return stored, text, parse_series(text)
