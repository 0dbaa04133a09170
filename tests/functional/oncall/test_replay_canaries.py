"""A retriever loses documents beside a real Prometheus and Alertmanager; `make slow` runs it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, write_config
from support.oncall_fleet import plan_at
from support.oncall_replay import MORNING, ONCALL, told
from support.oncall_stage import Stage, until
from support.programs import free_port
from support.retrievers import Bm25, serving

pytestmark = [pytest.mark.alone, pytest.mark.slow]

REPLAY, SUITE = "replay", "docs"
DEGRADED = "RagwatchCanariesDegraded"
TEXTS = {
    "refunds": "Refunds are paid within five days to the card that was used.",
    "shipping": "Shipping is free for orders above forty euros.",
    "opening": "The shop opens at nine and closes at six, except on Sundays.",
    "parking": "Parking costs two euros an hour behind the cathedral.",
    "returns": "Unworn shoes come back in their box within thirty days.",
}


@contextmanager
def watched(folder: Path, index: Bm25) -> Iterator[Stage]:
    """A retriever whose documents are asked for every second, and everything that watches it."""
    port = free_port()
    stage = Stage({REPLAY: [port]})
    items = [{"query": text, "expected": [name], "name": name} for name, text in TEXTS.items()]
    probe = {
        "kind": "http",
        "body": {"query": "{{ query }}", "k": "{{ k }}"},
        "contexts": "hits",
        "score": "similarity",
    }
    with (
        serving(index.route()) as address,
        stage.open(folder, lambda opened: replace(plan_at(opened, port), job=REPLAY, thresholds={}, objectives={})),
    ):
        suite = {"suite": SUITE, "schedule": "1s", "k": [1, 3], "items": items}
        config = write_config(
            folder,
            web=f"{{listen: '127.0.0.1:{port}'}}",
            canaries=json.dumps([suite | {"probe": probe | {"url": f"{address}/search"}}]),
        )
        with RagwatchProcess(config).wait_until_serving():
            until("runs of the suite", lambda: stage.value(f'ragwatch_canary_degraded{{suite="{SUITE}"}}') == 0)
            yield stage


def wait_until_told(stage: Stage, receivers: Sequence[str]) -> None:
    """Until these receivers, in this order, have been told of the suite, each once."""
    until(
        f"alerts to {receivers}",
        lambda: [alert.receiver for alert in told(stage, REPLAY) if alert.alert == DEGRADED] == list(receivers),
    )


def test_one_lost_document_is_a_ticket_and_most_of_them_are_a_page(tmp_path: Path) -> None:
    """Nobody is told of a healthy suite; the return of the documents ends everything, and nothing else is told."""
    index = Bm25(TEXTS)
    with watched(tmp_path, index) as stage:
        assert told(stage, REPLAY) == []
        index.delete(["refunds"])
        wait_until_told(stage, [MORNING])
        index.delete(["shipping", "opening"])
        wait_until_told(stage, [MORNING, ONCALL])
        index.restore(TEXTS)
        until("the end of all alerts", lambda: not stage.ask(f'ALERTS{{job="{REPLAY}",alertname="{DEGRADED}"}}'))
        texts = [alert.text for alert in told(stage, REPLAY)]
        assert [text.split(":")[0] for text in texts] == [SUITE, SUITE]
        assert {alert.alert for alert in told(stage, REPLAY)} == {DEGRADED}
