"""A daemon that keeps no texts leaves none, and nothing leaves the machine but for what is configured: kind by kind."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from functional.daemon import JUDGED, RagwatchProcess, asked, record, write_config
from support.patience import DEADLINE
from support.sealed import KINDS, SERVICE
from support.stores import readable

from ragwatch import judges, probes
from ragwatch.audit import verify
from ragwatch.commands import cli


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
        refused = asked(f"{ragwatch.address}/v1/labels/tasks", body)
        assert (refused.status, b"store.texts: is none" in refused.body) == (400, True)
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


TESTS = Path(__file__).parents[1]
SEALED = ["unshare", "--net", "--mount", "--map-root-user"]
EMBEDDED = ("lexical", "local", "detector")


def may_seal() -> bool:
    """Whether this machine lets us have namespaces of our own."""
    if not shutil.which("unshare"):
        return False
    return subprocess.run([*SEALED, "true"], capture_output=True, check=False, timeout=DEADLINE).returncode == 0


def test_every_kind_is_tried() -> None:
    """A new kind of judge or probe needs a run here."""
    assert set(KINDS) == {*judges.KINDS, *probes.KINDS}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind in {"openai", "rag"})) for kind in KINDS]
)
def test_asks_nobody_but_who_is_configured_and_writes_nowhere_else(kind: str, tmp_path: Path) -> None:
    """In a network of its own it looks up the configured name only, and home, temporary and working folder stay empty.

    No packet goes to another address than loopback. Without namespaces, what its Python asks for is looked at.
    """
    sealed = may_seal()
    program = [sys.executable, str(TESTS / "support" / "sealed.py"), str(tmp_path), kind]
    done = subprocess.run(
        [*SEALED, *program] if sealed else [*program, "--audit"],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["written"] == []
    assert seen["addresses"] == []
    if sealed:
        assert seen["names"] == ([] if kind in EMBEDDED else [SERVICE])
    else:
        assert set(seen["names"]) <= {"127.0.0.1", "::1", "localhost"}
