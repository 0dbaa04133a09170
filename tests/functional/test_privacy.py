"""A real daemon that keeps no texts: pages show scores, and a kill leaves no text of what is settled."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner
from functional.daemon import RagwatchProcess, record, write_config
from support.patience import DEADLINE
from support.stores import readable

from ragwatch.audit import verify
from ragwatch.commands import cli

JUDGED = 'ragwatch_samples_judged_total{judge="embedded",route="search"}'


@pytest.mark.costly
def test_a_daemon_without_texts(tmp_path: Path) -> None:
    """It measures as usual, says on pages and to annotators why there is no text, and records who looked."""
    config = write_config(tmp_path, store="{kind: sqlite, texts: none}", audit="{file: audit.jsonl}")
    (tmp_path / "log" / "a.jsonl").write_text(f"{record(0, question='Is SECRET here?')}\n{record(1)}\n")
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        series = ragwatch.wait_for(JUDGED, 2.0)
        assert series[JUDGED] == 2.0
        rows = json.loads(ragwatch.get("/api/v1/samples")[1])["samples"]
        assert [row["sample"] for row in rows] == [None, None]
        assert {row["verdict"]["scores"]["faithfulness"] for row in rows} == {1.0}
        key = rows[0]["verdict"]["key"]
        assert "are deleted after judging" in ragwatch.get(f"/samples/{key}")[1]
        body = json.dumps({"annotator": "ann", "count": 1}).encode()
        request = urllib.request.Request(f"{ragwatch.address}/v1/labels/tasks", body)
        with pytest.raises(urllib.error.HTTPError, match="400") as refused:
            urllib.request.urlopen(request, timeout=DEADLINE)
        assert b"store.texts: is none" in refused.value.read()
        refused.value.close()
        forget = ["forget", "--config", str(config), "--url", ragwatch.address]
        assert CliRunner().invoke(cli, [*forget, "request-0"], standalone_mode=False).return_value == 0
        ragwatch.kill()
    assert CliRunner().invoke(cli, [*forget[:-2], "request-0"], standalone_mode=False).return_value == 3
    state = readable(tmp_path / "state")
    assert (b"SECRET" in state, b"request-0" in state, b"request-1" in state) == (False, False, True)
    log = tmp_path / "audit.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["action"], line.get("path"), len(line["keys"])) for line in lines] == [
        ("read", "/api/v1/samples", 2),
        ("read", "/samples", 1),
        ("read", "/v1/labels/tasks", 0),
        ("write", "/v1/forget", 1),
    ]
    assert verify([log]).error is None
