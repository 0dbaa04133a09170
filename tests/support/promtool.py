"""promtool: its exit code and text, and rules that are tested with series and expected samples."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ragwatch.rules import yaml_text
from support.patience import DEADLINE


def promtool(*arguments: str | Path, given: str = "") -> tuple[int, str]:
    """Exit code of promtool, and what it says; `given` is what it reads."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is missing: Debian package `prometheus`")
    command = [program, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=DEADLINE)
    return done.returncode, done.stdout + done.stderr


def expects(expr: str, at: str, value: float = 1) -> dict[str, Any]:
    """The test of an expression that has one sample without labels."""
    return {"expr": expr, "eval_time": at, "exp_samples": [{"labels": "{}", "value": value}]}


def must_hold(folder: Path, rules: Any, test: Mapping[str, Any], **options: str) -> None:
    """Run one test against a rule file; it must pass."""
    (folder / "rules.yaml").write_text(yaml_text(rules))
    (folder / "test.json").write_text(json.dumps({"rule_files": ["rules.yaml"], **options, "tests": [test]}))
    code, text = promtool("test", "rules", folder / "test.json")
    assert code == 0, text[:6000]
