"""Programs of system packages, promtool among them, and free TCP ports for servers that tests start."""

import json
import os
import random
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ragwatch.rules import yaml_text
from support.patience import DEADLINE

LOWEST, EPHEMERAL = 10_000, 32_768
"""Ports below the range that Linux gives out by itself."""
WORKER, SHARES = "TEST_WORKER", 16
"""Variable that holds the number of a worker, and in how many shares workers divide the ports."""
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def installed(name: str, package: str = "") -> str:
    """Path of a program of a Debian package, by default one of its name; skips where it is missing."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing: Debian package `{package or name}`")
    return found


def tool(name: str, *arguments: str | Path, package: str) -> str:
    """Output of a tool that must end well; skips where it is missing."""
    command = [installed(name, package), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def promtool(*arguments: str | Path, given: str = "") -> tuple[int, str]:
    """Exit code of promtool, and what it says; `given` is what it reads."""
    command = [installed("promtool", "prometheus"), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=DEADLINE)
    return done.returncode, done.stdout + done.stderr


def free_port() -> int:
    """A port that is free now, and that no server of another test is given by the kernel in the meantime.

    A port of the ephemeral range would not do: a test beside this one that asks for port 0 may get the same. Each
    worker has ports of its own: a daemon that a test kills and starts again has none while it does not run.
    """
    draw = random.SystemRandom()  # tests run with fixed seeds, in several processes
    end = int(RANGE.read_text().split()[0]) if RANGE.exists() else EPHEMERAL
    while True:
        port = draw.randrange(LOWEST + int(os.environ.get(WORKER, "0")) % SHARES, max(end, LOWEST + 1_000), SHARES)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def expects(expr: str, at: str, value: float = 1) -> dict[str, Any]:
    """The test of an expression that has one sample without labels."""
    return {"expr": expr, "eval_time": at, "exp_samples": [{"labels": "{}", "value": value}]}


def must_hold(folder: Path, rules: Any, test: Mapping[str, Any], **options: str) -> None:
    """Run one test against a rule file; it must pass."""
    (folder / "rules.yaml").write_text(yaml_text(rules))
    (folder / "test.json").write_text(json.dumps({"rule_files": ["rules.yaml"], **options, "tests": [test]}))
    code, text = promtool("test", "rules", folder / "test.json")
    assert code == 0, text[:6000]
