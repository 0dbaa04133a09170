"""Nothing leaves the machine but for what is configured, and nothing is written but the state: kind by kind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.patience import DEADLINE
from support.sealed import KINDS, SERVICE

from ragwatch import judges, probes

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
