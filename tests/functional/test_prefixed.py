"""The daemon over a log whose lines begin with a logger's own text, and whose routes are paths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from functional.forked import run_forked

ROW = {
    "question": "What is said of the mill?",
    "contexts": ["The old mill stands by the river."],
    "answer": "The old mill stands by the river.",
    "route": "/v1/items/{id}",
}


@pytest.mark.parametrize(("skip", "reason"), [("true", None), ("false", "torn_json")])
def test_text_before_the_json_is_passed_over_where_it_is_asked_for(
    tmp_path: Path, skip: str, reason: str | None
) -> None:
    """With `skip_prefix` every line is a sample on its route; without, every one is rejected and counted."""
    log = tmp_path / "app.log"
    log.write_text("".join(f"2026-01-01 12:00:{n:02},0 INFO {{app}} {json.dumps(ROW)}\n" for n in range(20)))
    config = tmp_path / "ragwatch.yaml"
    config.write_text(
        f"state: {tmp_path}/state\nroutes: ['/v1/items/{{id}}']\nsampling: {{probability: 1.0}}\n"
        f"sources: [{{kind: tail, name: app, path: '{log}', start: beginning, skip_prefix: {skip}}}]\n"
    )
    done = run_forked("run", "--once", "--config", config)
    judged = 'ragwatch_samples_judged_total{judge="embedded",route="/v1/items/{id}"} 20.0'
    assert (judged in done.stdout) == (reason is None)
    rejected = 'ragwatch_requests_rejected_total{reason="torn_json",source="app"} 20.0'
    assert (rejected in done.stdout) == (reason is not None)
